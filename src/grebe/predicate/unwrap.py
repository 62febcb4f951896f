"""Columns freed from casts and functions, so that an index of the column can answer.

`CAST(a AS bigint) < 10` is `a < 10` for an int, and `CAST(a AS decimal(11,1)) = 5.5` is never true. This holds for casts that never
fail, keep the order, and keep different values different: the white list below. For the literal, the greatest value of the column's
type that is not above it is found; everything else follows from that. Functions, and casts that give many values the same, are
turned round by `inverses` and `prefixes`: `year(d) = 2020` is `d >= DATE '2020-01-01' AND d < DATE '2021-01-01'`.

One function is taken off at a time; whoever normalises the result takes off the next.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np

from grebe.formats.zones import MICROS_PER_DAY, zone
from grebe.predicate import prefixes
from grebe.predicate.bind import mirrored
from grebe.predicate.functions import LINEAR
from grebe.predicate.inverses import Preimage, astray, literal_at, own_astray, preimage, steps_of
from grebe.predicate.tree import (
    FALSE,
    NULL,
    And,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    In,
    IsNotNull,
    Literal,
    Operator,
    Or,
    Predicate,
    Term,
    always,
    never,
    type_of,
    walk,
)
from grebe.predicate.types import INTEGRAL_BITS, Type, decimal_for_integral, integral_range

_EXACT = Context(prec=100, rounding=ROUND_FLOOR)
_INTEGER_BITS_OF = {"float": 24, "double": 53}
_DAYS_AROUND = 3
_MANY_VALUES = 32
"""Of a longer list only the ends are looked at, unless each value comes of just one."""


@dataclass(frozen=True, slots=True)
class _Floor:
    """The greatest value not above the literal (None: all values are above it), and whether it is the literal itself."""

    value: Any
    exact: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A predicate about what is inside a function or cast. Not `exact`: it is true wherever the original is, and elsewhere too."""

    predicate: Predicate
    exact: bool = True


def unwrapped_compare(operator: Operator, left: Term, right: Literal) -> Predicate | None:
    """The same comparison on what is inside, or None where the cast or function must stay."""
    if not isinstance(left, Cast | Call):
        return None
    return _exact(left, step_of_compare(operator, left, right))


def unwrapped_in(term: Term, values: tuple[Literal, ...]) -> Predicate | None:
    if not isinstance(term, Cast | Call):
        return None
    return _exact(term, step_of_in(term, values))


def _exact(term: Cast | Call, step: Step | None) -> Predicate | None:
    if step is None or not step.exact:
        return None
    if is_total(term):
        return step.predicate
    # What is inside may raise, or wrap around. It does so in the comparisons that are left, if they are all there is.
    still_asked = not own_astray(term) and not any(isinstance(node, Constant) for node in walk(step.predicate))
    return step.predicate if still_asked else None


def unwrapped_start(term: Term, text: str) -> Predicate | None:
    if isinstance(term, Call) and term.name == "left" and is_total(term):
        return prefixes.starting(term.term, _length(term), text)
    return None


def without_nulls_of_its_own(term: Term) -> Term:
    """What is NULL in just the same rows."""
    while isinstance(term, Call | Cast) and astray(term) == FALSE:
        term = term.term
    return term


def is_total(term: Cast | Call) -> bool:
    """Whether it has a value for every value, and Spark never raises an error or wraps around."""
    # Those casts of a column that can fail have no step.
    return (isinstance(term, Cast) and isinstance(term.term, Column)) or astray(term) == FALSE


def step_of_compare(operator: Operator, left: Cast | Call, right: Literal) -> Step | None:
    """The comparison as one of what is inside, but for rows that are `astray`. None if there is no telling."""
    inner, kind = left.term, type_of(left.term)
    if kind is None or right.value is None or right.type != type_of(left):
        return None
    if isinstance(left, Cast):
        floor = _floor(kind, left, right.value)
        if floor is not None:
            return Step(_by_floor(operator, inner, kind, floor))
    elif left.name == "left" and isinstance(right.value, str):
        return Step(prefixes.compared(operator, inner, _length(left), right.value))
    found = preimage(left, right.value)
    return None if found is None else _by_preimage(operator, inner, kind, found)


def step_of_in(term: Cast | Call, values: Sequence[Literal]) -> Step | None:
    inner, kind = term.term, type_of(term.term)
    known = [value for value in values if value.value is not None]
    if kind is None or any(value.type != type_of(term) for value in known):
        return None
    found = _among(term, inner, kind, known)
    if found is None or len(known) == len(values):
        return found
    if isinstance(found.predicate, In):
        return Step(In(inner, (*found.predicate.values, Literal(None, kind))), found.exact)
    return Step(Or((found.predicate, NULL)), found.exact)


