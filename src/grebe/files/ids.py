"""Sets of file ids.

An index covers a set of files, and a million files that were registered together have consecutive ids. So a set is
kept as sorted, disjoint, non-adjacent half-open ranges, and its algebra works on the ends of ranges, never on single
ids.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from grebe.errors import Unsupported

_Ends: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]
ID_LIMIT = 1 << 32
"""Ids take four bytes wherever they are stored."""


class FileIds:
    """An immutable set of file ids. `|`, `&`, `-`, `<=`, `in`, `len` and iteration mean what they mean for
    `frozenset`."""

    __slots__ = ("_starts", "_stops")

    def __init__(self, starts: _Ends, stops: _Ends) -> None:
        """Of ranges that are sorted, disjoint and non-adjacent already; everyone else uses `of` and `of_ranges`."""
        self._starts = starts
        self._stops = stops

    @classmethod
    def of(cls, ids: "Iterable[int] | npt.NDArray[np.integer]") -> "FileIds":
        """Of single ids in any order, repetitions allowed."""
        if isinstance(ids, range) and ids.step == 1:
            return cls.of_ranges([(ids.start, ids.stop)] if ids else [])
        array = ids if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int64)
        unique = _distinct(array.astype(np.int64, copy=False))
        return cls._merged(unique, unique + 1)

    @classmethod
    def of_ranges(cls, ranges: Iterable[tuple[int, int]]) -> "FileIds":
        """Of half-open ranges in any order; they may touch and overlap."""
        ends = np.array([pair for pair in ranges], np.int64).reshape(-1, 2)  # noqa: C416 - takes any iterable of pairs
        ends = ends[ends[:, 0] < ends[:, 1]]
        ends = ends[np.argsort(ends[:, 0], kind="stable")]
        return cls._merged(ends[:, 0], np.maximum.accumulate(ends[:, 1]))

    @classmethod
    def _merged(cls, starts: _Ends, stops: _Ends) -> "FileIds":
        """Of ranges sorted by start and by stop."""
        if not len(starts):
            return cls(starts, stops)
        if starts[0] < 0 or stops[-1] > ID_LIMIT:
            raise Unsupported(
                f"file ids run from 0 to {ID_LIMIT - 1}, not {starts[0]} to {stops[-1] - 1}", detail="FILE_ID"
            )
        gap = starts[1:] > stops[:-1]
        return cls(starts[np.concatenate(([True], gap))], stops[np.concatenate((gap, [True]))])

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self._starts.tolist(), self._stops.tolist(), strict=True))

    def to_numpy(self) -> npt.NDArray[np.uint32]:
        """All ids, ascending."""
        lengths = self._stops - self._starts
        before = np.cumsum(lengths) - lengths
        ids = np.arange(len(self), dtype=np.int64) + np.repeat(self._starts - before, lengths)
        return np.asarray(ids, np.uint32)

    def contains(self, ids: npt.NDArray[np.integer]) -> _Flags:
        """For each of many ids, whether it is in the set."""
        return self._covers(ids.astype(np.int64, copy=False))

    def isdisjoint(self, other: "FileIds") -> bool:
        return not self & other

    def __or__(self, other: "FileIds") -> "FileIds":
        if not other:
            return self
        return self._combined(other, np.logical_or) if self else other

    def __and__(self, other: "FileIds") -> "FileIds":
        if not self:
            return self
        return self._combined(other, np.logical_and) if other else other

    def __sub__(self, other: "FileIds") -> "FileIds":
        return self._combined(other, lambda mine, theirs: mine & ~theirs) if self and other else self

    def __le__(self, other: "FileIds") -> bool:
        return not self - other

    def __contains__(self, file_id: int) -> bool:
        place = int(np.searchsorted(self._starts, file_id, "right")) - 1
        return place >= 0 and file_id < int(self._stops[place])

    def __len__(self) -> int:
        return int((self._stops - self._starts).sum())

    def __bool__(self) -> bool:
        return len(self._starts) > 0

    def __iter__(self) -> Iterator[int]:
        for start, stop in self.ranges:
            yield from range(start, stop)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileIds):
            return NotImplemented
        return np.array_equal(self._starts, other._starts) and np.array_equal(self._stops, other._stops)

    def __hash__(self) -> int:
        return hash((self._starts.tobytes(), self._stops.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{start}-{stop - 1}" for start, stop in self.ranges[:5])
        return f"FileIds({len(self)}: {shown}{', …' if len(self._starts) > 5 else ''})"

    def _combined(self, other: "FileIds", keep: Callable[[_Flags, _Flags], _Flags]) -> "FileIds":
        """Between two neighbouring ends neither set changes, so each such stretch is kept or dropped as a whole."""
        ends = _distinct(np.concatenate((self._starts, self._stops, other._starts, other._stops)))
        kept = keep(self._covers(ends), other._covers(ends))
        starting = np.flatnonzero(kept[:-1])
        return self._merged(ends[starting], ends[starting + 1])

    def _covers(self, ids: _Ends) -> _Flags:
        opened = np.searchsorted(self._starts, ids, "right")
        closed = np.searchsorted(self._stops, ids, "right")
        return np.asarray(opened > closed)


def _distinct(numbers: _Ends) -> _Ends:
    """Sorted, each once. A stable sort is quick on what is a few sorted runs already; `np.unique` hashes instead."""
    numbers = np.sort(numbers, kind="stable")
    return numbers[np.concatenate(([True], numbers[1:] != numbers[:-1]))] if len(numbers) else numbers
