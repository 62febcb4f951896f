"""Functions turned round: of which values of its term a function makes a given value.

All of them keep the order of values, or reverse it. So the values of the term for which `f(x) = v` are one interval, and all else
follows from its two ends: `f(x) >= v` is `x >= first`, `f(x) > v` is `x >= after`. Years, months and days are such functions, so is
arithmetic with a constant, as long as it does not overflow.

    year(x) = 2020     first = 2020-01-01, after = 2021-01-01
    x + 5 = 7          first = 2, after = 3
    2 * x = 7          first = after = 4: no integer gives 7, and those from 4 on give more
    10 - x = 7         first = 3, after = 4, falling: the greater x, the less it is

Two things keep this from being exact, and both are told:

- `exact` is false where the ends are only outer ones. In a zone whose clocks change, the day of an instant hangs on rules that our
  tables and Java's need not agree on; but no zone is more than 18 hours from UTC.
- `astray` says which rows the interval does not hold for, as Spark wraps numbers around in them, or raises an error. An index may
  not rule these out, since then an answer would take the place of the error.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from grebe.formats.zones import GREATEST_OFFSET, MICROS_PER_DAY, MICROS_PER_SECOND, constant_offset
from grebe.predicate.calendar_units import ANYWHERE_ALIKE, day_bounds, first_day_of_year, moment_bounds, year_of
from grebe.predicate.functions import LINEAR, UNITS_PER_MICROS
from grebe.predicate.tree import FALSE, TRUE, Call, Cast, Column, Compare, Literal, Or, Predicate, Term, type_of
from grebe.predicate.types import BIGINT, INT, INTEGRAL_BITS, Type, decimal_for_integral, integral_range

Number: TypeAlias = int | Fraction
Range: TypeAlias = tuple[Number, Number]

_WIDE = Context(prec=100)
DAYS_AT_THE_START = 800
"""A unit that has begun before the first day or moment there is: Spark's answer is an error, or one from the other end of time."""
_MOMENTS = ("timestamp", "timestamp_ntz")
_STORED = {"date": integral_range(INT), **dict.fromkeys(_MOMENTS, integral_range(BIGINT))}


@dataclass(frozen=True, slots=True)
class Preimage:
    """Of one value. Ends count in steps of the term's type: 1 for integers, days, microseconds; 0.01 for a decimal(9,2)."""

    first: int
    after: int
    exact: bool = True
    falling: bool = False


def preimage(term: Call | Cast, value: Any) -> Preimage | None:
    """None for a function or cast that is not of this kind."""
    kind = type_of(term.term)
    if kind is None:
        return None
    if isinstance(term, Cast):
        return _of_cast(term, kind, value)
    match term.name:
        case "year":
            return Preimage(first_day_of_year(value), first_day_of_year(value + 1))
        case "trunc":
            return _rounded_down(*day_bounds(_unit(term), value), value)
        case "date_trunc":
            return _of_truncated_moment(_unit(term), value, term.time_zone)
        case "linear":
            return _of_linear(term, kind, value)
    if term.name in UNITS_PER_MICROS:
        return _of_parts(UNITS_PER_MICROS[term.name], value)
    return None


def steps_of(kind: Type) -> tuple[int, int]:
    """The least and the greatest value of a type, in its steps."""
    if kind.is_integral:
        return integral_range(kind)
    if kind.is_decimal:
        most = 10**kind.precision - 1
        return -most, most
    return _STORED[kind.name]


def literal_at(step: int, kind: Type) -> Literal:
    return Literal(Decimal(step).scaleb(-kind.scale, _WIDE) if kind.is_decimal else step, kind)


def astray(term: Term) -> Predicate:
    """What is true for every row in which Spark raises an error for this term, or wraps a number around; FALSE if there is none."""
    match term:
        case Column():
            return FALSE
        case Cast() | Call():
            parts = (*own_astray(term), astray(term.term))
            return TRUE if TRUE in parts else _either([part for part in parts if part != FALSE])
    return TRUE


def own_astray(term: Cast | Call) -> list[Predicate]:
    """The same, for what the outermost cast or function does."""
    return _of_call_astray(term) if isinstance(term, Call) else _of_cast_astray(term.term, term.to)


def _of_cast_astray(inner: Term, to: Type) -> list[Predicate]:
    source = type_of(inner)
    if source is not None and source.name == "date" and to.name in _MOMENTS:
        limit = steps_of(to)[1] // MICROS_PER_DAY - 1
        return _outside(inner, source, -limit, limit)
    return [] if _never_fails(source, to) else [TRUE]


def _of_call_astray(call: Call) -> list[Predicate]:
    inner = call.term
    kind = type_of(inner)
    if call.name == "trunc" and kind is not None:
        return [Compare("<", inner, Literal(steps_of(kind)[0] + DAYS_AT_THE_START, kind))]
    if call.name == "date_trunc" and kind is not None and _unit(call) != "MICROSECOND":
        return [Compare("<", inner, Literal(steps_of(kind)[0] + DAYS_AT_THE_START * MICROS_PER_DAY, kind))]
    return _outside(inner, kind, *fitting(call)) if call.name == LINEAR and kind is not None else []


