"""Parquet's split-block Bloom filters: where they lie, and what they hold for sure not.

A filter is a row of blocks of eight words of 32 bits. The upper half of a value's hash says the block, the lower half one
bit in each of its words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats.parquet_pages.failures import Damaged, NoPages, naming
from grebe.formats.parquet_pages.footer import Footer
from grebe.formats.parquet_pages.schema import BYTE_ARRAY, DOUBLE, FIXED, FLOAT, INT32, INT64, Leaf
from grebe.formats.parquet_pages.thrift import Struct, read_struct
from grebe.formats.parquet_pages.xxh64 import Hashes, hash_rows, hash_texts

Flags = npt.NDArray[np.bool_]

_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_BLOCK = 32
_LONGEST_HEADER = 64


def bloom_spans(footer: Footer, leaf: int) -> list[tuple[int, int] | None]:
    """(start, length) of the filter of this leaf in each row group; None where there is none. Older writers do not say how
    long it is: then it reaches at most to what comes next."""
    marks = sorted(_marks(footer))
    spans: list[tuple[int, int] | None] = []
    for group in footer.groups:
        meta = group[1][leaf].get(3, {})
        start = meta.get(14)
        if not start:
            spans.append(None)
        else:
            spans.append((start, meta.get(15) or next(mark for mark in marks if mark > start) - start))
    return spans


def _marks(footer: Footer) -> list[int]:
    """Where something begins that a filter may end before."""
    columns: list[Struct] = [column for group in footer.groups for column in group[1]]
    starts = [column.get(number) for column in columns for number in (4, 6)]
    starts += [column.get(3, {}).get(14) for column in columns]
    return [start for start in starts if start] + [footer.start]


@dataclass(frozen=True, eq=False, slots=True)
class BloomFilters:
    """The filters of one column, one a row group. What has none may hold everything."""

    _octets: npt.NDArray[np.uint8] = field(repr=False)
    _starts: npt.NDArray[np.int64]
    """Of each filter's blocks."""
    _blocks: npt.NDArray[np.uint64]
    """How many each has; 0 where there is no filter."""

    @classmethod
    def of(cls, parts: Sequence[bytes | None], uri: str = "the file") -> "BloomFilters":
        """From the bytes of `bloom_spans`."""
        starts, blocks, place = [], [], 0
        with naming(uri):
            for part in parts:
                header, size = _head(part) if part is not None else (0, 0)
                if part is not None and header + size > len(part):
                    raise Damaged("a Bloom filter is cut short")
                starts.append(place + header)
                blocks.append(size // _BLOCK)
                place += len(part or b"")
        octets = np.frombuffer(b"".join(part or b"" for part in parts), np.uint8)
        return cls(octets, np.array(starts, np.int64), np.array(blocks, np.uint64))

    @property
    def nbytes(self) -> int:
        return self._octets.nbytes + self._starts.nbytes + self._blocks.nbytes

    def __len__(self) -> int:
        return len(self._starts)

    def may_hold(self, value_hash: int) -> Flags:
        """Of each filter, whether a value of this hash may be there."""
        blocks = np.uint64(value_hash >> 32) * self._blocks >> np.uint64(32)
        found = self._found(self._starts, blocks, np.array([value_hash], np.uint64))
        possible: Flags = found | (self._blocks == 0)
        return possible

    def may_hold_any(self, number: int, hashes: Hashes) -> Flags:
        """Of each hash, whether a value of it may be where this filter is of."""
        count = self._blocks[number]
        if not count:
            return np.ones(len(hashes), np.bool_)
        blocks = (hashes >> np.uint64(32)) * count >> np.uint64(32)
        return self._found(np.full(len(hashes), self._starts[number]), blocks, hashes)

    def _found(self, starts: npt.NDArray[np.int64], blocks: npt.NDArray[np.uint64], hashes: Hashes) -> Flags:
        places = starts + blocks.astype(np.int64) * _BLOCK
        if not len(self._octets):
            return np.zeros(len(places), np.bool_)
        reach = places[:, None] + np.arange(_BLOCK)
        words = self._octets[np.minimum(reach, len(self._octets) - 1)].view("<u4")
        bits = np.uint32(1) << (hashes.astype(np.uint32)[:, None] * _SALTS >> np.uint32(27))
        found: Flags = ((words & bits) == bits).all(axis=1)
        return found


def _head(data: bytes) -> tuple[int, int]:
    """The length of the header, and of the blocks."""
    header, length = read_struct(data[:_LONGEST_HEADER])
    algorithm, hashing, compression = header[2], header[3], header[4]
    if any(1 not in union for union in (algorithm, hashing, compression)):
        raise NoPages("its Bloom filters are of another kind")
    size: int = header[1]
    if size <= 0 or size % _BLOCK:
        raise Damaged("a Bloom filter has no whole blocks")
    return length, size


def hashes_of(leaf: Leaf, values: pa.Array) -> Hashes:
    """The hashes of values, none of them NULL, of the type that the column has in Arrow. A filter tells 0.0 from -0.0 and
    every NaN from every other: ask for both zeros, and nothing about NaN. INT96 is refused: an instant is written there in
    several ways, and finer than it is read."""
    if leaf.physical == BYTE_ARRAY and (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return hash_texts(values.cast(pa.binary()).to_pylist())
    return hash_rows(_plain(leaf, values))


def _plain(leaf: Leaf, values: pa.Array) -> npt.NDArray[np.uint8]:
    """The values as Parquet stores them, a row of bytes each."""
    kind = values.type
    if pa.types.is_decimal128(kind):
        little = _stored(values, 16)
        if leaf.physical in (INT32, INT64):
            return little[:, : leaf.width]
        if leaf.physical == FIXED:
            return little[:, : leaf.width][:, ::-1]
    elif leaf.physical == INT32 and pa.types.is_integer(kind):
        return _stored(values.cast(pa.int32() if pa.types.is_signed_integer(kind) else pa.uint32()), 4)
    elif leaf.physical in (INT32, INT64, FLOAT, DOUBLE, FIXED) and kind.bit_width == 8 * leaf.width:
        return _stored(values, leaf.width)
    raise Unsupported(f"a Bloom filter of Parquet is not asked about values of type {kind}", detail="BLOOM")


def _stored(values: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    start = values.offset * width
    octets = np.frombuffer(values.buffers()[1], np.uint8)[start : start + len(values) * width]
    return octets.reshape(len(values), width)
