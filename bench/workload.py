"""What does recording queries cost the queries, and what does it take to read ten thousand of them back?

The rival is the same query on the same handle or session without recording. `told` is what the thread that asks does more: the
recorder's own call, while its writer is at work in the background. The goal is at most 0.3 ms a query.
"""

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grebe
from bench._session import bench_session
from bench.harness import Report, Scale, ratio_interval, samples, timed
from grebe.advisor.workload import blocks
from grebe.advisor.workload.consolidate import Retention, consolidate
from grebe.advisor.workload.reading import Recorded
from grebe.advisor.workload.record import RECORDER, Recorder
from grebe.clock import SYSTEM
from grebe.planner.observing import LookedUp, Read
from grebe.predicate.builder import col
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFF, ON = grebe.Config(), grebe.Config(record_workload=True)
RIVAL = "not recorded"


def run(scale: Scale, report: Report) -> None:
    with bench_session() as (spark, folder):
        path = str(folder / "orders")
        rows = scale.pick(1_000_000, 10_000_000)
        spark.range(rows).selectExpr("id", "id % 1000 AS day", "hash(id) AS price").write.parquet(path)
        lake = grebe.attach(spark, OFF)
        lake.table(path).create(grebe.Lookup("by_id", on="id"))
        _told(folder / "told", report, scale.pick(20_000, 200_000))
        _lookups(path, report, scale.pick(500, 5000), rows)
        _queries(spark, path, report, scale.pick(40, 300))
        grebe.attach(spark, OFF).detach()
        RECORDER.flush()
        _read(folder / "read", report, scale.pick(10_000, 100_000))


def _told(folder: Path, report: Report, count: int) -> None:
    recorder = Recorder()
    hears = recorder.lookups(f"file://{folder}", lambda place: LocalStore(folder), ON)
    predicate = col("id") == 7
    read = Read(1, 4, 1000, 4000, None, 1)
    costs = []
    for number in range(count):
        start = time.perf_counter()
        hears(LookedUp("scan", "file:///t", predicate, ("id", "day"), read, ("by_id",), SYSTEM.now_ms() + number, 0.5))
        costs.append(time.perf_counter() - start)
        if number % 100 == 0:
            time.sleep(0.01)  # the writer has its turns
    recorder.flush()
    report.add("told, median", "ms", statistics.median(costs) * 1000, runs=count)
    report.add("told, mean", "ms", statistics.mean(costs) * 1000, runs=count)
    report.add("told, 99.9%", "ms", sorted(costs)[int(count * 0.999)] * 1000, runs=count)


def _lookups(path: str, report: Report, runs: int, rows: int) -> None:
    handles = {name: grebe.open(path, config=config) for name, config in (("on", ON), ("off", OFF))}
    keys = iter(range(10**9))

    def getting(handle: Any) -> Any:
        return timed(lambda: handle.get("id", next(keys) * 7919 % rows, columns=["price"]))

    _added(report, "get by an index", samples({name: getting(one) for name, one in handles.items()}, runs, 20))


def _queries(spark: "SparkSession", path: str, report: Report, runs: int) -> None:
    frame = spark.read.parquet(path)
    numbers = iter(range(10**9))

    def planned() -> None:
        made: Any = frame.where(f"day = {next(numbers) % 1000}").groupBy("id").count()
        made._jdf.queryExecution().executedPlan()

    def counted() -> None:
        frame.where(f"day = {next(numbers) % 1000}").count()

    for case, work in (("planning in Spark", planned), ("count in Spark", counted)):
        contestants = {
            name: timed(work, before=lambda config=config: grebe.attach(spark, config))  # type: ignore[misc]
            for name, config in (("on", ON), ("off", OFF))
        }
        _added(report, case, samples(contestants, runs, 5))


def _added(report: Report, case: str, costs: dict[str, list[float]]) -> None:
    ours, rival = (statistics.median(costs[name]) * 1000 for name in ("on", "off"))
    interval = ratio_interval(costs["on"], costs["off"])
    report.add(case, "ms", ours, RIVAL, rival, len(costs["on"]), interval)


def _read(folder: Path, report: Report, count: int) -> None:
    """From blocks of a thousand, from blocks of one, and once these are merged."""
    recorder, store = Recorder(), LocalStore(folder)
    hears = recorder.lookups(f"file://{folder}", lambda place: store, ON)
    predicate, read = col("id") == 7, Read(1, 4, 1000, 4000, None, 1)
    told = LookedUp("scan", "file:///t", predicate, ("id", "day"), read, ("by_id",), SYSTEM.now_ms(), 0.5)
    for _ in range(count):
        hears(told)
    recorder.flush()
    recorded = Recorded((f"file://{folder}",), lambda place: store)
    report.add(f"read {count:,} queries in blocks of 1,000", "s", timed(recorded.queries)())
    for _ in range(1000):
        hears(told)
        recorder.flush()
    report.add(
        f"the same and 1,000 blocks of one ({len(blocks.listed(store)):,} files)", "s", timed(recorded.queries)()
    )
    merging = timed(lambda: consolidate(store, Retention(90, 1 << 30, 0), SYSTEM))
    report.add("merging them", "s", merging())
    consolidate(store, Retention(90, 1 << 30, 0), SYSTEM)
    size = sum(one.size for one in blocks.listed(store))
    report.add(f"reading them merged ({len(blocks.listed(store)):,} files)", "s", timed(recorded.queries)())
    report.add("bytes a query, merged", "bytes", size / recorded.queries().num_rows)
