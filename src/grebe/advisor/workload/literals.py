"""A predicate without the values in it: each stands there as a mark, so that nothing of the data is left.

Columns, operators, types of casts and names of functions stay. A term with a mark is opaque: whoever reads it back can make no
mistake with it, since an opaque term decides nothing.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import TypeAlias

from grebe.predicate.text import column_sql, to_sql
from grebe.predicate.tree import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    Contains,
    EndsWith,
    Function,
    Holds,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Opaque,
    Or,
    PointOf,
    Predicate,
    Related,
    StartsWith,
    Term,
    TruthOf,
    columns_of,
)

Mark: TypeAlias = Callable[[object], str]
_DIGEST = 16
MOST_VALUES = 1000
"""Of an IN; with more than these none is stored."""


def unnamed(value: object) -> str:
    """The mark of shapes: all values look alike."""
    return "?"


def hashing(key: bytes) -> Mark:
    """Equal values have equal marks; who has not the key cannot try values out."""

    def mark(value: object) -> str:
        known = f"{type(value).__name__}:{value!r}".encode(errors="surrogatepass")
        return "#" + hmac.new(key, known, hashlib.sha256).hexdigest()[:_DIGEST]

    return mark


def shortened(predicate: Predicate) -> Predicate:
    """With the number of values in the place of very many: they would take more room than all other queries."""
    match predicate:
        case And(below):
            return And(tuple(map(shortened, below)))
        case Or(below):
            return Or(tuple(map(shortened, below)))
        case Not(inner):
            return Not(shortened(inner))
        case In(term, values) if len(values) > MOST_VALUES:
            return In(term, (Opaque(f"{len(values)} values"),))
    return predicate


def marked(predicate: Predicate, mark: Mark) -> Predicate:
    match predicate:
        case And(below):
            return And(tuple(marked(one, mark) for one in below))
        case Or(below):
            return Or(tuple(marked(one, mark) for one in below))
        case Not(inner):
            return Not(marked(inner, mark))
        case Compare(operator, left, right):
            return Compare(operator, _term(left, mark), _term(right, mark))
        case In(term, values):
            return In(_term(term, mark), tuple(dict.fromkeys(_term(value, mark) for value in values)))
        case Holds(term):
            return Holds(_term(term, mark))
        case IsNull(term):
            return IsNull(_term(term, mark))
        case IsNotNull(term):
            return IsNotNull(_term(term, mark))
        case Like(term, text):
            return _about("like", term, text, mark)
        case StartsWith(term, text):
            return _about("startswith", term, text, mark)
        case EndsWith(term, text):
            return _about("endswith", term, text, mark)
        case Contains(term, text):
            return _about("contains", term, text, mark)
        case Constant():
            return predicate
    return Holds(_opaque("predicate", predicate, type(predicate).__name__, mark))


def _about(name: str, term: Term, text: str, mark: Mark) -> Predicate:
    inner = _term(term, mark)
    return Holds(Opaque(f"{name}({to_sql(inner)}, {mark(text)})", _sorted(inner)))


def _term(term: Term, mark: Mark) -> Term:
    match term:
        case Column():
            return term
        case Literal(value):
            return term if value is None else Opaque(mark(value))
        case Cast(inner, to, mode, zone):
            return Cast(_term(inner, mark), to, mode, zone)
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _term(left, mark), _term(right, mark))
        case Negative(inner):
            return Negative(_term(inner, mark))
        case Function(name, arguments):
            return Function(name, tuple(_term(one, mark) for one in arguments))
        case TruthOf(inner):
            return TruthOf(marked(inner, mark))
        case Call():
            return _opaque(term.name, term, term.arguments, mark)
        case Related():
            return _opaque(term.relation, term, (term.shape, term.box, term.distance), mark)
        case PointOf():
            return _opaque("point", term, term.text, mark)
        case Opaque(text):
            return _opaque("expression", term, text, mark)
    return _opaque("term", term, type(term).__name__, mark)


def _opaque(name: str, node: Term | Predicate, values: object, mark: Mark) -> Opaque:
    columns = _sorted(node)
    return Opaque(f"{name}({', '.join([*map(column_sql, columns), mark(values)])})", columns)


def _sorted(node: Term | Predicate) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(columns_of(node)))
