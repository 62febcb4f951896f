"""Codecs of Avro that unpack no more of a block than it may hold: those of pyiceberg allocate whatever a block unpacks to.

They have the method that pyiceberg calls, and no other.
"""

import bz2
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

MOST = 64 * 1024 * 1024
"""Bytes that a block of a manifest may unpack to. Writers begin another one after some kilobytes."""
_STEP = 1024 * 1024
_LONGEST_VARINT = 35
"""In bits: groups of seven."""


class TooLarge(BufferError):
    """A block unpacks to more than it may. This is no `ValueError`, which pyiceberg raises over sound manifests as well."""


def _inflated(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    made = unpacker.decompress(data, MOST + 1)
    _require_bounded(len(made))
    _require_whole(unpacker.eof)
    return made


def _bunzipped(data: bytes) -> bytes:
    unpacker = bz2.BZ2Decompressor()
    made = unpacker.decompress(data, MOST + 1)
    _require_bounded(len(made))
    _require_whole(unpacker.eof)
    return made


def _unzstd(data: bytes) -> bytes:
    made = bytearray()
    _require_whole(len(data) > 0)
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while part := stream.read(_STEP):
            made += part
            _require_bounded(len(made))
    return bytes(made)


def _unsnapped(data: bytes) -> bytes:
    """Snappy says first how much it unpacks to; a checksum of that follows it."""
    if len(data) <= 4:
        raise ValueError("a block is cut short")
    packed, checksum = data[:-4], data[-4:]
    size, shift = 0, 0
    for byte in packed:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift >= _LONGEST_VARINT:
            break
    _require_bounded(size)
    made: bytes = pa.decompress(packed, size, "snappy", asbytes=True)
    if zlib.crc32(made) != int.from_bytes(checksum, "big"):
        raise ValueError("a block has another checksum than it says")
    return made


def _require_bounded(size: int) -> None:
    if size > MOST:
        raise TooLarge(f"a block unpacks to more than {MOST} bytes")


def _require_whole(ended: bool) -> None:
    # No `EOFError`, which pyiceberg takes for the end of the file.
    if not ended:
        raise ValueError("a block is cut short")


def _codec(unpack: Callable[[bytes], bytes]) -> type:
    return type("Bounded", (), {"decompress": staticmethod(unpack)})


CODECS: dict[str, Any] = {
    "null": None,
    "bzip2": _codec(_bunzipped),
    "snappy": _codec(_unsnapped),
    "zstandard": _codec(_unzstd),
    "deflate": _codec(_inflated),
}
