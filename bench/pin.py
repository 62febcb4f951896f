"""How fast are queries of rows that are pinned, next to the same handle without a pin, and to DuckDB with the same rows in memory?

Keys by number and by text, boxes of some hundred rows, and a condition on other columns. DuckDB has an index on both keys; its
answers come as Arrow, as ours do. No Spark: the files are written by pyarrow.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench.harness import Report, Scale, medians, timed
from grebe.session.table import Table

OURS, PLAIN, DUCKDB = "pinned", "not pinned", "DuckDB in memory"
_FILES = 8
Work = Callable[[int], object]


def run(scale: Scale, report: Report) -> None:
    rows, runs = scale.pick((1_000_000, 15), (20_000_000, 51))
    with tempfile.TemporaryDirectory() as folder:
        keys = _write(Path(folder), rows)
        table, plain = grebe.open(folder), grebe.open(folder)
        base = duckdb.connect()
        base.execute("SET threads = 2")
        for number in range(4):
            for name in ("get by number", "get by text", "box"):
                _cases(table, base, keys)[name][0](number)
        report.add(
            "pin",
            "s",
            timed(lambda: table.pin(memory="8GB"))(),
            f"{DUCKDB}, loaded",
            timed(lambda: _load(base, folder))(),
        )
        (pinned,) = table.pinned
        report.add(
            "memory", "bytes", pinned.bytes, "the files", sum(file.stat().st_size for file in Path(folder).iterdir())
        )
        for case, (ours, rival) in _cases(table, base, keys).items():
            without = _cases(plain, base, keys)[case][0]
            assert len(ours(1)) == len(without(1)) == len(rival(1)), case  # type: ignore[arg-type]  # tables
            turns = {name: _in_turn(work) for name, work in ((OURS, ours), (PLAIN, without), (DUCKDB, rival))}
            cost = medians(turns, runs)
            for name in (PLAIN, DUCKDB):
                report.add(case, "s", cost[OURS], name, cost[name], runs)


def _in_turn(work: Work) -> Callable[[], float]:
    """Another question every time."""
    asked = iter(range(10**9))
    return timed(lambda: work(next(asked)))


def _write(folder: Path, rows: int) -> pa.Table:
    """Rides between places that crowd in some spots; some keys to ask for."""
    chance = np.random.default_rng(10)
    keys = []
    for file in range(_FILES):
        count = rows // _FILES
        spot = chance.integers(0, 40, count)
        ids = chance.integers(0, 2**62, count)
        table = pa.table(
            {
                "id": ids,
                "code": pa.array(ids).cast(pa.string()),
                "x": spot % 8 + chance.normal(0, 0.2, count),
                "y": spot // 8 + chance.normal(0, 0.2, count),
                "amount": chance.gamma(2, 10, count),
                "day": pa.array((np.arange(count) + file * count) // 5000 % 3000, pa.int32()).cast(pa.date32()),
            }
        )
        pq.write_table(table, folder / f"{file}.parquet")
        keys.append(table.slice(1000, 100))
    return pa.concat_tables(keys)


def _load(base: duckdb.DuckDBPyConnection, folder: str) -> None:
    base.execute(f"CREATE TABLE t AS FROM '{folder}/*.parquet'")
    base.execute("CREATE INDEX by_id ON t (id)")
    base.execute("CREATE INDEX by_code ON t (code)")


def _cases(table: Table, base: duckdb.DuckDBPyConnection, keys: pa.Table) -> dict[str, tuple[Work, Work]]:
    """Each for Grebe, and for DuckDB."""

    def key(name: str, number: int) -> object:
        return keys[name][number * 37 % len(keys)].as_py()

    def asked(where: str, columns: str = "*") -> Callable[[], pa.Table]:
        return lambda: base.sql(f"SELECT {columns} FROM t WHERE {where}").to_arrow_table()

    def box(number: int) -> str:
        x, y = 0.5 + number % 6, 0.4 + number % 4
        return f"x BETWEEN {x} AND {x + 0.05} AND y BETWEEN {y} AND {y + 0.05}"

    def late(number: int) -> str:
        return f"day >= DATE '1970-01-{1 + number % 20:02}' AND amount < 1.0"

    return {
        "get by number": (
            lambda number: table.get("id", key("id", number)),
            lambda number: asked(f"id = {key('id', number)}")(),
        ),
        "get by text": (
            lambda number: table.get("code", key("code", number)),
            lambda number: asked(f"code = '{key('code', number)}'")(),
        ),
        "box": (lambda number: table.scan(box(number)), lambda number: asked(box(number))()),
        "rows of a condition": (
            lambda number: table.scan(late(number), ["id"]),
            lambda number: asked(late(number), "id")(),
        ),
    }
