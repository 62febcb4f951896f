"""Values at some positions of a page's section of values, in every encoding there is."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from grebe.formats.parquet_pages import levels
from grebe.formats.parquet_pages.dictionary import Dictionary
from grebe.formats.parquet_pages.failures import Damaged, NoPages
from grebe.formats.parquet_pages.headers import (
    BYTE_STREAM_SPLIT,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    DICTIONARY_ENCODINGS,
    PLAIN,
    RLE,
)
from grebe.formats.parquet_pages.mini_file import decode_values
from grebe.formats.parquet_pages.schema import BOOLEAN, BYTE_ARRAY, Leaf
from grebe.formats.parquet_pages.texts import pick_texts

Values = bytes | list[bytes]
"""PLAIN values of one width one after the other, booleans in a byte each; texts apart and without their lengths."""

_BY_ARROW = (DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY)


def take(
    leaf: Leaf, encoding: int, section: memoryview, positions: Sequence[int], dictionary: Dictionary | None
) -> Values:
    """The values at these ascending positions, of which there is at least one."""
    if encoding in DICTIONARY_ENCODINGS:
        if dictionary is None:
            raise Damaged("a page needs a dictionary and its chunk has none")
        return dictionary.values(levels.pick(section[1:], section[0], positions))
    if encoding == PLAIN:
        return _plain(leaf, section, positions)
    if encoding in _BY_ARROW:
        return _by_arrow(leaf, encoding, section, positions)
    if encoding == BYTE_STREAM_SPLIT and leaf.width:
        return _streams(leaf.width, section, positions)
    if encoding == RLE and leaf.physical == BOOLEAN:
        length = int.from_bytes(section[:4], "little")
        return bytes(levels.pick(section[4 : 4 + length], 1, positions))
    raise NoPages(f"a page has encoding {encoding}")


def no_values(leaf: Leaf) -> Values:
    return [] if leaf.physical == BYTE_ARRAY else b""


def _plain(leaf: Leaf, section: memoryview, positions: Sequence[int]) -> Values:
    width = leaf.width
    if width:
        if (positions[-1] + 1) * width > len(section):
            raise Damaged("a page has fewer values than it says")
        if len(positions) == 1:
            return bytes(section[positions[0] * width : (positions[0] + 1) * width])
        whole = len(section) // width * width
        return np.frombuffer(section[:whole], np.uint8).reshape(-1, width)[positions].tobytes()
    if leaf.physical == BYTE_ARRAY:
        return pick_texts(leaf, section, positions)
    if leaf.physical == BOOLEAN:
        return bytes([section[position >> 3] >> (position & 7) & 1 for position in positions])
    raise NoPages("a column has values of no bytes")


def _streams(width: int, section: memoryview, positions: Sequence[int]) -> bytes:
    streams = np.frombuffer(section, np.uint8).reshape(width, -1)
    return np.ascontiguousarray(streams[:, positions].T).tobytes()


def _by_arrow(leaf: Leaf, encoding: int, section: memoryview, positions: Sequence[int]) -> Values:
    decoded = decode_values(leaf, encoding, positions[-1] + 1, section)
    if leaf.physical == BYTE_ARRAY:
        texts: list[bytes] = decoded.take(pa.array(positions, pa.int64())).to_pylist()
        return texts
    buffer = decoded.buffers()[1]
    return _plain(leaf, memoryview(buffer).cast("B")[decoded.offset * leaf.width :], positions)
