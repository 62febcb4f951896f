"""What else is true wherever a predicate is: weaker, but about the bare column, so that an index can rule rows out by it.

`CAST(ts AS DATE) = DATE '2020-03-08'` in New York hangs on when clocks change there; but no row of that day is outside
`ts >= TIMESTAMP '2020-03-07 06:00:00Z' AND ts < TIMESTAMP '2020-03-09 18:00:00Z'`. And `a + 1 = 5` is `a = 4`, unless `a` is the
greatest integer, for which Spark raises an error: so the weaker form is `a = 4 OR a > 2147483646`, a file that holds the greatest
integer is read, and the query fails as it does without an index.

A weaker form serves to tell that no row can match, and for nothing else. That all rows make it true says nothing of the predicate.
"""

import math

from grebe.predicate.inverses import astray
from grebe.predicate.like import pattern_parts
from grebe.predicate.normalise import normalise
from grebe.predicate.tree import (
    TRUE,
    And,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    Contains,
    EndsWith,
    Holds,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Or,
    Predicate,
    Related,
    StartsWith,
    Term,
    terms_of,
    type_of,
)
from grebe.predicate.types import DOUBLE
from grebe.predicate.unwrap import Step, step_of_compare, step_of_in


def weaker(predicate: Predicate) -> Predicate | None:
    """Of a simple predicate in normal form; None if nothing weaker is known that could be of use."""
    match predicate:
        case Compare(operator, (Call() | Cast()) as term, Literal() as value):
            return _about_columns(term, step_of_compare(operator, term, value))
        case In((Call() | Cast()) as term, values):
            literals = [value for value in values if isinstance(value, Literal)]
            return _about_columns(term, step_of_in(term, literals)) if len(literals) == len(values) else None
        case IsNull(Call() as term):
            return _about_columns(term, Step(IsNull(term.term)))
        case IsNotNull(Call() as term):
            return _about_columns(term, Step(IsNotNull(term.term)))
        case Holds(Related(terms=(x, y), box=box)):
            return _in_box(x, y, box)
        case Like(Column(), pattern, escape):
            return _of_pattern(predicate, pattern, escape)
        case StartsWith(Column() as column, text) | EndsWith(Column() as column, text) if text:
            return Contains(column, text)
    return None


def _in_box(x: Term, y: Term, box: tuple[float, float, float, float]) -> Predicate | None:
    """Of points."""
    parts: list[Predicate] = []
    for term, least, most in ((x, box[0], box[2]), (y, box[1], box[3])):
        number = term if type_of(term) == DOUBLE else Cast(term, DOUBLE, "legacy", "UTC")
        if least > -math.inf:
            parts.append(Compare(">=", number, Literal(least, DOUBLE)))
        if most < math.inf:
            parts.append(Compare("<=", number, Literal(most, DOUBLE)))
    reached = normalise(_bare(normalise(And(tuple(parts)))))
    return None if reached == TRUE else reached


def _of_pattern(like: Like, pattern: str, escape: str) -> Predicate | None:
    """Its first piece begins the text, its last one ends it, and all are in it."""
    pieces = pattern_parts(pattern, escape)
    found: list[Predicate] = []
    for place, piece in enumerate(pieces):
        if isinstance(piece, str):
            at_start, at_end = place == 0, place == len(pieces) - 1
            kind = StartsWith if at_start else EndsWith if at_end else Contains
            found.append(kind(like.term, piece))
    return None if not found else found[0] if len(found) == 1 else And(tuple(found))


def _about_columns(term: Call | Cast, step: Step | None) -> Predicate | None:
    """A step further in, and so on until nothing but columns is compared. Rows that are astray count as true."""
    if step is None:
        return None
    reached = normalise(_bare(normalise(Or((step.predicate, astray(term))))))
    return None if reached == TRUE else reached


def _bare(predicate: Predicate) -> Predicate:
    """What is left to say of columns by themselves. NULL is as good as false: only rows that are true matter."""
    match predicate:
        case And(below):
            return And(tuple(_bare(one) for one in below))
        case Or(below):
            return Or(tuple(_bare(one) for one in below))
        case Constant(value):
            return Constant(value is True)
    terms = terms_of(predicate)
    if terms and all(isinstance(term, Column | Literal) for term in terms):
        return predicate
    implied = weaker(predicate)
    return TRUE if implied is None else implied
