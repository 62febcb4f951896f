"""The tree of an expression that a view may hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from grebe.indexes.view.allowed import AGGREGATES


class Refused(ValueError):
    """The text is no expression that a view may hold; its message names what is not."""


@dataclass(frozen=True, slots=True)
class Column:
    table: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """`type` is empty where the value says it."""

    value: str | int | float | bool | bytes | Decimal | None
    type: str = ""


@dataclass(frozen=True, slots=True)
class Cast:
    term: "Expression"
    type: str
    attempt: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """`sign` is one of `expressions.OPERATORS`, or `not`, `-`, `~`, `is null`, `in`, …"""

    sign: str
    terms: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Call:
    """`name` is one of `allowed.FUNCTIONS` or `allowed.AGGREGATES`."""

    name: str
    terms: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Case:
    branches: tuple[tuple["Expression", "Expression"], ...]
    otherwise: "Expression | None"


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a struct by its name, or an item of an array or a map by its number or key."""

    term: "Expression"
    key: str | int


Expression: TypeAlias = Column | Constant | Cast | Operation | Call | Case | Part


def is_local_time(expression: Expression) -> bool:
    """Tell whether the expression is or holds a timestamp that is written as a local time: which one it is, the session says."""
    if isinstance(expression, Constant):
        return expression.type in ("timestamp", "timestamp_ltz")
    return any(map(is_local_time, terms_of(expression)))


def summed_up(expression: Expression) -> Iterator[Expression]:
    """Yield what the functions of a group in an expression are given."""
    if isinstance(expression, Call) and expression.name in AGGREGATES:
        yield from expression.terms
    else:
        for term in terms_of(expression):
            yield from summed_up(term)


def terms_of(expression: Expression) -> Sequence[Expression]:
    """Return the expressions directly below one."""
    match expression:
        case Cast(term) | Part(term):
            return (term,)
        case Operation(_, terms) | Call(_, terms):
            return terms
        case Case(branches, otherwise):
            return [*(one for branch in branches for one in branch), *([] if otherwise is None else [otherwise])]
    return ()
