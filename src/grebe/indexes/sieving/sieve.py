"""Which files may hold a key: disjoint stretches of the key space, each with its set of files."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grebe.errors import CorruptIndex

_HEADER = struct.Struct("<4sIII")
_MAGIC = b"GSV0"


@dataclass(frozen=True, eq=False)
class Sieve:
    """Stretches from `starts` to `ends`, both included; `pointers` and `members` are their files, as places in `ids`."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    pointers: NDArray[np.int64]
    members: NDArray[np.uint32]
    ids: NDArray[np.uint32]

    @property
    def low(self) -> int:
        """The least key held."""
        return int(self.starts[0])

    @property
    def high(self) -> int:
        """The greatest key held."""
        return int(self.ends[-1])

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(a.nbytes for a in (self.starts, self.ends, self.pointers, self.members, self.ids))

    def files(self, ranges: Sequence[tuple[int, int]]) -> NDArray[np.uint32]:
        """The files that may hold a key in any of the closed ranges, sorted and distinct."""
        bounds = np.array(ranges, np.int64).reshape(-1, 2)
        first = np.searchsorted(self.ends, bounds[:, 0], "left")
        last = np.searchsorted(self.starts, bounds[:, 1], "right")
        wanted = (first < last) & (bounds[:, 0] <= bounds[:, 1])
        cover = np.zeros(len(self.starts) + 1, np.int64)
        np.add.at(cover, first[wanted], 1)
        np.add.at(cover, last[wanted], -1)
        hit = np.repeat(np.cumsum(cover[:-1]) > 0, np.diff(self.pointers))
        kept = np.zeros(len(self.ids), bool)
        kept[self.members[hit]] = True
        return self.ids[kept]

    def triples(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
        """First key, last key and file of everything held, as `build` takes it."""
        sizes = np.diff(self.pointers)
        return np.repeat(self.starts, sizes), np.repeat(self.ends, sizes), self.ids[self.members]

    def to_bytes(self) -> bytes:
        head = _HEADER.pack(_MAGIC, len(self.starts), len(self.members), len(self.ids))
        return head + b"".join(a.tobytes() for a in (self.starts, self.ends, self.pointers, self.members, self.ids))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Sieve":
        try:
            magic, stretches, members, ids = _HEADER.unpack_from(data)
        except struct.error as cause:
            raise CorruptIndex("a sieve is cut short; refresh the index with mode='full'", detail="SIEVE") from cause
        if magic != _MAGIC or len(data) != _HEADER.size + 16 * stretches + 8 * (stretches + 1) + 4 * members + 4 * ids:
            raise CorruptIndex("the bytes of a sieve are damaged; refresh the index with mode='full'", detail="SIEVE")
        at = _HEADER.size
        starts = np.frombuffer(data, np.int64, stretches, at)
        ends = np.frombuffer(data, np.int64, stretches, at := at + 8 * stretches)
        pointers = np.frombuffer(data, np.int64, stretches + 1, at := at + 8 * stretches)
        held = np.frombuffer(data, np.uint32, members, at := at + 8 * (stretches + 1))
        return cls(starts, ends, pointers, held, np.frombuffer(data, np.uint32, ids, at + 4 * members))
