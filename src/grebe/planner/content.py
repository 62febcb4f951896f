"""The content files of a copy as arrays: what pruning and the cost model ask of it, derived once for each content."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.indexes.kind import Copy, bound_names
from grebe.predicate.bounds import Bounds, Numbers, bounds_of
from grebe.predicate.tree import Path

_UNKNOWN = -1
_KEPT = 128
"""Copies whose arrays are kept; they keep the copies themselves alive."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """What is known of one column in every file."""

    bounds: Bounds
    nulls: Numbers
    """-1 where unknown."""
    least: Any
    """Of all files, or None where it is not known of each."""
    greatest: Any


@dataclass(frozen=True, slots=True)
class Content:
    sizes: Numbers
    rows: Numbers
    buckets: Numbers
    runs: Numbers
    """The run that each file belongs to."""
    columns: Mapping[Path, Bounded]
    """Those that something is known of, and whose types have an order that can be trusted."""
    bytes: int
    row_count: int
    everything: Numbers
    """The positions of all files."""

    @property
    def files(self) -> int:
        return len(self.sizes)


def content_of(copy: Copy) -> Content:
    return _derived(_Keyed(copy))


class _Keyed:
    """A copy as a key of the cache: by its name, and by identity to be sure."""

    __slots__ = ("copy",)

    def __init__(self, copy: Copy) -> None:
        self.copy = copy

    def __hash__(self) -> int:
        return hash(self.copy.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.copy.key == other.copy.key and self.copy.content is other.copy.content


@lru_cache(maxsize=_KEPT)
def _derived(keyed: _Keyed) -> Content:
    copy = keyed.copy
    table = copy.content
    sizes, rows = _numbers(table["size"], 0), _numbers(table["rows"], 0)
    runs = np.zeros(len(sizes), np.int64)
    for number, run in enumerate(copy.runs):
        runs[list(run.files)] = number
    found = (_bounded(copy, place, rows) for place in range(len(copy.bounded)))
    return Content(
        sizes=sizes,
        rows=rows,
        buckets=_numbers(table["bucket"], _UNKNOWN),
        runs=runs,
        columns={one.bounds.column: one for one in found if one is not None},
        bytes=int(sizes.sum()),
        row_count=int(rows.sum()),
        everything=np.arange(len(sizes)),
    )


def _numbers(column: pa.ChunkedArray, missing: int) -> Numbers:
    filled = pc.fill_null(column.cast(pa.int64()), missing)
    return np.asarray(filled.to_numpy(), np.int64)


def _bounded(copy: Copy, place: int, rows: Numbers) -> Bounded | None:
    path = path_of(copy, copy.bounded[place])
    least, greatest, count = bound_names(place)
    low, high = (_one_array(copy.content[name]) for name in (least, greatest))
    nulls = _numbers(copy.content[count], _UNKNOWN)
    bounds = bounds_of(path, low, high, rows, nulls, nan_counts=True) if path is not None else None
    if bounds is None:
        return None
    return Bounded(bounds, nulls, _extreme("min", bounds), _extreme("max", bounds))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _extreme(which: str, bounds: Bounds) -> Any:
    if bounds.type.name in ("string", "binary", "boolean"):
        return None
    known = (bounds.low if which == "min" else bounds.high).filter(pa.array(~bounds.all_null))
    return None if known.null_count or not len(known) else pc.min_max(known)[which].as_py()


def first_sorted(copy: Copy) -> Path | None:
    """The column of the table that the copy is sorted by first."""
    return path_of(copy, copy.layout.sort_by[0]) if copy.layout.sort_by else None


def leading(copy: Copy) -> tuple[Path, ...]:
    """The columns of the table that say by themselves where a row lies: the first one sorted by, or all those of a curve."""
    names = copy.layout.along or copy.layout.sort_by[:1]
    return tuple(path for name in names if (path := path_of(copy, name)) is not None)


def path_of(copy: Copy, name: str) -> Path | None:
    """The column of the table behind a column of the content."""
    return next((path for path, own in copy.columns.items() if own == name), None)
