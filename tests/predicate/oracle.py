"""Spark's own answers: many predicates over one table in one plan, each true, false or NULL in every row."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from testbed.spark import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Answer: TypeAlias = list[bool | None]


def settings(spark: "SparkSession", **values: str) -> AbstractContextManager[None]:
    """These SQL settings, put back afterwards. A dot in a name is written as two underscores."""
    return configured(spark, {name.replace("__", "."): value for name, value in values.items()})


def local_frame(spark: "SparkSession", table: pa.Table, folder: Path) -> "DataFrame":
    """The table inside Spark's plan itself, so that asking about it runs no job. Parquet carries it there with every type."""
    from pyspark.sql import DataFrame

    path = folder / "table.parquet"
    pq.write_table(table, path, store_schema=False)
    stored = spark.read.parquet(path.as_uri())._jdf
    with settings(spark, spark__sql__datetime__java8API__enabled="true"):
        session: Any = spark
        return DataFrame(session._jsparkSession.createDataFrame(stored.collectAsList(), stored.schema()), spark)


def ask(frame: "DataFrame", predicates: Sequence[str]) -> list[Answer]:
    """Spark's answer to each predicate; raises if any of them makes Spark fail."""
    from pyspark.sql import functions

    rows = frame.select(functions.array(*map(functions.expr, predicates))).collect()
    return [[row[0][index] for row in rows] for index in range(len(predicates))]


def failure(frame: "DataFrame", predicate: str) -> str | None:
    """The class of the error with which Spark answers, or None if it does answer."""
    try:
        ask(frame, [predicate])
    except Exception as error:  # noqa: BLE001 - py4j and pyspark raise many kinds, told apart by Spark's own error class
        return str(error).partition("]")[0].partition("[")[2] or type(error).__name__
    return None
