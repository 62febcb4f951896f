"""The rows of a view in Spark: DataFrame in, DataFrame out. One row for each group of each file, so that a file that is gone can be
left out, and one that is new only adds rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grebe.indexes.classic import functions
from grebe.indexes.content.by_range import column
from grebe.indexes.content.copied import WRITER
from grebe.indexes.content.parts import parts_for
from grebe.indexes.kind import FILE_COLUMN, Arranged, Rows
from grebe.indexes.view.definition import Definition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS_PER_FILE = 4_000_000
_FIRST = "t0"


def arrange(index: str, definition: Definition, rows: Rows) -> Arranged:
    derived = rows_of(definition, rows.frame(), [rows.other(one) for one in definition.bases[1:]])
    fields = [*definition.fields, (FILE_COLUMN, "integer")]
    older = rows.older(fields)
    whole = derived if older is None else derived.unionByName(older)
    keys = [one.name for one in definition.keys]
    parts = parts_for(rows.facts.bytes_of([(name,) for name in sorted(definition.reads())]))
    return Arranged(
        frame=whole.coalesce(parts).sortWithinPartitions(*map(column, keys)),
        options={**WRITER, "maxRecordsPerFile": str(_ROWS_PER_FILE)},
        properties={"layout": {"buckets": 0, "bucket_by": [], "sort_by": [], "reason": "as the query groups its rows"}},
    )


def rows_of(definition: Definition, frame: "DataFrame", others: "Sequence[DataFrame]") -> "DataFrame":
    """Of rows of the first table that carry the ids of their files, joined with the other tables."""
    joined = frame.alias(_FIRST)
    for number, other in enumerate(others, 1):
        joined = joined.crossJoin(other.alias(f"t{number}"))
    for condition in definition.where:
        joined = joined.where(functions.expr(condition.sql))
    keys = [functions.expr(one.sql).alias(one.name) for one in definition.keys]
    file = functions.col(f"{_FIRST}.{FILE_COLUMN}")
    if not definition.grouped:
        return joined.select(*keys, file)
    measures = [functions.expr(one.sql).alias(one.name) for one in definition.measures]
    names = [column(name) for name, _ in definition.fields]
    return joined.groupBy(*keys, file).agg(*measures).select(*names, column(FILE_COLUMN))
