"""Which branches of a trie are worth their bytes.

A question for a key reads the files of the block that holds it. Parting a block costs bits and saves reads. At a price for the bit,
the best tree follows from the leaves up: a branch stays if its two sides and the bits of parting cost less than the block in one.
Then the price is sought at which the tree takes the bits it may. What a choice costs is learnt on the way, from how often it was
made.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length
from grebe.indexes.sieving.trie import Trie

_STEPS = 24
_CLOSE = 0.97  # to the bits that there are
_SLACK = 1.3  # a tree of so many times the bits holds any that will be asked for once the bytes are counted
_FEW = 0.6  # branches of those looked at so far
_CONTEXTS = 72  # by the number of files


@dataclass(frozen=True, slots=True)
class Prices:
    """Bits, by the number of files of a block: to leave it whole, to part it, to have one half of it empty; and for one of its
    files to be in both halves, or in one."""

    whole: NDArray[np.float64]
    parted: NDArray[np.float64]
    empty: NDArray[np.float64]
    both: NDArray[np.float64]
    one: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tree:
    """`parted` says which branches of the trie stay, `bits` what they take, `reads` how many files a question still reads."""

    trie: Trie
    parted: NDArray[np.bool_]
    bits: float
    reads: float
    prices: Prices


@dataclass(frozen=True, slots=True)
class _Branches:
    """A trie and what its branches cost. A side that is no branch is place -1, the last of arrays with one more."""

    trie: Trie
    reads: NDArray[np.float64]  # if not parted
    ends: NDArray[np.float64]  # of the sides that are no branches
    kind: NDArray[np.int64]
    lower_kind: NDArray[np.int64]
    upper_kind: NDArray[np.int64]
    both: NDArray[np.int64]
    one: NDArray[np.int64]
    drop: NDArray[np.int64]  # levels between the half of the branch above and this branch
    bounds: list[tuple[int, int]]  # of its levels

    @classmethod
    def of(cls, trie: Trie, total: NDArray[np.float64]) -> "_Branches":
        """`total` is the share of questions before each block."""
        start, middle, end = total[trie.first], total[trie.middle], total[trie.last]
        lower_ends, upper_ends = trie.left < 0, trie.right < 0
        drop = np.zeros(len(trie.level), np.int64)
        for side in (trie.left, trie.right):
            inner = side[side >= 0]
            drop[inner] = trie.level[side >= 0] - 1 - trie.level[inner]
        both = trie.left_files + trie.right_files - trie.files
        cuts = [0, *(np.flatnonzero(np.diff(trie.level)) + 1).tolist(), len(trie.level)]
        return cls(
            trie,
            (end - start) * trie.files,
            (middle - start) * trie.left_files * lower_ends + (end - middle) * trie.right_files * upper_ends,
            _kind(trie.files),
            np.where(lower_ends, _kind(trie.left_files), 0),
            np.where(upper_ends, _kind(trie.right_files), 0),
            both,
            trie.files - both,
            drop,
            list(itertools.pairwise(cuts)),
        )

    def solve(self, price: float, prices: Prices) -> Tree:
        """The best tree at a price for the bit."""
        trie, kind = self.trie, self.kind
        whole = self.reads + price * prices.whole[kind]
        bits = prices.parted[kind] + self.both * prices.both[kind] + self.one * prices.one[kind]
        bits += prices.whole[self.lower_kind] + prices.whole[self.upper_kind] + self.drop * prices.empty[kind]
        parting = self.ends + price * bits
        worth = np.zeros(len(kind), np.bool_)
        best = np.zeros(len(kind) + 1)
        for a, b in self.bounds:
            parting[a:b] += best[trie.left[a:b]] + best[trie.right[a:b]]
            np.less(parting[a:b], whole[a:b], out=worth[a:b])
            np.minimum(parting[a:b], whole[a:b], out=best[a:b])
        return self.measure(worth)

    def measure(self, worth: NDArray[np.bool_]) -> Tree:
        """The tree of those branches among `worth` that can be reached from the root."""
        trie = self.trie
        reached = np.zeros(len(worth) + 1, np.bool_)
        reached[len(worth) - 1] = True
        for a, b in reversed(self.bounds):
            live = np.flatnonzero(reached[a:b] & worth[a:b]) + a
            reached[trie.left[live]] = True
            reached[trie.right[live]] = True
        reached = reached[:-1]
        parted, ended = reached & worth, reached & ~worth
        inner = np.flatnonzero(parted)
        kind = self.kind[inner]
        whole = _counted(self.kind[ended]) + _counted(self.lower_kind[inner]) + _counted(self.upper_kind[inner])
        whole[:2] = 0.0
        split, empty = _counted(kind), _counted(kind, self.drop[inner])
        both, one = _counted(kind, self.both[inner]), _counted(kind, self.one[inner])
        prices = _learnt(whole, split, empty, both, one)
        bits = whole @ prices.whole + split @ prices.parted + empty @ prices.empty
        bits += both @ prices.both + one @ prices.one
        reads = self.reads[ended].sum() + self.ends[inner].sum()
        return Tree(trie, parted, float(bits), float(reads), prices)

    def blend(self, small: Tree, large: Tree, bits: float) -> Tree:
        """Where all blocks are alike, one price parts them all or none: a part of the key space gets the larger tree."""
        low, high = 0, int(self.trie.last[-1])
        step = max(1, high >> 10)
        while high - low > step:
            middle = (low + high) // 2
            tree = self.measure(small.parted | (large.parted & (self.trie.first < middle)))
            if tree.bits > bits:
                high = middle
            else:
                small, low = tree, middle
        return small


class Pruner:
    """Finds trees of a given size. It remembers where it found the last one, as sizes asked for in turn are about the same."""

    def __init__(self, trie: Trie, mass: NDArray[np.float64]) -> None:
        self._total = np.append(0.0, np.cumsum(mass / mass.sum()))
        self._count = len(trie.level)
        self._branches = _Branches.of(trie, self._total)
        self._price, self._stride = 1.0 / len(mass), 8.0
        self._prices = _first_prices()

    def complete(self, tree: Tree) -> bool:
        """Whether nothing was left out."""
        return int(tree.parted.sum()) == self._count

    def fit(self, bits: float) -> Tree:
        """The tree that saves the most reads with so many bits, or about that."""
        small, large = self._branches.measure(np.zeros(len(self._branches.kind), np.bool_)), None
        low, high, price = 0.0, math.inf, self._price
        for step in range(_STEPS):
            tree = self._branches.solve(price, self._prices)
            self._prices = tree.prices
            if tree.bits > bits:
                large, low = tree, price
                if large.bits > _SLACK * bits and large.parted.mean() < _FEW:
                    large, small = self._forget(large, small)
            else:
                small, high = tree, price
                if small.bits >= _CLOSE * bits or self.complete(small):
                    break
            if high == math.inf:
                price = low * self._stride
            elif large is None:
                price = high / self._stride
            elif high < 1.005 * low:
                break
            elif step % 3:
                price = _between(low, high, large.bits / bits, max(small.bits, 1.0) / bits)
            else:
                price = math.sqrt(low * high)
        self._price, self._stride = price, 1.3
        if large is None or small.bits >= _CLOSE * bits:
            return small
        return self._branches.blend(small, large, bits)

    def _forget(self, large: Tree, small: Tree) -> tuple[Tree, Tree]:
        """From now on only what is in a large tree is looked at: at a higher price, no other branch is worth its bits."""
        kept = large.parted
        self._branches = _Branches.of(large.trie.only(kept), self._total)
        return self._branches.measure(kept[kept]), self._branches.measure(small.parted[kept])


def _between(low: float, high: float, over: float, under: float) -> float:
    """Where the size is right, if its logarithm falls evenly with that of the price; well within both."""
    part = math.log(over) / (math.log(over) - math.log(under))
    return low * math.pow(high / low, min(max(part, 0.1), 0.9))


def _learnt(
    whole: NDArray[np.float64],
    split: NDArray[np.float64],
    empty: NDArray[np.float64],
    both: NDArray[np.float64],
    one: NDArray[np.float64],
) -> Prices:
    """From how often each choice was made: the logarithm of its share. A half is told from the other by one bit more."""
    blocks = np.log2(whole + split + empty + 1.5)
    files = np.log2(both + one + 1.0)
    prices = Prices(
        blocks - np.log2(whole + 0.5),
        blocks - np.log2(split + 0.5),
        blocks - np.log2(empty + 0.5) + 1.0,
        files - np.log2(both + 0.5),
        files - np.log2(one + 0.5) + 1.0,
    )
    prices.whole[:2] = 0.0
    return prices


def _first_prices() -> Prices:
    even = np.ones(_CONTEXTS)
    return Prices(even * (np.arange(_CONTEXTS) > 1), even, even * 3.0, even * 0.7, even * 2.5)


def _kind(files: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(files < 8, files, 5 + bit_length(files.astype(np.uint64)))


def _counted(kinds: NDArray[np.int64], times: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    return np.bincount(kinds, times, minlength=_CONTEXTS).astype(np.float64)
