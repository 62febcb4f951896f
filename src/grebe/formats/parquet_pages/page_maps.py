"""The page maps of many files in one run of bytes: what they share is stored once, and the map of one file is found without
reading those of the others.

    version (1 byte), length of the head (4 bytes, little-endian), the head, the bodies one after the other

The head is a varint of how many schemas there are and those, compressed; a varint of how many maps; for each map the length
of its body and the number of its schema. A file without a map has a body of no bytes. Bodies are those of `map_bytes`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from grebe.errors import CorruptIndex
from grebe.formats.parquet_pages import map_bytes
from grebe.formats.parquet_pages.page_map import PageMap
from grebe.formats.parquet_pages.schema import FileSchema
from grebe.formats.parquet_pages.thrift import varint, varints, write_varint, write_varints

_PREFIX = 5
_LONGEST = 1 << 40


def pack_maps(maps: Sequence[PageMap | None]) -> bytes:
    schemas: dict[bytes, tuple[int, FileSchema]] = {}
    bodies, numbers = [], []
    for each in maps:
        if each is None:
            bodies.append(b"")
            numbers.append(0)
            continue
        numbers.append(schemas.setdefault(each.schema.blob, (len(schemas), each.schema))[0])
        bodies.append(map_bytes.pack_body(each.counts, each.sections))
    head = b"".join(
        (
            write_varint(len(schemas)),
            *(map_bytes.pack_schema_blob(schema) for _, schema in schemas.values()),
            write_varint(len(maps)),
            write_varints([*map(len, bodies), *numbers]),
        )
    )
    return b"".join((bytes((map_bytes.VERSION,)), len(head).to_bytes(4, "little"), head, *bodies))


@dataclass(frozen=True, eq=False)
class MapDirectory:
    """The head alone: for whoever reads only the maps that are needed."""

    schemas: tuple[FileSchema, ...] = field(repr=False)
    _ends: npt.NDArray[np.int64] = field(repr=False)
    """Of the bodies, counted from the beginning of all; the first is the beginning of the first body."""
    _numbers: npt.NDArray[np.int64] = field(repr=False)

    @staticmethod
    def length(beginning: bytes) -> int:
        """Of version and head together, from the first five bytes."""
        if len(beginning) < _PREFIX:
            raise _corrupt()
        map_bytes.check_version(beginning[0])
        return _PREFIX + int.from_bytes(beginning[1:_PREFIX], "little")

    @classmethod
    def from_bytes(cls, data: bytes) -> "MapDirectory":
        """From the beginning of the bytes, as long as `length` says or longer."""
        stop = cls.length(data)
        if len(data) < stop:
            raise _corrupt()
        with map_bytes.corruption():
            place = _PREFIX
            count, place = varint(data, place)
            schemas = []
            for _ in range(count):
                schema, place = map_bytes.unpack_schema_blob(data, place)
                schemas.append(schema)
            count, place = varint(data, place)
            numbers = varints(data[place:stop]).astype(np.int64)
            if len(numbers) != 2 * count or (numbers < 0).any() or (numbers[:count] > _LONGEST).any():
                raise _corrupt()
            ends = np.cumsum(np.concatenate(([stop], numbers[:count])))
            return cls(tuple(schemas), ends, numbers[count:])

    def __len__(self) -> int:
        return len(self._numbers)

    def span(self, number: int) -> tuple[int, int]:
        """(start, length) of the body of this map."""
        start, stop = self._ends[number : number + 2].tolist()
        return start, stop - start

    def map(self, number: int, body: bytes) -> PageMap | None:
        """From the bytes of its span; None for a file without a map."""
        if not body:
            return None
        if self._numbers[number] >= len(self.schemas):
            raise _corrupt()
        return PageMap(self.schemas[self._numbers[number]], *map_bytes.unpack_body(body))

    @property
    def nbytes(self) -> int:
        return self._ends.nbytes + self._numbers.nbytes


@dataclass(frozen=True, eq=False)
class PageMaps:
    """All maps, of which each is unpacked when it is asked for."""

    directory: MapDirectory
    data: bytes = field(repr=False)

    @classmethod
    def from_bytes(cls, data: bytes) -> "PageMaps":
        directory = MapDirectory.from_bytes(data)
        if len(directory) and sum(directory.span(len(directory) - 1)) != len(data):
            raise _corrupt()
        return cls(directory, data)

    def __len__(self) -> int:
        return len(self.directory)

    def __getitem__(self, number: int) -> PageMap | None:
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} page maps, so none with number {number}")
        start, length = self.directory.span(number)
        return self.directory.map(number, self.data[start : start + length])

    def __iter__(self) -> Iterator[PageMap | None]:
        return (self[number] for number in range(len(self)))

    @property
    def nbytes(self) -> int:
        return len(self.data) + self.directory.nbytes


def _corrupt() -> CorruptIndex:
    return CorruptIndex("page maps have another length than they say; refresh with mode='full'", detail="PAGE_MAP")
