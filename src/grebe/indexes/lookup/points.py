"""Single keys that are looked for: in their order, each with its hash, so that every chunk is asked for just its own."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.formats.parquet_pages import hash_one, hashes_of
from grebe.formats.parquet_pages.schema import BYTE_ARRAY, Leaf
from grebe.predicate.arrow_types import physical_type, to_physical
from grebe.predicate.tree import And, Column, Compare, In, Literal, Path, Predicate
from grebe.predicate.types import Type

Hashes = npt.NDArray[np.uint64]
_STORED_AS = {"string": pa.string(), "binary": pa.binary(), "tinyint": pa.int32(), "smallint": pa.int32()}


@dataclass(frozen=True, slots=True)
class Points:
    """Values that the first key must have one of, in their physical form, ascending, each once."""

    column: Path
    type: Type
    values: list[Any]
    exact: bool
    """The predicate says nothing else."""

    def hashes(self, leaf: Leaf) -> Hashes | None:
        return hashes_in(leaf, self.values, self.type)

    def rows_in(self, keys: pa.Array, start: int, stop: int) -> "pa.Array | slice":
        """Which of these sorted keys are one of the values from `start` to `stop`."""
        # Texts compare alike in either form, and casting all of a chunk takes longer than looking for one.
        plain = keys if pa.types.is_string(keys.type) else to_physical(keys, self.type)
        if stop - start == 1 and pa.types.is_integer(plain.type) and not plain.null_count:
            numbers, value = plain.to_numpy(), self.values[start]
            return slice(int(np.searchsorted(numbers, value)), int(np.searchsorted(numbers, value, "right")))
        wanted = pa.array(self.values[start:stop], plain.type)
        return pc.fill_null(pc.equal(plain, wanted[0]), False) if len(wanted) == 1 else pc.is_in(plain, wanted)


def points_of(predicate: Predicate, column: Path) -> Points | None:
    """None if the (normalised) predicate is not about single values of this column, or numbers compare in their own way."""
    match predicate:
        case Compare("=" | "<=>", Column(path, kind), Literal() as one) if path == column:
            return _points(path, kind, (one,))
        case In(Column(path, kind), items) if path == column:
            return _points(path, kind, items)
        case And(below):
            parts = [part for one in below if (part := points_of(one, column)) is not None]
            if parts:
                least = min(parts, key=lambda part: len(part.values))
                return Points(least.column, least.type, least.values, exact=False)
    return None


def _points(path: Path, kind: Type | None, items: tuple[Any, ...]) -> Points | None:
    if kind is None or kind.is_floating or not all(isinstance(one, Literal) and one.type == kind for one in items):
        return None
    if len(items) == 1:
        return Points(path, kind, [items[0].value], exact=True) if items[0].value is not None else None
    # Not to be true for NULL is what an IN does with a NULL among its values.
    return Points(path, kind, sorted({one.value for one in items if one.value is not None}), exact=True)


def hashes_in(leaf: Leaf, values: list[Any], kind: Type) -> Hashes | None:
    """As Parquet's filters hash them; None where that cannot be told."""
    if len(values) == 1 and kind.name == "string" and leaf.physical == BYTE_ARRAY:
        return np.array([hash_one(values[0].encode())], np.uint64)
    try:
        stored = pa.array(values, physical_type(kind)).cast(_STORED_AS.get(kind.name, physical_type(kind)))
        return hashes_of(leaf, stored)
    except (Unsupported, pa.ArrowInvalid):
        return None
