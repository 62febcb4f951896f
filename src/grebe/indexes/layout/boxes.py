"""Logged predicates as boxes: of each column the stretches of its axis that the rows of a query can lie in.

What is not understood constrains nothing, so that a box never is too small. Of alternatives over several columns the box holds all.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

from grebe.indexes.layout.axes import FIRST, NULLS, Axis
from grebe.predicate.tree import (
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    walk,
)
from grebe.predicate.types import Type

Span: TypeAlias = tuple[int, int]
"""From the first number of an axis to the last, both included."""
Spans: TypeAlias = tuple[Span, ...]
"""In order, none touching another."""
Box: TypeAlias = Mapping[str, Spans]
"""By column; those that are not there are not constrained."""


def constants_of(predicate: Predicate) -> Iterator[tuple[str, Any]]:
    """Columns and the values that they are compared with, in the physical form of their types."""
    for here in walk(predicate):
        match here:
            case Compare(_, Column((name,), kind), Literal(value, own)) if value is not None and own == kind:
                yield name, value
            case In(Column((name,), kind), items):
                yield from ((name, one.value) for one in _literals(items, kind) if one.value is not None)
            case StartsWith(Column((name,)), text):
                yield from ((name, end) for end in _ends(text) if end is not None)


def box_of(predicate: Predicate, axes: Mapping[str, Axis]) -> Box:
    """Of a normalised predicate over columns that lie flat; the axes know its constants."""
    match predicate:
        case And(below):
            met: dict[str, Spans] = {}
            for part in below:
                for name, spans in box_of(part, axes).items():
                    met[name] = _both(met[name], spans) if name in met else spans
            return met
        case Or(below):
            boxes = [box for part in below if is_possible(box := box_of(part, axes))]
            names = set.intersection(*(set(box) for box in boxes)) if boxes else set()
            return {name: _united(span for box in boxes for span in box[name]) for name in names} if boxes else _NOTHING
        case Constant(value):
            return {} if value else _NOTHING
        case Not(inner):
            return _without(box_of(inner, axes), inner, axes)
    found = _simple(predicate, axes)
    return {} if found is None else {found[0]: found[1]}


_NOTHING: Box = {"": ()}
"""Whatever column is named: no row lies in it."""


def is_possible(box: Box) -> bool:
    """Whether any row can lie in it."""
    return all(box.values())


def _simple(predicate: Predicate, axes: Mapping[str, Axis]) -> tuple[str, Spans] | None:
    match predicate:
        case Compare(operator, Column((name,), kind), Literal(value, own)) if name in axes and own == kind:
            if value is None:
                return None
            return name, _compared(operator, axes[name].code(value), axes[name].last)
        case In(Column((name,), kind), items) if name in axes and len(_literals(items, kind)) == len(items):
            codes = axes[name].codes_of([one.value for one in _literals(items, kind) if one.value is not None])
            return name, _united((code, code) for code in codes.tolist())
        case StartsWith(Column((name,)), text) if name in axes:
            start, end = _ends(text)
            last = axes[name].last if end is None else axes[name].code(end) - 1
            return name, ((axes[name].code(start), last),)
        case IsNull(Column((name,))) if name in axes:
            return name, ((NULLS, NULLS),)
        case IsNotNull(Column((name,))) if name in axes:
            return name, ((FIRST, axes[name].last),)
    return None


def _compared(operator: Operator, code: int, last: int) -> Spans:
    below, above = (FIRST, code - 1), (code + 1, last)
    match operator:
        case "<":
            return (below,)
        case "<=":
            return ((FIRST, code),)
        case ">":
            return (above,)
        case ">=":
            return ((code, last),)
        case "<>":
            return below, above
    return ((code, code),)


def _without(box: Box, inner: Predicate, axes: Mapping[str, Axis]) -> Box:
    """Of the NOT of what is simple and exact: all other values. (NULL is neither.)"""
    if not isinstance(inner, In | StartsWith | Compare) or len(box) != 1:
        return {}
    ((name, spans),) = box.items()
    edges = [(FIRST - 1, FIRST - 1), *spans, (axes[name].last + 1, axes[name].last + 1)]
    between = tuple((one[1] + 1, other[0] - 1) for one, other in pairwise(edges) if one[1] + 1 <= other[0] - 1)
    null_is_other = isinstance(inner, Compare) and inner.operator == "<=>"
    return {name: _united([(NULLS, NULLS), *between]) if null_is_other else between}


def _both(one: Spans, other: Spans) -> Spans:
    met = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    return tuple(sorted(span for span in met if span[0] <= span[1]))


def _united(spans: Iterable[Span]) -> Spans:
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _literals(items: Iterable[object], kind: Type | None) -> list[Literal]:
    return [one for one in items if isinstance(one, Literal) and (one.type == kind or one.value is None)]


def _ends(text: str) -> tuple[bytes, bytes | None]:
    """The least text that starts so, and the least one beyond all of them."""
    start = text.encode()
    kept = start.rstrip(b"\xff")
    return start, kept[:-1] + bytes([kept[-1] + 1]) if kept else None
