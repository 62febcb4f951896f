"""What a lookup index would be like, by a sample of the table's rows."""

from grebe.indexes.content import entries
from grebe.indexes.content.shape import Shape
from grebe.indexes.supposed import Sample, Supposed, entry_bytes

_OF_A_FILTER = 1.33
"""Bytes of the filter for each key."""


def suppose(shape: Shape, sample: Sample) -> Supposed:
    rows, order = sample.facts.rows, sample.order(shape.on[0])
    size = entry_bytes(sample, shape.columns, len(shape.locators), order) + int(rows * _OF_A_FILTER)
    keys = [column.content for column in shape.on]
    layout = {"buckets": 0, "bucket_by": [], "sort_by": keys, "reason": "sorted as a whole: a lookup index"}
    return Supposed({"layout": layout}, size, rows, entries.parts_for(rows), order)
