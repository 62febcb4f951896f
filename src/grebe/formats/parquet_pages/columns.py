"""Arrow arrays of columns that are not nested, made of their values directly: for a few rows that is several times faster
than asking a reader of Parquet for them.

Only types whose values Arrow and Parquet store alike, or nearly so, are made here.
"""

import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.formats.parquet_pages.failures import NoPages
from grebe.formats.parquet_pages.picked import Picked
from grebe.formats.parquet_pages.schema import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED,
    FLOAT,
    INT32,
    INT64,
    INT96,
    Leaf,
)
from grebe.formats.spark_types import TIMESTAMP

Builder = Callable[[Picked], pa.Array]
Convert = Callable[[bytes], bytes]

_EPOCH = np.uint64(2_440_588)
"""1970-01-01 as a Julian day."""
_DAY = np.uint64(86_400_000_000)
_DECIMAL_BYTES = 16
_ALIKE = {
    INT32: (pa.types.is_int32, pa.types.is_uint32, pa.types.is_date32, pa.types.is_time32),
    INT64: (pa.types.is_int64, pa.types.is_uint64, pa.types.is_timestamp, pa.types.is_time64),
    FLOAT: (pa.types.is_float32,),
    DOUBLE: (pa.types.is_float64,),
    FIXED: (pa.types.is_fixed_size_binary,),
}


def builder_of(leaf: Leaf, kind: pa.DataType) -> Builder | None:
    """For a column that Parquet by itself, without Arrow's stored schema, means to be of this type; None if it is not
    made here."""
    if leaf.max_repetition or len(leaf.path) > 1:
        return None
    if leaf.physical == BOOLEAN and pa.types.is_boolean(kind):
        return _booleans
    if leaf.physical == BYTE_ARRAY:
        texts = pa.types.is_string(kind) or pa.types.is_binary(kind)
        return (lambda picked: _texts(picked, kind)) if texts else None
    found = _conversion(leaf, kind)
    if found is None:
        return None
    convert, width = found
    return lambda picked: _fixed(picked, kind, convert, width)


def _conversion(leaf: Leaf, kind: pa.DataType) -> tuple[Convert | None, int] | None:
    """From Parquet's values of one width to Arrow's, and the width of those."""
    if any(alike(kind) for alike in _ALIKE.get(leaf.physical, ())) and not pa.types.is_decimal(kind):
        return None, leaf.width
    if pa.types.is_decimal128(kind):
        if leaf.physical == FIXED and leaf.width <= _DECIMAL_BYTES:
            return (lambda values: _decimals_of_bytes(values, leaf.width)), _DECIMAL_BYTES
        if leaf.physical in (INT32, INT64):
            return (lambda values: _decimals_of_numbers(values, f"<i{leaf.width}")), _DECIMAL_BYTES
        return None
    if leaf.physical == INT96 and kind.equals(TIMESTAMP):
        return _instants, 8
    if leaf.physical == INT32 and pa.types.is_integer(kind):
        narrow = np.dtype(kind.to_pandas_dtype())
        return (lambda values: np.frombuffer(values, "<i4").astype(narrow).tobytes()), narrow.itemsize
    return None


def _fixed(picked: Picked, kind: pa.DataType, convert: Convert | None, width: int) -> pa.Array:
    assert isinstance(picked.values, bytes)
    values = picked.values if convert is None else convert(picked.values)
    if picked.definition is None:
        return pa.Array.from_buffers(kind, picked.entries, [None, pa.py_buffer(values)])
    present = picked.definition == 1
    spread = np.zeros((picked.entries, width), np.uint8)
    spread[present] = np.frombuffer(values, np.uint8).reshape(-1, width)
    return pa.Array.from_buffers(kind, picked.entries, [_validity(present), pa.py_buffer(spread)])


def _booleans(picked: Picked) -> pa.Array:
    assert isinstance(picked.values, bytes)
    values = np.frombuffer(picked.values, np.uint8)
    if picked.definition is None:
        return pa.Array.from_buffers(pa.bool_(), picked.entries, [None, _bits(values)])
    present = picked.definition == 1
    spread = np.zeros(picked.entries, np.uint8)
    spread[present] = values
    return pa.Array.from_buffers(pa.bool_(), picked.entries, [_validity(present), _bits(spread)])


def _texts(picked: Picked, kind: pa.DataType) -> pa.Array:
    texts = picked.values
    assert isinstance(texts, list)
    if picked.definition is None and len(texts) == 1:
        offsets = pa.py_buffer(struct.pack("<ii", 0, len(texts[0])))
        return pa.Array.from_buffers(kind, 1, [None, offsets, pa.py_buffer(texts[0])])
    lengths = np.zeros(picked.entries + 1, np.int64)
    validity = None
    if picked.definition is None:
        lengths[1:] = [len(text) for text in texts]
    else:
        present = picked.definition == 1
        validity = _validity(present)
        lengths[1:][present] = [len(text) for text in texts]
    ends = np.cumsum(lengths)
    if ends[-1] > np.iinfo(np.int32).max:
        raise NoPages("the rows have more than 2 GiB of text in one column")
    return pa.Array.from_buffers(
        kind, picked.entries, [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(texts))]
    )


def _validity(present: npt.NDArray[np.bool_]) -> pa.Buffer:
    return _bits(present)


def _bits(flags: npt.NDArray[np.bool_] | npt.NDArray[np.uint8]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _decimals_of_numbers(values: bytes, kind: str) -> bytes:
    numbers = np.frombuffer(values, kind).astype(np.int64)
    return np.stack((numbers, numbers >> np.int64(63)), axis=1).astype("<i8").tobytes()


def _decimals_of_bytes(values: bytes, width: int) -> bytes:
    big_endian = np.frombuffer(values, np.uint8).reshape(-1, width)
    out = np.empty((len(big_endian), _DECIMAL_BYTES), np.uint8)
    out[:, :width] = big_endian[:, ::-1]
    out[:, width:] = np.where(big_endian[:, :1] & 0x80, 0xFF, 0)
    return out.tobytes()


def _instants(values: bytes) -> bytes:
    """Nanoseconds of the day and the Julian day to microseconds; numbers beyond them wrap around as in Arrow."""
    stored = np.frombuffer(values, np.dtype([("nanoseconds", "<u8"), ("day", "<u4")]))
    days = stored["day"].astype(np.uint64) - _EPOCH
    return (days * _DAY + stored["nanoseconds"] // np.uint64(1000)).astype("<u8").tobytes()
