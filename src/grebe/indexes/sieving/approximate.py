"""Sieves that fit a budget: a tree of blocks, each halved where that saves more reads than it costs bytes.

The widest gaps between keys are kept beside the tree.
"""

import math

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length, pointers_of
from grebe.indexes.sieving.blocks import Blocks, ones
from grebe.indexes.sieving.coding import Leaves, decode, encode, root_level
from grebe.indexes.sieving.gaps import SECTIONS, filled, gap_sections
from grebe.indexes.sieving.packing import pack
from grebe.indexes.sieving.pairs import Pairs
from grebe.indexes.sieving.prune import Pruner, Tree
from grebe.indexes.sieving.stretches import Stretches
from grebe.indexes.sieving.trie import trie_of

_FOR_GAPS = 0.05  # of the budget, and what a tree leaves that lacks nothing
_EXPECTED = 1.04  # bits that compress to what there is room for
_CLOSE = 0.95  # to the budget
_TRIES = 4


def approximate_sections(pairs: Pairs, budget: int) -> list[bytes]:
    """About as many bytes as the budget is, but at least one block with all files."""
    blocks = Blocks.of(pairs)
    low, before, behind = int(blocks.starts[0]), blocks.ends()[:-1], blocks.starts[1:]
    previous = blocks.previous()
    files = len(pairs.ids)
    tree = _tree(_whole(blocks, files), files)
    trie = trie_of(blocks, previous)
    for_gaps = int(_FOR_GAPS * budget) if len(trie.level) else budget - len(pack(tree))
    gaps = gap_sections(low, before, behind, for_gaps)
    room = budget - len(pack(gaps + tree))
    if not len(trie.level) or room <= 0:
        return gaps + tree
    pruner = Pruner(trie, blocks.mass)
    bits, saved = _EXPECTED * 8.0 * room, math.inf
    for _ in range(_TRIES):
        found = pruner.fit(bits)
        fitted = _tree(_leaves(blocks, previous, found, files), files)
        over = len(pack(gaps + fitted)) - budget
        if over <= 0 and found.reads < saved:
            tree, saved = fitted, found.reads
        if over <= 0 and pruner.complete(found):
            return gap_sections(low, before, behind, budget - len(pack(fitted))) + fitted
        if -(1 - _CLOSE) * room <= over <= 0:
            break
        bits *= (1 + _CLOSE) / 2 * room / max(room + over, 1)
    return gaps + tree


def approximate_stretches(sections: list[bytes], low: int, high: int, files: int) -> Stretches:
    root, *streams = sections[SECTIONS:]
    leaves = decode(streams, root[0], low, files)
    ends = leaves.starts | ones(leaves.levels)
    found = Stretches(leaves.starts, ends, leaves.pointers, leaves.files).checked()
    return found.within(*filled(sections[:SECTIONS], low, high))


def _tree(leaves: Leaves, files: int) -> list[bytes]:
    return [bytes([root_level(leaves)]), *encode(leaves, files)]


def _whole(blocks: Blocks, files: int) -> Leaves:
    """The one block around everything."""
    level = max(int(bit_length(blocks.starts[:1] ^ blocks.starts[-1:])[0]), int(blocks.levels[0]))
    start = blocks.starts[:1] & ~ones(np.array([level], np.int64))
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
