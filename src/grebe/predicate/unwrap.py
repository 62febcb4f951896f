"""Columns freed from casts, so that an index of the column can answer.

`CAST(a AS bigint) < 10` is `a < 10` for an int, and `CAST(a AS decimal(11,1)) = 5.5` is never true. This holds for casts that never
fail, keep the order, and keep different values different: the white list below. For the literal, the greatest value of the column's
type that is not above it is found; everything else follows from that.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np

from grebe.predicate.tree import (
    FALSE,
    NULL,
    And,
    Cast,
    Column,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Operator,
    Or,
    Predicate,
    Term,
)
from grebe.predicate.types import INTEGRAL_BITS, Type, decimal_for_integral, integral_range
from grebe.predicate.zones import MICROS_PER_DAY, zone

_EXACT = Context(prec=100, rounding=ROUND_FLOOR)
_INTEGER_BITS_OF = {"float": 24, "double": 53}
_DAYS_AROUND = 3


@dataclass(frozen=True, slots=True)
class _Floor:
    """The greatest value not above the literal (None: all values are above it), and whether it is the literal itself."""

    value: Any
    exact: bool


def unwrapped_compare(operator: Operator, left: Term, right: Literal) -> Predicate | None:
    """The same comparison on the bare column, or None where the cast must stay."""
    if not (isinstance(left, Cast) and isinstance(left.term, Column) and left.term.type and right.value is not None):
        return None
    column, kind = left.term, left.term.type
    floor = _floor(kind, left, right.value)
    if floor is None:
        return None
    bound = Literal(floor.value, kind)
    match operator:
        case "=" | "<=>":
            return Compare(operator, column, bound) if floor.exact else FALSE if operator == "<=>" else never(column)
        case "<>":
            return Compare("<>", column, bound) if floor.exact else always(column)
        case "<=" | "<":
            if floor.value is None:
                return never(column)
            return Compare("<" if floor.exact and operator == "<" else "<=", column, bound)
    if floor.value is None:
        return always(column)
    return Compare(">=" if floor.exact and operator == ">=" else ">", column, bound)


def unwrapped_in(term: Term, values: tuple[Literal, ...]) -> Predicate | None:
    if not (isinstance(term, Cast) and isinstance(term.term, Column) and term.term.type):
        return None
    column, kind = term.term, term.term.type
    kept: list[Literal] = []
    for value in values:
        if value.value is None:
            kept.append(Literal(None, kind))
            continue
        floor = _floor(kind, term, value.value)
        if floor is None:
            return None
        if floor.exact:
            kept.append(Literal(floor.value, kind))
    return In(column, tuple(kept)) if kept else never(column)


def never(term: Term) -> Predicate:
    """False, but NULL where the term is NULL."""
    return And((IsNull(term), NULL))


def always(term: Term) -> Predicate:
    """True, but NULL where the term is NULL."""
    return Or((IsNotNull(term), NULL))


def _floor(kind: Type, cast: Cast, value: Any) -> _Floor | None:
    to = cast.to
    if kind.is_integral and to.is_integral and INTEGRAL_BITS[kind.name] <= INTEGRAL_BITS[to.name]:
        return _integral_floor(kind, value)
    if kind.is_integral and to.is_decimal and decimal_for_integral(kind).precision <= to.precision - to.scale:
        return _integral_floor(kind, value)
    if kind.is_integral and to.is_floating:
        return _integral_floor_of_floating(kind, to, value)
    if (
        kind.is_decimal
        and to.is_decimal
        and kind.scale <= to.scale
        and kind.precision - kind.scale <= to.precision - to.scale
    ):
        return _decimal_floor(kind, value)
    if kind.name == "float" and to.name == "double":
        return _single_floor(value)
    if kind.name == "date" and to.name == "timestamp_ntz":
        return _Floor(value // MICROS_PER_DAY, value % MICROS_PER_DAY == 0)
    if kind.name == "date" and to.name == "timestamp":
        return _day_floor(value, cast.time_zone)
    return None


def _integral_floor(kind: Type, value: int | Decimal) -> _Floor:
    low, high = integral_range(kind)
    whole = math.floor(value)
    if whole > high:
        return _Floor(high, False)
    return _Floor(whole, whole == value) if whole >= low else _Floor(None, False)


def _integral_floor_of_floating(kind: Type, to: Type, value: float) -> _Floor | None:
    """Large integers share a floating point number; below these every integer has its own."""
    low, high = integral_range(kind)
    if math.isnan(value) or value > 2.0 * high:
        return _Floor(high, False)
    if value < 2.0 * low:
        return _Floor(None, False)
    distinct = INTEGRAL_BITS[kind.name] <= _INTEGER_BITS_OF[to.name] or abs(value) < 2 ** _INTEGER_BITS_OF[to.name]
    return _integral_floor(kind, Decimal(value)) if distinct else None


def _decimal_floor(kind: Type, value: Decimal) -> _Floor:
    unit = Decimal(1).scaleb(-kind.scale)
    largest = Decimal((0, (9,) * kind.precision, -kind.scale))
    floor = value.quantize(unit, context=_EXACT)
    if floor > largest:
        return _Floor(largest, False)
    return _Floor(floor, floor == value) if floor >= largest.copy_negate() else _Floor(None, False)


def _single_floor(value: float) -> _Floor:
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if float(near) > value:
        near = np.nextafter(near, np.float32(-math.inf))
    return _Floor(float(near), math.isnan(value) or float(near) == value)


def _day_floor(value: int, time_zone: str) -> _Floor | None:
    """The last day that starts not after an instant. Where a zone skipped a day, two days start at once: the cast must stay."""
    around = value // MICROS_PER_DAY + np.arange(-_DAYS_AROUND, _DAYS_AROUND + 1)
    starts = zone(time_zone, around * MICROS_PER_DAY).start_of_day(around)
    if (starts[1:] <= starts[:-1]).any():
        return None
    index = int(np.searchsorted(starts, value, side="right")) - 1
    return _Floor(int(around[index]), bool(starts[index] == value))
