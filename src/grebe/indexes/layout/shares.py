"""What a layout is worth, told from a sample: the share of rows that each query reads, and where another tree would help most."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.indexes.layout.axes import axis_among
from grebe.indexes.layout.boxes import constants_of
from grebe.indexes.layout.tree import Tree, route
from grebe.indexes.layout.workload import Query, workload_of


def expected_share(tree: Tree | None, sample: pa.Table, queries: Sequence[Query]) -> npt.NDArray[np.float64]:
    """Of each query the share of the rows that lie in leaves which it meets, by the bounds of the leaves; without a tree: all."""
    if tree is None or not sample.num_rows:
        return np.ones(len(queries))
    return np.asarray(shares_by_leaf(route(tree, sample), tree.leaves, sample, queries).sum(axis=1))


def shares_by_leaf(
    leaf: npt.NDArray[np.int64], leaves: int, sample: pa.Table, queries: Sequence[Query]
) -> npt.NDArray[np.float64]:
    """A line for each query, a place for each leaf: the share of the rows that it reads there."""
    names = sample.column_names
    constants: dict[str, list[object]] = {name: [] for name in names}
    for query in queries:
        for name, value in constants_of(query.predicate):
            if name in constants:
                constants[name].append(value)
    axes = [axis_among(sample.column(name), constants[name]) for name in names]
    codes = np.stack([axis.codes(sample.column(name)) for name, axis in zip(names, axes, strict=True)])
    order = np.argsort(leaf, kind="stable")
    counts = np.bincount(leaf, minlength=leaves)
    held = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts)])[held]
    least = np.minimum.reduceat(codes[:, order], starts, axis=1)
    greatest = np.maximum.reduceat(codes[:, order], starts, axis=1)
    met = workload_of(queries, names, axes).meets(least, greatest)
    found = np.zeros((len(queries), leaves))
    found[:, held] = met * (counts[held] / len(leaf))
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
