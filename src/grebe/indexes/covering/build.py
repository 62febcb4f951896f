"""The rows of a covering index in Spark: DataFrame in, DataFrame out, each partition a bucket or a range.

One pass over the data, and one over the key column alone where the whole is sorted. A hash partition p of Spark's
`repartition(n, columns)` is bucket p of its bucketed tables.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grebe.errors import Unsupported
from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.covering import ranges
from grebe.indexes.covering.layout import Distinct, Plan, plan
from grebe.indexes.covering.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN, Arranged, Layout, Rows
from grebe.log.entry import IndexSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WRITER = {
    # Small enough that a range of the key reads a part of a file, large enough for columns to compress and scans to run.
    "parquet.block.size": str(32 * 1024 * 1024),
    # Bounds of text are exact, or there are none.
    "parquet.statistics.truncate.length": str(2**31 - 1),
    # Within a bucket, and in a sorted whole, equal keys lie together: the bounds of pages find them, a filter would only add bytes.
    "parquet.bloom.filter.enabled": "false",
}
_SAMPLED_PER_PART = 400
_LEAST_SAMPLED, _MOST_SAMPLED = 20_000, 500_000
_MOST_RANGES = 1024
_SEED = 42


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    shape = shape_of(index, spec)
    planned = plan(shape, rows.facts, lambda: _distinct(rows.some(), shape.on))
    layout = planned.layout
    kept = _kept(rows.frame(again=not layout.buckets), shape)
    counted = rows.counted(kept, whole=shape.where is None)
    if layout.buckets:
        laid = counted.repartition(planned.parts, *map(_content, layout.bucket_by))
    else:
        laid, layout = _by_range(counted, kept, shape, planned, rows.facts.rows)
    return Arranged(
        frame=laid.sortWithinPartitions(*map(_content, planned.layout.sort_by)),
        options={**_WRITER, "maxRecordsPerFile": str(planned.rows_per_file)},
        properties={
            "layout": {
                "buckets": layout.buckets,
                "bucket_by": list(layout.bucket_by),
                "sort_by": list(layout.sort_by),
                "reason": planned.reason,
            }
        },
    )


def _kept(frame: "DataFrame", shape: Shape) -> "DataFrame":
    """The rows and columns of the index, under their names in the content."""
    if shape.where is not None:
        _require_plain_literals(frame, shape.where)
        frame = frame.where(shape.where)
    columns = [functions.col(_quoted(*column.path)).alias(column.content) for column in shape.columns]
    return frame.select(*columns, *([FILE_COLUMN] if shape.lineage else []))


def _require_plain_literals(frame: "DataFrame", where: str) -> None:
    setting = "spark.sql.parser.escapedStringLiterals"
    if "\\" in where and frame.sparkSession.conf.get(setting) == "true":
        raise Unsupported(
            f"with {setting}=true a text with backslashes means something else, and the condition of the index has one; "
            "set it to false while indexes are built",
            detail="ESCAPED_LITERALS",
        )


def _by_range(
    counted: "DataFrame", kept: "DataFrame", shape: Shape, planned: Plan, rows: int
) -> tuple["DataFrame", Layout]:
    """The rows in as many partitions as planned, each a range of the first column; and the order that holds over all of them."""
    first, layout = shape.on[0], planned.layout
    parts = min(planned.parts, _MOST_RANGES)
    cuts = ranges.cuts_of(_sample(kept, first, parts, rows), parts) if parts > 1 else ()
    if not cuts:
        return counted.repartition(1), layout
    others = [_content(column.content) for column in shape.columns[1:]] or [_content(first.content)]
    constants = [_value(cut.value, first.type) for cut in cuts]
    number = ranges.partition_of(_content(first.content), cuts, constants, others, parts)
    order = layout.sort_by[:1] if ranges.spreads(cuts) else layout.sort_by
    return counted.repartition(parts, number), Layout(0, (), order)


def _sample(kept: "DataFrame", key: Chosen, parts: int, rows: int) -> list[str | None]:
    """Values of the key as text (see `_value`), in its order."""
    wanted = max(_LEAST_SAMPLED, parts * _SAMPLED_PER_PART)
    column = _content(key.content)
    sampled = kept.select(column).sample(min(1.0, wanted / max(1, rows)), seed=_SEED)
    # The limit is there for the case that the number of rows was guessed far too low.
    ordered = sampled.limit(_MOST_SAMPLED).repartition(1).sortWithinPartitions(column)
    return [row[0] for row in ordered.select(_text(column, key.type)).collect()]


def _distinct(some: "DataFrame", on: Sequence[Chosen]) -> Distinct:
    keys = [functions.col(_quoted(*column.path)) for column in on]
    counts = (
        functions.count(functions.lit(1)),
        functions.approx_count_distinct(functions.xxhash64(keys[0])),
        functions.approx_count_distinct(functions.xxhash64(*keys)),
    )
    (found,) = some.agg(*counts).collect()
    return Distinct(*found)


def _text(column: "Column", kind: str) -> "Column":
    """A value as text that gives the very same value again, whatever the session's time zone or Python's range of dates."""
    if kind in ("string", "binary"):
        return functions.hex(column.cast("binary"))
    return (functions.unix_micros(column) if kind == "timestamp" else column).cast("string")


def _value(text: str | None, kind: str) -> "Column":
    constant = functions.lit(text)
    if kind in ("string", "binary"):
        return functions.unhex(constant).cast(kind)
    if kind == "timestamp":
        return functions.timestamp_micros(constant.cast("long"))
    return constant.cast(_DDL.get(kind, kind))


# Where Spark's JSON and its SQL name a type differently.
_DDL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def _content(name: str) -> "Column":
    return functions.col(_quoted(name))


def _quoted(*path: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
