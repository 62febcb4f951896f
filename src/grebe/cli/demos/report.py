"""What the demo found, as one page with pictures that needs nothing else to be looked at."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from grebe.cli.output import Row
from grebe.shown import html, picture

_STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:960px;margin:32px auto;padding:0 16px;color:#222;background:#fff}"
    "h1{font-size:24px}h2{font-size:17px;margin-top:32px}p{line-height:1.5}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1b}}"
)
_LOG = "Two processes wrote to the log of one table at the same time. Every commit took exactly one place, and no file got two ids."
_QUERIES = (
    "The same queries on the same files, with indexes and without; medians, in milliseconds. Not one line of a query was "
    "changed, and the answers were compared. The last one runs after a file was added that no index knows: it is read "
    "directly, beside the index."
)
_LOOKUPS = "One row of a few million by its id, in a process without Spark and Java."


def write_report(place: Path, told: Mapping[str, Sequence[Row]], explained: str, tables: Mapping[str, str]) -> Path:
    """`explained` and `tables` (indexes, by the name of their table) are HTML already."""
    race = _section("A log that many may write", _LOG, html.table(list(told["log"][0]), told["log"]))
    parts = [race]
    if "queries" in told:
        shown = [html.title(name) + table for name, table in tables.items()]
        parts = [
            _section("Queries with and without indexes", _QUERIES, *map(_compared, told["queries"])),
            _section("What the last of them used", "", explained),
            _section("The indexes", "", *shown),
            _section("Lookups", _LOOKUPS, _lookups(told["lookups"])),
            race,
        ]
    page = (
        f"<!doctype html><meta charset=utf-8><title>Grebe: a demo</title><style>{_STYLE}</style><h1>Grebe: a demo</h1>"
    )
    place.write_text(page + "".join(parts), encoding="utf-8")
    return place


def _section(title: str, says: str, *inner: str) -> str:
    text = f"<p>{escape(says)}</p>" if says else ""
    return f"<h2>{escape(title)}</h2>{text}{''.join(inner)}"


def _compared(row: Row) -> str:
    used = ", ".join(map(str, _listed(row["used"]))) or "no index"
    bars = [(name, _number(row[key]), f"{row[key]} ms") for name, key in _BARS.items()]
    return html.title(f"{row['query']}: {row['times_faster']} times as fast, by {used}") + picture.amounts(bars)


_BARS = {"without": "without_ms", "with indexes": "with_ms"}


def _lookups(rows: Sequence[Row]) -> str:
    times = [(str(row["way"]), _number(row["ms"]), f"{row['ms']} ms") for row in rows]
    read = [(str(row["way"]), _number(row["bytes"]), f"{_number(row['bytes']):,.0f} bytes") for row in rows]
    colours = (picture.SPARED, *(picture.READ for _ in rows[1:]))
    return html.title("Time") + picture.amounts(times, colours) + html.title("Read") + picture.amounts(read, colours)


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
