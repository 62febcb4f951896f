"""What a sieve is made of: which file holds keys from where to where. Sorted, each once.

Keys are unsigned here, the least int64 being 0: differences cannot overflow, and the bits of a key say where it lies.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class Pairs:
    """In the order of `lows`; stretches of one file are disjoint. `files` are places in `ids`."""

    lows: NDArray[np.uint64]
    highs: NDArray[np.uint64]
    files: NDArray[np.int64]
    weights: NDArray[np.float64]
    ids: NDArray[np.uint32]

    @property
    def single(self) -> bool:
        """Whether all stretches are one key long."""
        return bool((self.lows == self.highs).all())


def unsigned(keys: NDArray[np.int64]) -> NDArray[np.uint64]:
    return keys.view(np.uint64) ^ _SIGN


def signed(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (keys ^ _SIGN).view(np.int64)


def tidy(
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    files: NDArray[np.uint32],
    weights: NDArray[np.int64] | None,
) -> Pairs:
    """Of pairs in any order, with repetitions."""
    ids, local = _numbered(files)
    low, high = unsigned(np.ascontiguousarray(lows, np.int64)), unsigned(np.ascontiguousarray(highs, np.int64))
    if weights is not None:
        weights = np.maximum(weights, 1)
    if (low == high).all():
        return _keys(low, local, weights, ids)
    return _stretches(low, high, local, np.ones(len(low)) if weights is None else weights.astype(np.float64), ids)


def _numbered(files: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The distinct ids in order, and the place among them of each."""
    greatest = int(files.max())
    if greatest > 4 * len(files) + 1024:
        ids, local = np.unique(files, return_inverse=True)
        return ids.astype(np.uint32), local.astype(np.int64)
    there = np.zeros(greatest + 1, np.bool_)
    there[files] = True
    return np.flatnonzero(there).astype(np.uint32), (np.cumsum(there) - 1)[files]


def _keys(
    keys: NDArray[np.uint64], files: NDArray[np.int64], weights: NDArray[np.int64] | None, ids: NDArray[np.uint32]
) -> Pairs:
    bits = len(ids).bit_length()
    least = keys.min()
    if weights is None and int(keys.max() - least).bit_length() + bits <= 64:
        both = ((keys - least) << np.uint64(bits)) | files.astype(np.uint64)
        both.sort()
        both = both[np.concatenate(([True], both[1:] != both[:-1]))]
        keys = (both >> np.uint64(bits)) + least
        files = (both & np.uint64((1 << bits) - 1)).astype(np.int64)
        return Pairs(keys, keys, files, np.ones(len(keys)), ids)
    order = np.lexsort((files, keys))
    keys, files = keys[order], files[order]
    new = np.flatnonzero(np.concatenate(([True], (keys[1:] != keys[:-1]) | (files[1:] != files[:-1]))))
    weight = np.ones(len(new)) if weights is None else np.add.reduceat(weights[order].astype(np.float64), new)
    return Pairs(keys[new], keys[new], files[new], weight, ids)


def _stretches(
    lows: NDArray[np.uint64],
    highs: NDArray[np.uint64],
    files: NDArray[np.int64],
    weights: NDArray[np.float64],
    ids: NDArray[np.uint32],
) -> Pairs:
    """Stretches of one file that overlap or touch become one."""
    order = np.lexsort((lows, files))
    lows, highs, files, weights = lows[order], highs[order], files[order], weights[order]
    # The furthest end so far in each file: ends by rank, so that file and rank fit one word.
    by_end = np.argsort(highs, kind="stable")
    rank = np.empty(len(highs), np.int64)
    rank[by_end] = np.arange(len(highs))
    reach = highs[by_end[np.maximum.accumulate(files * len(highs) + rank) % len(highs)]]
    apart = (lows[1:] > reach[:-1]) & (lows[1:] - reach[:-1] > np.uint64(1))
    new = np.flatnonzero(np.concatenate(([True], (files[1:] != files[:-1]) | apart)))
    ends = reach[np.concatenate((new[1:], [len(lows)])) - 1]
    lows, files, weights = lows[new], files[new], np.add.reduceat(weights, new)
    order = np.lexsort((files, lows))
    return Pairs(lows[order], ends[order], files[order], weights[order], ids)
