"""A table read through its source without Spark, and the same table read by Spark."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from grebe.formats.reading import columns_of
from grebe.sources import Source
from tests.formats.reading_back import Row, comparable, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Columns = list[tuple[str, str]]


def read_without_spark(source: Source) -> tuple[Columns, list[Row]]:
    """Columns with their types, and all rows in no particular order."""
    files = source.files()
    reading = source.reading(files)
    partitions = source.partition_values(files, reading)
    rows: list[Row] = []
    for number, file in enumerate(source.data_files(files)):
        values = {name: partitions.column(name)[number].as_py() for name in partitions.column_names}
        for located in source.format.read(file, reading):
            for record in located.records.to_pylist():
                both = record | values
                rows.append(tuple(comparable(both[column.name]) for column in reading.columns))
    return [(column.name, column.type) for column in reading.columns], sorted(rows, key=repr)


def read_with_spark(
    spark: "SparkSession",
    format: str,
    paths: Sequence[str],
    options: Mapping[str, str] | None = None,
    schema: str | None = None,
) -> tuple[Columns, list[Row]]:
    reader = spark.read.format(format).options(**dict(options or {}))
    frame: DataFrame = (reader.schema(schema) if schema else reader).load(list(paths))
    columns = [(column.name, column.type) for column in columns_of(frame.schema.jsonValue())]
    return columns, sorted(spark_rows(frame), key=repr)


def paths_of(source: Source) -> list[str]:
    paths: list[str] = source.files().paths().to_pylist()
    return paths
