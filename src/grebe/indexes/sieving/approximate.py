"""Sieves that fit a budget: a tree of blocks, each halved where that saves more reads than it costs bytes.

The widest gaps between keys are kept beside the tree as they are, since no question that falls into one needs to read anything.
"""

import math

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length, pointers_of
from grebe.indexes.sieving.blocks import Blocks, ones
from grebe.indexes.sieving.coding import STREAMS, Leaves, decode, encode, root_level
from grebe.indexes.sieving.packing import pack, pack_numbers, unpack_numbers
from grebe.indexes.sieving.pairs import Pairs
from grebe.indexes.sieving.prune import Pruner, Tree
from grebe.indexes.sieving.stretches import Stretches
from grebe.indexes.sieving.trie import trie_of

_BYTES_A_GAP = 256  # of the budget for every gap kept, which takes about ten
_NARROW = 1024  # gaps that are a smaller part of the whole are not worth keeping
_EXPECTED = 1.04  # bits that compress to what there is room for
_CLOSE = 0.95  # to the budget
_TRIES = 4


def approximate_sections(pairs: Pairs, budget: int) -> list[bytes]:
    """About as many bytes as the budget is, but at least one block with all files."""
    blocks = Blocks.of(pairs)
    previous = blocks.previous()
    files = len(pairs.ids)
    gaps = _gaps(blocks, budget // _BYTES_A_GAP)
    best = gaps + _tree(_whole(blocks, files), files)
    trie = trie_of(blocks, previous)
    room = budget - len(pack(best))
    if not len(trie.level) or room <= 0:
        return best
    pruner = Pruner(trie, blocks.mass)
    bits, saved = _EXPECTED * 8.0 * room, math.inf
    for _ in range(_TRIES):
        tree = pruner.fit(bits)
        sections = gaps + _tree(_leaves(blocks, previous, tree, files), files)
        over = len(pack(sections)) - budget
        if over <= 0 and tree.reads < saved:
            best, saved = sections, tree.reads
        if over <= 0 and (pruner.complete(tree) or -over <= (1 - _CLOSE) * room):
            break
        bits *= (1 + _CLOSE) / 2 * room / max(room + over, 1)
    return best


def approximate_stretches(sections: list[bytes], low: int, high: int, files: int) -> Stretches:
    """Raises `ValueError` where the sections are damaged."""
    if len(sections) != 3 + STREAMS or len(sections[2]) != 1 or sections[2][0] > 64:
        raise ValueError(f"{len(sections)} sections do not make up a tree")
    leaves = decode(sections[3:], sections[2][0], low, files)
    found = Stretches(
        leaves.starts, leaves.starts | ones(leaves.levels.astype(np.int64)), leaves.pointers, leaves.files
    )
    before, length = unpack_numbers(sections[0]), unpack_numbers(sections[1])
    ends = np.uint64(low) + np.cumsum(before) + np.cumsum(length) - length
    starts = np.concatenate((np.array([low], np.uint64), ends + length))
    return found.within(starts, np.concatenate((ends, np.array([high], np.uint64))))


def _gaps(blocks: Blocks, most: int) -> list[bytes]:
    """The last key before each gap, counted from the first one behind the gap before; and how far it is to the next key."""
    ends = blocks.starts | ones(blocks.levels.astype(np.int64))
    length = blocks.starts[1:] - ends[:-1]
    narrow = (ends[-1] - blocks.starts[0]) // np.uint64(_NARROW) + np.uint64(1)
    wide = np.flatnonzero(length > narrow)
    if len(wide) > most:
        wide = np.sort(wide[np.argsort(length[wide])[len(wide) - most :]])
    behind = np.concatenate((blocks.starts[:1], blocks.starts[wide + 1]))[: len(wide)]
    return [pack_numbers(ends[wide] - behind), pack_numbers(length[wide])]


def _tree(leaves: Leaves, files: int) -> list[bytes]:
    return [bytes([root_level(leaves)]), *encode(leaves, files)]


def _whole(blocks: Blocks, files: int) -> Leaves:
    """The one block around everything."""
    level = max(int(bit_length(blocks.starts[:1] ^ blocks.starts[-1:])[0]), int(blocks.levels[0]))
    start = blocks.starts[:1] & ~ones(np.array([level]))
    return Leaves(start, np.array([level], np.uint8), np.array([0, files]), np.arange(files))


def _leaves(blocks: Blocks, previous: NDArray[np.int64], tree: Tree, files: int) -> Leaves:
    """The sides of kept branches that are no kept branches themselves, and their files."""
    trie, kept = tree.trie, np.flatnonzero(tree.parted)
    if not len(kept):
        return _whole(blocks, files)
    branch = np.append(tree.parted, False)
    lower, upper = kept[~branch[trie.left[kept]]], kept[~branch[trie.right[kept]]]
    first = np.concatenate((trie.first[lower], trie.middle[upper]))
    last = np.concatenate((trie.middle[lower], trie.last[upper]))
    levels = np.concatenate((trie.level[lower], trie.level[upper])) - 1
    order = np.argsort(first)
    first, last, levels = first[order], last[order], levels[order]
    begins = blocks.pointers[first]
    sizes = blocks.pointers[last] - begins
    # A file counts where its last occurrence was before the leaf.
    new = previous < np.repeat(begins, sizes)
    held = np.repeat(np.arange(len(first)), sizes)[new] * files + blocks.files[new]
    held.sort()
    pointers = pointers_of(np.bincount(held // files, minlength=len(first)))
    return Leaves(blocks.starts[first] & ~ones(levels), levels.astype(np.uint8), pointers, held % files)
