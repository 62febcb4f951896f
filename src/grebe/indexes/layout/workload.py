"""Logged queries as arrays: of every query and column where its box begins and ends on the column's axis.

A query that asks for several stretches of a column (IN, alternatives) begins with the first and ends with the last; which of them
reach into a part of the axis is looked up in `starts` and `stops`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.indexes.layout.axes import Axis, axis_among
from grebe.indexes.layout.boxes import Box, box_of, constants_of, is_possible
from grebe.predicate.tree import Predicate

Codes = npt.NDArray[np.int32]
_MOST_SPANS = 32
"""A query that asks for more stretches of a column is taken to ask for all between."""
_BEYOND = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Query:
    """A predicate, bound and normalised, over columns that lie flat; and how much it counts."""

    predicate: Predicate
    weight: float = 1.0


@dataclass(frozen=True, eq=False, slots=True)
class Workload:
    low: Codes
    """A line for each query, a place for each column."""
    high: Codes
    weight: npt.NDArray[np.float64]
    starts: Mapping[int, Codes]
    """Of columns of which some query asks for several stretches: where these start, a line for each query."""
    stops: Mapping[int, Codes]
    asks: npt.NDArray[np.bool_]
    """Whether a query constrains a column at all."""

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, queries: npt.NDArray[Any]) -> "Workload":
        return Workload(
            self.low[queries],
            self.high[queries],
            self.weight[queries],
            {column: starts[queries] for column, starts in self.starts.items()},
            {column: stops[queries] for column, stops in self.stops.items()},
            self.asks[queries],
        )

    def below(self, column: int, cut: int) -> "Workload":
        """Those that ask for something below the cut, and what of it."""
        met = self.take(np.flatnonzero(self.low[:, column] < cut))
        if column not in met.starts:
            return met
        stops = np.where(met.starts[column] < cut, np.minimum(met.stops[column], cut - 1), -1)
        several = met.starts[column][:, 1] < _BEYOND
        high = met.high.copy()
        high[several, column] = stops[several].max(axis=1)
        return replace(met, high=high)

    def from_on(self, column: int, cut: int) -> "Workload":
        """Those that ask for something from the cut on, and what of it."""
        met = self.take(np.flatnonzero(self.high[:, column] >= cut))
        if column not in met.starts:
            return met
        starts = np.where(met.stops[column] >= cut, np.maximum(met.starts[column], cut), _BEYOND)
        several = met.starts[column][:, 1] < _BEYOND
        low = met.low.copy()
        low[several, column] = starts[several].min(axis=1)
        return replace(met, low=low)

    def meets(self, least: Codes, greatest: Codes) -> npt.NDArray[np.bool_]:
        """Of boxes by their bounds (a line for each column): whether a query asks for any row of it; a line for each query."""
        met = np.ones((len(self), least.shape[1]), np.bool_)
        for column in np.flatnonzero(self.asks.any(axis=0)).tolist():
            if column in self.starts:
                several = np.zeros_like(met)
                for start, stop in zip(self.starts[column].T, self.stops[column].T, strict=True):
                    several |= (start[:, None] <= greatest[column]) & (stop[:, None] >= least[column])
                met &= several
            else:
                met &= (self.low[:, column, None] <= greatest[column]) & (self.high[:, column, None] >= least[column])
        return met


def workload_of(queries: Sequence[Query], names: Sequence[str], axes: Sequence[Axis]) -> Workload:
    """A query that can have no row constrains everything away: it begins beyond the end of the first column."""
    by_name = dict(zip(names, axes, strict=True))
    boxes = [box_of(query.predicate, by_name) for query in queries]
    low, asks = np.zeros((len(boxes), len(names)), np.int32), np.zeros((len(boxes), len(names)), np.bool_)
    high = np.tile(np.array([axis.last for axis in axes], np.int32), (len(boxes), 1))
    starts, stops = {}, {}
    for place, name in enumerate(names):
        spans = [_spans(box, name, int(axes[place].last)) for box in boxes]
        asks[:, place] = [name in box or not is_possible(box) for box in boxes]
        most = max(map(len, spans), default=1)
        begins, ends = (
            np.full((len(boxes), max(2, most)), _BEYOND, np.int32),
            np.full((len(boxes), max(2, most)), -1, np.int32),
        )
        for number, own in enumerate(spans):
            for at, (first, last) in enumerate(own):
                begins[number, at], ends[number, at] = first, last
        low[:, place], high[:, place] = begins.min(axis=1, initial=_BEYOND), ends.max(axis=1, initial=-1)
        if most > 1:
            starts[place], stops[place] = begins, ends
    return Workload(low, high, np.array([query.weight for query in queries], np.float64), starts, stops, asks)


def _spans(box: Box, name: str, last: int) -> Sequence[tuple[int, int]]:
    if not is_possible(box):
        return ()
    spans = box.get(name, ((0, last),))
    return spans if len(spans) <= _MOST_SPANS else ((spans[0][0], spans[-1][1]),)


@dataclass(frozen=True, eq=False, slots=True)
class Numbered:
    """Rows of a sample and queries over it, by the same axes."""

    names: Sequence[str]
    axes: Sequence[Axis]
    codes: Codes
    """A line for each column, a place for each row."""
    asked: Workload

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])

    def only(self, rows: npt.NDArray[Any], queries: npt.NDArray[Any]) -> "Numbered":
        return replace(self, codes=self.codes[:, rows], asked=self.asked.take(queries))


def numbered(sample: pa.Table, queries: Sequence[Query]) -> Numbered:
    """The columns of the sample are those that count."""
    names = sample.column_names
    constants: dict[str, list[object]] = {name: [] for name in names}
    for query in queries:
        for name, value in constants_of(query.predicate):
            if name in constants:
                constants[name].append(value)
    axes = [axis_among(sample.column(name), constants[name]) for name in names]
    codes = np.stack([axis.codes(sample.column(name)) for name, axis in zip(names, axes, strict=True)])
    return Numbered(names, axes, codes, workload_of(queries, names, axes))
