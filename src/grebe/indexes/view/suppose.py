"""What a view would be like, by the groups of a sample of the table's rows."""

from grebe.indexes.columns import Chosen
from grebe.indexes.content.parts import parts_for
from grebe.indexes.supposed import Sample, Supposed, bytes_of_a_row, of_a_copy, scaled
from grebe.indexes.view.definition import Definition, Measure
from grebe.indexes.view.trees import columns_in, is_column

_OF_A_KEY, _OF_A_MEASURE, _OF_A_COUNT = 1.0, 2.0, 0.5
"""Bytes of a value, compressed: of a key or a sum whose columns are not known, and of a number of rows."""
_SUMMED = 0.5
"""Bytes that a sum takes beside those of a value that is summed up."""
_OF_A_COLUMN = 3
"""Parts of the tree that is a column, and no field inside one."""


def suppose(definition: Definition, sample: Sample) -> Supposed:
    rows = sample.facts.rows
    columns = _columns(definition, sample)
    whole: float | None = None
    if columns is not None and len(definition.bases) == 1 and not definition.where:
        whole = sample.distinct(columns)
    elif sample.groups is not None:  # what else a query groups by only Spark can tell
        groups = sample.groups(definition)
        rows = round(rows * groups.rows / max(1, groups.sampled))
        whole = scaled(groups.found, groups.once, groups.rows, rows)
    if definition.grouped and whole is not None:
        rows = round(min(rows, whole + min(rows, whole * sample.files)))
    keys = _OF_A_KEY * len(definition.keys) if columns is None else bytes_of_a_row(sample, columns)
    size = int(rows * (keys + sum(_width(one, definition, sample) for one in definition.measures)))
    files = parts_for(size) + int(definition.grouped)
    layout = {"buckets": 0, "bucket_by": [], "sort_by": [], "reason": "as the query groups its rows"}
    beside = files * of_a_copy(len(definition.fields) + 1)
    return Supposed({"layout": layout}, size + beside, rows, files)


def _columns(definition: Definition, sample: Sample) -> list[Chosen] | None:
    """The keys, if all of them are columns that are sampled."""
    trees = [one.tree for one in definition.keys]
    known = all(
        is_column(tree) and tree[1] == 0 and len(tree) == _OF_A_COLUMN and tree[2] in sample.rows.column_names
        for tree in trees
    )
    return [Chosen((tree[2],), "") for tree in trees] if known and trees else None


def _width(measure: Measure, definition: Definition, sample: Sample) -> float:
    if measure.sql.startswith("count("):
        return _OF_A_COUNT
    names = {
        name
        for function in definition.functions
        if measure.name in function.measures
        for number, name in columns_in(function.tree)
        if number == 0 and name in sample.rows.column_names
    }
    return _SUMMED + bytes_of_a_row(sample, [Chosen((name,), "") for name in names]) if names else _OF_A_MEASURE
