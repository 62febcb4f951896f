"""Values that come from pyarrow or numpy, as literals of the type that they have there."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.errors import InvalidPredicate
from grebe.predicate.arrow_types import from_arrow, to_physical
from grebe.predicate.tree import Cast, Literal, Term
from grebe.predicate.types import TIMESTAMP, TIMESTAMP_NTZ


def is_arrow(value: object) -> bool:
    return isinstance(value, pa.Array | pa.ChunkedArray | pa.Scalar | np.ndarray | np.generic)


def arrow_literals(value: Any) -> Iterator[Term]:
    """One literal a value. numpy's datetimes have no zone and mean the session's, as Python's do."""
    array = _array(value)
    kind = from_arrow(array.type)
    if not kind.is_scalar:
        raise InvalidPredicate(f"values of type {array.type} cannot be compared with a column", detail="VALUE")
    naive = kind == TIMESTAMP_NTZ and isinstance(value, np.ndarray | np.generic)
    try:
        items = to_physical(array, kind).to_pylist()
    except pa.ArrowInvalid as cause:
        raise InvalidPredicate(
            f"a value of type {array.type} lies beyond what a column of type {kind} can hold", detail="VALUE"
        ) from cause
    for item in items:
        literal = Literal(item, kind)
        yield Cast(literal, TIMESTAMP) if naive else literal


def _array(value: Any) -> pa.Array:
    if isinstance(value, pa.ChunkedArray):
        return value.combine_chunks()
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, 1)
    if isinstance(value, pa.Array):
        return value
    try:
        return pa.array(np.atleast_1d(value))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as cause:
        raise InvalidPredicate(
            f"values of type {value.dtype} cannot be compared with a column", detail="VALUE"
        ) from cause
