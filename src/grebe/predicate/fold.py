"""Constants computed once, by Spark's rules, before any row is looked at.

Where Spark would raise (an overflow, a division by zero), nothing is folded: such a term is left for evaluation to judge, or
becomes opaque, and so never prunes.
"""

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from grebe.errors import Unsupported
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.casts import cast_values
from grebe.predicate.scalar_text import SPECIAL_WORDS, is_time_of_today
from grebe.predicate.tree import (
    Arithmetic,
    ArithmeticOperator,
    Cast,
    CastMode,
    Function,
    Literal,
    Negative,
    Term,
    Value,
)
from grebe.predicate.types import (
    BIGINT,
    DOUBLE,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    VOID,
    Type,
    decimal,
    decimal_for_integral,
    integral_range,
)

_EXACT = Context(prec=4 * MAX_PRECISION, rounding=ROUND_HALF_UP)
_QUOTIENT_PLACES = 38  # Spark divides decimals to this many places before it rounds to those of the result
_MIN_DIVISION_SCALE = 6


def fold(term: Term) -> Term | None:
    """The term with its constants computed. None: it depends on the day, Spark would raise, or Grebe does not know the function."""
    match term:
        case Cast(inner, to, mode, time_zone):
            folded = fold(inner)
            if folded is None:
                return None
            if not isinstance(folded, Literal):
                return Cast(folded, to, mode, time_zone)
            return fold_casts([folded], to, mode, time_zone)[0]
        case Negative(inner):
            folded = fold(inner)
            return _negated(folded) if isinstance(folded, Literal) else None
        case Arithmetic(operator, left, right):
            one, other = fold(left), fold(right)
            if isinstance(one, Literal) and isinstance(other, Literal):
                return _fold_arithmetic(operator, one, other, (isinstance(left, Literal), isinstance(right, Literal)))
            return None
        case Function():
            return None
    return term


def _depends_on_today(literal: Literal, to: Type) -> bool:
    if literal.type != STRING or not to.is_datetime or not isinstance(literal.value, str):
        return False
    return literal.value.strip().lower().startswith(SPECIAL_WORDS) or (
        to == TIMESTAMP and is_time_of_today(literal.value)
    )


def fold_casts(literals: list[Literal], to: Type, mode: CastMode, time_zone: str) -> list[Term | None]:
    """Literals of one type, cast all at once: a list of keys may be long. None where the value depends on the day."""
    source = literals[0].type
    if not source.is_scalar or not to.is_scalar:
        return [Cast(literal, to, mode, time_zone) for literal in literals]
    if any(_depends_on_today(literal, to) for literal in literals):
        return [None] * len(literals)
    values = pa.array([literal.value for literal in literals], physical_type(source))
    try:
        vector = cast_values(values, source, to, mode, time_zone)
    except Unsupported:
        if len(literals) > 1:
            return [fold_casts([literal], to, mode, time_zone)[0] for literal in literals]
        return [Cast(literals[0], to, mode, time_zone)]  # evaluation will say so, if it comes to that
    failed = [False] * len(literals) if vector.failed is None else vector.failed.tolist()
    return [
        Cast(literal, to, mode, time_zone) if fails else Literal(value, to)
        for literal, value, fails in zip(literals, vector.values.to_pylist(), failed, strict=True)
    ]


def one_value(literal: Literal) -> pa.Array:
    """A literal as an array of one row, in physical form."""
    return pa.array([literal.value], physical_type(literal.type))


def _negated(literal: Literal) -> Literal | None:
    value: Any = literal.value
    if not literal.type.is_numeric:
        return None
    if value is None:
        return literal
    if literal.type.is_integral and value == integral_range(literal.type)[0]:
        return None
    return Literal(value.copy_negate() if isinstance(value, Decimal) else -value, literal.type)


def _fold_arithmetic(
    operator: ArithmeticOperator, left: Literal, right: Literal, written: tuple[bool, bool]
) -> Literal | None:
    """`written`: which operands are numbers in the text, for Spark gives these the fewest digits when it makes decimals of them."""
    kinds = (left.type, right.type)
    if VOID in kinds or not all(kind.is_numeric and kind.name != "float" for kind in kinds):
        return None
    if left.value is None or right.value is None:
        return None
    if DOUBLE in kinds or (operator == "/" and all(kind.is_integral for kind in kinds)):
        return _doubles(operator, _as_double(left), _as_double(right))
    if any(kind.is_decimal for kind in kinds):
        return _decimals(operator, _as_decimal(left, written[0]), _as_decimal(right, written[1]))
    return _integers(operator, left, right)


def _as_double(literal: Literal) -> float:
    value: Any = literal.value
    return float(value)  # correctly rounded for int and Decimal alike


def _as_decimal(literal: Literal, written: bool) -> Literal:
    value: Any = literal.value
    if literal.type.is_decimal:
        return literal
    kind = smallest_decimal(value) if written else decimal_for_integral(literal.type)
    return Literal(Decimal(value), kind)


def smallest_decimal(value: int) -> Type:
    return decimal(len(str(abs(value))), 0)


def _doubles(operator: ArithmeticOperator, left: float, right: float) -> Literal | None:
    match operator:
        case "+":
            return Literal(left + right, DOUBLE)
        case "-":
            return Literal(left - right, DOUBLE)
        case "*":
            return Literal(left * right, DOUBLE)
        case "/" if right != 0:
            return Literal(left / right, DOUBLE)
        case "%" if right != 0 and math.isfinite(left):
            return Literal(math.fmod(left, right), DOUBLE)
    return None


def _integers(operator: ArithmeticOperator, left: Literal, right: Literal) -> Literal | None:
    one, other = _integer(left.value), _integer(right.value)
    low, high = integral_range(left.type)
    kind = left.type if high >= integral_range(right.type)[1] else right.type
    result: int
    match operator:
        case "+":
            result = one + other
        case "-":
            result = one - other
        case "*":
            result = one * other
        case "div" if other != 0:
            kind, result = BIGINT, _truncated(one, other)
        case "%" if other != 0:
            result = one - other * _truncated(one, other)
        case _:
            return None
    low, high = integral_range(kind)
    return Literal(result, kind) if low <= result <= high else None


def _integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _truncated(one: int, other: int) -> int:
    """Java's division of integers, towards zero."""
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _decimals(operator: ArithmeticOperator, left: Literal, right: Literal) -> Literal | None:
    one, other = left.value, right.value
    assert isinstance(one, Decimal)
    assert isinstance(other, Decimal)
    (p1, s1), (p2, s2) = (left.type.precision, left.type.scale), (right.type.precision, right.type.scale)
    scale = max(s1, s2)
    match operator:
        case "+":
            return _decimal(_EXACT.add(one, other), max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "-":
            return _decimal(_EXACT.subtract(one, other), max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return _decimal(_EXACT.multiply(one, other), p1 + p2 + 1, s1 + s2)
        case "/" if other != 0:
            places = max(_MIN_DIVISION_SCALE, s1 + p2 + 1)
            quotient = _EXACT.divide(one, other).quantize(Decimal(1).scaleb(-_QUOTIENT_PLACES), context=_EXACT)
            return _decimal(quotient, p1 - s1 + s2 + places, places)
        case "%" if other != 0:
            return _decimal(_EXACT.remainder(one, other), min(p1 - s1, p2 - s2) + scale, scale)
    return None


def _decimal(value: Decimal, precision: int, scale: int) -> Literal | None:
    if precision > MAX_PRECISION:
        return None
    return Literal(value.quantize(Decimal(1).scaleb(-scale), context=_EXACT), decimal(precision, scale))
