"""Where the values of a column lie in each file: some intervals, with the widest gaps between them left out.

A file whose values lie in a few clusters far apart has bounds that say nothing; its intervals do. They are kept relative to
the file's own bounds, by an expression that never falls: at building and at asking it is the same, so that no value is lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import InvalidIndex
from grebe.indexes.sieving.keys import Keys, keys_for
from grebe.indexes.sketches.distinct import distinct
from grebe.indexes.sketches.protocol import Judge, OfOneColumn, On
from grebe.indexes.sketches.ranges import code_ranges
from grebe.predicate.bounds import named
from grebe.predicate.tree import Predicate
from grebe.predicate.verdicts import Verdicts

_KEPT_OF_A_PART = 4096
"""Of part of a file more intervals are kept than of the whole, so that joining parts loses little."""
_TOP = np.float64(2**32 - 1)
_MOST_ASKED = 64
_KEYED = "numbers, booleans, dates and timestamps"

Codes = npt.NDArray[np.int64]
Ends = tuple[Codes, Codes]
"""Starts and stops of intervals, both inside, ascending."""


@dataclass(frozen=True, slots=True)
class Intervals(OfOneColumn):
    """`grebe.Intervals("e")`."""

    sketch: ClassVar[str] = "intervals"

    column: str
    most: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.most, int) or not 1 <= self.most <= 1024:
            raise InvalidIndex(
                f"Intervals({self.column!r}): most is the number of intervals a file, 1 to 1024, not {self.most!r}",
                detail="SKETCH",
            )

    def refusal(self, on: Sequence[On]) -> str | None:
        known = keys_for(on[0].type) is not None
        return None if known else f"{'.'.join(on[0].path)} is {on[0].type}, and Intervals is for {_KEYED}"

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        return {"low": "long", "high": "long", "intervals": "binary"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> Ends:
        keys = keys_for(on[0].type)
        assert keys is not None
        codes = distinct(keys.codes(values[0].drop_null()))
        return fewer((codes, codes), _KEPT_OF_A_PART)

    def joined(self, states: Sequence[Ends]) -> Ends:
        if len(states) == 1:
            return states[0]
        starts, stops = (np.concatenate([state[side] for state in states]) for side in (0, 1))
        return fewer(_apart(starts, stops), _KEPT_OF_A_PART)

    def row(self, on: Sequence[On], state: Ends) -> Mapping[str, Any]:
        starts, stops = fewer(state, self.most)
        if not len(starts):
            return {"low": None, "high": None, "intervals": b""}
        low, high = starts[:1], stops[-1:]
        packed = np.concatenate((_scaled(starts, low, high), _scaled(stops, low, high))).astype("<u4").tobytes()
        return {"low": int(low[0]), "high": int(high[0]), "intervals": packed}

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> Judge:
        keys = keys_for(on[0].type)
        assert keys is not None
        return FileIntervals.of(on[0], keys, stored)

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        keys = keys_for(on[0].type)
        return keys is not None and code_ranges(predicate, on[0], keys) is not None


def fewer(ends: Ends, most: int) -> Ends:
    """The same values in at most so many intervals: only the widest gaps are left."""
    starts, stops = ends
    if len(starts) <= most:
        return ends
    gaps = starts[1:].view(np.uint64) - stops[:-1].view(np.uint64)
    left = most - 1
    widest = np.sort(np.argpartition(gaps, len(gaps) - left)[len(gaps) - left :]) if left else np.empty(0, np.int64)
    return starts[np.append(0, widest + 1)], stops[np.append(widest, len(stops) - 1)]


def _apart(starts: Codes, stops: Codes) -> Ends:
    """Intervals that touch each other made one."""
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(stops[order])
    first = np.concatenate(([True], starts[1:] > reach[:-1])) if len(starts) else np.empty(0, np.bool_)
    places = np.flatnonzero(first)
    return starts[places], reach[np.append(places[1:], len(starts)) - 1] if len(places) else reach


def _scaled(codes: Codes, low: Codes, high: Codes) -> npt.NDArray[np.uint32]:
    """Codes between low and high as 32 bits. Differences of codes may be beyond int64."""
    width = (high.view(np.uint64) - low.view(np.uint64)).astype(np.float64)
    place = (codes.view(np.uint64) - low.view(np.uint64)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(width > 0, np.floor(place * (_TOP / width)), 0.0)
    return np.minimum(share, _TOP).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class FileIntervals:
    """Of all files; one without (`known` is False) may hold anything."""

    on: On
    keys: Keys
    low: Codes
    high: Codes
    starts: npt.NDArray[np.uint32]
    """One row for the first interval of each file, one for the second, …; where a file has fewer, one that holds nothing."""
    stops: npt.NDArray[np.uint32]
    known: npt.NDArray[np.bool_]
    empty: npt.NDArray[np.bool_]
    """Files without any value."""

    @classmethod
    def of(cls, on: On, keys: Keys, stored: Mapping[str, pa.Array]) -> "FileIntervals":
        packed = stored["intervals"].cast(pa.large_binary())
        known = packed.is_valid().to_numpy(zero_copy_only=False)
        offsets = np.frombuffer(packed.buffers()[1], np.int64)[packed.offset : packed.offset + len(packed) + 1]
        counts = np.diff(offsets) // 8
        data = packed.buffers()[2]
        numbers = (
            np.frombuffer(data, "<u4")[offsets[0] // 4 : offsets[-1] // 4] if data is not None else np.empty(0, "<u4")
        )
        most = int(counts.max(initial=0))
        starts, stops = np.ones((len(packed), most), np.uint32), np.zeros((len(packed), most), np.uint32)
        column = np.arange(most)
        there = column[None, :] < counts[:, None]
        firsts = ((offsets[:-1] - offsets[0]) // 4)[:, None] + column[None, :]
        starts[there] = numbers[firsts[there]]
        stops[there] = numbers[(firsts + counts[:, None])[there]]
        low, high = (
            np.asarray(stored[name].fill_null(0).to_numpy(zero_copy_only=False), np.int64) for name in ("low", "high")
        )
        first, last = (np.ascontiguousarray(side.T) for side in (starts, stops))
        return cls(on, keys, low, high, first, last, known, known & (counts == 0))

    @property
    def nbytes(self) -> int:
        return self.low.nbytes * 2 + self.starts.nbytes * 2 + 2 * len(self.known)

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        ranges = code_ranges(predicate, self.on, self.keys)
        if ranges is None or len(ranges) > _MOST_ASKED:
            return None
        possible = ~self.known
        for first, last in ranges:
            possible |= self.touching(first, last)
        return named(~possible, np.zeros_like(possible))

    def touching(self, first: int, last: int) -> npt.NDArray[np.bool_]:
        """Files with an interval that has a code of this range (both ends inside)."""
        found = np.zeros(len(self.known), np.bool_)
        near = np.flatnonzero(self.known & ~self.empty & (self.low <= last) & (self.high >= first))
        low, high = self.low[near], self.high[near]
        lower = _scaled(np.maximum(low, first), low, high)
        upper = _scaled(np.minimum(high, last), low, high)
        touched = np.zeros(len(near), np.bool_)
        for starts, stops in zip(self.starts, self.stops, strict=True):
            touched |= (starts[near] <= upper) & (stops[near] >= lower)
        found[near] = touched
        return found
