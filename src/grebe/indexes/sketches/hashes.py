"""64-bit hashes of whole columns, the same wherever they are made: values that Spark calls equal have equal hashes."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]

_LONG_TEXT = 256
"""Longer values are hashed one by one: words of eight bytes would take a pass each."""
_WORD = 8
_M1, _M2, _STEP = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0x9E3779B97F4A7C15)


def mixed(values: Hashes) -> Hashes:
    """Every bit of a value changes about half of the bits of its hash."""
    with np.errstate(over="ignore"):
        one = (values ^ (values >> np.uint64(30))) * _M1
        two = (one ^ (one >> np.uint64(27))) * _M2
    return np.asarray(two ^ (two >> np.uint64(31)), np.uint64)


def hashes_of(values: pa.Array) -> Hashes:
    """Of values in the physical form of their type, without NULLs."""
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    if pa.types.is_integer(values.type):
        return _of_numbers(values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    if pa.types.is_floating(kind):
        doubles = values.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        doubles[np.isnan(doubles)] = np.nan
        return _of_numbers(doubles.view(np.uint64))
    if pa.types.is_decimal(kind):
        halves = np.frombuffer(values.buffers()[1], np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
        return mixed(_of_numbers(halves[0::2]) ^ halves[1::2])
    return _of_texts(values.cast(pa.large_binary()))


def hash_of(value: Any, kind: pa.DataType) -> int:
    return int(hashes_of(pa.array([value], kind))[0])


def _of_numbers(bits: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        return mixed(bits + _STEP)


def _of_texts(values: pa.Array) -> Hashes:
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    starts, lengths = offsets[:-1], np.diff(offsets)
    found = mixed(lengths.astype(np.uint64) + _STEP)
    longest = int(lengths.max(initial=0))
    if not longest:
        return found
    short = lengths <= _LONG_TEXT
    data = values.buffers()[2]
    padded = np.zeros(-(-len(data) // _WORD) * _WORD + _WORD, np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    words = np.lib.stride_tricks.as_strided(padded.view(np.uint64)[:1], (len(data) + 1,), (1,))
    for word in range(-(-min(longest, _LONG_TEXT) // _WORD)):
        left = lengths - word * _WORD
        active = np.flatnonzero((left > 0) & short)
        loaded = words[starts[active] + word * _WORD]
        beyond = np.maximum(_WORD - left[active], 0).astype(np.uint64) * np.uint64(8)
        found[active] = mixed(found[active] ^ ((loaded << beyond) + _STEP))
    for place in np.flatnonzero(~short).tolist():
        text = padded[starts[place] : starts[place] + lengths[place]].tobytes()
        found[place] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return found
