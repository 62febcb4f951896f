"""The codes that a column must have for a simple predicate to be true: closed ranges of `sieving.keys`."""

import numpy as np

from grebe.indexes.sieving.keys import Keys
from grebe.indexes.sketches.columns import equal_values
from grebe.indexes.sketches.min_max import next_text
from grebe.indexes.sketches.protocol import On
from grebe.predicate.tree import And, Column, Compare, Literal, Predicate, StartsWith, Value
from grebe.predicate.types import FLOAT

LEAST, GREATEST = -(2**63), 2**63 - 1


def code_ranges(predicate: Predicate, on: On, keys: Keys) -> list[tuple[int, int]] | None:
    """None where the predicate does not say; ends belong to the ranges, as several values may share a code."""
    match predicate:
        case And(below):
            parts = [ranges for one in below if (ranges := code_ranges(one, on, keys)) is not None]
            return intersected(parts) if parts else None
        case Compare(operator, Column(path, kind), Literal(value, of)) if (
            operator in ("<", "<=", ">", ">=") and path == on.path and kind == of == on.type and value is not None
        ):
            code = _code(value, keys)
            return [(LEAST, code)] if operator in ("<", "<=") else [(code, GREATEST)]
        case StartsWith(Column(path, kind), text) if path == on.path and kind == on.type and text:
            beyond = next_text(text)
            return [(keys.code(text), GREATEST if beyond is None else keys.code(beyond))]
    values = equal_values(predicate, on.path, on.type)
    return None if values is None else [(code, code) for code in sorted({_code(value, keys) for value in values})]


def _code(value: Value, keys: Keys) -> int:
    """A plan writes a float with the digits that tell it from other floats: as a double that is another number."""
    return keys.code(float(np.float32(value)) if keys.type == FLOAT and isinstance(value, float) else value)


def intersected(parts: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """What lies in a range of each of the lists."""
    left = parts[0]
    for other in parts[1:]:
        left = [
            (max(first, start), min(last, stop))
            for first, last in left
            for start, stop in other
            if first <= stop and start <= last
        ]
    return left
