"""Small tables with values at the edges, and what is asked of them, for the tests of Skipping and Sieve in Spark."""

import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from grebe.indexes.kind import Kind
from grebe.indexes.sketches.protocol import Sketch
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.parse import parse
from grebe.predicate.tree import opaque_terms
from tests.spark.served import Served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = 30
_DAY = 86_400_000_000
_STAMP = pa.timestamp("us", "UTC")
# Years 1 and 1582, 1883, before and after 1970, 9999 and after.
_TIMES = [-62_135_596_800_000_000, -12_219_292_800_000_000, -2_717_650_800_000_001, -1, 0, 1_700_000_000_123_456]
_TIMES += [253_402_300_799_999_999, 253_402_300_800_000_000]
_DOUBLES = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308, 5e-324, -1.5]
_DECIMALS = [Decimal(10**36 - 1), Decimal(1 - 10**36), Decimal("0.01"), Decimal("-0.01"), Decimal(0)]
_DECIMALS += [Decimal("12345678901234567890.12")]
_TEXTS = ["", "a", "a ", "abc", "\U0001f41f grebe", "\uffff", "\ud7ff", "z" * 70, "z" * 64, "é", "it's", "100%", "a_b"]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("s", pa.string()),
        ("ts", _STAMP),
        ("dec", pa.decimal128(38, 2)),
        ("x", pa.float64()),
        ("d", pa.date32()),
        ("b", pa.bool_()),
        ("st", pa.struct([("a", pa.int32()), ("t", pa.string())])),
    ]
)
TEXT_DDL = "id bigint, n int, s string, ts timestamp, dec decimal(38,2), x double, d date, b boolean"
NESTED_DDL = TEXT_DDL + ", st struct<a:int,t:string>"


