"""Decompressing a page, or only its beginning where that is cheaper: the bytes before the wanted value are all that
is needed of most pages."""

import zlib

import pyarrow as pa

from grebe.formats.parquet_pages import snappy
from grebe.formats.parquet_pages.chunk import BROTLI, GZIP, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD
from grebe.formats.parquet_pages.failures import Damaged, NoPages

_NAMES = {GZIP: "gzip", BROTLI: "brotli", ZSTD: "zstd", LZ4_RAW: "lz4_raw"}
# Below, setting up a stream costs more than the rest of the page.
_LEAST_STREAMED = 256 * 1024
_STREAMED = (ZSTD, BROTLI)
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


def inflate(codec: int, data: memoryview, size: int, needed: int | None = None) -> memoryview:
    """The `size` bytes that `data` holds, or at least the first `needed` of them."""
    if codec == UNCOMPRESSED:
        if len(data) != size:
            raise Damaged(f"a page of {size} bytes has {len(data)}")
        return data
    if not size:
        return memoryview(b"")
    if codec == SNAPPY:
        return snappy.inflate(data, size, needed)
    if codec not in _NAMES:
        raise NoPages(f"it is compressed with codec {codec}")
    if needed is not None and needed < size:
        beginning = _beginning(codec, data, size, needed)
        if beginning is not None:
            return beginning
    return memoryview(pa.decompress(data, size, _NAMES[codec])).cast("B")


def _beginning(codec: int, data: memoryview, size: int, needed: int) -> memoryview | None:
    """At least `needed` bytes; None where all of them are had as fast."""
    if codec == GZIP:
        part = zlib.decompressobj(_GZIP_OR_ZLIB).decompress(data, needed)
        return memoryview(part) if len(part) == needed else None
    if codec in _STREAMED and size >= _LEAST_STREAMED and needed <= size // 2:
        stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), _NAMES[codec])
        part = stream.read(needed)
        return memoryview(part) if len(part) == needed else None
    return None
