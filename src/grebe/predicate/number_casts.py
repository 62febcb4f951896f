"""Spark's casts between booleans and numbers, by whole columns.

Each function returns the new values and the rows that do not fit (NULL in the values), or no such rows where the mode makes them
fit: outside ANSI mode integers wrap around and floating point numbers saturate, as in Java.
"""

from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.types import Type, integral_range
from grebe.predicate.vector import Rows, as_rows, filled, with_nulls_of, without

Outcome: TypeAlias = tuple[pa.Array, Rows | None]

_NUMPY = {"tinyint": np.int8, "smallint": np.int16, "int": np.int32, "bigint": np.int64}
_WIDE_DIGITS = 76


def integral_to_integral(values: pa.Array, target: Type, wrap: bool) -> Outcome:
    arrow = physical_type(target)
    if values.type.bit_width <= arrow.bit_width:
        return values.cast(arrow), None
    if wrap:
        return with_nulls_of(filled(values).astype(_NUMPY[target.name]), values), None
    low, high = integral_range(target)
    outside = as_rows(pc.or_(pc.less(values, low), pc.greater(values, high)))
    return without(values, outside).cast(arrow), outside


def integral_to_decimal(values: pa.Array, target: Type) -> Outcome:
    return _fit_decimal(values.cast(pa.decimal128(20, 0)).cast(pa.decimal256(_WIDE_DIGITS, target.scale)), target)


def decimal_to_decimal(values: pa.Array, target: Type) -> Outcome:
    if (
        values.type.scale <= target.scale
        and values.type.precision - values.type.scale <= target.precision - target.scale
    ):
        return values.cast(physical_type(target)), None
    wide = values.cast(pa.decimal256(_WIDE_DIGITS, values.type.scale))
    if values.type.scale > target.scale:
        wide = pc.round(wide, ndigits=target.scale, round_mode="half_towards_infinity")
    return _fit_decimal(wide.cast(pa.decimal256(_WIDE_DIGITS, target.scale)), target)


def _fit_decimal(wide: pa.Array, target: Type) -> Outcome:
    limit = pa.scalar(10 ** (target.precision - target.scale), pa.decimal256(_WIDE_DIGITS, 0))
    outside = as_rows(pc.greater_equal(pc.abs(wide), limit.cast(wide.type)))
    return without(wide, outside).cast(physical_type(target)), outside


def decimal_to_integral(values: pa.Array, target: Type, wrap: bool) -> Outcome:
    whole = pc.trunc(values.cast(pa.decimal256(_WIDE_DIGITS, values.type.scale))).cast(pa.decimal256(_WIDE_DIGITS, 0))
    low, high = integral_range(Type("bigint"))
    outside = as_rows(
        pc.or_(pc.less(whole, pa.scalar(low, whole.type)), pc.greater(whole, pa.scalar(high, whole.type)))
    )
    if wrap and outside.any():
        raise Unsupported(f"cast of decimals beyond bigint to {target} outside ANSI mode; use TRY_CAST", detail="CAST")
    longs = without(whole, outside).cast(pa.int64())
    narrow, too_wide = integral_to_integral(longs, target, wrap)
    return narrow, outside if too_wide is None else outside | too_wide


def decimal_to_floating(values: pa.Array, target: Type) -> Outcome:
    # Arrow's direct conversion is not always the nearest number; reading the digits is.
    return values.cast(pa.string()).cast(physical_type(target)), None


def integral_to_floating(values: pa.Array, target: Type) -> Outcome:
    return values.cast(physical_type(target), safe=False), None


def floating_to_floating(values: pa.Array, target: Type) -> Outcome:
    return values.cast(physical_type(target), safe=False), None


def floating_to_integral(values: pa.Array, target: Type, wrap: bool) -> Outcome:
    numbers = filled(values)
    doubles = numbers.astype(np.float64)
    if wrap:
        return with_nulls_of(_saturated(doubles, target), values), None
    low, high = integral_range(target)
    # Spark compares with the limit as a number of the source's type, so a single-precision 2^31 still fits an int.
    limits = np.array([low, high], numbers.dtype).astype(np.float64)
    outside = ~((np.floor(doubles) <= limits[1]) & (np.ceil(doubles) >= limits[0]))
    fitting = np.where(outside, 0.0, doubles)
    return without(with_nulls_of(_saturated(fitting, target), values), outside), outside


def _saturated(
    doubles: np.ndarray[tuple[int], np.dtype[np.float64]], target: Type
) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Java's narrowing: NaN is 0, too large is the largest; bytes and shorts are cut from an int."""
    through = Type("bigint") if target.name == "bigint" else Type("int")
    low, high = integral_range(through)
    known = np.nan_to_num(np.trunc(doubles), nan=0.0, posinf=2.0**64, neginf=-(2.0**64))
    inside = (known > low) & (known < high)
    whole = np.where(inside, known, 0.0).astype(np.int64)
    whole = np.where(known >= high, high, np.where(known <= low, low, whole))
    return whole.astype(_NUMPY[target.name])


def number_to_boolean(values: pa.Array) -> Outcome:
    zero = Decimal(0) if pa.types.is_decimal(values.type) else 0
    return pc.not_equal(values, pa.scalar(zero, values.type)), None


def boolean_to_number(values: pa.Array, target: Type) -> Outcome:
    bits = values.cast(pa.int8())
    if target.is_decimal:
        return integral_to_decimal(bits, target)
    return bits.cast(physical_type(target)), None
