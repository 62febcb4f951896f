"""XXH64 with seed 0, the hash of Parquet's Bloom filters: of one value in Python's whole numbers, of many of one length in
arrays, by the same lines.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Word = Any
"""A whole number, or an array of uint64: what goes beyond 64 bits is cut off in both."""

_ALL = 0xFFFF_FFFF_FFFF_FFFF
_P1 = 0x9E37_79B1_85EB_CA87
_P2 = 0xC2B2_AE3D_27D4_EB4F
_P3 = 0x1656_67B1_9E37_79F9
_P4 = 0x85EB_CA77_C2B2_AE63
_P5 = 0x27D4_EB2F_1656_67C5


def hash_one(value: bytes) -> int:
    length = len(value)
    words, rest = length // 8, length & ~7
    half = struct.unpack_from("<I", value, rest) if length & 4 else ()
    found: int = _hash(struct.unpack_from(f"<{words}Q", value), half, tuple(value[rest + (length & 4) :]), length)
    return found


def hash_rows(values: npt.NDArray[np.uint8]) -> Hashes:
    """Of each row of bytes."""
    count, length = values.shape
    words, rest = length // 8, length & ~7
    if not length:
        return np.full(count, hash_one(b""), np.uint64)
    wide = np.ascontiguousarray(values[:, :rest]).view("<u8").T if words else ()
    half = np.ascontiguousarray(values[:, rest : rest + 4]).view("<u4").astype(np.uint64).T if length & 4 else ()
    tail = values[:, rest + (length & 4) :].astype(np.uint64).T
    found: Hashes = _hash(list(wide), list(half), list(tail), length)
    return found


def hash_texts(values: Sequence[bytes]) -> Hashes:
    """Of values of any lengths; those of one length together."""
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    hashes = np.empty(len(values), np.uint64)
    for length in np.unique(lengths).tolist():
        alike = np.flatnonzero(lengths == length)
        data = b"".join([values[at] for at in alike.tolist()])
        hashes[alike] = hash_rows(np.frombuffer(data, np.uint8).reshape(len(alike), length))
    return hashes


def _hash(words: Sequence[Word], half: Sequence[Word], tail: Sequence[Word], length: int) -> Word:
    """From the words of eight bytes, the one of four that may follow, and the up to three bytes behind it."""
    striped = len(words) & ~3 if length >= 32 else 0
    found = (_stripes(words[:striped]) if striped else _P5) + length & _ALL
    for word in words[striped:]:
        found = (_turned(found ^ _round(0, word), 27) * _P1 & _ALL) + _P4 & _ALL
    for word in half:
        found = (_turned(found ^ (word * _P1 & _ALL), 23) * _P2 & _ALL) + _P3 & _ALL
    for word in tail:
        found = _turned(found ^ (word * _P5 & _ALL), 11) * _P1 & _ALL
    found = (found ^ found >> 33) * _P2 & _ALL
    found = (found ^ found >> 29) * _P3 & _ALL
    return found ^ found >> 32


def _stripes(words: Sequence[Word]) -> Word:
    sums: list[Word] = [_P1 + _P2 & _ALL, _P2, 0, -_P1 & _ALL]
    for at, word in enumerate(words):
        sums[at & 3] = _round(sums[at & 3], word)
    found = sum(_turned(part, turn) for part, turn in zip(sums, (1, 7, 12, 18), strict=True)) & _ALL
    for part in sums:
        found = (found ^ _round(0, part)) * _P1 + _P4 & _ALL
    return found


def _round(total: Word, word: Word) -> Word:
    return _turned(total + (word * _P2 & _ALL) & _ALL, 31) * _P1 & _ALL


def _turned(word: Word, bits: int) -> Word:
    return (word << bits | word >> 64 - bits) & _ALL
