"""Measure the time that the optimizer rule adds to a query, and the time that a query takes with what the rule decides.

The rival is the same session with Grebe disabled. Planning runs from the parsed query to the physical plan. Keys are new in every
run, so that no answer comes from a cache of earlier ones.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench._session import bench_session
from bench.harness import Contestant, Report, Scale, ratio_interval, samples, timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RIVAL = "Spark, Grebe disabled"
_FILES = 64

Query = Callable[[int], str]


def run(scale: Scale, report: Report) -> None:
    rows, runs = scale.pick(1_000_000, 10_000_000), scale.pick(25, 101)
    with bench_session() as (spark, folder):
        for name in ("plain", "indexed"):
            _write(spark, folder / name, rows)
        lake = grebe.attach(spark)
        lake.table(str(folder / "indexed")).create(
            grebe.Covering("by_customer", on="customer", include=["price"]),
            grebe.Lookup("by_id", on="id"),
            grebe.Skipping("days", grebe.MinMax("day")),
        )
        for name in ("plain", "indexed"):
            spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
        queries: dict[str, Query] = {
            "a table without indexes, one key": lambda key: f"SELECT price FROM plain WHERE customer = {key}",
            "a covering index, one key": lambda key: f"SELECT price FROM indexed WHERE customer = {key}",
            "a lookup index, one key": lambda key: f"SELECT price, day FROM indexed WHERE id = {key * 37}",
            "a skipping index, one day": lambda key: f"SELECT sum(price) FROM indexed WHERE day = {key % 365}",
            "a covering index, groups": lambda key: (
                f"SELECT customer, sum(price) FROM indexed WHERE customer > {key} GROUP BY customer"
            ),
        }
        for name, query in queries.items():
            _compare(spark, lake, report, f"planning: {name}", query, runs, _plan)
        for name, query in queries.items():
            _compare(spark, lake, report, f"whole: {name}", query, runs, lambda frame: frame.collect())


def _write(spark: "SparkSession", path: Path, rows: int) -> None:
    columns = ("id", "id % 5000 AS customer", "CAST(id * 365 / {rows} AS INT) AS day", "id * 2.5 AS price")
    frame = spark.range(0, rows, 1, _FILES).selectExpr(*(column.format(rows=rows) for column in columns))
    frame.write.parquet(str(path))


def _plan(frame: "DataFrame") -> object:
    return frame._jdf.queryExecution().executedPlan()


def _compare(
    spark: "SparkSession",
    lake: grebe.Lake,
    report: Report,
    case: str,
    query: Query,
    runs: int,
    work: "Callable[[DataFrame], object]",
) -> None:
    def contestant(enabled: bool, keys: Iterator[int]) -> Contestant:
        frame: DataFrame

        def before() -> None:
            nonlocal frame
            lake.enabled = enabled
            frame = spark.sql(query(next(keys)))

        return timed(lambda: work(frame), before)

    # The same keys for both, each once.
    costs = samples(
        {"ours": contestant(True, itertools.count(1)), RIVAL: contestant(False, itertools.count(1))}, runs, 3
    )
    ours, rivals = sorted(costs["ours"]), sorted(costs[RIVAL])
    middle = runs // 2
    report.add(case, "s", ours[middle], RIVAL, rivals[middle], runs, ratio_interval(costs["ours"], costs[RIVAL]))
