"""Whether every row that one predicate lets through is let through by another: what a partial index must know of a query.

Sound and modest. "Yes" is said only if each conjunct of the consequence stands in the premise, or follows from what the premise
says of the same column: bounds, single values, IN, a prefix. Whatever is not understood is not implied.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grebe.predicate.normalise import normalise
from grebe.predicate.tree import (
    TRUE,
    And,
    Column,
    Compare,
    Constant,
    Contains,
    EndsWith,
    In,
    IsNotNull,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
    opaque_terms,
    terms_of,
)


def implies(premise: Predicate, consequence: Predicate) -> bool:
    """Both bound to the same table. NULL counts as not let through, on either side."""
    known = conjuncts(normalise(premise))
    nothing = any(isinstance(one, Constant) and one.value is not True for one in known)
    return nothing or all(_follows(known, part) for part in conjuncts(normalise(consequence)))


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Of a normalised predicate."""
    return predicate.predicates if isinstance(predicate, And) else (predicate,)


def _follows(known: Sequence[Predicate], wanted: Predicate) -> bool:
    if wanted == TRUE or (wanted in known and not opaque_terms(wanted)):
        return True
    if isinstance(wanted, Or) and any(_all_follow(known, part) for part in wanted.predicates):
        return True
    if _follows_from_column(known, wanted):
        return True
    # By cases: what follows from each alternative of a disjunction follows from it.
    return any(
        isinstance(one, Or) and all(_all_follow(conjuncts(case), wanted) for case in one.predicates) for one in known
    )


def _all_follow(known: Sequence[Predicate], wanted: Predicate) -> bool:
    return all(_follows(known, part) for part in conjuncts(wanted))


def _follows_from_column(known: Sequence[Predicate], wanted: Predicate) -> bool:
    match wanted:
        case IsNotNull(Column() as column):
            return any(_rules_out_null(one, column) for one in known)
        case Compare(_, Column() as column, Literal()) | In(Column() as column) | StartsWith(Column() as column):
            return _values_of(known, column).all_satisfy(wanted)
    return False


def _rules_out_null(known: Predicate, column: Column) -> bool:
    """A comparison is NULL, and so not true, where a side of it is NULL; only `<=>` can be true there."""
    match known:
        case Not(In() | Like() | StartsWith() | EndsWith() | Contains() as inner):
            return column in terms_of(inner)[:1]
        case In() | Like() | StartsWith() | EndsWith() | Contains() | IsNotNull():
            return column in terms_of(known)[:1]
        case Compare("<=>", left, Literal(value)):
            return left == column and value is not None
        case Compare(operator, left, right):
            return operator != "<=>" and column in (left, right)
    return False


@dataclass(frozen=True, slots=True)
class _Values:
    """What a column may hold in the rows let through: single values, or an interval (None: open), or a prefix."""

    column: Column
    single: tuple[Literal, ...] | None
    low: tuple[Any, bool] | None
    """The bound, and whether it is itself allowed."""
    high: tuple[Any, bool] | None
    prefixes: tuple[str, ...]

    def all_satisfy(self, wanted: Predicate) -> bool:
        if self.single is not None:
            return all(_is_true(wanted, value) for value in self.single)
        match wanted:
            case Compare(operator, _, Literal() as literal) if _comparable(self.column, literal):
                return self._within(operator, _rank(literal.value))
            case StartsWith(_, text):
                return any(prefix.startswith(text) for prefix in self.prefixes)
        return False

    def _within(self, operator: str, bound: Any) -> bool:
        above = self.low is not None and (self.low[0] > bound or (self.low[0] == bound and not self.low[1]))
        below = self.high is not None and (self.high[0] < bound or (self.high[0] == bound and not self.high[1]))
        match operator:
            case "<":
                return below
            case "<=":
                return self.high is not None and self.high[0] <= bound
            case ">":
                return above
            case ">=":
                return self.low is not None and self.low[0] >= bound
            case "<>":
                return above or below
        return False


def _values_of(known: Iterable[Predicate], column: Column) -> _Values:
    single: tuple[Literal, ...] | None = None
    lows: list[tuple[Any, bool]] = []
    highs: list[tuple[Any, bool]] = []
    prefixes: list[str] = []
    for one in known:
        match one:
            case Compare("=" | "<=>", left, Literal() as value) if left == column and _comparable(column, value):
                single = (value,)
            case In(term, values) if term == column and single is None:
                items = [v for v in values if isinstance(v, Literal)]
                if len(items) == len(values) and all(v.value is None or _comparable(column, v) for v in items):
                    single = tuple(v for v in items if v.value is not None)
            case Compare(operator, left, Literal() as value) if left == column and _comparable(column, value):
                if operator in ("<", "<="):
                    highs.append((_rank(value.value), operator == "<="))
                elif operator in (">", ">="):
                    lows.append((_rank(value.value), operator == ">="))
            case StartsWith(term, text) if term == column:
                prefixes.append(text)
    # Of equal bounds the one that leaves the bound itself out says more.
    low = max(lows, key=lambda bound: (bound[0], not bound[1]), default=None)
    high = min(highs, default=None)
    return _Values(column, single, low, high, tuple(prefixes))


def _comparable(column: Column, literal: Literal) -> bool:
    return literal.value is not None and literal.type == column.type and literal.type.is_scalar


def _rank(value: Any) -> Any:
    """A key in Spark's order: NaN is above all numbers. Texts compare by code point, which is the order of their bytes."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def _is_true(wanted: Predicate, value: Literal) -> bool:
    """Whether a predicate about one column holds where the column has this value."""
    match wanted:
        case Compare(operator, Column() as column, Literal() as literal) if _comparable(column, literal):
            return _compared(operator, _rank(value.value), _rank(literal.value))
        case In(Column() as column, items):
            return any(
                isinstance(item, Literal) and _comparable(column, item) and _rank(item.value) == _rank(value.value)
                for item in items
            )
        case StartsWith(_, text):
            return isinstance(value.value, str) and value.value.startswith(text)
    return False


def _compared(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "=" | "<=>":
            return bool(left == right)
        case "<>":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
    return bool(left >= right)
