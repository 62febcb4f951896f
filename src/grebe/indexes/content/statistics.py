"""What the footer of a content file says of each of its row groups: the least and the greatest value of a column, and its NULLs."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from grebe.formats.parquet_pages import Footer
from grebe.formats.parquet_pages.schema import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED, FLOAT, INT32, INT64, Leaf

_UNKNOWN = -1
_PLAIN: dict[int, Callable[[bytes], Any]] = {
    BOOLEAN: lambda raw: bool(raw[0]),
    INT32: lambda raw: int.from_bytes(raw, "little", signed=True),
    INT64: lambda raw: int.from_bytes(raw, "little", signed=True),
    FLOAT: lambda raw: struct.unpack("<f", raw)[0],
    DOUBLE: lambda raw: struct.unpack("<d", raw)[0],
    BYTE_ARRAY: lambda raw: raw,
    FIXED: lambda raw: int.from_bytes(raw, "big", signed=True),
}


@dataclass(frozen=True, slots=True)
class GroupBounds:
    """One value a row group; as `bounds.column_of` takes them, None where unknown. `nulls` is -1 where unknown."""

    low: list[Any]
    high: list[Any]
    nulls: npt.NDArray[np.int64]


def bounds_of_groups(footer: Footer, leaf: int, kind: str) -> GroupBounds:
    """Of a column of this type (Spark's, as text)."""
    known = [group[1][leaf][3].get(12, {}) for group in footer.groups]
    stored = footer.schema.leaves[leaf]
    return GroupBounds(
        [_value(stored, one.get(6), kind) for one in known],
        [_value(stored, one.get(5), kind) for one in known],
        np.array([one.get(3, _UNKNOWN) for one in known], np.int64),
    )


def rows_of_groups(footer: Footer) -> npt.NDArray[np.int64]:
    return np.array([group[3] for group in footer.groups], np.int64)


def _value(leaf: Leaf, raw: bytes | None, kind: str) -> Any:
    if raw is None or leaf.physical not in _PLAIN:
        return None
    value = _PLAIN[leaf.physical](raw)
    if kind == "string":
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    if kind.startswith("decimal(") and isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    return value
