"""The predicate tree that every index kind and both engines share.

A tree is made by `parse` or `builder`, given types and Spark's implicit casts by `bind`, brought to one form by `normalise`, and
then read by index probes and by `evaluate`. Nodes are frozen values: equal trees compare equal and hash alike.

What is not understood becomes an `Opaque` term. It can never prune, and evaluating it is refused. A `Call` is an opaque term that
some know more of: what it says of the column inside.
"""

import struct as binary_layout
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf
from typing import NoReturn, TypeAlias

from grebe.errors import InvalidPredicate
from grebe.predicate.types import BOOLEAN, Type

Path: TypeAlias = tuple[str, ...]
Value: TypeAlias = bool | int | float | Decimal | str | bytes | None
Operator: TypeAlias = OneOf["=", "<=>", "<>", "<", "<=", ">", ">="]
ArithmeticOperator: TypeAlias = OneOf["+", "-", "*", "/", "%", "div"]
CastMode: TypeAlias = OneOf["session", "ansi", "legacy", "try"]
DEEPEST = 200
"""How deep a predicate may be nested."""


class Term:
    """Something with a value in every row."""

    __slots__ = ()


class Predicate:
    """Something that is true, false or NULL in every row."""

    __slots__ = ()

    def __and__(self, other: "Predicate") -> "Predicate":
        # Flat, so that a long chain built in a loop makes no deep tree.
        parts = self.predicates if isinstance(self, And) else (self,)
        return And((*parts, other)) if isinstance(other, Predicate) else NotImplemented

    def __or__(self, other: "Predicate") -> "Predicate":
        parts = self.predicates if isinstance(self, Or) else (self,)
        return Or((*parts, other)) if isinstance(other, Predicate) else NotImplemented

    def __invert__(self) -> "Predicate":
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a predicate has no truth of its own, only in each row: write & | ~ instead of and, or, not, put each comparison in "
            "parentheses, and use .between(a, b) instead of a <= col <= b"
        )


@dataclass(frozen=True, slots=True)
class Column(Term):
    """A column, or a field inside structs. `type` is known once bound."""

    path: Path
    type: Type | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Term):
    """A constant. Dates are days and timestamps microseconds since 1970, since Spark's range is wider than Python's."""

    value: Value
    type: Type

    def _key(self) -> object:
        # NaN must equal itself here, and -0.0 differs from 0.0 as soon as it is cast to a string.
        value = binary_layout.pack(">d", self.value) if isinstance(self.value, float) else self.value
        return self.type, value

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Literal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True)
class Cast(Term):
    """A conversion. `session` means by the session's ANSI setting; binding resolves it, and fills in the time zone."""

    term: Term
    to: Type
    mode: CastMode = "session"
    time_zone: str = ""


@dataclass(frozen=True, slots=True)
class Arithmetic(Term):
    """Arithmetic as it is written. Binding computes constants, and makes a `Call` of a column and a constant."""

    operator: ArithmeticOperator
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Negative(Term):
    """The minus sign before what is not itself a number: `-(1 + 2)`, `-a`."""

    term: Term


@dataclass(frozen=True, slots=True)
class Function(Term):
    """A function as it is written. Binding makes a `Call` of it, or leaves it opaque."""

    name: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class TruthOf(Term):
    """A predicate used as a boolean value: `(a = 1) IS NULL`."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Opaque(Term):
    """SQL text that Grebe does not understand, and the columns it mentions."""

    text: str
    columns: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Opaque):
    """A function of one term and of constants, which keeps the order of its values or reverses it. `functions` makes them.

    Whoever does not know the function takes it for the opaque term that it is. `inverses` knows which values of the term it makes a
    value of, so `normalise` can do away with it where that is exact, and `weaker` can say something of the column where it is not.
    """

    name: str
    term: Term
    arguments: tuple[Value, ...] = ()
    type: Type
    mode: CastMode = "legacy"
    """What becomes of a number that does not fit: `ansi` raises, `legacy` wraps around."""
    time_zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOf(Opaque):
    """A point made of two numbers of each row: ST_Point."""

    x: Term
    y: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Related(Opaque):
    """Whether a geometry of each row is related to a constant one: ST_Within and others. `geometry` makes them.

    As a `Call` it is an opaque term that some know more of: nothing is true of it outside a box.
    """

    relation: str
    """Of the row's geometry to the constant one: `within`, `contains`, …"""
    terms: tuple[Term, ...]
    """A column of WKB, or x and y of a point."""
    shape: bytes
    """The constant one, in WKB."""
    box: tuple[float, float, float, float]
    """xmin, ymin, xmax, ymax: only rows whose envelope meets it can be related; `contains` and `covers` only those whose envelope
    holds all of it."""
    distance: float = 0.0