def fitting(call: Call) -> tuple[int, int]:
    """Between which values of its term (in steps) arithmetic does not overflow."""
    kind = type_of(call.term)
    assert kind is not None, "a call is made of a term with a type"
    least, most = (Fraction(end, 10**call.type.scale) for end in steps_of(call.type))
    factor, plus = _factors(call)
    ends = sorted(((least - plus) / factor, (most - plus) / factor))
    return math.ceil(ends[0] * 10**kind.scale), math.floor(ends[1] * 10**kind.scale)


def _outside(inner: Term, kind: Type, low: int, high: int) -> list[Predicate]:
    """What is true for values outside these bounds, as far as there can be any."""
    least, most = (end * 10**kind.scale for end in range_of(inner))
    lowest, highest = steps_of(kind)
    found: list[Predicate] = []
    # A bound that no value of the type reaches leaves all of them outside.
    if least < low:
        found.append(Compare("<", inner, literal_at(low, kind)) if low <= highest else TRUE)
    if most > high:
        found.append(Compare(">", inner, literal_at(high, kind)) if high >= lowest else TRUE)
    return found


def range_of(term: Term) -> Range:
    """Between which values those of a term lie that has a type of numbers or times."""
    kind = type_of(term)
    assert kind is not None, "a term with a type"
    whole = tuple(Fraction(end, 10**kind.scale) for end in steps_of(kind))
    match term:
        case Cast(inner, to) if (source := type_of(inner)) is not None and _keeps_values(source, to):
            return range_of(inner)
        case Cast(inner, to) if (
            to.name == "date" and (source := type_of(inner)) is not None and source.name in _MOMENTS
        ):
            least, most = range_of(inner)
            return least // MICROS_PER_DAY - 1, most // MICROS_PER_DAY + 1
        case Call(name="year", term=inner):
            least, most = range_of(inner)
            return year_of(int(least)), year_of(int(most))
        case Call(name="linear", term=inner):
            factor, plus = _factors(term)
            ends = sorted(end * factor + plus for end in range_of(inner))
            if whole[0] <= ends[0] and ends[1] <= whole[1]:
                return ends[0], ends[1]
    return whole[0], whole[1]


def _either(parts: list[Predicate]) -> Predicate:
    return FALSE if not parts else parts[0] if len(parts) == 1 else Or(tuple(parts))


def _factors(call: Call) -> tuple[Fraction, Fraction]:
    factor, plus = call.arguments
    assert isinstance(factor, int | Decimal)
    assert isinstance(plus, int | Decimal)
    return Fraction(factor), Fraction(plus)


def _unit(call: Call) -> str:
    return str(call.arguments[0])


def _of_cast(cast: Cast, kind: Type, value: Any) -> Preimage | None:
    if cast.to.name == "date" and kind.name in _MOMENTS:
        first, after = value * MICROS_PER_DAY, (value + 1) * MICROS_PER_DAY
        offset = 0 if kind.name == "timestamp_ntz" else constant_offset(cast.time_zone)
        if offset is None:
            return Preimage(first - GREATEST_OFFSET, after + GREATEST_OFFSET, exact=False)
        return Preimage(first - offset, after - offset)
    if cast.to == BIGINT and kind.name == "timestamp":
        return _of_parts(MICROS_PER_SECOND, value)
    return None


def _of_parts(micros: int, value: int) -> Preimage:
    return Preimage(value * micros, (value + 1) * micros)


def _rounded_down(start: int, following: int, value: int) -> Preimage:
    """Of a function that gives the start of the unit that a value lies in."""
    return Preimage(start if start == value else following, following)


def _of_truncated_moment(unit: str, value: int, time_zone: str) -> Preimage:
    offset = 0 if unit in ANYWHERE_ALIKE else constant_offset(time_zone)
    if offset is not None:
        local = _rounded_down(*moment_bounds(unit, value + offset), value + offset)
        return Preimage(local.first - offset, local.after - offset)
    # On the clock the result is never later than the moment, and what a clock shows is at most so far from UTC, before and after.
    _, following = moment_bounds(unit, value + GREATEST_OFFSET)
    return Preimage(value - 2 * GREATEST_OFFSET, following + GREATEST_OFFSET, exact=False)


def _of_linear(call: Call, kind: Type, value: Any) -> Preimage:
    factor, plus = _factors(call)
    at = (Fraction(value) - plus) / factor * 10**kind.scale
    return Preimage(math.ceil(at), math.floor(at) + 1, falling=factor < 0)


def _keeps_values(source: Type, to: Type) -> bool:
    """A number stays the same number, whatever it is."""
    if source.is_integral and to.is_integral:
        return INTEGRAL_BITS[source.name] <= INTEGRAL_BITS[to.name]
    whole = decimal_for_integral(source) if source.is_integral else source
    if not (whole.is_decimal and to.is_decimal):
        return False
    return whole.scale <= to.scale and whole.precision - whole.scale <= to.precision - to.scale


def _never_fails(source: Type | None, to: Type) -> bool:
    """Casts that have a value for every value."""
    if source is None:
        return False
    if source == to or _keeps_values(source, to):
        return True
    if to.is_floating:
        return source.is_integral or source.is_floating
    return (source.name in _MOMENTS and to.name == "date") or (source.name == "timestamp" and to == BIGINT)
