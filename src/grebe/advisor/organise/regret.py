"""When to lay rows out anew: once the queries since the last time have lost as much by the layout as writing it takes (ski rental).
Whoever follows this rule pays at most twice what somebody would who knew all queries beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.shares import expected_share
from grebe.indexes.layout.workload import Query
from grebe.shown import plots

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Regret:
    """What queries since the last reorganisation have lost, one after the other."""

    moments: tuple[int, ...]
    """When they were asked, in milliseconds since 1970."""
    seconds: tuple[float, ...]
    """Lost up to then."""
    price: float
    """Seconds that laying out anew takes."""

    @property
    def lost(self) -> float:
        return self.seconds[-1] if self.seconds else 0.0

    @property
    def is_due(self) -> bool:
        return bool(self.seconds) and self.lost >= self.price

    def picture(self) -> str:
        """SVG: what was lost query by query, beside what laying out anew takes."""
        count = len(self.seconds)
        lost = plots.Line("lost, in seconds", range(1, count + 1), self.seconds)
        price = plots.Line("what laying out anew takes", (0, max(count, 1)), (self.price, self.price))
        passed = [place + 1 for place, one in enumerate(self.seconds) if one >= self.price]
        return plots.over_time([lost, price], "queries", [(passed[0], "now it pays")] if passed else ())

    def _repr_html_(self) -> str:
        return self.picture()


def regret_of(asked: Sequence[tuple[int, float]], lost: Shares, read_seconds: float, price: float) -> Regret:
    """`asked`: of each query when it was asked last, and how often. `lost`: of each the share of the rows that it reads in vain;
    `read_seconds`: what reading all of them takes."""
    order = np.argsort([moment for moment, _ in asked], kind="stable")
    weights = np.array([weight for _, weight in asked])
    summed = np.cumsum((lost * weights * read_seconds)[order])
    return Regret(tuple(asked[at][0] for at in order), tuple(summed.tolist()), price)


def shares_anew(sample: pa.Table, asked: Sequence[Query], leaf_rows: float) -> Shares:
    """What each query would read of a layout made anew: each half is told by a tree that is learned from the other, for every tree
    fits the very queries best that it was learned from."""
    found = np.ones(len(asked))
    halves = [asked[0::2], asked[1::2]]
    if not all(halves):
        return found
    for first, (own, other) in enumerate((halves, halves[::-1])):
        found[first::2] = expected_share(learn(sample, other, leaf_rows), sample, own)
    return found
