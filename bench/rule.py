"""Measure the time that the optimizer rule adds to a query, and the time that a query takes with what the rule decides.

The rival is the same session with Grebe disabled, and for the checksums of index data the same session without them. Planning
runs from the parsed query to the physical plan. Keys are new in every run, so that no answer comes from a cache of earlier ones.
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
UNVERIFIED = "the same with verify_index_data=false"
_FILES = 64

Query = Callable[[int], str]
Switch = Callable[[bool], None]


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
            _compare(spark, _switch(lake), report, f"planning: {name}", query, runs, _plan)
        for name, query in queries.items():
            _compare(spark, _switch(lake), report, f"whole: {name}", query, runs, lambda frame: frame.collect())
        for name in ("a covering index, one key", "a covering index, groups"):
            _compare(
                spark,
                _verification(spark),
                report,
                f"checksums: {name}",
                queries[name],
                runs,
                lambda frame: frame.collect(),
                UNVERIFIED,
            )


def _write(spark: "SparkSession", path: Path, rows: int) -> None:
    columns = ("id", "id % 5000 AS customer", "CAST(id * 365 / {rows} AS INT) AS day", "id * 2.5 AS price")
    frame = spark.range(0, rows, 1, _FILES).selectExpr(*(column.format(rows=rows) for column in columns))
    frame.write.parquet(str(path))


def _plan(frame: "DataFrame") -> object:
    return frame._jdf.queryExecution().executedPlan()


def _switch(lake: grebe.Lake) -> Switch:
    def switch(enabled: bool) -> None:
        lake.enabled = enabled

    return switch


def _verification(spark: "SparkSession") -> Switch:
    def switch(enabled: bool) -> None:
        grebe.attach(spark).detach()
        grebe.attach(spark, grebe.Config(verify_index_data=enabled))

    return switch


def _compare(
    spark: "SparkSession",
    switch: Switch,
    report: Report,
    case: str,
    query: Query,
    runs: int,
    work: "Callable[[DataFrame], object]",
    rival: str = RIVAL,
) -> None:
    def contestant(enabled: bool, keys: Iterator[int]) -> Contestant:
        frame: DataFrame

        def before() -> None:
            nonlocal frame
            switch(enabled)
            frame = spark.sql(query(next(keys)))

        return timed(lambda: work(frame), before)

    # The same keys for both, each once.
    costs = samples(
        {"ours": contestant(True, itertools.count(1)), rival: contestant(False, itertools.count(1))}, runs, 3
    )
    ours, rivals = sorted(costs["ours"]), sorted(costs[rival])
    middle = runs // 2
    report.add(case, "s", ours[middle], rival, rivals[middle], runs, ratio_interval(costs["ours"], costs[rival]))
