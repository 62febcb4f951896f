"""Snappy, which Spark writes by default and which is most of the cost of fetching a row.

The decoder of `cramjam` takes half the time that Arrow's takes, and gives the beginning of a page for less than the whole: told
that the page is shorter than it is, it fills that much and then stops with an error that says how much it has not filled.
"""

import re

import cramjam
import numpy as np

from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.thrift import varint, write_varint

_UNFILLED = re.compile(r"remaining dst: (\d+)\)")
# The decoder stops before a copy that would go beyond the end; copies are at most this long.
_LONGEST_COPY = 64
# Compressed bytes for as many uncompressed ones: at most a sixth more, and some.
_MARGIN = 128
_LEAST_SAVED = 4096
# What is hardly compressed is copied, not decoded: that is fast, and cannot be stopped.
_HARDLY = 32


def inflate(data: memoryview, size: int, needed: int | None) -> memoryview:
    """The `size` bytes that `data` holds, or at least the first `needed` of them."""
    stated, start = varint(data, 0)
    if stated != size:
        raise Damaged("a page has another size than its header says")
    if needed is not None and needed + _LEAST_SAVED < size and len(data) < size - size // _HARDLY:
        beginning = _beginning(data[start:], needed)
        if beginning is not None:
            return beginning
    out = np.empty(size, np.uint8)
    try:
        cramjam.snappy.decompress_raw_into(data, out.data)
    except cramjam.DecompressionError as error:
        raise Damaged("a page cannot be decompressed") from error
    return memoryview(out.data)


def _beginning(data: memoryview, needed: int) -> memoryview | None:
    """None where the decoder stops too early, as it does before a long literal."""
    size = needed + _LONGEST_COPY
    out = np.empty(size, np.uint8)
    shortened = b"".join((write_varint(size), data[: size + size // 6 + _MARGIN]))
    try:
        cramjam.snappy.decompress_raw_into(shortened, out.data)
    except cramjam.DecompressionError as error:
        unfilled = _UNFILLED.search(str(error))
        filled = size - int(unfilled[1]) if unfilled else 0
        return memoryview(out.data)[:filled] if filled >= needed else None
    return memoryview(out.data)
