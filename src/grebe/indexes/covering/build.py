"""The rows of a covering index in Spark: DataFrame in, DataFrame out, each partition a bucket or a range.

One pass over the data, and one over the key column alone where the whole is sorted. A hash partition p of Spark's
`repartition(n, columns)` is bucket p of its bucketed tables.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content.by_range import by_range, quoted
from grebe.indexes.content.by_range import column as column_named
from grebe.indexes.content.copied import WRITER, kept_of
from grebe.indexes.content.shape import shape_of
from grebe.indexes.covering.layout import Distinct, plan
from grebe.indexes.kind import Arranged, Layout, Rows
from grebe.log.entry import IndexSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    shape = shape_of(index, spec)
    planned = plan(shape, rows.facts, lambda: _distinct(rows.some(), shape.on))
    layout = planned.layout
    kept = kept_of(rows.frame(again=not layout.buckets), shape)
    counted = rows.counted(kept, whole=shape.where is None)
    if layout.buckets:
        laid = counted.repartition(planned.parts, *map(column_named, layout.bucket_by))
    else:
        others = [column.content for column in shape.columns[1:]]
        laid, spread = by_range(counted, shape.on[0], others, planned.parts, rows.facts.rows)
        spread = spread or (shape.layout is not None and len(shape.layout.sort_by) == 1)
        layout = Layout(0, (), layout.sort_by[:1]) if spread else layout
    return Arranged(
        frame=laid.sortWithinPartitions(*map(column_named, planned.layout.sort_by)),
        options={**WRITER, "maxRecordsPerFile": str(planned.rows_per_file)},
        properties={
            "layout": {
                "buckets": layout.buckets,
                "bucket_by": list(layout.bucket_by),
                "sort_by": list(layout.sort_by),
                "reason": planned.reason,
            }
        },
    )


def _distinct(some: "DataFrame", on: Sequence[Chosen]) -> Distinct:
    keys = [functions.col(quoted(*column.path)) for column in on]
    counts = (
        functions.count(functions.lit(1)),
        functions.approx_count_distinct(functions.xxhash64(keys[0])),
        functions.approx_count_distinct(functions.xxhash64(*keys)),
    )
    (found,) = some.agg(*counts).collect()
    return Distinct(*found)
