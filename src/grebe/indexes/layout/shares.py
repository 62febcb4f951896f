"""What a layout is worth, told from a sample: the share of rows that each query reads."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.indexes.layout.axes import axis_among
from grebe.indexes.layout.tree import Tree, route
from grebe.indexes.layout.workload import Numbered, Query, numbered


def expected_share(tree: Tree | None, sample: pa.Table, queries: Sequence[Query]) -> npt.NDArray[np.float64]:
    """Of each query the share of the rows that lie in leaves which it meets, by the bounds of the leaves; without a tree: all."""
    if tree is None or not sample.num_rows:
        return np.ones(len(queries))
    return np.asarray(shares_by_block(numbered(sample, queries), route(tree, sample), tree.leaves).sum(axis=1))


def shares_by_block(of: Numbered, block: npt.NDArray[np.int64], blocks: int) -> npt.NDArray[np.float64]:
    """A line for each query, a place for each block that rows lie in: the share of the rows that it reads there."""
    order = np.argsort(block, kind="stable")
    counts = np.bincount(block, minlength=blocks)
    held = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts)])[held]
    least = np.minimum.reduceat(of.codes[:, order], starts, axis=1)
    greatest = np.maximum.reduceat(of.codes[:, order], starts, axis=1)
    found = np.zeros((len(of.asked), blocks))
    found[:, held] = of.asked.meets(least, greatest) * (counts[held] / of.rows)
    return found


def sides_of(tree: Tree, sample: pa.Table) -> list[float]:
    """Of each column of the sample: the share of the rows between the least and the greatest value of a leaf, on the average."""
    if not sample.num_rows:
        return [1.0] * sample.num_columns
    return [_side(route(tree, sample), axis_among(column, ()).codes(column)) for column in sample.columns]


def _side(leaf: npt.NDArray[np.int64], codes: npt.NDArray[np.int32]) -> float:
    order = np.lexsort((codes, leaf))
    ranks = np.cumsum(np.bincount(codes)) / len(codes)
    ends = np.flatnonzero(np.diff(leaf[order], append=-1))
    starts = np.concatenate([[0], ends[:-1] + 1])
    held = ranks[codes[order[ends]]] - np.where(codes[order[starts]] > 0, ranks[codes[order[starts]] - 1], 0.0)
    return float((held * (ends - starts + 1)).sum() / len(codes))
