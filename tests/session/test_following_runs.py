"""Many small micro-batches: the runs that their refreshes add are merged by themselves before they hurt."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.log.commit import Log
from grebe.log.entry import ContentFile
from grebe.maintenance.runs import Run, runs_of, to_merge
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_RUNS = 8
"""Of an index, however many batches have come."""


@pytest.mark.parametrize("sizes", ["equal", "random", "shrinking"])
def test_there_are_never_more_runs_than_the_bound_and_rows_are_rewritten_seldom(sizes: str) -> None:
    chance = random.Random(sizes)
    batches = 4_000
    coming = {
        "equal": [100] * batches,
        "random": [chance.randint(1, 10_000) for _ in range(batches)],
        "shrinking": [1_000_000 // (n + 1) + 1 for n in range(batches)],
    }[sizes]
    runs: list[Run] = []
    written = 0
    for rows in coming:
        merged = to_merge(runs, rows)
        made = rows + sum(run.rows for run in merged)
        written += made
        runs = [*(run for run in runs if run not in merged), Run((ContentFile(f"run-{written}", 1, rows=made),))]
        assert len(runs) <= MOST_RUNS
    assert sum(run.rows for run in runs) == sum(coming)
    assert written <= 12 * sum(coming), "every row is written again as often as the logarithm of the table's size"


@pytest.mark.spark
@pytest.mark.parametrize("batches", [10, pytest.param(40, marks=pytest.mark.soak)])
def test_after_many_micro_batches_there_are_few_runs_and_answers_are_right(
    spark: "SparkSession", tmp_path: Path, batches: int
) -> None:
    lake = grebe.attach(spark)
    path, incoming = str(tmp_path / "t"), str(tmp_path / "in")
    seen: list[Seen] = []

    @lake.refreshing(path)
    def write(frame: "DataFrame", batch: int) -> None:
        if batch:
            seen.append(looked_at(spark, tmp_path / "t"))  # what the refresh after the last batch has left
        frame.coalesce(1).write.mode("append").parquet(path)
        if not batch:
            lake.table(path).create(grebe.Covering("by_few", on="few", include=["id"]), grebe.Lookup("by_id", on="id"))

    spark.range(0, 100 * batches, 1, batches).selectExpr("id", "id % 10 AS few").write.parquet(incoming)
    arriving = spark.readStream.schema("id BIGINT, few BIGINT").option("maxFilesPerTrigger", 1).parquet(incoming)
    writer = arriving.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.start()
    try:
        query.processAllAvailable()
        seen.append(looked_at(spark, tmp_path / "t"))
    finally:
        query.stop()
        lake.detach()
    assert write.last_error is None
    assert [(one.by_few, one.by_id) for one in seen] == [(10 * n, min(n, 1)) for n in range(1, batches + 1)]
    assert max(one.most_runs for one in seen) <= MOST_RUNS
    assert 1 < max(one.most_runs for one in seen) < batches / 2


@dataclass(frozen=True)
class Seen:
    by_few: int
    """Rows that have one of the ten values, in Spark."""
    by_id: int
    """Rows of one id, without it."""
    most_runs: int


def looked_at(spark: "SparkSession", folder: Path) -> Seen:
    state = Log(LocalStore(folder.parent / "_grebe" / folder.name)).open().state
    written = spark.read.parquet(str(folder))
    newest = written.agg({"id": "max"}).collect()[0][0]
    return Seen(
        written.where("few = 3").count(),
        grebe.open(str(folder)).get("id", newest).num_rows,
        max(len(runs_of(index)) for index in state.indexes.values()),
    )
