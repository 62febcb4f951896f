"""The functions of a column that Grebe knows: which there are, and what makes a `Call` of them.

A white list: each is monotone in its term. The text of a predicate and Catalyst's plan come to the same call, whichever way it was
written: `a + 1`, `1 + a` and `a - -1` are one. What is not on the list, or has arguments that Spark treats in another way, is
none of Grebe's functions and stays opaque.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from grebe.predicate.calendar_units import DATE_UNITS, MOMENT_UNITS, unit_named
from grebe.predicate.fold import smallest_decimal
from grebe.predicate.text import natural_decimal, to_sql
from grebe.predicate.tree import Call, CastMode, Literal, Term, Value, columns_of, type_of
from grebe.predicate.types import (
    BIGINT,
    DATE,
    INT,
    INTEGRAL_BITS,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
    decimal_for_integral,
    integral_range,
)

Implicit: TypeAlias = Callable[[Term, Type], Term]
"""The cast that Spark would insert."""

SECONDS, MILLIS, MICROS = "unix_seconds", "unix_millis", "unix_micros"
UNITS_PER_MICROS = {SECONDS: 1_000_000, MILLIS: 1_000, MICROS: 1}
ARGUMENTS = {
    "year": 1,
    "date_trunc": 2,
    "trunc": 2,
    "substring": 3,
    "substr": 3,
    "left": 2,
    "date_add": 2,
    "date_sub": 2,
    **dict.fromkeys(UNITS_PER_MICROS, 1),
}
"""By the names that they have in SQL: how many arguments each takes."""
LINEAR = "linear"
"""All arithmetic with a constant: its arguments are a factor and what is added."""


def call(name: str, arguments: Sequence[Term], time_zone: str, implicit: Implicit | None = None) -> Call | None:
    """Of bound arguments. Without `implicit` all casts are there already."""
    match name, list(arguments):
        case "year", [term]:
            day = _datetime(term, DATE, implicit)
            return None if day is None else _call("year", day, (), INT)
        case "date_trunc", [Literal(str() as text), term] if (unit := unit_named(text)) in MOMENT_UNITS:
            moment = _datetime(term, TIMESTAMP, implicit)
            return None if moment is None else _call("date_trunc", moment, (unit,), TIMESTAMP, time_zone=time_zone)
        case "trunc", [term, Literal(str() as text)] if (unit := unit_named(text)) in DATE_UNITS:
            day = _datetime(term, DATE, implicit)
            return None if day is None else _call("trunc", day, (unit,), DATE)
        case (("substring" | "substr"), [term, Literal(int() as start, kind), length]) if (
            start in (0, 1) and kind.is_integral
        ):
            return _left(term, length)
        case "left", [term, length]:
            return _left(term, length)
        case (("date_add" | "date_sub"), [term, Literal(int()) as days]):
            day = _datetime(term, DATE, implicit)
            return None if day is None else arithmetic("+" if name == "date_add" else "-", day, days, "legacy")
        case _, [term] if name in UNITS_PER_MICROS and type_of(term) == TIMESTAMP:
            return _call(name, term, (), BIGINT)
    return None


def arithmetic(operator: str, left: Term, right: Term, mode: CastMode) -> Call | None:
    """Of a bound term and a literal, both of the types that Spark brings them to."""
    turned = operator == "-" and isinstance(left, Literal)
    term, constant = (right, left) if isinstance(left, Literal) else (left, right)
    kind = type_of(term)
    if kind is None or isinstance(term, Literal) or not isinstance(constant, Literal) or constant.value is None:
        return None
    result = _result_type(operator, kind, constant.type)
    if result is None or (result == DATE and turned):
        return None
    value: Any = constant.value
    if operator == "*":
        return _linear(term, value, 0, result, mode) if value else None
    if turned:
        return _linear(term, -1, value, result, mode)
    return _linear(
        term, 1, value if operator == "+" else _negative(value), result, "legacy" if result == DATE else mode
    )


def negative(term: Term, mode: CastMode) -> Call | None:
    kind = type_of(term)
    if kind is None or isinstance(term, Literal) or not (kind.is_integral or kind.is_decimal):
        return None
    return _linear(term, -1, 0, kind, mode)


def alike(left: Term, right: Term, written: tuple[bool, bool], implicit: Implicit) -> tuple[Term, Term] | None:
    """The sides of an arithmetic operator brought to the types in which Spark computes. `written` as for `fold`."""
    kinds = (type_of(left), type_of(right))
    one, other = kinds
    if one is None or other is None:
        return None
    if one.is_integral and other.is_integral:
        wider = one if INTEGRAL_BITS[one.name] >= INTEGRAL_BITS[other.name] else other
        return _integral(left, wider, implicit), _integral(right, wider, implicit)
    if all(kind is not None and (kind.is_integral or kind.is_decimal) for kind in kinds):
        return _decimal(left, one, written[0], implicit), _decimal(right, other, written[1], implicit)
    return (left, right) if DATE in kinds else None


def _integral(term: Term, to: Type, implicit: Implicit) -> Term:
    if isinstance(term, Literal):
        return Literal(term.value, to)
    return term if type_of(term) == to else implicit(term, to)


def _decimal(term: Term, kind: Type, written: bool, implicit: Implicit) -> Term:
    if kind.is_decimal:
        return term
    if isinstance(term, Literal) and isinstance(term.value, int):
        return Literal(Decimal(term.value), smallest_decimal(term.value) if written else decimal_for_integral(kind))
    return implicit(term, decimal_for_integral(kind))


def _result_type(operator: str, kind: Type, constant: Type) -> Type | None:
    """None for what is not done exactly, or not by this function."""
    if operator not in ("+", "-", "*"):
        return None
    if kind == DATE and constant.is_integral:
        return DATE if operator != "*" and constant != BIGINT else None
    if kind.is_integral:
        return kind if kind == constant else None
    if not (kind.is_decimal and constant.is_decimal):
        return None
    if operator == "*":
        precision, scale = kind.precision + constant.precision + 1, kind.scale + constant.scale
    else:
        scale = max(kind.scale, constant.scale)
        precision = max(kind.precision - kind.scale, constant.precision - constant.scale) + scale + 1
    # Beyond that Spark rounds.
    return decimal(precision, scale) if precision <= MAX_PRECISION else None


def _datetime(term: Term, to: Type, implicit: Implicit | None) -> Term | None:
    kind = type_of(term)
    if isinstance(term, Literal) or kind is None or not kind.is_datetime:
        return None
    if kind == to:
        return term
    return None if implicit is None else implicit(term, to)


def _left(term: Term, length: Term) -> Call | None:
    """The first characters of a text."""
    if type_of(term) != STRING or isinstance(term, Literal) or not isinstance(length, Literal):
        return None
    count = length.value
    fits = isinstance(count, int) and length.type.is_integral and 0 < count <= integral_range(INT)[1]
    return _call("left", term, (count,), STRING) if fits else None


def _linear(term: Term, factor: Any, plus: Any, kind: Type, mode: CastMode) -> Call:
    return _call(LINEAR, term, (factor, plus), kind, mode)


def _call(
    name: str, term: Term, arguments: tuple[Value, ...], kind: Type, mode: CastMode = "legacy", time_zone: str = ""
) -> Call:
    return Call(
        _sql(name, term, arguments, kind),
        tuple(sorted(columns_of(term))),
        name=name,
        term=term,
        arguments=arguments,
        type=kind,
        mode=mode,
        time_zone=time_zone,
    )


def _sql(name: str, term: Term, arguments: tuple[Any, ...], kind: Type) -> str:
    inner = to_sql(term)
    match name:
        case "date_trunc":
            return f"date_trunc('{arguments[0]}', {inner})"
        case "trunc" | "left":
            return f"{name}({inner}, {to_sql(Literal(arguments[0], STRING if name == 'trunc' else INT))})"
        case "linear":
            return _linear_sql(inner, arguments[0], arguments[1], kind)
    return f"{name}({inner})"


def _linear_sql(inner: str, factor: Any, plus: Any, kind: Type) -> str:
    if kind == DATE:
        return f"date_add({inner}, {plus})" if plus <= integral_range(INT)[1] else f"date_sub({inner}, {-plus})"
    if factor == 1:
        negated = kind.is_integral and plus > integral_range(kind)[1]  # as in `a - -2147483648`
        return f"{inner} - {_number(-plus, kind)}" if negated else f"{inner} + {_number(plus, kind)}"
    if factor == -1:
        return f"{_number(plus, kind)} - {inner}" if plus else f"-{inner}"
    return f"{inner} * {_number(factor, kind)}"


def _number(value: Any, kind: Type) -> str:
    exact = Decimal(value) if kind.is_decimal else value
    return to_sql(Literal(exact, natural_decimal(exact) if isinstance(exact, Decimal) else kind))


def _negative(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.copy_negate() if value else value
    return -value
