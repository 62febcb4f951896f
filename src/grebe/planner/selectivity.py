"""Guesses: which share of the rows a predicate lets through.

Where the bounds of a column are known (an index is sorted by it) a range is measured against them; for the rest there are the usual
constants. A guess decides between plans, never about an answer.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grebe.planner.implication import conjuncts
from grebe.predicate.tree import (
    And,
    Column,
    Compare,
    Constant,
    Contains,
    EndsWith,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Path,
    Predicate,
    StartsWith,
    columns_of,
)

EQUAL = 0.05
OPEN_RANGE = 0.33
PREFIX = 0.05
INSIDE = 0.15
IS_NULL = 0.03
UNKNOWN = 0.33
LEAST = 1e-9
_LONGEST_IN = 0.5


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known, or believed, of the columns of a relation."""

    ranges: Mapping[Path, tuple[Any, Any]] = field(default_factory=dict)
    """Least and greatest value, as numbers."""
    distinct: Mapping[Path, float] = field(default_factory=dict)
    """How many different values, where there is a ground for a guess."""

    def equal_share(self, path: Path) -> float:
        return 1.0 / self.distinct[path] if path in self.distinct else EQUAL


NOTHING_KNOWN = Statistics()


def share_of(predicate: Predicate, statistics: Statistics) -> float:
    """Of a normalised predicate: a number from `LEAST` to 1."""
    return min(1.0, max(LEAST, _share(predicate, statistics)))


def share_within(predicate: Predicate, columns: frozenset[Path], statistics: Statistics) -> float:
    """By those conjuncts alone that speak of these columns and of nothing else."""
    own = [one for one in conjuncts(predicate) if (mentioned := columns_of(one)) and mentioned <= columns]
    return min(1.0, max(LEAST, _together(own, statistics))) if own else 1.0


def places_of(predicate: Predicate, path: Path) -> int:
    """In how many places the rows of a predicate lie where rows are sorted by this column, at the most: one a value that it is
    compared with, one for a range."""
    match predicate:
        case In(Column(column), values) if column == path:
            return max(1, len(values))
        case Or(parts):
            return sum(places_of(part, path) for part in parts)
        case And(parts):
            return min((places_of(part, path) for part in parts if path in columns_of(part)), default=1)
    return 1


def _share(predicate: Predicate, known: Statistics) -> float:
    match predicate:
        case And(below):
            return _together(below, known)
        case Or(below):
            return 1.0 - math.prod(1.0 - _share(part, known) for part in below)
        case Not(inner):
            return 1.0 - _share(inner, known)
        case Constant(value):
            return 1.0 if value else 0.0
        case Compare("=" | "<=>", Column(path), Literal()):
            return known.equal_share(path)
        case Compare("<>", Column(path), Literal()):
            return 1.0 - known.equal_share(path)
        case Compare("<" | "<=" | ">" | ">=", Column(path), Literal()):
            return _interval([predicate], path, known)
        case In(Column(path), values):
            return min(_LONGEST_IN, len(values) * known.equal_share(path))
        case StartsWith():
            return PREFIX
        case Like() | EndsWith() | Contains():
            return INSIDE
        case IsNull():
            return IS_NULL
        case IsNotNull():
            return 1.0
    return UNKNOWN


def _together(parts: Iterable[Predicate], known: Statistics) -> float:
    """Conjuncts are seldom independent: each further one counts less. The bounds of one column are one condition."""
    bounds: dict[Path, list[Compare]] = {}
    shares: list[float] = []
    for part in parts:
        match part:
            case Compare("<" | "<=" | ">" | ">=", Column(path), Literal()):
                bounds.setdefault(path, []).append(part)
            case _:
                shares.append(_share(part, known))
    shares += [_interval(ends, path, known) for path, ends in bounds.items()]
    whole = 1.0
    for power, share in enumerate(sorted(shares)):
        whole *= share ** (1.0 / (1 << min(power, 3)))
    return whole


def _interval(ends: list[Compare], path: Path, known: Statistics) -> float:
    least, greatest = known.ranges.get(path, (None, None))
    if least is None or greatest is None:
        return OPEN_RANGE ** len({end.operator[0] for end in ends})
    low, high = float(least), float(greatest)
    for end in ends:
        value = end.right.value if isinstance(end.right, Literal) else None
        if not isinstance(value, bool | str | bytes | None):
            if end.operator[0] == "<":
                high = min(high, float(value))
            else:
                low = max(low, float(value))
    width = float(greatest) - float(least)
    if not math.isfinite(width):
        return UNKNOWN
    step = 1.0 if isinstance(least, int) else 0.0
    return max(0.0, (high - low + step) / (width + step)) if width + step > 0 else 1.0
