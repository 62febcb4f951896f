"""Which files may hold a key: disjoint stretches of the key space, each with its files, and the bytes they are stored as.

The bytes are a checksum of all that follows, a version, a form, the least and the greatest key, and sections: the ids of the files,
then those of the form.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grebe.errors import CorruptIndex
from grebe.files.ids import ID_LIMIT
from grebe.files.untrusted import decoding
from grebe.indexes.sieving.approximate import approximate_stretches
from grebe.indexes.sieving.bits import spread
from grebe.indexes.sieving.exact import exact_stretches
from grebe.indexes.sieving.packing import pack, pack_numbers, unpack, unpack_numbers
from grebe.indexes.sieving.pairs import signed, unsigned

_SUM = struct.Struct("<I")
_HEAD = struct.Struct("<BBqq")
_VERSION = 1
EXACT, APPROXIMATE = 0, 1
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class Sieve:
    """The keys from `low` to `high`, made by `build` or from bytes. If `exact`, a key that there is names no file without need."""

    low: int
    high: int
    exact: bool
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    pointers: NDArray[np.int64]
    members: NDArray[np.unsignedinteger[Any]]
    ids: NDArray[np.uint32]
    data: bytes

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        arrays = (self.starts, self.ends, self.pointers, self.members, self.ids)
        return len(self.data) + sum(array.nbytes for array in arrays)

    def files(self, ranges: Sequence[tuple[int, int]]) -> NDArray[np.uint32]:
        """The files that may hold a key in any of the closed ranges, sorted and distinct."""
        asked = [(max(low, _LEAST), min(high, _GREATEST)) for low, high in ranges if low <= high]
        bounds = np.array([(low, high) for low, high in asked if low <= high], np.int64).reshape(-1, 2)
        first = np.searchsorted(self.ends, bounds[:, 0], "left")
        last = np.searchsorted(self.starts, bounds[:, 1], "right")
        order = np.argsort(first[first < last], kind="stable")
        first, last = first[first < last][order], last[first < last][order]
        # Ranges may overlap; each stretch is looked at once.
        seen = np.concatenate(([0], np.maximum.accumulate(last)))[:-1]
        first = np.maximum(first, seen)
        last = np.maximum(first, last)
        begins = self.pointers[first]
        kept = np.zeros(len(self.ids), np.bool_)
        kept[self.members[spread(begins, self.pointers[last] - begins)]] = True
        return self.ids[kept]

    def triples(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
        """First key, last key and file of everything held, as `build` takes it."""
        sizes = np.diff(self.pointers)
        return np.repeat(self.starts, sizes), np.repeat(self.ends, sizes), self.ids[self.members]

    def to_bytes(self) -> bytes:
        return self.data

    @classmethod
    def from_bytes(cls, data: bytes) -> "Sieve":
        """Raises `CorruptIndex` where this is not what was stored."""
        if len(data) < _SUM.size + _HEAD.size or zlib.crc32(data[_SUM.size :]) != _SUM.unpack_from(data)[0]:
            raise CorruptIndex(
                f"a sieve of {len(data)} bytes is damaged; refresh the index with mode='full'", detail="SIEVE"
            )
        version, form, low, high = _HEAD.unpack_from(data, _SUM.size)
        if version != _VERSION:
            raise CorruptIndex(
                f"a sieve is of version {version}, and only {_VERSION} is known; read it with a newer Grebe, or refresh the index "
                "with mode='full'",
                detail="SIEVE",
            )
        with decoding(_refused):
            named, *sections = unpack(data[_SUM.size + _HEAD.size :])
            ids = _ids(unpack_numbers(named))
            least, greatest = unsigned(np.array([low, high], np.int64)).tolist()
            if form == EXACT:
                found = exact_stretches(sections, least, greatest)
            else:
                found = approximate_stretches(sections, least, greatest, len(ids))
            if found.files.max(initial=-1) >= len(ids):
                raise ValueError("a file that is not listed")
            members = found.files.astype(np.min_scalar_type(len(ids)))
            return cls(
                low, high, form == EXACT, signed(found.starts), signed(found.ends), found.pointers, members, ids, data
            )


def _ids(distances: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Of files, ascending."""
    ids = np.cumsum(distances)
    if (distances >= np.uint64(ID_LIMIT)).any() or (ids[1:] <= ids[:-1]).any() or ids.max(initial=0) >= ID_LIMIT:
        raise ValueError("ids of files that are not in order")
    return ids.astype(np.uint32)


def _refused(why: str) -> CorruptIndex:
    return CorruptIndex(f"a sieve cannot be read ({why}); refresh the index with mode='full'", detail="SIEVE")


def stored(low: int, high: int, ids: NDArray[np.uint32], form: int, sections: list[bytes]) -> bytes:
    """The bytes of a sieve."""
    named = pack_numbers(np.diff(ids, prepend=ids[:1] * 0).astype(np.uint64))
    content = _HEAD.pack(_VERSION, form, low, high) + pack([named, *sections])
    return _SUM.pack(zlib.crc32(content)) + content
