"""Queries from an event log of Spark's (`spark.eventLog.enabled`): which files each scan read, which columns, under which filters.

An event log holds no SQL, but the physical plan of every query. Each of its scans becomes a query of its own, as often as it ran:
joins and groups above it are not told by their columns in a way that could be read back.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grebe.advisor.recommend.texts import Weighed
from grebe.errors import InvalidStatement

_STARTED = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
_SCAN = re.compile(r"Scan (parquet|orc)\b")
_LOCATION = re.compile(r"\[(?P<path>[^\],]+)\]?")
_NUMBER = re.compile(r"#\d+L?")
_COLUMN = re.compile(r"(?:^|,)\s*(\w+)\s*:")
_FILTERS = "DataFilters"
_DATE = re.compile(r"\b(\w+) (=|<|<=|>|>=) (\d{4}-\d{2}-\d{2})(?=[)\]])")


def queries_in_events(path: str) -> list[Weighed]:
    """Of a file, or of the files of a folder. Raises `InvalidStatement` for what is no event log."""
    place = Path(path)
    files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    found: Counter[str] = Counter()
    events = 0
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as problem:
            raise InvalidStatement(
                f"{path} cannot be read as an event log ({type(problem).__name__}); give the path of a file of spark.eventLog.dir",
                detail="EVENT_LOG",
            ) from problem
        for line in lines:
            event = _event(line)
            if event is not None:
                events += 1
                if event.get("Event") == _STARTED:
                    found.update(_scans(event.get("sparkPlanInfo") or {}))
    if not events:
        raise InvalidStatement(
            f"{path} holds no event of Spark's; give a file that Spark wrote under spark.eventLog.enabled=true, uncompressed",
            detail="EVENT_LOG",
        )
    return [Weighed(text, float(count)) for text, count in found.items()]


def _event(line: str) -> dict[str, Any] | None:
    """None for a line that was cut short."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "Event" in found else None


def _scans(plan: Mapping[str, Any]) -> Iterator[str]:
    text = _query(plan)
    if text is not None:
        yield text
    for child in plan.get("children") or ():
        yield from _scans(child)


def _query(node: Mapping[str, Any]) -> str | None:
    format = _SCAN.match(str(node.get("nodeName", "")))
    facts = node.get("metadata") or {}
    location = _LOCATION.search(str(facts.get("Location", "")))
    if format is None or location is None:
        return None
    columns = _COLUMN.findall(str(facts.get("ReadSchema", "")).removeprefix("struct<"))
    where = _where(str(facts.get(_FILTERS, "[]")))
    return f"SELECT {', '.join(f'`{one}`' for one in columns) or '1'} FROM {format[1]}.`{location['path']}`{where}"


def _where(told: str) -> str:
    """Filters as Spark writes them for people, without the numbers of columns. Text is not quoted there, and so left out."""
    inner = _NUMBER.sub("", told.strip()[1:-1])
    kept = [part for part in _parts(inner) if _is_plain(part)]
    dated = [_DATE.sub(r"\1 \2 DATE '\3'", part) for part in kept]
    return f" WHERE {' AND '.join(dated)}" if dated else ""


def _parts(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    if text[start:].strip():
        yield text[start:].strip()


def _is_plain(part: str) -> bool:
    """A comparison of a column with a number or a date."""
    return bool(re.fullmatch(r"\(\w+ (?:=|<|<=|>|>=) (?:-?\d+(?:\.\d+)?|\d{4}-\d{2}-\d{2})\)", part))
