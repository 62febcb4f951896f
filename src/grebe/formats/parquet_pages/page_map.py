"""All that is needed to fetch rows of one Parquet file without its footer: where the pages of each column lie, and which
rows each holds.

A map is kept as it is stored (see `map_bytes`): a row group is unpacked when rows of it are asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Self

from grebe.formats.parquet_pages import map_bytes
from grebe.formats.parquet_pages.chunk import Chunk
from grebe.formats.parquet_pages.failures import naming
from grebe.formats.parquet_pages.footer import TAIL_BYTES, Footer, read_footer
from grebe.formats.parquet_pages.locate import chunks_of
from grebe.formats.parquet_pages.schema import FileSchema
from grebe.formats.protocol import DataFile

# Of a chunk and of a page, unpacked, in memory.
_CHUNK_BYTES, _PAGE_BYTES = 200, 80


@dataclass(frozen=True, eq=False)
class PageMap:
    schema: FileSchema
    counts: tuple[int, ...]
    """Rows of each row group."""
    sections: tuple[bytes, ...] = field(repr=False)
    _unpacked: dict[int, tuple[Chunk, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, file: DataFile, tail_bytes: int = TAIL_BYTES) -> Self:
        """Reads the footer and the page index: two requests, or one if both are in the last `tail_bytes`. A file without
        a page index costs a request for every page of its longest column chunk."""
        return cls.from_footer(file, read_footer(file, tail_bytes))

    @classmethod
    def from_footer(cls, file: DataFile, footer: Footer) -> Self:
        groups = chunks_of(file, footer)
        with naming(file.uri):
            sections = tuple(map_bytes.pack_group(footer.schema, chunks) for chunks in groups)
        return cls(footer.schema, tuple(group[3] for group in footer.groups), sections)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        schema, body = map_bytes.split(data)
        return cls(schema, *map_bytes.unpack_body(body))

    def to_bytes(self) -> bytes:
        return map_bytes.joined(self.schema, map_bytes.pack_body(self.counts, self.sections))

    @property
    def rows(self) -> int:
        return sum(self.counts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the columns, in the order of the file."""
        return tuple(top.name for top in self.schema.tops)

    @property
    def field_ids(self) -> tuple[int | None, ...]:
        """Of the columns, in the order of the file."""
        return tuple(top.field_id for top in self.schema.tops)

    @property
    def nbytes(self) -> int:
        """What the map takes in memory at most, once all of it is unpacked; the schema, that maps share, left out."""
        packed = sum(map(len, self.sections))
        return packed + len(self.counts) * len(self.schema.leaves) * _CHUNK_BYTES + packed // 3 * _PAGE_BYTES

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of each row group, and the number of all rows."""
        return (0, *accumulate(self.counts))

    def chunks(self, group: int) -> Sequence[Chunk]:
        """By leaf."""
        known = self._unpacked.get(group)
        if known is None:
            known = self._unpacked[group] = map_bytes.unpack_group(
                self.schema, self.counts[group], self.sections[group]
            )
        return known

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PageMap):
            return NotImplemented
        return (self.schema.blob, self.counts, self.sections) == (other.schema.blob, other.counts, other.sections)

    def __hash__(self) -> int:
        return hash((self.schema.blob, self.counts, self.sections))
