"""Small tables of Arrow as frames of a session."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of_arrow(session: "SparkSession", table: pa.Table) -> "DataFrame":
    """Before version 4 a session takes no Arrow, so that the rows go there one by one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema)
    if hasattr(session, "_create_from_arrow_table"):
        return session.createDataFrame(table, schema)
    rows: list[dict[str, Any]] = table.to_pylist()
    return session.createDataFrame([tuple(row.values()) for row in rows], schema)
