"""What an index of summaries would be like, by a sample of the table's rows."""

import math

from grebe.indexes.columns import Chosen
from grebe.indexes.sketches.columns import width_of
from grebe.indexes.summary.shape import Shape, on_of
from grebe.indexes.supposed import OF_A_FILE, Sample, Supposed

_OF_EACH = 24
"""Bytes of a file beside its sketches."""
_OF_A_SKETCH = 1_500
"""Bytes of the columns of a sketch, however few files there are."""
_BITS_A_VALUE = 10
_OF_A_PAIR = 0.3
"""Bytes of a value and a file that has it, in a sieve."""
_MOST_LISTED = 1_000
_OF_OTHERS = 512


def suppose(shape: Shape, sample: Sample) -> Supposed:
    by_path = {column.path: column for column in shape.columns}
    each: float = _OF_EACH
    for held in shape.sketches:
        each += sum(_bytes(held.sketch.sketch, by_path[on.path], sample) for on in held.on)
    rows = sample.facts.rows
    sieves = 0.0
    for sieve in shape.sieves:
        pairs = sample.files * _values_of_a_file(sieve.column, sample)
        sieves += min(sieve.budget * rows * width_of(sieve.on.type), pairs * _OF_A_PAIR)
    sketched = sum(len(held.on) for held in shape.sketches)
    size = int(each * sample.files + sieves) + OF_A_FILE * (1 + len(shape.sieves)) + _OF_A_SKETCH * sketched
    return Supposed({}, size, sample.files, 1 + len(shape.sieves), shuffled=bool(shape.sieves))


def _bytes(sketch: str, column: Chosen, sample: Sample) -> float:
    """Of one file."""
    width = width_of(on_of(column).type)
    own = _values_of_a_file(column, sample)
    match sketch:
        case "min_max":
            return 2 * width + 8
        case "value_list":
            return min(_MOST_LISTED, own) * width
        case "bloom":
            return own * _BITS_A_VALUE / 8
        case "null_count":
            return 4
    return _OF_OTHERS


def _values_of_a_file(column: Chosen, sample: Sample) -> float:
    """Values that many rows share are in most files."""
    rows = sample.facts.rows / max(1, sample.files)
    values = sample.distinct([column])
    return min(rows, values * (1.0 - math.exp(-rows / max(1.0, values))))
