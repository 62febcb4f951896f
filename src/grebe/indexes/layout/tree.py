"""A tree of cuts: where a row lies in the layout, by comparing one column after the other with constants.

Nodes are numbered from the root down, first what is less than a cut, then the rest: what follows a node's number is its first
child. Leaves are numbered in the same order, so that leaves of numbers near each other are near each other in the tree, and a
stretch of leaves is a few boxes.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import CorruptIndex
from grebe.indexes.layout.axes import Axis, Codes, axis_of

LEAF = -1
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tree:
    names: tuple[str, ...]
    """Of the columns that it cuts."""
    axes: tuple[Axis, ...]
    """Of each of these columns."""
    column: Codes
    """Of each node: the place of the column that it cuts; -1: it is a leaf."""
    cut: Codes
    """Rows whose number on the axis is less go to the first child."""

    @cached_property
    def leaves(self) -> int:
        return int((self.column == LEAF).sum())

    @cached_property
    def ends(self) -> Numbers:
        """Of each node: the number of the first node that is not below it."""
        found = np.arange(1, len(self.column) + 1)
        for node in range(len(self.column) - 1, -1, -1):
            if self.column[node] != LEAF:
                found[node] = found[found[node + 1]]
        return found

    @cached_property
    def second(self) -> Numbers:
        """Of each node that cuts: its other child."""
        inner = np.flatnonzero(self.column != LEAF)
        found = np.zeros(len(self.column), np.int64)
        found[inner] = self.ends[inner + 1]
        return found

    @cached_property
    def first_leaf(self) -> Numbers:
        """Of each node: the number of the first leaf below it (of a leaf its own); and beyond the last node, how many there are."""
        return np.concatenate([[0], np.cumsum(self.column == LEAF)])

    def codes(self, table: pa.Table | pa.RecordBatch) -> npt.NDArray[np.int32]:
        """Of rows that have the tree's columns: the numbers of their values, a line for each column."""
        found = [axis.codes(table.column(name)) for name, axis in zip(self.names, self.axes, strict=True)]
        return np.stack(found) if found else np.zeros((0, table.num_rows), np.int32)

    def leaf_of(self, codes: npt.NDArray[np.int32]) -> Numbers:
        """The number of each row's leaf."""
        node, rows = np.zeros(codes.shape[1], np.int64), np.arange(codes.shape[1])
        if self.column[0] == LEAF:
            return node
        while len(rows):
            here = node[rows]
            less = codes[self.column[here], rows] < self.cut[here]
            node[rows] = here = np.where(less, here + 1, self.second[here])
            rows = rows[self.column[here] != LEAF]
        return self.first_leaf[node]

    def text(self) -> str:
        """For the log; `tree_of` makes the very same of it."""
        plain = {
            "names": self.names,
            "axes": [axis.plain() for axis in self.axes],
            "column": self.column.tolist(),
            "cut": self.cut.tolist(),
        }
        return base64.b85encode(zlib.compress(json.dumps(plain, separators=(",", ":")).encode(), 9)).decode()


def route(tree: Tree, table: pa.Table | pa.RecordBatch) -> Numbers:
    """The number of each row's leaf."""
    return tree.leaf_of(tree.codes(table))


def tree_of(text: str, index: str) -> Tree:
    try:
        plain: dict[str, Any] = json.loads(zlib.decompress(base64.b85decode(text)))
        names, axes = tuple(plain["names"]), tuple(map(axis_of, plain["axes"]))
        return Tree(names, axes, np.array(plain["column"], np.int32), np.array(plain["cut"], np.int32))
    except (ValueError, KeyError, TypeError, zlib.error) as damaged:
        raise CorruptIndex(
            f"the tree that index {index} is laid out by cannot be read; refresh it with mode='full'", detail="TREE"
        ) from damaged


def trimmed(names: Sequence[str], axes: Sequence[Axis], column: Codes, cut: Codes) -> Tree:
    """With just the columns and values that it cuts by."""
    used = [place for place in range(len(names)) if (column == place).any()]
    kept, renamed, moved = [], np.full(len(column), LEAF, np.int32), cut.copy()
    for number, place in enumerate(used):
        own = column == place
        axis, moved[own] = axes[place].only(cut[own])
        renamed[own] = number
        kept.append(axis)
    return Tree(tuple(names[place] for place in used), tuple(kept), renamed, moved)
