"""Which type Spark compares two values in, and which casts it inserts for that.

The rules are those of Spark's analyser, in ANSI mode (the default of Spark 4) and outside it. They differ mostly for strings:
`text = 1` compares as bigint in ANSI mode and as int outside it, and `number IN ('1')` compares as text outside it.
"""

from functools import reduce
from itertools import groupby

from grebe.errors import InvalidPredicate
from grebe.predicate.types import (
    BIGINT,
    DOUBLE,
    INTEGRAL_BITS,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Type,
    decimal,
    decimal_for_integral,
)

_NUMERIC_ORDER = (*INTEGRAL_BITS, "float", "double")


class VersionsDiffer(Exception):
    """Spark 3 and 4 compare such a pair in different types, with different answers. Binding catches this, and leaves it opaque."""


def comparison_type(left: Type, right: Type, equality: bool, ansi: bool) -> Type:
    """The type that both sides of `left <op> right` are cast to."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if STRING in (left, right):
        return _with_string(right if left == STRING else left, ansi)
    if left.is_numeric and right.is_numeric:
        return _numeric(left, right, ansi)
    if left.is_datetime and right.is_datetime:
        return _datetime(left, right)
    booleans = [kind for kind in (left, right) if kind.name == "boolean"]
    numbers = [kind for kind in (left, right) if kind.is_numeric]
    if booleans and numbers and equality and not ansi:
        return numbers[0]
    raise _mismatch(left, right)


def common_type(kinds: list[Type], ansi: bool) -> Type:
    """The one type that the value and the list of an IN are cast to. In ANSI mode it depends on their order, as in Spark."""
    changes = [kind for kind, _ in groupby(kinds)]
    ordered = changes if ansi else sorted(changes, key=lambda kind: kind != STRING)
    return reduce(lambda one, other: _wider(one, other, ansi), ordered)


def wider_decimal(left: Type, right: Type) -> Type:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    if precision > MAX_PRECISION:
        raise VersionsDiffer  # Spark 3 keeps the fraction and may overflow, Spark 4 rounds it
    return decimal(precision, scale)


def _wider(left: Type, right: Type, ansi: bool) -> Type:
    if not ansi and STRING in (left, right) and left != right and VOID not in (left, right):
        other = right if left == STRING else left
        if other.name in ("binary", "boolean") or not other.is_scalar:
            raise _mismatch(left, right)
        return STRING
    return comparison_type(left, right, equality=False, ansi=ansi)


def _with_string(other: Type, ansi: bool) -> Type:
    if not other.is_scalar:
        raise _mismatch(STRING, other)
    if ansi and other.is_integral:
        return BIGINT
    if other.is_decimal and other.scale == 0 and not ansi:
        raise VersionsDiffer  # Spark 3 compares as double, Spark 4 as decimal
    if other.is_decimal or (ansi and other.is_floating):
        return DOUBLE
    return other


def _numeric(left: Type, right: Type, ansi: bool) -> Type:
    if left.is_decimal or right.is_decimal:
        if left.is_floating or right.is_floating:
            return DOUBLE
        return wider_decimal(*(kind if kind.is_decimal else decimal_for_integral(kind) for kind in (left, right)))
    wider = max(left, right, key=lambda kind: _NUMERIC_ORDER.index(kind.name))
    if ansi and wider.name == "float":  # an integer may not fit a float's 24 bits
        return DOUBLE
    return wider


def _datetime(left: Type, right: Type) -> Type:
    return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ


def _mismatch(left: Type, right: Type) -> InvalidPredicate:
    return InvalidPredicate(f"cannot compare {left} with {right}: cast one of them", detail="TYPE_MISMATCH")
