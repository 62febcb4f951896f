"""What is asked of a column, points and ranges, and which files hold rows of it: the truth that every structure is measured by."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

Numbers = npt.NDArray[np.int64]
KEYS_OF_A_RANGE = 200


@dataclass(frozen=True, slots=True)
class Question:
    """From `low` to `high`, both inside."""

    low: int
    high: int
    truth: frozenset[int]
    """Numbers of the files that hold such a key."""

    @property
    def is_point(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True)
class Column:
    """All rows of it, ordered by the key and the file: `keys` and `files` are of equal length."""

    name: str
    keys: Numbers
    files: npt.NDArray[np.int32]
    file_count: int

    @classmethod
    def read(cls, table: Path, name: str) -> "Column":
        parts = [pq.read_table(file, columns=[name])[name].to_numpy() for file in sorted(table.glob("*.parquet"))]
        # Key and file in one number: that is sorted several times faster than two.
        bits = np.int64(len(parts)).item().bit_length()
        both = np.concatenate([part << bits | number for number, part in enumerate(parts)])
        both.sort()
        return cls(name, both >> bits, (both & (2**bits - 1)).astype(np.int32), len(parts))

    @cached_property
    def distinct(self) -> Numbers:
        return self.keys[np.flatnonzero(np.diff(self.keys, prepend=self.keys[0] - 1))]

    @cached_property
    def bounds(self) -> tuple[Numbers, Numbers]:
        """Least and greatest key of each file."""
        ends = np.iinfo(np.int64)
        lows, highs = np.full(self.file_count, ends.max), np.full(self.file_count, ends.min)
        np.minimum.at(lows, self.files, self.keys)
        np.maximum.at(highs, self.files, self.keys)
        return lows, highs

    def questions(self, count: int) -> list[Question]:
        """So many points, each key as likely as any other, and as many ranges of neighbouring keys."""
        rng = np.random.default_rng(3)
        points = self.distinct[rng.integers(0, len(self.distinct), count)]
        first = rng.integers(0, len(self.distinct) - KEYS_OF_A_RANGE + 1, count)
        ranges = zip(self.distinct[first], self.distinct[first + KEYS_OF_A_RANGE - 1], strict=True)
        return [self._asked(int(low), int(high)) for low, high in (*zip(points, points, strict=True), *ranges)]

    def _asked(self, low: int, high: int) -> Question:
        first, last = np.searchsorted(self.keys, low, "left"), np.searchsorted(self.keys, high, "right")
        return Question(low, high, frozenset(np.unique(self.files[first:last]).tolist()))


@dataclass(frozen=True, slots=True)
class Kept:
    """How many files were left, on average, and what asking took."""

    points: float
    ranges: float
    microseconds: float

    def as_few_as(self, other: "Kept") -> bool:
        return self.points <= other.points and self.ranges <= other.ranges


def kept(questions: list[Question], counts: list[int], seconds: list[float]) -> Kept:
    points = [count for count, question in zip(counts, questions, strict=True) if question.is_point]
    ranges = [count for count, question in zip(counts, questions, strict=True) if not question.is_point]
    return Kept(float(np.mean(points)), float(np.mean(ranges)), float(np.median(seconds)) * 1e6)


def require_all(question: Question, files: set[int], who: str) -> None:
    lost = question.truth - files
    if lost:
        raise AssertionError(f"{who} loses {len(lost)} files with keys from {question.low} to {question.high}")
