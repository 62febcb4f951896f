"""Making indexes on tables of a benchmark, and what a plain Spark job for the same columns takes."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench._session import PARTITIONS
from testbed import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def create(
    lake: "grebe.Lake",
    spark: "SparkSession",
    folder: Path,
    indexes: "Mapping[str, Sequence[grebe.Covering]]",
    format: str = "parquet",
) -> None:
    """All indexes of a table by one call each, as users would."""
    for table, kinds in indexes.items():
        lake.table(tpch.read(spark, folder, table, format)).create(*kinds)


def sort_and_write(
    spark: "SparkSession", folder: Path, table: str, kind: "grebe.Covering", format: str = "parquet"
) -> None:
    """The rival of a build: the same columns in the same order, read, shuffled, sorted and written by Spark, as plain files."""
    target = folder / "_plain"
    keys = list(kind.on)
    rows = tpch.read(spark, folder, table, format).select(*keys, *kind.include)
    apart = rows.repartitionByRange(PARTITIONS, *keys) if kind.buckets == 0 else rows.repartition(PARTITIONS, *keys)
    apart.sortWithinPartitions(*keys).write.option("compression", "zstd").parquet(str(target))
    shutil.rmtree(target)


def bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def bytes_of_indexes(folder: Path) -> int:
    """All that lies beside the tables of a lake: the indexes, and the logs."""
    return bytes_of(folder / "_grebe")
