"""Values that are looked for, and which columns can hold them.

A column holds a value if it is of the same sort (text, number, truth, bytes, day, moment) and has exactly that value. Numbers of
all types are of one sort: 42 is looked for in integers, decimals and doubles alike.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext

import numpy as np

from grebe.errors import InvalidPredicate
from grebe.predicate.arrow_values import arrow_literals, is_arrow
from grebe.predicate.builder import term_of
from grebe.predicate.fold import fold_casts
from grebe.predicate.tree import Cast, Literal, Path
from grebe.predicate.types import TIMESTAMP, TIMESTAMP_NTZ, VOID, Type, integral_range
from grebe.session.arguments import require_unicode

_DIGITS = 80  # more than a decimal has on both sides of its point


@dataclass(frozen=True, slots=True)
class Leaves:
    columns: Mapping[Path, Type]
    """Those of single values, fields of structs included."""
    inside: tuple[Path, ...]
    """Arrays, maps and types that Grebe does not compare: what lies in them is not searched."""


def leaves_of(schema: Type) -> Leaves:
    leaves = list(_walk(schema, ()))
    columns = {path: kind for path, kind in leaves if kind.is_scalar}
    return Leaves(columns, tuple(path for path, kind in leaves if not kind.is_scalar))


def _walk(kind: Type, path: Path) -> Iterator[tuple[Path, Type]]:
    if kind.name != "struct":
        yield path, kind
        return
    for field in kind.fields:
        yield from _walk(field.type, (*path, field.name))


def literals(values: Iterable[object]) -> list[Literal]:
    """Raises `InvalidPredicate` for what no column can have as a value."""
    found = []
    for term in arrow_literals(values) if is_arrow(values) else map(term_of, values):
        literal = term.term if isinstance(term, Cast) else term  # a moment without a zone
        if not isinstance(literal, Literal) or literal.type == VOID or literal.value is None:
            raise InvalidPredicate(
                "only values can be found; rows without one: table.get(column, None)", detail="VALUE"
            )
        found.append(literal)
    require_unicode(*found)
    return found


def held_by(kind: Type, sought: Iterable[Literal], time_zone: str) -> tuple[Literal, ...]:
    """The values as a column of this type has them, without those that it cannot have. The zone is for times without one."""
    held = (_as(kind, literal, time_zone) for literal in sought)
    return tuple(dict.fromkeys(literal for literal in held if literal is not None))


def _as(kind: Type, literal: Literal, time_zone: str) -> Literal | None:
    value = literal.value
    if kind.is_numeric and literal.type.is_numeric and isinstance(value, int | float | Decimal):
        number = _integer(value, kind) if kind.is_integral else _fraction(value, kind)
        return None if number is None else Literal(number, kind)
    if kind == TIMESTAMP and literal.type == TIMESTAMP_NTZ:
        (moment,) = fold_casts([literal], kind, "ansi", time_zone)
        return moment if isinstance(moment, Literal) else None
    return literal if literal.type == kind else None


def _integer(value: float | Decimal, kind: Type) -> int | None:
    if not math.isfinite(value) or value != int(value):
        return None
    low, high = integral_range(kind)
    return int(value) if low <= value <= high else None


def _fraction(value: float | Decimal, kind: Type) -> float | Decimal | None:
    if kind.is_decimal:
        return _decimal(value, kind)
    try:
        number = float(value)
    except OverflowError:
        return None
    if isinstance(value, int) and number != value:
        return None
    with np.errstate(over="ignore"):
        same = kind.name == "double" or math.isnan(number) or float(np.float32(number)) == number
    return number if same else None


def _decimal(value: float | Decimal, kind: Type) -> Decimal | None:
    if not math.isfinite(value):
        return None
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    with localcontext(prec=_DIGITS):
        try:
            number = exact.quantize(Decimal(1).scaleb(-kind.scale))
        except InvalidOperation:  # too many digits for any decimal
            return None
    fits = number == exact and abs(number) < Decimal(10) ** (kind.precision - kind.scale)
    return number if fits else None
