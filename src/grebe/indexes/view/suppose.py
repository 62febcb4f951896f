"""What a view would be like, by the groups of a sample of the table's rows."""

from grebe.indexes.columns import Chosen
from grebe.indexes.content.parts import parts_for
from grebe.indexes.supposed import OF_A_FILE, Groups, Sample, Supposed, scaled
from grebe.indexes.view.definition import Definition
from grebe.indexes.view.trees import is_column

_OF_A_KEY, _OF_A_MEASURE = 1, 2
"""Bytes of a value, compressed."""
_OF_A_COLUMN = 3
"""Parts of the tree that is a column, and no field inside one."""


def suppose(definition: Definition, sample: Sample) -> Supposed:
    rows = sample.facts.rows
    groups = _groups(definition, sample)
    if groups is not None:
        rows = round(rows * groups.rows / max(1, groups.sampled))
        if definition.grouped:
            whole = scaled(groups.found, groups.once, groups.rows, rows)
            rows = round(min(rows, whole + min(rows, whole * sample.files)))
    width = _OF_A_KEY * len(definition.keys) + _OF_A_MEASURE * len(definition.measures)
    size = int(rows * width)
    files = parts_for(size) + int(definition.grouped)
    layout = {"buckets": 0, "bucket_by": [], "sort_by": [], "reason": "as the query groups its rows"}
    return Supposed({"layout": layout}, size + files * OF_A_FILE, rows, files)


def _groups(definition: Definition, sample: Sample) -> Groups | None:
    """Columns of one table are counted in its sampled rows; what else a query groups by only Spark can tell."""
    keys = [one.tree for one in definition.keys]
    known = all(is_column(tree) and len(tree) == _OF_A_COLUMN and tree[2] in sample.rows.column_names for tree in keys)
    if known and len(definition.bases) == 1 and not definition.where:
        return sample.grouped_by([Chosen((tree[2],), "") for tree in keys])
    return None if sample.groups is None else sample.groups(definition)
