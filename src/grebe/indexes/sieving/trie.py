"""The binary trie over the keys of a sieve, with the number of files below each branch.

Two neighbouring keys part in the block whose level is the bit length of their exclusive or. So each place between two neighbours is
one branch of the trie, and all branches of a level are made at once. The files of a branch are those of its two sides, less those
that both have. They are counted without any set: two neighbouring keys of one file count twice up to the branch where they meet,
and once from there on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length
from grebe.indexes.sieving.blocks import Blocks


@dataclass(frozen=True, slots=True)
class Trie:
    """The branches with two files or more, lower levels first. `left` and `right` are branches again, or -1.

    A branch stands for the blocks `first` to `last` (excluded) and parts them at `middle`.
    """

    level: NDArray[np.int64]
    first: NDArray[np.int64]
    middle: NDArray[np.int64]
    last: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    files: NDArray[np.int64]
    left_files: NDArray[np.int64]
    right_files: NDArray[np.int64]

    def only(self, which: NDArray[np.bool_]) -> "Trie":
        """Without the other branches. Where one is kept, so must be those above it."""
        number = np.append(np.where(which, np.cumsum(which) - 1, -1), -1)
        return Trie(
            self.level[which],
            self.first[which],
            self.middle[which],
            self.last[which],
            number[self.left[which]],
            number[self.right[which]],
            self.files[which],
            self.left_files[which],
            self.right_files[which],
        )


def trie_of(blocks: Blocks, previous: NDArray[np.int64]) -> Trie:
    count = len(blocks.starts)
    sizes = np.diff(blocks.pointers)
    parting = np.zeros(count + 1, np.uint8)
    parting[1:-1] = bit_length(blocks.starts[1:] ^ blocks.starts[:-1])
    order = np.argsort(parting[1:-1], kind="stable") + 1
    shared = _shared(blocks, previous, parting, order)
    left, right = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    first, last = np.arange(count + 1) - 1, np.arange(count + 1) + 1
    files, left_files, right_files = (np.zeros(count + 1, np.int64) for _ in range(3))
    # The branch that begins, or ends, at a place so far; 0 is none, since there is no place before the first block.
    begins, ends = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    for at in _by_level(parting[order], order):
        one, other = ends[at], begins[at]
        left[at], right[at] = one, other
        first[at] = np.where(one > 0, first[one], first[at])
        last[at] = np.where(other > 0, last[other], last[at])
        left_files[at] = np.where(one > 0, files[one], sizes[at - 1])
        right_files[at] = np.where(other > 0, files[other], sizes[at])
        files[at] = left_files[at] + right_files[at] - shared[at]
        begins[first[at]] = at
        ends[last[at]] = at
    kept = order[files[order] > 1]
    number = np.full(count + 1, -1, np.int64)
    number[kept] = np.arange(len(kept))
    return Trie(
        parting[kept].astype(np.int64),
        first[kept],
        kept,
        last[kept],
        number[left[kept]],
        number[right[kept]],
        files[kept],
        left_files[kept],
        right_files[kept],
    )


def _by_level(levels: NDArray[np.uint8], order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.split(order, np.flatnonzero(np.diff(levels)) + 1) if len(order) else []


def _shared(
    blocks: Blocks, previous: NDArray[np.int64], parting: NDArray[np.uint8], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each place between two blocks, how many files both sides of its branch have."""
    block = np.repeat(np.arange(len(blocks.starts)), np.diff(blocks.pointers))
    later = np.flatnonzero(previous >= 0)
    one, other = block[previous[later]], block[later]
    meeting = other.copy()
    far = np.flatnonzero(other > one + 1)
    # They meet at the only place between them that parts at the level at which they do.
    level = bit_length(blocks.starts[one[far]] ^ blocks.starts[other[far]])
    places = (parting[order].astype(np.int64) << 48) | order
    meeting[far] = order[np.searchsorted(places, (level << 48) | other[far], "right") - 1]
    return np.bincount(meeting, minlength=len(parting))
