"""What a covering index would be like, by a sample of the table's rows."""

import math

from grebe.indexes.content.shape import Shape
from grebe.indexes.covering.layout import Distinct, plan
from grebe.indexes.supposed import Sample, Supposed, copied_bytes


def suppose(shape: Shape, sample: Sample) -> Supposed:
    count = sample.rows.num_rows
    planned = plan(
        shape,
        sample.facts,
        lambda: Distinct(count, sample.distinct_in_sample(shape.on[:1]), sample.distinct_in_sample(shape.on)),
    )
    layout = planned.layout
    # Within a bucket rows are sorted too.
    order = sample.order(shape.on[0])
    return Supposed(
        properties={
            "layout": {
                "buckets": layout.buckets,
                "bucket_by": list(layout.bucket_by),
                "sort_by": list(layout.sort_by),
                "reason": planned.reason,
            }
        },
        bytes=copied_bytes(sample, shape.columns, order, _filled(planned.parts, sample.distinct(shape.on))),
        rows=sample.facts.rows,
        files=planned.parts,
        order=None if layout.buckets else order,
    )


def _filled(parts: int, values: float) -> int:
    """Of so many parts those that get a value."""
    return max(1, round(parts * (1.0 - math.exp(-values / parts))))