@dataclass(frozen=True, slots=True)
class Constant(Predicate):
    value: bool | None


TRUE = Constant(True)
FALSE = Constant(False)
NULL = Constant(None)


@dataclass(frozen=True, slots=True)
class Holds(Predicate):
    """A boolean term taken as a predicate: `WHERE flag`."""

    term: Term


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    operator: Operator
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class In(Predicate):
    term: Term
    values: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Like(Predicate):
    """SQL's LIKE. `%` stands for any text, `_` for one character, `escape` takes the meaning from either."""

    term: Term
    pattern: str
    escape: str = "\\"


@dataclass(frozen=True, slots=True)
class StartsWith(Predicate):
    term: Term
    text: str


@dataclass(frozen=True, slots=True)
class EndsWith(Predicate):
    term: Term
    text: str


@dataclass(frozen=True, slots=True)
class Contains(Predicate):
    term: Term
    text: str


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    term: Term


@dataclass(frozen=True, slots=True)
class IsNotNull(Predicate):
    term: Term


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class And(Predicate):
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    predicates: tuple[Predicate, ...]


TextMatch: TypeAlias = Like | StartsWith | EndsWith | Contains


def terms_of(predicate: Predicate) -> tuple[Term, ...]:
    """The terms directly in a predicate that has no predicates below it; none for AND, OR, NOT and constants."""
    match predicate:
        case Compare(_, left, right):
            return (left, right)
        case In(term, values):
            return (term, *values)
        case (
            Holds(term)
            | IsNull(term)
            | IsNotNull(term)
            | Like(term)
            | StartsWith(term)
            | EndsWith(term)
            | Contains(term)
        ):
            return (term,)
    return ()


def walk(node: Term | Predicate) -> Iterator[Term | Predicate]:
    """The node and all below it, each before its children."""
    pending: list[Term | Predicate] = [node]
    while pending:
        here = pending.pop()
        yield here
        pending.extend(reversed(_children(here)))


def _children(node: Term | Predicate) -> Sequence[Term | Predicate]:
    match node:
        case And(below) | Or(below):
            return below
        case Not(inner) | TruthOf(inner) | Cast(inner) | Negative(inner):
            return (inner,)
        case Arithmetic(_, left, right):
            return (left, right)
        case Function(_, arguments):
            return arguments
        case Predicate():
            return terms_of(node)
    return ()


def require_shallow(node: Term | Predicate) -> None:
    """Raise `InvalidPredicate` for a node that is nested more than 200 deep: whoever goes through it does so by recursion."""
    level: list[Term | Predicate] = [node]
    for _ in range(DEEPEST):
        level = [below for one in level for below in _children(one)]
        if not level:
            return
    raise InvalidPredicate(
        f"the predicate is nested more than {DEEPEST} deep; write long AND and OR chains flat, and compute constants beforehand",
        detail="SYNTAX",
    )


def columns_of(node: Term | Predicate) -> frozenset[Path]:
    """Every column that the value of this node can depend on."""
    found: set[Path] = set()
    for here in walk(node):
        if isinstance(here, Column):
            found.add(here.path)
        elif isinstance(here, Opaque):
            found.update(here.columns)
    return frozenset(found)


def opaque_terms(node: Term | Predicate) -> tuple[Opaque, ...]:
    """What is not understood in this node, in the order of the text."""
    return tuple(here for here in walk(node) if isinstance(here, Opaque))


def is_constant(term: Term) -> bool:
    return not any(isinstance(here, Column | Opaque) for here in walk(term))


def type_of(term: Term) -> Type | None:
    """The type of a bound term; None where it cannot be known."""
    match term:
        case Column(_, kind) | Literal(_, kind):
            return kind
        case Cast(_, to):
            return to
        case Call():
            return term.type
        case TruthOf() | Related():
            return BOOLEAN
    return None


def never(term: Term) -> Predicate:
    """False, but NULL where the term is NULL."""
    return And((IsNull(term), NULL))


def always(term: Term) -> Predicate:
    """True, but NULL where the term is NULL."""
    return Or((IsNotNull(term), NULL))