def part(number: int, rows: int = ROWS) -> pa.Table:
    """Of one file: values of its own, some that lie at the edges, and NULLs; in every fifth file nothing but NULL."""
    chance = random.Random(number)

    def some(own: Any, edges: Sequence[Any]) -> Any:
        draw = chance.random()
        return None if number % 5 == 4 or draw < 0.1 else chance.choice(edges) if draw < 0.2 else own

    days = [time // _DAY for time in _TIMES]
    made: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for row in range(rows):
        made["id"].append(number * 1_000 + row)
        made["n"].append(some(number * 10 + row % 10, [-(2**31), 2**31 - 1]))
        made["s"].append(some(f"file {number} row {row}", _TEXTS))
        made["ts"].append(some(number * _DAY + row, _TIMES))
        made["dec"].append(some(Decimal(number * 100 + row) / 4, _DECIMALS))
        made["x"].append(some(number + row / 100, _DOUBLES))
        made["d"].append(some(number, days))
        made["b"].append(some(number % 2 == 0, [True, False]))
        made["st"].append(some({"a": number, "t": some(f"in {number}", _TEXTS)}, [None, {"a": None, "t": None}]))
    arrays = {
        **made,
        "ts": pa.array(made["ts"], pa.int64()).view(_STAMP),
        "d": pa.array(made["d"], pa.int32()).view(pa.date32()),
    }
    return pa.table(arrays, schema=SCHEMA)


def write(folder: Path, numbers: Iterable[int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        pq.write_table(part(number), folder / f"{number}.parquet")


SKETCHES: list[Sketch] = [
    *(grebe.MinMax(name) for name in ("n", "s", "ts", "dec", "x", "d", "b")),
    *(grebe.Bloom(name) for name in ("s", "dec", "x", "ts")),
    *(grebe.ValueList(name, 40) for name in ("n", "d", "x", "b")),
    *(grebe.Intervals(name) for name in ("n", "ts", "x", "dec")),
    grebe.Ngram("s"),
    grebe.NullCount("id"),
]
NESTED: list[Sketch] = [grebe.MinMax("st.a"), grebe.Bloom("st.t"), grebe.Ngram("st.t", "s"), grebe.ValueList("st.a")]
SIEVES: list[Kind] = [grebe.Sieve(f"sieve_{name}", on=name, budget=0.2) for name in ("s", "ts", "dec", "x")]

PREDICATES = [
    "n = 20", "n <=> NULL", "n <> 20 AND n < 40", "n IN (5, 31, NULL)", "n NOT IN (5, 31)", "NOT (n > 15 OR n IS NULL)",
    "n = 2147483647", "n BETWEEN 12 AND 13 OR s = 'abc'", "s = 'file 3 row 7'", "s LIKE 'file 2%'", "s LIKE '%row 11'",
    "s LIKE '%grebe%'", "s LIKE '%' AND s < 'b'", "s LIKE 'a\\\\_b'", "s = ''", "s IN ('z', 'a ', 'it\\'s')", "s > 'zz'",
    "contains(s, 'e 1 r')", "ts < TIMESTAMP '1970-01-01 00:00:00Z'", "ts = TIMESTAMP '1969-12-31 23:59:59.999999Z'",
    "ts > TIMESTAMP '9999-12-31 00:00:00Z'", "ts >= TIMESTAMP '1970-01-03 00:00:00Z' AND ts < TIMESTAMP '1970-01-04 00:00:00Z'",
    "dec = 0.01", "dec > 12345678901234567890", "dec < -999999999999999999999999999999999999.00", "dec IN (75.25, 0)",
    "x = 'NaN'", "x = 0.0", "x > 1e300", "x <=> -0.0D AND n IS NOT NULL", "x BETWEEN 2.0 AND 2.05", "isnull(x)",
    "d = DATE '1970-01-03'", "d < DATE '1582-10-15'", "d IS NOT NULL AND b", "NOT b", "year(d) = 1970 AND n > 25",
]  # fmt: skip
NESTED_PREDICATES = ["st.a = 3", "st.t = 'in 2'", "st.t LIKE '%grebe%'", "st.a IS NULL", "st IS NULL", "NOT (st.a < 4)"]


@dataclass(frozen=True)
class Truth:
    """What a plain scan finds."""

    ids: Mapping[str, set[int]]
    """Of each predicate."""
    files: Mapping[int, str]
    """The name of the file of each row."""

    def some(self, step: int, more: Collection[str] = ()) -> "Truth":
        """Of fewer predicates."""
        kept = {*list(self.ids)[::step], *more}
        return Truth({text: ids for text, ids in self.ids.items() if text in kept}, self.files)


def by_spark(served: Served, frame: "DataFrame", predicates: Sequence[str]) -> Truth:
    served.lake.enabled = False
    try:
        rows = frame.selectExpr("id", "_metadata.file_name", *(f"({text})" for text in predicates)).collect()
    finally:
        served.lake.enabled = True
    ids = {text: {row[0] for row in rows if row[number + 2]} for number, text in enumerate(predicates)}
    return Truth(ids, {row[0]: row[1] for row in rows})


def by_arrow(folder: Path, predicates: Sequence[str]) -> Truth:
    """Without Spark, as far as it can be told."""
    tables = {file.name: pq.read_table(file) for file in sorted(folder.glob("*.parquet"))}
    whole = pa.concat_tables(tables.values())
    bound = {text: bind(parse(text), whole.schema) for text in predicates}
    told = {text: one for text, one in bound.items() if not opaque_terms(one)}
    ids = {text: set(whole["id"].filter(matches(whole, one)).to_pylist()) for text, one in told.items()}
    return Truth(ids, {id: name for name, table in tables.items() for id in table["id"].to_pylist()})


def require_same(served: Served, view: str, true: Truth) -> set[str]:
    """Of each predicate with indexes just these rows; every other is asked without the index of all sketches, which leaves the
    others nothing to do. The names of the indexes that were used."""
    used: set[str] = set()
    for number, (text, ids) in enumerate(true.ids.items()):
        with served.lake.without("all") if number % 2 else nullcontext():
            seen = served.run(f"SELECT id FROM {view} WHERE {text}")
        assert seen.rows == {f"Row(id={number})": 1 for number in ids}, text
        used.update(seen.used)
    return used


def require_files(folder: Path, true: Truth, format: str = "parquet") -> dict[str, int]:
    """Without Spark: no file with a matching row is left out. How many files are left out of each predicate."""
    table = grebe.open(str(folder), format=format)
    pruned = {}
    for text, ids in true.ids.items():
        answer = table.files(text)
        kept = {file.path.rpartition("/")[2] for file in answer.files}
        assert {true.files[id] for id in ids} <= kept, text
        pruned[text] = answer.pruned
        # Times of text and of ORC reach farther in Spark than Grebe can read by itself, and some functions are Spark's alone.
        if format == "parquet" and not text.startswith("year("):
            assert set(table.scan(text, columns=["id"])["id"].to_pylist()) == ids, text
            assert (table.count(text), table.exists(text)) == (len(ids), bool(ids)), text
    return pruned
