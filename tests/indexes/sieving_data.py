"""Pairs of keys and files that sieves are tried on, and what a sieve must say of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.build import build
from grebe.indexes.sieving.sieve import Sieve

LEAST, GREATEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Held:
    """What some files hold: keys from `lows` to `highs`."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    files: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: object, files: object) -> "Held":
        low = np.asarray(keys, np.int64)
        return cls(low, low, np.asarray(files, np.uint32))

    def between(self, low: int, high: int) -> set[int]:
        return set(self.files[(self.lows <= high) & (self.highs >= low)].tolist())

    def __add__(self, other: "Held") -> "Held":
        return Held(
            np.concatenate((self.lows, other.lows)),
            np.concatenate((self.highs, other.highs)),
            np.concatenate((self.files, other.files)),
        )

    def sieve(self, budget: int) -> Sieve:
        made = build(self.lows, self.highs, self.files, budget)
        assert made is not None
        return made


def held_by(sieve: Sieve) -> Held:
    return Held(*sieve.triples())


def lost(sieve: Sieve, held: Held, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in which the sieve leaves out a file that holds a key, or names one twice or out of order."""
    wrong = []
    for low, high in ranges:
        named = sieve.files([(low, high)]).tolist()
        if named != sorted(set(named)) or not held.between(low, high) <= set(named):
            wrong.append((low, high))
    return wrong


def some_ranges(held: Held, rng: np.random.Generator, count: int) -> list[tuple[int, int]]:
    """Single keys, ranges that begin and end at keys or beside them, and all there is."""
    places = np.concatenate((held.lows, held.highs))
    points = [(int(key), int(key)) for key in rng.choice(places, count)]
    spans = np.sort(rng.choice(places, (count, 2)), axis=1).tolist()
    beside = [(max(low - 1, LEAST), min(high + 1, GREATEST)) for low, high in spans]
    return [*points, *map(tuple, spans), *beside, (LEAST, GREATEST)]


def late(rows: int, files: int) -> Held:
    """Times in the order of arrival, half of each day, two of a hundred up to thirty days late."""
    rng = np.random.default_rng(1)
    at = np.linspace(0, 365 * 86400, rows)
    day = np.floor(at / 86400)
    times = day * 86400 + 8 * 3600 + (at - day * 86400) * 0.5 + rng.exponential(60, rows)
    is_late = rng.random(rows) < 0.02
    times[is_late] -= rng.random(int(is_late.sum())) * 30 * 86400
    return Held.of(np.maximum(times, 0) * 1000, np.arange(rows) * files // rows)


def clustered(rows: int, files: int) -> Held:
    """Five clusters a file, anywhere, of very different widths, that overlap."""
    rng = np.random.default_rng(2)
    centres = rng.integers(0, 2**38, (files, 5))
    widths = np.exp(rng.normal(18, 1.5, (files, 5)))
    file = np.arange(rows) * files // rows
    cluster = rng.integers(0, 5, rows)
    return Held.of(centres[file, cluster] + rng.normal(0, 1, rows) * widths[file, cluster], file)


def files_kept(sieve: Sieve, held: Held, keys: int) -> tuple[float, float]:
    """Mean number of files for a key that there is: truly, and by the sieve."""
    asked = np.random.default_rng(3).choice(held.lows, keys).tolist()
    truly = [len(held.between(key, key)) for key in asked]
    return float(np.mean(truly)), float(np.mean([len(sieve.files([(key, key)])) for key in asked]))
