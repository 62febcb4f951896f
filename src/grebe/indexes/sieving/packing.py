"""Byte strings one after the other, each compressed where that makes it smaller; and numbers as byte strings.

A section is twice its length, one more if it is compressed; then, if it is, its length when unpacked; then its bytes.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grebe.files.untrusted import unzstd

_LONGEST_NUMBER = 10  # bytes of a number of 64 bits
_AT_LEAST, _TIMES = 2 * 1024 * 1024, 16  # bytes that all sections may unpack to, or so many times their own
_NUMBERS = 5  # bytes before the numbers: how wide and how many they are
_LEVEL = 19  # sieves are made once and small


def pack(sections: list[bytes]) -> bytes:
    codec = pa.Codec("zstd", compression_level=_LEVEL)
    packed = []
    for section in sections:
        smaller = codec.compress(section, asbytes=True)
        if len(smaller) + 2 < len(section):
            packed += [_varint(len(smaller) << 1 | 1), _varint(len(section)), smaller]
        else:
            packed += [_varint(len(section) << 1), section]
    return b"".join(packed)


def unpack(data: bytes) -> list[bytes]:
    sections, at = [], 0
    left = most_unpacked(data)
    while at < len(data):
        length, at = _number(data, at)
        size, at = _number(data, at) if length & 1 else (0, at)
        section = data[at : at + (length >> 1)]
        if len(section) != length >> 1:
            raise ValueError("a section beyond the end")
        sections.append(unzstd(section, size, left) if length & 1 else section)
        at += len(section)
        left -= size
    return sections


def most_unpacked(data: bytes) -> int:
    """How many bytes, numbers or entries so many packed bytes may stand for: enough for any that was built."""
    return max(_AT_LEAST, _TIMES * len(data))


def _varint(number: int) -> bytes:
    """Seven bits a byte, lower ones first; all bytes but the last have the highest bit."""
    groups = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    end = at
    while data[end] & 128:
        end += 1
        if end - at >= _LONGEST_NUMBER:
            raise ValueError("a number of more than 64 bits")
    return sum((byte & 127) << 7 * i for i, byte in enumerate(data[at : end + 1])), end + 1


def pack_numbers(numbers: NDArray[np.uint64]) -> bytes:
    """All lowest bytes first, then all next ones, as many as the greatest number has."""
    width = (int(numbers.max(initial=0)).bit_length() + 7) // 8
    planes = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T
    return bytes([width]) + len(numbers).to_bytes(4, "little") + planes.tobytes()


def unpack_numbers(data: bytes, most: int = 1) -> NDArray[np.uint64]:
    """`most`: how many there may be where all of them are zero, which takes no byte."""
    width, count = data[0], int.from_bytes(data[1:_NUMBERS], "little")
    if width > 8 or len(data) != _NUMBERS + width * count or (not width and count > most):
        raise ValueError(f"{count} numbers of {width} bytes in {len(data)}")
    planes = np.zeros((count, 8), np.uint8)
    planes[:, :width] = np.frombuffer(data, np.uint8, offset=_NUMBERS).reshape(width, count).T
    numbers: NDArray[np.uint64] = planes.view("<u8").astype(np.uint64).reshape(count)
    return numbers
