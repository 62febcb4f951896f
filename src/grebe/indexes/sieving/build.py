"""Pairs of key stretches and files become a sieve of a given size."""

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.sieve import Sieve


def build(
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    files: NDArray[np.uint32],
    budget: int,
    weights: NDArray[np.int64] | None = None,
) -> Sieve | None:
    """Pairs in any order, with repetitions; None where there are none."""
    if not len(lows):
        return None
    ids, local = np.unique(files, return_inverse=True)
    # As many stretches of equally many keys as the budget allows, at 16 bytes a file or more each.
    order = np.lexsort((highs, lows))
    lows, highs, local = lows[order], highs[order], local[order]
    reach = np.maximum.accumulate(highs)
    apart = np.append(True, lows[1:] > reach[:-1])
    cut = np.flatnonzero(apart)
    cut = cut[:: max(1, -(-len(cut) // max(1, budget // 64)))]
    sizes = np.diff(np.append(cut, len(lows)))
    held = np.unique(np.stack([np.repeat(np.arange(len(cut)), sizes), local], 1), axis=0)
    pointers = np.searchsorted(held[:, 0], np.arange(len(cut) + 1))
    ends = np.maximum.reduceat(highs, cut)
    return Sieve(lows[cut], ends, pointers.astype(np.int64), held[:, 1].astype(np.uint32), ids.astype(np.uint32))
