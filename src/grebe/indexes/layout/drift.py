"""Where another tree would help, when other queries are asked than those that a tree was learned from: by sub-trees, so that the
rows of those are laid out anew first that gain most for each row that is written."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from grebe.indexes.layout.axes import united
from grebe.indexes.layout.learn import beyond_the_log, grown
from grebe.indexes.layout.shares import shares_by_block
from grebe.indexes.layout.tree import LEAF, Tree, route, trimmed
from grebe.indexes.layout.workload import Query, numbered

_LEAST_SHARE = 0.004
"""Smaller sub-trees are not looked at: what they gain is soon less than what a commit costs."""

_STEPS = 500
"""In which shares of the rows are reckoned."""


@dataclass(frozen=True, eq=False, slots=True)
class Benefit:
    """What a sub-tree learned anew is worth."""

    node: int
    """Of the tree that is there: all below it would be laid out anew."""
    leaves: tuple[int, int]
    """Of that tree: from the first of them to the one beyond the last."""
    share: float
    """Of all rows, those that would be written."""
    gain: float
    """Rows that the queries would read less, each by its weight, as a share of all rows."""
    tree: Tree
    """In its place."""


def benefits(tree: Tree, sample: pa.Table, queries: Sequence[Query], leaf_rows: float) -> list[Benefit]:
    """Of all sub-trees that would gain anything. They overlap: `affordable` chooses."""
    if not sample.num_rows:
        return []
    leaf, known = route(tree, sample), numbered(sample, queries)
    now = shares_by_block(known, leaf, tree.leaves)
    may_come = beyond_the_log(known)
    found = []
    for node in range(len(tree.column)):
        first, beyond = int(tree.first_leaf[node]), int(tree.first_leaf[tree.ends[node]])
        rows = np.flatnonzero((leaf >= first) & (leaf < beyond))
        share = len(rows) / sample.num_rows
        read = now[:, first:beyond].sum(axis=1)
        if share < _LEAST_SHARE or not read.any():
            continue
        own = known.only(rows, np.flatnonzero(read))
        anew = grown(own, leaf_rows, may_come)
        then = shares_by_block(own, route(anew, sample.take(pa.array(rows))), anew.leaves).sum(axis=1) * share
        gain = float(own.asked.weight @ (read[read > 0] - then))
        if gain > 0:
            found.append(Benefit(node, (first, beyond), share, gain, anew))
    return found


def affordable(found: Sequence[Benefit], share: float) -> list[Benefit]:
    """Those that gain most together, of which none overlaps another and that write no more than this share of all rows."""
    steps = int(share * _STEPS + 1e-9)
    ends = sorted({0, *(end for one in found for end in one.leaves)})
    best = {0: np.zeros(steps + 1)}
    taken: dict[int, list[tuple[Benefit | None, int]]] = {}
    for before, end in pairwise(ends):
        best[end], taken[end] = best[before], [(None, before)] * (steps + 1)
        for one in (one for one in found if one.leaves[1] == end):
            cost = math.ceil(one.share * _STEPS - 1e-9)
            if cost <= steps:
                gained = np.full(steps + 1, -1.0)
                gained[cost:] = best[one.leaves[0]][: steps + 1 - cost] + one.gain
                better = gained > best[end]
                best[end] = np.where(better, gained, best[end])
                taken[end] = [(one, one.leaves[0]) if b else t for b, t in zip(better, taken[end], strict=True)]
    chosen, end = [], ends[-1]
    while end > 0:
        of, before = taken[end][steps]
        if of is not None:
            chosen.append(of)
            steps -= math.ceil(of.share * _STEPS - 1e-9)
        end = before
    return chosen[::-1]


def grafted(tree: Tree, chosen: Iterable[Benefit]) -> Tree:
    """The tree with others in the place of these sub-trees, which do not overlap."""
    at = {one.node: one.tree for one in chosen}
    trees = [tree, *at.values()]
    names = list(dict.fromkeys(name for one in trees for name in one.names))
    axes = [united([one.axes[one.names.index(name)] for one in trees if name in one.names]) for name in names]
    columns, cuts, node = [], [], 0
    while node < len(tree.column):
        source, span = (at[node], slice(None)) if node in at else (tree, slice(node, node + 1))
        column, cut = source.column[span].copy(), source.cut[span].copy()
        for place, name in enumerate(source.names):
            own = source.column[span] == place
            column[own] = names.index(name)
            cut[own] = axes[names.index(name)].same_cuts(source.axes[place], cut[own])
        columns.append(column)
        cuts.append(np.where(column == LEAF, 0, cut).astype(np.int32))
        node = int(tree.ends[node]) if node in at else node + 1
    return trimmed(names, axes, np.concatenate(columns), np.concatenate(cuts))
