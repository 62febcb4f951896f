"""Is what `recommend` chooses as good as an expert's choice of the same size, do its predictions hold, and is it fast?

TPC-H and TPC-DS with the recommended indexes, with indexes picked by hand within the same bytes, and without any, taking turns in
one session; bytes, build times and gains as they were predicted and as they came; eight candidates against all of their sets; and a
workload of 1,000 queries over 50 tables.
"""

import itertools
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench._advised import Truth, Workload, compare
from bench._hand_picked import TPCDS
from bench._session import bench_session
from bench.harness import Report, Scale
from bench.tpch import INDEXES
from grebe.advisor.recommend.choosing import Limits, best
from grebe.advisor.recommend.considering import considered
from grebe.advisor.recommend.texts import Weighed
from grebe.session.advice import paths_as_views
from testbed import tpcds, tpch
from testbed.cached import working_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = ("tpch", "tpcds", "exhaustive", "many")
_TABLES, _QUERIES = 50, 1_000
_FILES, _ROWS = 4, 5_000
_SOME_OF_TPCDS = (3, 7, 12, 15, 19, 20, 21, 25, 26, 29, 37, 42, 43, 46, 52, 55, 68, 79, 82, 98)
"""Of the 99 queries those that read one fact table, or two, by date, item or customer: what an index could be for."""
_CANDIDATES = 8
_SHARES = (0.2, 0.4, 0.6, 1.0)


def run(scale: Scale, report: Report, parts: Sequence[str] = PARTS) -> None:
    truth = Truth()
    for part in parts:
        # A session each: what one part has warmed up is of no use to another.
        with bench_session() as (spark, folder):
            _PARTS[part](grebe.attach(spark), spark, folder, scale, report, truth)
    truth.tell(report)


def _tpch(lake: "grebe.Lake", spark: "SparkSession", folder: Path, scale: Scale, report: Report, truth: Truth) -> None:
    tables = working_copy(tpch.generate(scale.pick(0.1, 1)), folder / "lake")
    _named(spark, tables, tpch.TABLES)
    queries = {f"Q{number}": tpch.query(number) for number in tpch.QUERIES}
    compare(spark, lake, Workload("TPC-H", tables, queries, INDEXES), 2, report, truth)


def _tpcds(lake: "grebe.Lake", spark: "SparkSession", folder: Path, scale: Scale, report: Report, truth: Truth) -> None:
    try:
        data = tpcds.generate(scale.pick(0.1, 1))
    except subprocess.CalledProcessError:
        print("TPC-DS is left out: DuckDB's extension tpcds cannot be installed here")
        return
    tables = working_copy(data, folder / "lake")
    _named(spark, tables, tpcds.tables(tables))
    texts = tpcds.queries(tables)
    queries = {f"Q{number}": tpcds.in_spark(texts[number]) for number in _SOME_OF_TPCDS}
    compare(spark, lake, Workload("TPC-DS", tables, queries, TPCDS), 2, report, truth)


def _named(spark: "SparkSession", folder: Path, tables: Sequence[str]) -> None:
    """In the catalog: over a temporary view no view is stored."""
    for name in tables:
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder / name}'")


def _exhaustive(
    lake: "grebe.Lake", spark: "SparkSession", folder: Path, scale: Scale, report: Report, truth: Truth
) -> None:
    """Eight candidates of three tables: each of their sets is tried."""
    names = _tables(folder, 3)
    queries = [Weighed(text) for text in _queries(names, 120)]
    with paths_as_views(spark) as spelled:
        seen = considered(lake._spark, queries, lake._opened_for_advice, spelled)
    options = sorted(seen.options, key=lambda one: seen.costs.total([one]))[:_CANDIDATES]
    sets = [chosen for count in range(len(options) + 1) for chosen in itertools.combinations(options, count)]
    worst = 1.0
    for share in _SHARES:
        limits = Limits(share * sum(one.bytes for one in options), _CANDIDATES, float("inf"))
        right = min(seen.costs.total(chosen) for chosen in sets if limits.allow(chosen))
        worst = max(worst, seen.costs.total(best(options, seen.costs, limits)) / right)
    report.add(f"{_CANDIDATES} candidates (goal 1.05)", "cost", worst, f"best of {len(sets)} sets", 1.0, len(_SHARES))


def _many(lake: "grebe.Lake", spark: "SparkSession", folder: Path, scale: Scale, report: Report, truth: Truth) -> None:
    names = _tables(folder, _TABLES)
    lake.recommend(_queries(names[:2], 10))
    for count in (_QUERIES // 4, _QUERIES):
        start = time.perf_counter()
        lake.recommend(_queries(names, count))
        goal = " (goal 60)" if count == _QUERIES else ""
        report.add(f"{count:,} queries over {_TABLES} tables{goal}", "s", time.perf_counter() - start)


def _tables(folder: Path, count: int) -> list[str]:
    """By the paths that queries name them by."""
    chance = np.random.default_rng(1)
    names = []
    for number in range(count):
        place = folder / f"t{number:02}"
        place.mkdir()
        for file in range(_FILES):
            columns = {
                "id": np.arange(file * _ROWS, (file + 1) * _ROWS),
                "other": chance.integers(0, _ROWS * _FILES, _ROWS),
                "shop": chance.integers(0, 500, _ROWS, dtype=np.int32),
                "day": pa.array(19_000 + chance.integers(0, 365, _ROWS), pa.int32()).cast(pa.date32()),
                "price": chance.integers(0, 5_000, _ROWS),
                "amount": chance.random(_ROWS),
                "note": [f"note {one}" for one in chance.integers(0, 10**9, _ROWS)],
            }
            pq.write_table(pa.table(columns), place / f"{file}.parquet")
        names.append(f"parquet.`{place}`")
    return names


def _queries(names: Sequence[str], count: int) -> list[str]:
    """Points, sums, weeks, joins and groups: five questions of each table, about other values each time."""
    chance = np.random.default_rng(3)
    found = []
    for number in range(count):
        table, joined = names[number % len(names)], names[(number * 7 + 1) % len(names)]
        key, shop, price = (int(chance.integers(0, most)) for most in (_ROWS * _FILES, 500, 5_000))
        week = f"DATE '2022-{1 + number % 11:02}-01' AND DATE '2022-{1 + number % 11:02}-08'"
        texts = (
            f"SELECT * FROM {table} WHERE id = {key}",
            f"SELECT sum(price) FROM {table} WHERE shop = {shop}",
            f"SELECT shop, sum(price), count(*) FROM {table} WHERE day BETWEEN {week} GROUP BY shop",
            f"SELECT a.price, b.amount FROM {table} a JOIN {joined} b ON a.other = b.id WHERE a.shop = {shop}",
            f"SELECT day, sum(amount) FROM {table} WHERE price > {price} AND day BETWEEN {week} GROUP BY day",
        )
        found.append(texts[number // len(names) % len(texts)])
    return found


_PARTS = dict(zip(PARTS, (_tpch, _tpcds, _exhaustive, _many), strict=True))
