"""Predicates written in Python: `(col("a.b") >= 1) & col("c").isin(["x", "y"])`.

Python values become literals of the types that PySpark gives them; a datetime without a zone is a time in the session's time zone.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from grebe.errors import InvalidPredicate
from grebe.predicate.arrow_values import arrow_literals, is_arrow
from grebe.predicate.number_literals import integer
from grebe.predicate.text import natural_decimal
from grebe.predicate.tree import (
    FALSE,
    And,
    Cast,
    Column,
    Compare,
    Contains,
    EndsWith,
    Holds,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Operator,
    Path,
    Predicate,
    StartsWith,
    Term,
    TruthOf,
)
from grebe.predicate.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    MAX_PRECISION,
    OTHER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    parse_type,
)

_EPOCH_DAY = date(1970, 1, 1)
_PATH_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def col(name: str) -> "Col":
    """A column, or a field inside structs: `col("a.b")`. A dot inside a name is written col("`a.b`")."""
    return Col(Column(path_of(name)))


def path_of(name: str) -> Path:
    parts: list[str] = []
    position = 0
    while part := _PATH_PART.match(name, position):
        parts.append(part[1].replace("``", "`") if part[1] else part[2])
        position = part.end()
        if position == len(name):
            return tuple(parts)
        if name[position] != ".":
            break
        position += 1
    raise InvalidPredicate(
        f"{name!r} names no column: write a, a.b, or `a.b` where the dot is part of the name", detail="COLUMN_NAME"
    )


class Col:
    """A term that comparisons can be written with. A boolean column becomes a predicate by `.holds()`."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]  # == makes a predicate, so a Col cannot be a key

    def __init__(self, term: Term) -> None:
        self.term = term

    def __repr__(self) -> str:
        return f"Col({self.term!r})"

    def __bool__(self) -> bool:
        raise TypeError("a column has no truth of its own: compare it, or take a boolean column with .holds()")

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]  # a predicate is what the comparison is for
        return self._compare("=", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]  # as above
        return self._compare("<>", other)

    def __lt__(self, other: object) -> Predicate:
        return self._compare("<", other)

    def __le__(self, other: object) -> Predicate:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Predicate:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Predicate:
        return self._compare(">=", other)

    def eq_null_safe(self, other: object) -> Predicate:
        """Equal, where NULL equals NULL."""
        return self._compare("<=>", other)

    def isin(self, values: Iterable[object]) -> Predicate:
        """Equal to one of these values; false for no values at all."""
        terms = tuple(arrow_literals(values)) if is_arrow(values) else tuple(term_of(value) for value in values)
        return In(self.term, terms) if terms else FALSE

    def between(self, low: object, high: object) -> Predicate:
        """From low to high, both included."""
        return And((self._compare(">=", low), self._compare("<=", high)))

    def like(self, pattern: str, escape: str = "\\") -> Predicate:
        if len(escape) != 1:
            raise InvalidPredicate("the escape of a LIKE is one character", detail="LIKE_PATTERN")
        return Like(self.term, pattern, escape)

    def startswith(self, text: str) -> Predicate:
        return StartsWith(self.term, text)

    def endswith(self, text: str) -> Predicate:
        return EndsWith(self.term, text)

    def contains(self, text: str) -> Predicate:
        return Contains(self.term, text)

    def is_null(self) -> Predicate:
        return IsNull(self.term)

    def is_not_null(self) -> Predicate:
        return IsNotNull(self.term)

    def holds(self) -> Predicate:
        """A boolean column as a predicate."""
        return Holds(self.term)

    def cast(self, to: str) -> "Col":
        """Cast by the session's ANSI setting to a scalar type: `col("a").cast("decimal(10,2)")`."""
        return Col(self._cast(to, try_cast=False))

    def try_cast(self, to: str) -> "Col":
        """As `cast`, but NULL where a value does not fit."""
        return Col(self._cast(to, try_cast=True))

    def _cast(self, to: str, try_cast: bool) -> Term:
        kind = parse_type(to)
        if kind in (OTHER, VOID):
            raise InvalidPredicate(f"{to!r} is no scalar type of Spark", detail="TYPE")
        return Cast(self.term, kind, "try" if try_cast else "session")

    def _compare(self, operator: Operator, other: object) -> Predicate:
        return Compare(operator, self.term, term_of(other))


def term_of(value: object) -> Term:
    """A literal for a Python, numpy or pyarrow value; columns and predicates as they are."""
    if isinstance(value, Col):
        return value.term
    if isinstance(value, Term):
        return value
    if isinstance(value, Predicate):
        return TruthOf(value)
    if is_arrow(value):
        return next(iter(arrow_literals(value)))
    literal = _literal(value)
    if literal is None:
        raise InvalidPredicate(f"a {type(value).__name__} cannot be compared with a column", detail="VALUE")
    return literal


def _literal(value: Any) -> Term | None:
    match value:
        case None:
            return Literal(None, VOID)
        case bool():
            return Literal(value, BOOLEAN)
        case int():
            return integer(value) or _decimal(Decimal(value))
        case float():
            return Literal(value, DOUBLE)
        case Decimal():
            return _decimal(value)
        case str():
            return Literal(value, STRING)
        case bytes() | bytearray():
            return Literal(bytes(value), BINARY)
        case datetime():
            return _moment(value)
        case date():
            return Literal((value - _EPOCH_DAY).days, DATE)
    return None


def _decimal(value: Decimal) -> Literal:
    if not value.is_finite():
        raise InvalidPredicate("NaN and infinity are no decimals: use a float", detail="VALUE")
    kind = natural_decimal(value)
    if kind.precision > MAX_PRECISION:
        raise InvalidPredicate(f"a decimal has at most {MAX_PRECISION} digits", detail="VALUE")
    return Literal(Decimal(int(value)) if kind.scale == 0 else value, kind)


def _moment(value: datetime) -> Term:
    if value.tzinfo is None:
        since = value - datetime(1970, 1, 1)
        return Cast(Literal(_micros(since.days, since.seconds, since.microseconds), TIMESTAMP_NTZ), TIMESTAMP)
    offset = value.utcoffset()
    since = value.replace(tzinfo=None) - datetime(1970, 1, 1)
    if offset is not None:
        since -= offset
    return Literal(_micros(since.days, since.seconds, since.microseconds), TIMESTAMP)


def _micros(days: int, seconds: int, microseconds: int) -> int:
    return (days * 86_400 + seconds) * 1_000_000 + microseconds