def _among(term: Cast | Call, inner: Term, kind: Type, values: Sequence[Literal]) -> Step | None:
    if isinstance(term, Cast):
        kept = _floors(term, kind, values)
        if kept is not None:
            return Step(In(inner, kept) if kept else never(inner))
    if len(values) > _MANY_VALUES and not (isinstance(term, Call) and term.name == LINEAR):
        return _between_ends(term, values)
    if isinstance(term, Call) and term.name == "left":
        return Step(prefixes.among(inner, _length(term), [str(value.value) for value in values]))
    found = [preimage(term, value.value) for value in values]
    if None in found:
        return None
    known = [one for one in found if one is not None]
    singles = tuple(literal_at(one.first, kind) for one in known if _single(one, kind))
    parts = [_by_preimage("=", inner, kind, one).predicate for one in known if not _single(one, kind)]
    if singles:
        parts.append(In(inner, singles))
    return Step(parts[0] if len(parts) == 1 else Or(tuple(parts)), all(one.exact for one in known))


def _floors(cast: Cast, kind: Type, values: Sequence[Literal]) -> tuple[Literal, ...] | None:
    """Those that are the cast of a value."""
    kept: list[Literal] = []
    for value in values:
        floor = _floor(kind, cast, value.value)
        if floor is None:
            return None
        if floor.exact:
            kept.append(Literal(floor.value, kind))
    return tuple(kept)


def _between_ends(term: Cast | Call, values: Sequence[Literal]) -> Step | None:
    ordered = sorted(values, key=lambda value: value.value)  # type: ignore[arg-type,return-value]  # of one type, and not NULL
    ends = [step_of_compare(">=", term, ordered[0]), step_of_compare("<=", term, ordered[-1])]
    parts = tuple(end.predicate for end in ends if end is not None)
    return Step(And(parts), exact=False) if len(parts) == len(ends) else None


def _length(call: Call) -> int:
    length = call.arguments[0]
    assert isinstance(length, int)
    return length


def _by_floor(operator: Operator, inner: Term, kind: Type, floor: _Floor) -> Predicate:
    bound = Literal(floor.value, kind)
    match operator:
        case "=" | "<=>":
            return Compare(operator, inner, bound) if floor.exact else FALSE if operator == "<=>" else never(inner)
        case "<>":
            return Compare("<>", inner, bound) if floor.exact else always(inner)
        case "<=" | "<":
            if floor.value is None:
                return never(inner)
            return Compare("<" if floor.exact and operator == "<" else "<=", inner, bound)
    if floor.value is None:
        return always(inner)
    return Compare(">=" if floor.exact and operator == ">=" else ">", inner, bound)


def _by_preimage(operator: Operator, inner: Term, kind: Type, found: Preimage) -> Step:
    if found.falling:
        operator = mirrored(operator)
    if _single(found, kind):
        return Step(Compare(operator, inner, literal_at(found.first, kind)), found.exact)
    match operator:
        case ">=":
            made = _from(inner, kind, found.first)
        case "<=":
            made = _before(inner, kind, found.after)
        case ">":
            made = _from(inner, kind, found.after if found.exact else found.first)
        case "<":
            made = _before(inner, kind, found.first if found.exact else found.after)
        case "<>":
            empty = not found.exact or found.first == found.after
            ends = (_before(inner, kind, found.first), _from(inner, kind, found.after))
            made = always(inner) if empty else Or(ends)
        case _:
            made = _within(inner, kind, found.first, found.after)
            made = And((IsNotNull(inner), made)) if operator == "<=>" else made
    return Step(made, found.exact)


def _within(inner: Term, kind: Type, first: int, after: int) -> Predicate:
    lowest, highest = steps_of(kind)
    if max(first, lowest) >= min(after, highest + 1):
        return never(inner)
    if first <= lowest:
        return _before(inner, kind, after)
    return (
        And((_from(inner, kind, first), _before(inner, kind, after))) if after <= highest else _from(inner, kind, first)
    )


def _single(found: Preimage, kind: Type) -> bool:
    """One value, and the type has it."""
    lowest, highest = steps_of(kind)
    return found.exact and found.after == found.first + 1 and lowest <= found.first <= highest


def _from(inner: Term, kind: Type, first: int) -> Predicate:
    lowest, highest = steps_of(kind)
    if first > highest:
        return never(inner)
    return always(inner) if first <= lowest else Compare(">=", inner, literal_at(first, kind))


def _before(inner: Term, kind: Type, after: int) -> Predicate:
    lowest, highest = steps_of(kind)
    if after <= lowest:
        return never(inner)
    return always(inner) if after > highest else Compare("<", inner, literal_at(after, kind))


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
