"""What making an index takes, and how large it is: against servers that are filled, a plain sort, and what keys cannot be below."""

import math
import shutil
from functools import partial
from pathlib import Path

import grebe
from bench._rivals.client import Rival
from bench.harness import Contestant, medians, timed
from bench.needle import data
from bench.needle.stage import INDEXES, Stage
from bench.needle.warm import filled_postgres, filled_redis
from grebe.clock import SYSTEM
from testbed.cached import working_copy

OURS, PLAIN = "grebe", "plain sort and write"
_ROWS_OF_A_PART = 1_000_000


def size(stage: Stage) -> None:
    table = grebe.open(str(stage.table))
    whole = sum(file.stat().st_size for file in stage.table.glob("*.parquet"))
    for key, least in (("id", _least(stage.rows)), ("uuid", 16 + math.log2(stage.rows) / 8)):
        mine = table.index(INDEXES[key]).bytes
        stage.report.add(f"size, {key}", "bytes", mine, "entropy bound", least * stage.rows)
        stage.report.add(f"size, {key}", "bytes", mine, "the table", whole)
    stage.report.add("size, ev", "bytes", table.index(INDEXES["ev"]).bytes, "the table", whole)


def _least(rows: int) -> float:
    """Bytes of a random key of 63 bits and its row: sorted, a key is told by the distance to the one before it."""
    distance = 63 - math.log2(rows) + math.log2(math.e)
    return (distance + math.log2(rows)) / 8


def build(stage: Stage) -> None:
    """From the files to what answers a lookup of a key. All take turns."""
    keys, some, few = stage.scale.pick((1_000_000, 100_000, 20_000), (20_000_000, 1_000_000, 200_000))
    # Spark is warm by now: the indexes of another table are made first, if they were not.
    assert stage.table.exists()
    table = working_copy(data.narrow(stage.spark, keys, stage.files), stage.folder / "keys")
    contestants: dict[str, Contestant] = {OURS: _create(stage, table), PLAIN: timed(partial(_sort, stage, table, keys))}
    scaled: dict[str, float] = {}

    def enter(name: str, filled: Rival, verb: str, count: int | None = None) -> None:
        contestants[name] = _fill(filled, verb, table, count)
        scaled[name] = keys / count if count else 1

    redis = stage.started("Redis", filled_redis())
    if redis is not None:
        enter("Redis by bare protocol", redis, "mass")
        enter(f"Redis by pipeline, of {some:,} scaled", redis, "pipeline", some)
        enter(f"Redis row by row, of {few:,} scaled", redis, "one_by_one", few)
    postgres = stage.started("PostgreSQL", filled_postgres())
    if postgres is not None:
        enter("PostgreSQL by COPY and index", postgres, "copy")
        enter(f"PostgreSQL row by row, of {few:,} scaled", postgres, "one_by_one", few)
    runs = stage.scale.pick(1, 2)
    costs = medians(contestants, runs, warm_up=0)
    for name in list(contestants)[1:]:
        stage.report.add(f"build, {keys:,} keys", "s", costs[OURS], name, costs[name] * scaled.get(name, 1), runs)
    (last,) = (stage.folder / "builds").iterdir()
    mine = grebe.open(str(table), location=str(last)).index(INDEXES["id"]).bytes
    stage.report.add(f"size, {keys:,} keys", "bytes", mine, "entropy bound", _least(keys) * keys)
    stage.dropped(table)


def _create(stage: Stage, table: Path) -> Contestant:
    """Every round at another place."""

    def create() -> None:
        place = stage.folder / "builds" / SYSTEM.new_id()
        stage.lake.table(str(table), location=str(place)).create(grebe.Lookup(INDEXES["id"], on="id"))

    return timed(create, before=lambda: shutil.rmtree(stage.folder / "builds", ignore_errors=True))


def _sort(stage: Stage, table: Path, rows: int) -> None:
    """What a plain Spark job would do for the same: key, file, row, sorted by the key, as Parquet."""
    from pyspark.sql import functions

    target = stage.folder / "sorted"
    located = stage.spark.read.parquet(str(table)).select(
        "id",
        functions.hash("_metadata.file_name").alias("file"),
        functions.col("_metadata.row_index").alias("row"),
    )
    parts = max(rows // _ROWS_OF_A_PART, 8)
    located.repartitionByRange(parts, "id").sortWithinPartitions("id").write.option("compression", "zstd").parquet(
        str(target)
    )
    shutil.rmtree(target)


def _fill(filled: Rival, verb: str, table: Path, count: int | None) -> Contestant:
    arguments: dict[str, object] = {} if count is None else {"count": count}

    def fill() -> float:
        filled.call("empty")
        return float(filled.call(verb, source=str(table), key="id", **arguments))

    return fill
