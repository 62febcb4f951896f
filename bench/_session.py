"""A Spark for benchmarks, and a folder for its tables: a small machine's session, the same for Grebe and for its rivals."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.spark import configured, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
PARTITIONS = 8
BROADCAST = {"broadcast": str(10 << 20), "no broadcast": "-1"}
"""By name: Spark's default threshold for broadcasting a side of a join, and none."""

_SETTINGS = {"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": str(PARTITIONS)}


@contextlib.contextmanager
def bench_session(
    cores: int = CORES, settings: Mapping[str, str] | None = None
) -> "Iterator[tuple[SparkSession, Path]]":
    with tempfile.TemporaryDirectory(prefix="grebe-bench-") as name:
        folder = Path(name)
        asked = {**_SETTINGS, "spark.master": f"local[{cores}]", **(settings or {})}
        with spark_session(folder / "spark", asked) as spark:
            yield spark, folder


def broadcasting(spark: "SparkSession", threshold: str) -> contextlib.AbstractContextManager[None]:
    return configured(spark, {"spark.sql.autoBroadcastJoinThreshold": threshold})
