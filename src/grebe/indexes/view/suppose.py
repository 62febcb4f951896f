"""What a view would be like, by the groups of a sample of the table's rows."""

from grebe.indexes.content.parts import parts_for
from grebe.indexes.supposed import OF_A_FILE, Sample, Supposed, scaled
from grebe.indexes.view.definition import Definition

_OF_A_KEY, _OF_A_MEASURE = 1, 2
"""Bytes of a value, compressed."""


def suppose(definition: Definition, sample: Sample) -> Supposed:
    rows = sample.facts.rows
    taken = sample.rows.num_rows
    if sample.groups is not None:
        groups, grouped = sample.groups(definition)
        rows = round(rows * grouped / max(1, taken))
        if definition.grouped:
            # How many groups were met once is not known; that it is their share of the rows is the cautious guess.
            whole = scaled(groups, min(groups, round(groups * groups / max(1, grouped))), grouped, rows)
            rows = round(min(rows, whole + min(rows, whole * sample.files)))
    width = _OF_A_KEY * len(definition.keys) + _OF_A_MEASURE * len(definition.measures)
    size = int(rows * width)
    files = parts_for(size) + int(definition.grouped)
    layout = {"buckets": 0, "bucket_by": [], "sort_by": [], "reason": "as the query groups its rows"}
    return Supposed({"layout": layout}, size + files * OF_A_FILE, rows, files)
