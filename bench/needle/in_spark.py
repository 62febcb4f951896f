"""Needles in Spark: one key among many files, a thousand keys by a join, and whether the number of files matters."""

from pathlib import Path
from typing import TYPE_CHECKING

from bench._races import OURS, RIVAL, Race, with_and_without
from bench.needle import data
from bench.needle.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYS = 1_000


def needle(stage: Stage) -> None:
    """Rows of one key, all columns."""
    table, files = _many_files(stage)
    runs = stage.scale.pick(3, 5)
    stage.spark.read.parquet(str(table)).createOrReplaceTempView("many_files")
    keys = data.some_keys(table, 1)
    for column in data.KEYS:
        value = keys[column][0]
        literal = f"'{value}'" if isinstance(value, str) else str(value)
        sql = f"SELECT * FROM many_files WHERE {column} = {literal}"
        with_and_without(stage.spark, stage.lake, sql, runs).report(f"Spark, {column}, {files:,} files", stage.report)


def join(stage: Stage) -> None:
    """A thousand keys in a small table."""
    table, files = _many_files(stage)
    runs = stage.scale.pick(3, 5)
    stage.spark.read.parquet(str(table)).createOrReplaceTempView("many_files")
    keys = data.some_keys(table, _KEYS)["id"]
    wanted = stage.folder / "wanted"
    few: DataFrame = stage.spark.createDataFrame([(key,) for key in keys], "wanted bigint")
    few.coalesce(1).write.mode("overwrite").parquet(str(wanted))
    stage.spark.read.parquet(str(wanted)).createOrReplaceTempView("wanted")
    sql = "SELECT count(*), sum(d0), max(c0) FROM many_files JOIN wanted ON id = wanted"
    done = with_and_without(stage.spark, stage.lake, sql, runs)
    done.report(f"Spark, join of {_KEYS:,} keys, {files:,} files", stage.report)


def flat(stage: Stage) -> None:
    """The same query over ever more files, each of 200 rows."""
    counts = stage.scale.pick((10, 50, 250), (100, 1_000, 10_000))
    runs = 3
    races: dict[int, Race] = {}
    for files in counts:
        table = stage.indexed(data.wide(stage.spark, 200 * files, files), f"{files} files", "id")
        stage.spark.read.parquet(str(table)).createOrReplaceTempView("counted_files")
        sql = f"SELECT * FROM counted_files WHERE id = {data.some_keys(table, 1)['id'][0]}"
        races[files] = with_and_without(stage.spark, stage.lake, sql, runs)
        races[files].report(f"Spark, id, {files:,} small files", stage.report)
        stage.dropped(table)
    least, most = counts[0], counts[-1]
    for name in (OURS, RIVAL):
        mine, other = races[most].median(name), races[least].median(name)
        stage.report.add(f"Spark, {most:,} small files, {name}", "s", mine, f"{least:,} files", other, runs)


def _many_files(stage: Stage) -> tuple[Path, int]:
    """The table of 2,000 rows a file, made at the first call."""
    files = stage.scale.pick(100, 1_000)
    target = stage.folder / "many files"
    if not target.exists():
        stage.indexed(data.wide(stage.spark, 2_000 * files, files), target.name)
    return target, files
