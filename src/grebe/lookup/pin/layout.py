"""The order of pinned rows, and the columns whose keys are found by halving.

Where ranges are asked for, of up to three columns, rows are cut into slabs along the first column, each slab along the second, and
so on, so that a block is a small box of all of them; single values are then found by an order of their own. Where next to nobody
asks for ranges, rows lie in the order of the column whose values are asked for most.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.lookup.pin.asked import Wishes
from grebe.predicate.tree import Path

Numbers = npt.NDArray[np.int64]
_MOST_SIDES = 3
_MOST_KEYS = 4
_RARELY = 4
"""Ranges that are asked for less often than single values by this factor do not decide the order of rows."""


@dataclass(frozen=True, slots=True)
class Layout:
    sorted_by: tuple[Path, ...] = ()
    """The order of rows: by the first, and where that is equal by the next."""
    boxes_of: tuple[Path, ...] = ()
    """Or along all of these at once."""
    keys: tuple[Path, ...] = ()
    """Columns whose values are looked up."""


def chosen(wishes: Wishes, orderable: Callable[[Path], bool]) -> Layout:
    """What serves the queries that were asked most."""
    points = [(path, count) for path, count in wishes.points if orderable(path)]
    ranges = [(path, count) for path, count in wishes.ranges if orderable(path)]
    keys = tuple(path for path, _ in points[:_MOST_KEYS])
    if points and (not ranges or points[0][1] > _RARELY * ranges[0][1]):
        others = (path for path, _ in (*points[1:], *ranges))
        return Layout(tuple(dict.fromkeys((points[0][0], *others)))[:_MOST_SIDES], (), keys)
    often = ranges[0][1] if ranges else 0
    return Layout((), tuple(path for path, count in ranges if 2 * count >= often)[:_MOST_SIDES], keys)


def order_of(columns: Sequence[pa.ChunkedArray], boxes: bool, block_rows: int) -> Numbers:
    """The numbers of rows in the order of these columns, or in boxes along them."""
    rows = len(columns[0])
    ranks = [_ranks(column) for column in columns]
    if not boxes:
        return np.lexsort(ranks[::-1])
    slab = np.zeros(rows, np.int64)
    blocks = max(1.0, rows / block_rows)
    for side, rank in enumerate(ranks[:-1], 1):
        slab_rows = max(block_rows, int(np.ceil(rows / blocks ** (side / len(ranks)))))
        order = np.lexsort((rank, slab))
        slab = np.empty(rows, np.int64)
        slab[order] = np.arange(rows) // slab_rows
    return np.lexsort((ranks[-1], slab))


def _ranks(column: pa.ChunkedArray) -> Numbers:
    """Equal values have equal ranks, so that what is equal in one column is told by the next; NULLs come last."""
    ranks: Numbers = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()
    return ranks.astype(np.int64)
