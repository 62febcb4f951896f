"""Pairs as disjoint blocks. A block of level s holds the 2^s keys that agree in all but their last s bits; a key is one of level 0.

Stretches of an older sieve are blocks already, but those of another may cut into them. A block around smaller ones is halved until
its parts are apart from these; where that would take too many parts, the smaller ones grow to its size: a sieve may say too much.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length
from grebe.indexes.sieving.pairs import Pairs

_MOST_PARTS = 1 << 22  # of which there are so many only for stretches that cut into one another everywhere
_FINE = 4  # levels below its length to which a stretch is followed where there are too many


@dataclass(frozen=True, slots=True)
class Blocks:
    """Disjoint blocks in order, each with its distinct files and the share of questions that fall into it. A key is of level 0."""

    starts: NDArray[np.uint64]
    levels: NDArray[np.uint8]
    pointers: NDArray[np.int64]
    files: NDArray[np.int64]
    mass: NDArray[np.float64]

    def ends(self) -> NDArray[np.uint64]:
        """The last key of each."""
        return self.starts | ones(self.levels)

    def previous(self) -> NDArray[np.int64]:
        """For each entry of `files` the last one before it with the same file, -1 if there is none."""
        count = int(self.files.max()) + 1
        order = np.argsort(self.files.astype(np.uint16) if count <= 1 << 16 else self.files, kind="stable")
        found = np.full(len(order), -1, np.int64)
        same = self.files[order[1:]] == self.files[order[:-1]]
        found[order[1:][same]] = order[:-1][same]
        return found

    @classmethod
    def of(cls, pairs: Pairs) -> "Blocks":
        if pairs.single:
            new = np.flatnonzero(np.concatenate(([True], pairs.lows[1:] != pairs.lows[:-1])))
            levels = np.zeros(len(new), np.uint8)
            pointers = np.concatenate((new, [len(pairs.lows)]))
            return cls(pairs.lows[new], levels, pointers, pairs.files, np.maximum.reduceat(pairs.weights, new))
        return _grouped(_disjoint(_parts(pairs)))


@dataclass(frozen=True, slots=True)
class _Parts:
    """Blocks that belong to a file each."""

    starts: NDArray[np.uint64]
    levels: NDArray[np.int64]
    files: NDArray[np.int64]
    mass: NDArray[np.float64]

    def pick(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> "_Parts":
        return _Parts(self.starts[which], self.levels[which], self.files[which], self.mass[which])

    def ends(self) -> NDArray[np.uint64]:
        return self.starts | ones(self.levels)

    def halved(self) -> "_Parts":
        upper = self.starts | (ones(self.levels) ^ ones(self.levels - 1))
        files, mass = np.tile(self.files, 2), np.tile(self.mass / 2, 2)
        return _Parts(np.concatenate((self.starts, upper)), np.tile(self.levels - 1, 2), files, mass)


def ones(levels: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """So many of the last bits."""
    shift = np.uint64(64) - np.maximum(levels, 1).astype(np.uint64)
    return np.where(levels > 0, ~np.uint64(0) >> shift, np.uint64(0))


def _parts(pairs: Pairs) -> _Parts:
    """Every stretch as the fewest blocks that make it up."""
    lows, highs = pairs.lows, pairs.highs
    found = _cover(lows, highs, pairs)
    if len(found.starts) > max(_MOST_PARTS, 2 * len(lows)):
        loose = ones(np.maximum(bit_length(highs - lows) - _FINE, 0))
        found = _cover(lows & ~loose, highs | loose, pairs)
    return found


def _cover(lows: NDArray[np.uint64], highs: NDArray[np.uint64], pairs: Pairs) -> _Parts:
    length = (highs - lows).astype(np.float64) + 1.0
    found: list[_Parts] = []
    own = np.arange(len(lows))
    one = np.uint64(1)
    for level in range(65):
        odd, even = (lows & one) == one, (highs & one) == 0
        same = lows == highs
        lower, upper = same | odd, even & ~same
        share = float(1 << level) / length
        for taken, places in ((lower, lows[lower]), (upper, highs[upper])):
            which = own[taken]
            starts = places << np.uint64(level) if level < 64 else places * np.uint64(0)
            levels = np.full(len(which), level, np.int64)
            found.append(_Parts(starts, levels, pairs.files[which], pairs.weights[which] * share[which]))
        lows, highs = lows + odd.astype(np.uint64), highs - even.astype(np.uint64)
        left = ~same & (lows <= highs)
        lows, highs, own = lows[left] >> one, highs[left] >> one, own[left]
        if not len(own):
            break
    return _joined(found)


def _disjoint(parts: _Parts) -> _Parts:
    done: list[_Parts] = []
    count = len(parts.starts)
    while len(parts.starts):
        parts = parts.pick(np.lexsort((-parts.levels, parts.starts)))
        reach = np.maximum.accumulate(parts.ends())
        leads = np.concatenate(([True], parts.starts[1:] > reach[:-1]))
        group = np.cumsum(leads) - 1
        largest = parts.levels[leads][group]
        inner = parts.levels < largest
        nested = (np.bincount(group, inner) > 0)[group]
        outer = nested & ~inner
        done.append(parts.pick(~nested))
        count += int(outer.sum())
        if count > _MOST_PARTS:
            grown = largest[nested]
            done.append(_Parts(parts.starts[nested] & ~ones(grown), grown, parts.files[nested], parts.mass[nested]))
            break
        parts = _joined([parts.pick(inner), parts.pick(outer).halved()])
    return _joined(done)


def _grouped(parts: _Parts) -> Blocks:
    parts = parts.pick(np.lexsort((parts.files, parts.starts)))
    begins = np.concatenate(([True], parts.starts[1:] != parts.starts[:-1]))
    mass = np.maximum.reduceat(parts.mass, np.flatnonzero(begins))
    once = parts.pick(begins | np.concatenate(([True], parts.files[1:] != parts.files[:-1])))
    new = np.flatnonzero(np.concatenate(([True], once.starts[1:] != once.starts[:-1])))
    pointers = np.concatenate((new, [len(once.starts)]))
    return Blocks(once.starts[new], once.levels[new].astype(np.uint8), pointers, once.files, mass)


def _joined(parts: list[_Parts]) -> _Parts:
    return _Parts(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.files for part in parts]),
        np.concatenate([part.mass for part in parts]),
    )
