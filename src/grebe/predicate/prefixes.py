"""The first characters of a text, compared: `left(s, 3) >= 'abc'` as a question about `s` itself.

Let `y` be the first `n` characters of `s`. Texts compare by their bytes, and the first difference between `s` and a text of at most
`n` characters lies within `y`, or there is none and the shorter is the less. So `y` compares with it as `s` does, but for one case:
`y` is equal to a text of just `n` characters where `s` begins with it. A text of more characters is never equal to `y`, which lies
below it where it is not above its first `n` characters. All of this is exact, and NULL where `s` is NULL.
"""

from collections.abc import Iterable

from grebe.predicate.tree import (
    FALSE,
    And,
    Compare,
    In,
    IsNotNull,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
    always,
    never,
)
from grebe.predicate.types import STRING


def compared(operator: Operator, text: Term, length: int, value: str) -> Predicate:
    """`left(text, length) <operator> value`."""
    if len(value) < length:
        return Compare(operator, text, Literal(value, STRING))
    begins = StartsWith(text, value[:length])
    possible = len(value) == length
    match operator:
        case "=":
            return begins if possible else never(text)
        case "<>":
            return Not(begins) if possible else always(text)
        case "<=>":
            return And((IsNotNull(text), begins)) if possible else FALSE
        case ">=" | "<" if possible:
            return Compare(operator, text, Literal(value, STRING))
    head = Literal(value[:length], STRING)
    if operator in ("<", "<="):
        return Or((Compare("<", text, head), begins))
    return And((Compare(">", text, head), Not(begins)))


def among(text: Term, length: int, values: Iterable[str]) -> Predicate:
    """`left(text, length) IN (values)`."""
    known = list(values)
    shorter = tuple(Literal(value, STRING) for value in known if len(value) < length)
    parts: list[Predicate] = [StartsWith(text, value) for value in known if len(value) == length]
    if shorter:
        parts.append(In(text, shorter))
    return Or(tuple(parts)) if parts else never(text)


def starting(text: Term, length: int, start: str) -> Predicate:
    """`startswith(left(text, length), start)`."""
    return StartsWith(text, start) if len(start) <= length else never(text)
