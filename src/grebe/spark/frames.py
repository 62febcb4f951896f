"""Small tables of Arrow as frames of a session, and small frames as tables of Arrow."""

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


def arrow_of_frame(frame: "DataFrame") -> pa.Table:
    """All its rows, for a frame of few."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    from pyspark.sql.pandas.types import to_arrow_schema

    collect: Any = getattr(frame, "_collect_as_arrow")  # noqa: B009 - what a frame had before `toArrow`
    batches: list[pa.RecordBatch] = collect()
    return pa.Table.from_batches(batches) if batches else to_arrow_schema(frame.schema).empty_table()
