"""Checksums of the blocks of a content file, from its first byte to its tail, which the writer stores in the footer.

The value of `KEY` in the footer's metadata is `block size:bytes covered:base64`, the last a big-endian CRC-32 of each block. The
tail (page indexes, Bloom filters, footer) is covered by the digest in the directory; so every byte of the file is covered. Java
writes them and compares whatever Spark reads (`BlockChecksums`).
"""

import base64
import binascii
import zlib
from collections.abc import Mapping

import numpy as np

from grebe.errors import CorruptIndex

KEY = b"grebe.blocks"


def require_blocks(data: bytes, metadata: Mapping[bytes, bytes] | None, tail: int, uri: str) -> bool:
    """Compare a whole file with the checksums in its footer. Return False where it has none (release 0.1); raise `CorruptIndex`
    where they differ."""
    text = (metadata or {}).get(KEY)
    if text is None:
        return False
    size, covered, sums = _parsed(text, uri)
    found = [zlib.crc32(data[start : min(start + size, covered)]) for start in range(0, covered, size)]
    if covered != len(data) - tail or found != sums:
        raise CorruptIndex(f"{uri} is damaged; refresh the index with mode='full'", detail="DAMAGED")
    return True


def _parsed(text: bytes, uri: str) -> tuple[int, int, list[int]]:
    try:
        size, covered, sums = text.split(b":")
        numbers: list[int] = np.frombuffer(base64.b64decode(sums, validate=True), ">u4").tolist()
        if int(size) <= 0 or int(covered) < 0:
            raise ValueError("a size below 0")
        return int(size), int(covered), numbers
    except (ValueError, binascii.Error) as problem:
        raise CorruptIndex(
            f"{uri}: the checksums in its footer make no sense ({problem})", detail="DAMAGED"
        ) from problem
