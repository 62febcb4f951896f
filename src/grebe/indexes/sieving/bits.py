"""Whole arrays at a time: lengths of words in bits, and the places that ranges of places stand for."""

import numpy as np
from numpy.typing import NDArray


def bit_length(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """By halves: a whole word may round up to the next power of two as a float64."""
    upper = (words >> np.uint64(32)).astype(np.float64)
    lower = (words & np.uint64(0xFFFFFFFF)).astype(np.float64)
    lengths: NDArray[np.int64] = np.where(upper > 0, 32 + np.frexp(upper)[1], np.frexp(lower)[1]).astype(np.int64)
    return lengths


def spread(firsts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """`counts[i]` numbers from `firsts[i]` on, for one range after the other."""
    total = int(counts.sum())
    begins = np.cumsum(counts) - counts
    return np.repeat(firsts - begins, counts) + np.arange(total)


def pointers_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of some lists begins, and where the last one ends, once they lie one after the other."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
