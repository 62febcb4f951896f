"""A layout as a picture: the parts that rows lie in, over two columns, with what queries ask for as boxes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import InvalidIndex
from grebe.indexes.layout.tree import Tree, route
from grebe.indexes.layout.workload import Numbered, Query, numbered
from grebe.shown import plots

_MOST_BOXES = 200


def drawn(
    tree: Tree | None,
    sample: pa.Table,
    queries: Sequence[Query],
    columns: tuple[str, str] | None,
    title: str,
) -> str:
    """SVG. Both columns go by the share of rows below a value, so that each part is as large as the rows in it where the columns
    are independent. Without a tree: one part. `columns`: else those that queries constrain most."""
    known = numbered(sample, queries)
    across, upwards = _chosen(known, columns)
    leaf = np.zeros(sample.num_rows, np.int64) if tree is None else route(tree, sample)
    parts = [np.flatnonzero(leaf == number) for number in np.unique(leaf)]
    axes = [np.sort(known.codes[place]) for place in (across, upwards)]
    both = (across, upwards)
    cells = [
        _rect(axes, [_span(known.codes[place][rows]) for place in both], f"{len(rows) / len(leaf):.2%} of the rows")
        for rows in parts
    ]
    shown = np.linspace(0, len(queries) - 1, min(len(queries), _MOST_BOXES)).astype(np.int64)
    low, high = known.asked.low, known.asked.high
    asked = [_rect(axes, [(int(low[one, place]), int(high[one, place])) for place in both]) for one in shown]
    return plots.regions(cells, asked, known.names[across], known.names[upwards], title)


def _chosen(known: Numbered, columns: tuple[str, str] | None) -> tuple[int, int]:
    names = list(known.names)
    if columns is not None:
        missing = [name for name in columns if name not in names]
        if missing or len(columns) != 2:
            raise InvalidIndex(
                f"a picture takes two of the columns {', '.join(names)}, not {columns!r}", detail="COLUMNS"
            )
        return names.index(columns[0]), names.index(columns[1])
    order = np.argsort(-(known.asked.weight @ known.asked.asks), kind="stable")
    return int(order[0]), int(order[1]) if len(order) > 1 else int(order[0])


def _span(codes: npt.NDArray[np.int32]) -> tuple[int, int]:
    return int(codes.min()), int(codes.max())


def _rect(axes: Sequence[npt.NDArray[np.int32]], spans: Sequence[tuple[int, int]], title: str = "") -> plots.Rect:
    (left, right), (bottom, top) = (
        (np.searchsorted(axis, low, "left") / len(axis), np.searchsorted(axis, high, "right") / len(axis))
        for axis, (low, high) in zip(axes, spans, strict=True)
    )
    return plots.Rect(float(left), float(bottom), float(max(left, right)), float(max(bottom, top)), title)
