"""Functions of ours in Spark's Python workers."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Function = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: "DataFrame", function: Function, schema: "StructType | str") -> "DataFrame":
    """As Spark's own. On this very machine the workers run the Python of this process, which has Grebe, whatever `python3` is."""
    context = frame.sparkSession.sparkContext
    before = context.pythonExec
    if (context.master or "").startswith("local"):
        context.pythonExec = sys.executable
    try:
        return frame.mapInArrow(function, schema)
    finally:
        context.pythonExec = before
