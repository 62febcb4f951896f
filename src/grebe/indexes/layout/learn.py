"""Grows a tree of cuts for logged queries, on a sample of the rows: the greedy qd-tree, which looks a little beyond the log.

At each node the cut is taken that lets the logged queries skip most rows. Other queries will come than those that were logged: a
part of the gain is what queries as wide as the logged ones of this neighbourhood would skip, wherever they lay in it. Where no
logged query meets a node any more that part alone decides, which makes it a kd-tree whose sides go by how queries ask.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.indexes.layout.axes import Codes
from grebe.indexes.layout.tree import LEAF, Tree, trimmed
from grebe.indexes.layout.workload import Numbered, Query, Workload, numbered

_NEIGHBOURS = 24
"""Queries of the least node above that has so many are taken to be what may come in a node."""
_LOGGED, _BEYOND = (30, 100, 200), (3.0, 0.1, 0.02)
"""By how many queries were logged: how much those that may come count beside them. Few tell little of what comes: then the tree is
rather a kd-tree, which is at least never much worse than a curve."""


def learn(sample: pa.Table, queries: Sequence[Query], leaf_rows: float) -> Tree:
    """That cuts the columns of the sample; no leaf has fewer rows of the sample than that."""
    known = numbered(sample, queries)
    return grown(known, leaf_rows, beyond_the_log(known))


def beyond_the_log(of: Numbered) -> float:
    """How much queries count that may come, beside those that came."""
    return float(np.exp(np.interp(np.log(max(1, len(of.asked))), np.log(_LOGGED), np.log(_BEYOND))))


def grown(of: Numbered, leaf_rows: float, beyond: float) -> Tree:
    """The same, of what is numbered already."""
    below = [_shares_below(line, axis.last) for line, axis in zip(of.codes, of.axes, strict=True)]
    possible = of.asked.take(np.flatnonzero((of.asked.low <= of.asked.high).all(axis=1)))
    column, cut = _Grower(of.codes, below, max(1.0, leaf_rows), beyond).grown(possible)
    return trimmed(of.names, of.axes, column, cut)


def _shares_below(codes: Codes, last: int) -> npt.NDArray[np.float64]:
    """For each number up to the one beyond the last: the share of rows that have a lesser one."""
    counts = np.bincount(codes, minlength=last + 1)
    return np.concatenate([[0.0], np.cumsum(counts) / max(1, len(codes))])


@dataclass(frozen=True, slots=True)
class _Around:
    """Queries of a neighbourhood: how wide they are along each column, as shares of the rows, and how much each counts where it may
    lie anywhere in the neighbourhood."""

    width: npt.NDArray[np.float64]
    reach: npt.NDArray[np.float64]
    """Of the width, and of the neighbourhood beside it: where a query may begin."""
    weight: npt.NDArray[np.float64]
    asks: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Cut:
    column: int
    at: int


@dataclass(frozen=True, slots=True)
class _Grower:
    codes: npt.NDArray[np.int32]
    below: Sequence[npt.NDArray[np.float64]]
    least: float
    beyond: float

    def grown(self, asked: Workload) -> tuple[Codes, Codes]:
        columns: list[int] = []
        cuts: list[int] = []
        everything = np.arange(self.codes.shape[1])
        waiting = [(everything, asked, self._around(asked, self._sides(everything)))]
        while waiting:
            rows, queries, around = waiting.pop()
            found = self._best(rows, queries, around) if len(rows) >= 2 * self.least else None
            columns.append(LEAF if found is None else found.column)
            cuts.append(0 if found is None else found.at)
            if found is None:
                continue
            less = self.codes[found.column, rows] < found.at
            first, second = rows[less], rows[~less]
            for part, met in (
                (second, queries.from_on(found.column, found.at)),
                (first, queries.below(found.column, found.at)),
            ):
                near = self._around(met, self._sides(part)) if len(met) >= _NEIGHBOURS else around
                waiting.append((part, met, near))
        return np.array(columns, np.int32), np.array(cuts, np.int32)

    def _sides(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """How much of all rows lie between the least and the greatest value of these, along each column."""
        own = self.codes[:, rows]
        if not own.shape[1]:
            return np.zeros(len(own))
        ends = zip(self.below, own.min(axis=1), own.max(axis=1), strict=True)
        return np.array([below[high + 1] - below[low] for below, low, high in ends])

    def _around(self, queries: Workload, sides: npt.NDArray[np.float64]) -> _Around:
        ends = zip(self.below, queries.low.T, queries.high.T, strict=True)
        width = np.stack([below[high + 1] - below[low] for below, low, high in ends], axis=1)
        return _Around(width, width + sides, queries.weight, queries.asks)

    def _best(self, rows: npt.NDArray[np.int64], queries: Workload, around: _Around) -> _Cut | None:
        sides = self._sides(rows)
        met = np.where(around.asks, np.minimum(1.0, (around.width + sides) / np.maximum(around.reach, 1e-12)), 1.0)
        hitting = around.weight * met.prod(axis=1)
        best, gain = None, 0.0
        for column in np.flatnonzero(sides > 0).tolist():
            asking = around.asks[:, column]
            each = (hitting[asking] / np.maximum(around.width[asking, column] + sides[column], 1e-12)).sum()
            found = self._best_of(column, rows, queries, self.beyond * each)
            if found is not None and found[1] > gain:
                best, gain = _Cut(column, found[0]), found[1]
        return best

    def _best_of(
        self, column: int, rows: npt.NDArray[np.int64], queries: Workload, may_come: float
    ) -> tuple[int, float] | None:
        values = np.sort(self.codes[column, rows])
        count, below = len(values), self.below[column]
        asks = queries.asks[:, column]
        low, high, weight = queries.low[asks, column], queries.high[asks, column], queries.weight[asks]
        middle = values[[count // 4, count // 2, count - 1 - count // 4]]
        at = np.concatenate([low, high + 1, middle, middle + 1])
        left = np.searchsorted(values, at)
        fits = (left >= self.least) & (count - left >= self.least)
        if not fits.any():
            return None
        at, left = at[fits], left[fits]
        skips_left = _weight_from(low, weight, at)
        skips_right = weight.sum() - _weight_from(high, weight, at)
        start, stop = below[values[0]], below[values[-1] + 1]
        between = below[at]
        shifted = left * (stop - between) + (count - left) * (between - start)
        gains = left * skips_left + (count - left) * skips_right + may_come * shifted
        place = int(gains.argmax())
        return (int(at[place]), float(gains[place])) if gains[place] > 0 else None


def _weight_from(ends: Codes, weight: npt.NDArray[np.float64], at: Codes) -> npt.NDArray[np.float64]:
    """The weight of those whose end is not less."""
    order = np.argsort(ends)
    above = np.concatenate([np.cumsum(weight[order][::-1])[::-1], [0.0]])
    return above[np.searchsorted(ends[order], at)]
