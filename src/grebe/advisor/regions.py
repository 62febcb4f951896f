"""Parts of a table that queries stay within: what lies on one side of a constant that they compare a column with."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.planner.implication import conjuncts, implies
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.tree import Column, Compare, Literal, Path, Predicate

_MOST_SIDES = 4
"""Of columns: those that most queries are on. Each constant that is tried is held against all queries."""
_WITHIN = (1.0, 0.9, 0.75, 0.5, 0.3)
"""Shares of the queries with a constant on that side that a region is to be large enough for."""


@dataclass(frozen=True, slots=True)
class Region:
    predicate: Predicate
    asked: float
    """Of the queries, by weight, those that stay within."""
    rows: float
    """The share of the rows that are within, by a sample."""


def regions(
    queries: Iterable[tuple[Predicate, float]], columns: Collection[str], sample: pa.Table, most: float
) -> list[Region]:
    """With some rows, but at most this share of them: those first that most queries stay within."""
    asked = list(queries)
    found = []
    for one in _ends(asked, columns):
        rows = float(np.mean(matches(sample, one).to_numpy(zero_copy_only=False))) if sample.num_rows else 0.0
        if 0.0 < rows <= most:
            found.append(Region(one, within(asked, one), rows))
    return sorted(found, key=lambda one: (-one.asked, one.rows))


def within(queries: Sequence[tuple[Predicate, float]], region: Predicate) -> float:
    """The share of the queries, by weight, that ask for nothing outside."""
    whole = sum(weight for _, weight in queries)
    return sum(weight for predicate, weight in queries if implies(predicate, region)) / whole if whole else 0.0


def _ends(queries: Sequence[tuple[Predicate, float]], columns: Collection[str]) -> Iterator[Predicate]:
    sides: dict[tuple[str, Path], list[tuple[Any, Predicate, float]]] = defaultdict(list)
    for predicate, weight in queries:
        for part in conjuncts(normalise(predicate)):
            match part:
                case Compare("<" | "<=" | ">" | ">=" as operator, Column(path), Literal(value)) if path[0] in columns:
                    if value is not None and value == value:
                        sides[operator[0], path].append((value, part, weight))
    asked_most = sorted(sides.items(), key=lambda item: -sum(weight for _, _, weight in item[1]))
    for (sign, _), ends in asked_most[:_MOST_SIDES]:
        narrowest_first = sorted(ends, key=lambda one: one[0], reverse=sign == ">")
        weights = np.cumsum([weight for _, _, weight in narrowest_first])
        places = np.searchsorted(weights, np.array(_WITHIN) * weights[-1] * (1 - 1e-9))
        yield from (narrowest_first[place][1] for place in dict.fromkeys(places.tolist()))
