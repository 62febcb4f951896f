"""Tables of text with all that makes records hard to find: quotes, escapes, line breaks within quotes, marks, blank lines."""

import gzip
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import grebe
from grebe.indexes.lookup.spec import Lookup
from grebe.log.describe import IndexInfo
from grebe.session.lake_table import LakeTable
from tests.formats.reading_back import comparable, plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CSV_SCHEMA = "k int, s string, d double, p int"
PIECES = ["a", "bc", " ", "é", "🐟", "\u2028", "#", "/", ",", ";", "\t", '"', "'", "\\", "^", "=", "null", "%"]


def write_csv(folder: Path, options: Mapping[str, str], seed: str, files: int = 3, rows: int = 60) -> None:
    chance = random.Random(seed)
    for number in range(files):
        sep, end = options.get("sep", ","), options.get("lineSep") or chance.choice(["\n", "\r\n"])
        if options.get("multiLine") == "true":
            end = "\n"
        lines = [sep.join(("k", "s", "d"))] if options.get("header") == "true" else []
        for _ in range(rows):
            key = chance.choice(["", *(str(one) for one in range(40))])
            lines.append(sep.join((key, _field(chance, options), chance.choice(["", "1.5", "-0.0", "NaN", "7"]))))
            lines += [""] * chance.choice([0, 0, 0, 0, 1])
        mark = b"\xef\xbb\xbf" if chance.random() < 0.5 and "multiLine" not in options else b""
        encoding = options.get("encoding", "utf-8")
        data = mark + (end.join(lines) + chance.choice(["", end, end + end])).encode(encoding, "replace")
        place = folder / f"p={number}"
        place.mkdir(parents=True)
        if options.get("compressed"):
            (place / "t.csv.gz").write_bytes(gzip.compress(data))
        else:
            (place / "t.csv").write_bytes(data)


def _field(chance: random.Random, options: Mapping[str, str]) -> str:
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    broken = ["\n"] if options.get("multiLine") == "true" else []
    special = (quote, escape, options.get("sep", ","), options.get("lineSep") or "\n", *broken)
    text = "".join(chance.choices([*PIECES, *broken], k=chance.randrange(6)))
    if options.get("lineSep"):
        text = text.replace(options["lineSep"], "")
    if not any(one in text for one in special) and chance.random() < 0.7:
        return text
    # Not what makes a file ambiguous (tests/spark/test_ambiguous.py): no index would cover it.
    if escape != quote:
        text = (text.rstrip(escape) if broken else text).replace(escape, escape * 2)
    else:
        for before in ("\n", options.get("sep", ",")):
            text = text.replace(before + quote, f"{before}z{quote}")
        text = f"z{text}" if not text or text.startswith(quote) else text
    return quote + text.replace(quote, escape + quote) + quote


def write_json(folder: Path, seed: str, files: int = 3, rows: int = 60) -> None:
    chance = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(files):
        lines = []
        for _ in range(rows):
            text = "".join(chance.choices([*PIECES, "\n", "\x01"], k=chance.randrange(6)))
            record = {"k": {"id": chance.choice([None, *range(40)]), "z": [text]}, "s": text, "d": chance.random()}
            for name in list(record):
                if chance.random() < 0.1:
                    del record[name]
            lines.append(json.dumps(record, ensure_ascii=chance.random() < 0.5))
            lines += chance.choices(["", "  "], k=chance.choice([0, 0, 1]))
        (folder / f"{number}.json").write_text(chance.choice(["\n", "\r\n"]).join(lines), encoding="utf-8", newline="")


def write_text(folder: Path, seed: str, files: int = 3, rows: int = 60) -> None:
    chance = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(files):
        lines = ["".join(chance.choices(PIECES, k=chance.randrange(3))) for _ in range(rows)]
        (folder / f"{number}.txt").write_text(chance.choice(["\n", "\r\n", "\r"]).join(lines), "utf-8", newline="")


def create(spark: "SparkSession", frame: "DataFrame", key: str, *include: str) -> IndexInfo:
    (made,) = LakeTable(spark, frame).create(Lookup("by_key", on=key, include=include))
    return made


def require_found(folder: Path, frame: "DataFrame", key: str, format: str) -> None:
    """That every key gives without Spark, by its records alone, just the rows that Spark gives."""
    table = grebe.open(str(folder), format=format)
    rows: dict[Any, list[tuple[Any, ...]]] = {}
    for row in frame.selectExpr(f"{key} AS _key", *frame.columns).collect():
        rows.setdefault(row[0], []).append(tuple(comparable(value) for value in row[1:]))
    assert len(rows) > 5
    for value, expected in rows.items():
        found: pa.Table = table.get(key, value)
        assert found.column_names == frame.columns
        assert sorted(map(repr, plain(found))) == sorted(map(repr, expected)), value
        condition = grebe.col(key).is_null() if value is None else grebe.col(key) == value
        answer = table.files(condition)
        assert answer.index == "by_key"
        assert table.rows(condition).num_rows == len(expected), "single records, and no whole file"
