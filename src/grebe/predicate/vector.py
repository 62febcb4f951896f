"""Values of a term in every row, with the rows in which Spark would raise an error instead of giving a value."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Rows: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """`values` is in physical form and NULL in the failed rows; a constant may be a scalar. `failed` is None where no row fails."""

    values: Any  # pa.Array or pa.Scalar
    failed: Rows | None = None


def either(one: Rows | None, other: Rows | None) -> Rows | None:
    if one is None:
        return other
    return one if other is None else one | other


def as_rows(flags: pa.Array) -> Rows:
    """A boolean array as a mask; NULL is False."""
    rows: Rows = pc.fill_null(flags, False).to_numpy(zero_copy_only=False)
    return rows


def valid_rows(values: pa.Array) -> Rows:
    rows: Rows = values.is_valid().to_numpy(zero_copy_only=False)
    return rows


def without(values: pa.Array, rows: Rows) -> pa.Array:
    """The values, NULL in these rows."""
    return pc.if_else(pa.array(rows), pa.scalar(None, values.type), values) if rows.any() else values


def filled(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Numbers as numpy sees them, zero in place of NULL."""
    numbers: np.ndarray[tuple[int], np.dtype[np.generic]] = pc.fill_null(values, pa.scalar(0, values.type)).to_numpy(
        zero_copy_only=False
    )
    return numbers


def with_nulls_of(numbers: np.ndarray[tuple[int], np.dtype[np.generic]], like: pa.Array) -> pa.Array:
    """Numbers computed from `filled(like)`, NULL where `like` is."""
    return pa.array(numbers, mask=None if like.null_count == 0 else ~valid_rows(like))
