"""What making sketches and sieves takes, next to a plain aggregation of the same columns; and a sieve where memory is short."""

import statistics
import time
from functools import partial
from pathlib import Path

import grebe
from bench._session import PARTITIONS, bench_session
from bench._stage import Stage
from bench.harness import Contestant, in_fresh_process, samples, timed
from bench.sieve import tables
from bench.sieve.data import KEY_BYTES
from bench.sieve.memory import Watch
from grebe.indexes.sketches.protocol import Sketch

COLUMNS = ("order_id", "customer", "quantity", "price", "amount", "at", "region", "note")
BOUNDS: "tuple[Sketch, ...]" = tuple(map(grebe.MinMax, COLUMNS))
SKETCHES: "tuple[Sketch, ...]" = (
    *BOUNDS,
    *map(grebe.Bloom, ("order_id", "customer")),
    *map(grebe.Intervals, ("at", "price")),
    grebe.ValueList("region"),
    grebe.Ngram("note"),
)
_SMALL_HEAP, _LARGE_HEAP = "512m", "8g"
_PLAIN, _PLAIN_OF_ONE, _SORT = "plain aggregation", "plain aggregation of it", "plain sort by it"


def build(stage: Stage) -> None:
    rows, files, runs = stage.scale.pick((200_000, 8, 1), (8_000_000, 32, 4))
    table = tables.mixed(stage.spark, rows, files)
    contestants: dict[str, Contestant] = {
        "sketches": stage.creation(table, grebe.Skipping("all", *SKETCHES)),
        "bounds": stage.creation(table, grebe.Skipping("bounds", *BOUNDS)),
        "sieve": stage.creation(table, grebe.Sieve("by_time", on="at")),
        _PLAIN: timed(partial(_aggregated, stage, table, COLUMNS)),
        _PLAIN_OF_ONE: timed(partial(_aggregated, stage, table, ("at",))),
        _SORT: timed(partial(_sorted, stage, table, "at")),
    }
    costs = {name: statistics.median(of) for name, of in samples(contestants, runs).items()}
    for case, ours, rival in (
        (f"{len(SKETCHES)} sketches of {len(COLUMNS)} columns", "sketches", _PLAIN),
        (f"bounds of {len(COLUMNS)} columns", "bounds", _PLAIN),
        ("sieve of a timestamp", "sieve", _PLAIN_OF_ONE),
        ("sieve of a timestamp", "sieve", _SORT),
    ):
        stage.report.add(f"build, {rows:,} rows, {case}", "s", costs[ours], rival, costs[rival], runs)


def _aggregated(stage: Stage, table: Path, columns: tuple[str, ...]) -> None:
    """Of each file the bounds and the number of values of these columns."""
    from pyspark.sql import functions

    asked = [of(column) for column in columns for of in (functions.min, functions.max, functions.count)]
    frame = stage.spark.read.parquet(str(table))
    stage.lake.enabled = False
    frame.groupBy(functions.col("_metadata.file_path")).agg(*asked).collect()
    stage.lake.enabled = True


def _sorted(stage: Stage, table: Path, column: str) -> None:
    """Where each value lies, in order: no less can be done to know which files hold which keys."""
    from pyspark.sql import functions

    located = stage.spark.read.parquet(str(table)).select(column, functions.hash("_metadata.file_name").alias("file"))
    ordered = located.repartitionByRange(PARTITIONS, column).sortWithinPartitions(column)
    ordered.write.format("noop").mode("overwrite").save()


def heap(stage: Stage) -> None:
    """At full scale the attribute alone is larger than the heap."""
    rows, files = stage.scale.pick((500_000, 8), (72_000_000, 180))
    table = tables.times(rows, files)
    attribute = rows * KEY_BYTES
    seconds, watched = in_fresh_process(_sieve_of_times, str(table), _SMALL_HEAP).value
    at_ease, _ = in_fresh_process(_sieve_of_times, str(table), _LARGE_HEAP).value
    case = f"sieve of {attribute / 2**20:,.0f} MB in a heap of {_SMALL_HEAP}"
    stage.report.add(case, "s", seconds, f"in one of {_LARGE_HEAP}", at_ease)
    for what, peak in watched.items():
        stage.report.add(f"{case}, {what}", "bytes", peak, "the attribute", attribute)


def _sieve_of_times(table: str, heap: str) -> tuple[float, dict[str, int]]:
    """The seconds of making it, once Spark is warm, and the most memory that its processes held."""
    with bench_session(settings={"spark.driver.memory": heap}) as (spark, folder):
        lake = grebe.attach(spark)
        spark.read.parquet(table).count()
        with Watch(spark) as watch:
            start = time.perf_counter()
            lake.table(table, location=str(folder / "indexes")).create(grebe.Sieve("by_time", on="late"))
            seconds = time.perf_counter() - start
        return seconds, {"JVM": watch.jvm, "Python workers": watch.workers}
