"""Texts (BYTE_ARRAY) in PLAIN: each behind its length in four bytes, so that finding one means passing all before it."""

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.headers import PLAIN
from grebe.formats.parquet_pages.mini_file import decode_values
from grebe.formats.parquet_pages.schema import Leaf

# Up to here walking from length to length beats setting up Arrow's decoder.
_FEW = 600
_LENGTH = 4
_LENGTHS = struct.Struct("<I")


def text_places(leaf: Leaf, count: int, section: memoryview) -> npt.NDArray[np.int32]:
    """Where each of the first `count` texts starts, and four bytes behind the end of the last."""
    if not count:
        return np.array([_LENGTH], np.int32)
    offsets = np.frombuffer(decode_values(leaf, PLAIN, count, section).buffers()[1], np.int32)[: count + 1]
    return offsets + np.arange(1, count + 2, dtype=np.int32) * _LENGTH


def pick_texts(leaf: Leaf, section: memoryview, positions: Sequence[int]) -> list[bytes]:
    """The texts at these ascending positions."""
    if positions[-1] < _FEW:
        return _walk(section, positions)
    stride = _even_stride(section, positions[-1] + 1)
    if stride:
        return [bytes(section[at * stride + _LENGTH : (at + 1) * stride]) for at in positions]
    places = text_places(leaf, positions[-1] + 1, section)
    return [bytes(section[places[at] : places[at + 1] - _LENGTH]) for at in positions]


def _walk(section: memoryview, positions: Sequence[int]) -> list[bytes]:
    texts = []
    place = number = 0
    length_at = _LENGTHS.unpack_from
    for position in positions:
        while number < position:
            place += _LENGTH + length_at(section, place)[0]
            number += 1
        start = place + _LENGTH
        stop = start + length_at(section, place)[0]
        if stop > len(section):
            raise Damaged("a text is cut short")
        texts.append(bytes(section[start:stop]))
    return texts


def _even_stride(section: memoryview, count: int) -> int:
    """The distance from text to text if the first `count` are all of one length (identifiers are), else 0. Since each
    length is where the one before says, equal numbers at equal distances are the lengths."""
    stride = _LENGTH + int.from_bytes(section[:_LENGTH], "little")
    if count * stride > len(section) or section[:_LENGTH] != section[stride : stride + _LENGTH]:
        return 0
    lengths = np.ndarray((count,), "<u4", buffer=section, strides=(stride,))
    return stride if (lengths == stride - _LENGTH).all() else 0
