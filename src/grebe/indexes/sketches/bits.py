"""Bloom filters of many files at once: which of them may hold a hash."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.indexes.sketches.hashes import Hashes

_LEAST_BITS = 64
_PROBES_OF_A_BIT = 0.69
"""The best number of probes is so many for each bit of a value."""

Flags = npt.NDArray[np.bool_]


def probes_for(bits_per_value: int) -> int:
    return max(1, round(bits_per_value * _PROBES_OF_A_BIT))


def filter_of(hashes: Hashes, bits_per_value: int) -> bytes:
    """Of distinct hashes."""
    size = max(_LEAST_BITS, -(-len(hashes) * bits_per_value // 64) * 64)
    flags = np.zeros(size, np.bool_)
    for place in _places(hashes, np.uint64(size), probes_for(bits_per_value)):
        flags[place.astype(np.int64)] = True
    return np.packbits(flags, bitorder="little").tobytes()


def _places(hashes: Hashes, size: Hashes | np.uint64, probes: int) -> Sequence[Hashes]:
    """Two halves of the hash give as many places as need be."""
    with np.errstate(over="ignore"):
        first, step = hashes & np.uint64(0xFFFFFFFF), hashes >> np.uint64(32) | np.uint64(1)
        return [(first + np.uint64(number) * step) % size for number in range(probes)]


@dataclass(frozen=True, slots=True)
class Filters:
    """Of all files; one that has none may hold anything."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    bits: Hashes
    known: Flags
    probes: int

    @classmethod
    def of(cls, stored: pa.Array, bits_per_value: int) -> "Filters":
        whole = stored.cast(pa.large_binary())
        offsets = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset : whole.offset + len(whole) + 1]
        content = whole.buffers()[2]
        data = np.zeros(1, np.uint8) if content is None or not len(content) else np.frombuffer(content, np.uint8)
        bits = (np.diff(offsets) * 8).astype(np.uint64)
        known = bits > 0
        return cls(data, offsets[:-1], np.where(known, bits, np.uint64(1)), known, probes_for(bits_per_value))

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.starts.nbytes + self.bits.nbytes + self.known.nbytes

    def may_hold(self, value: int) -> Flags:
        """Which files may hold a value of this hash."""
        left = np.flatnonzero(self.known)
        for place in _places(np.full(1, value, np.uint64), np.uint64(2**63), self.probes):
            bit = place[0] % self.bits[left]
            byte = self.starts[left] + (bit >> np.uint64(3)).astype(np.int64)
            set_here = (self.data[byte] >> (bit & np.uint64(7)).astype(np.uint8)) & np.uint8(1)
            left = left[set_here.astype(np.bool_)]
        found = ~self.known
        found[left] = True
        return found
