"""Which leaves some columns of a file have, and how their Arrow arrays are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from grebe.formats.parquet_pages import levels
from grebe.formats.parquet_pages.chunk import UNCOMPRESSED
from grebe.formats.parquet_pages.columns import Builder, builder_of
from grebe.formats.parquet_pages.failures import NoPages
from grebe.formats.parquet_pages.headers import PLAIN
from grebe.formats.parquet_pages.mini_file import Frame, PlacedChunk, arrow_schema, data_page_header, decode, frame_of
from grebe.formats.parquet_pages.picked import Picked
from grebe.formats.parquet_pages.schema import BOOLEAN, INT96, FileSchema, Leaf
from grebe.formats.parquet_pages.stored_types import as_stored

_PROJECTIONS_KEPT = 1024


@dataclass(frozen=True, eq=False)
class Projection:
    schema: FileSchema
    tops: tuple[int, ...]
    target: pa.Schema
    """Of the table that comes out."""
    builders: tuple[Builder | None, ...]
    """Of each column; None for those that a small file is made for."""
    framed: tuple[int, ...]
    """Those columns."""
    frame: Frame

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        return tuple(leaf for top in self.tops for leaf in self.schema.tops[top].leaves)

    @cached_property
    def whole_frame(self) -> Frame:
        return frame_of(self.schema, self.tops)

    def table(self, picked: Mapping[int, Picked], rows: int) -> pa.Table:
        decoded = iter(self._decoded(picked, rows))
        arrays = [
            next(decoded) if build is None else build(picked[self.schema.tops[top].leaves[0]])
            for top, build in zip(self.tops, self.builders, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.target)

    def _decoded(self, picked: Mapping[int, Picked], rows: int) -> Sequence[pa.ChunkedArray]:
        if not self.framed:
            return ()
        pages, chunks, place = [], [], 0
        for number in (leaf for top in self.framed for leaf in self.schema.tops[top].leaves):
            leaf = self.schema.leaves[number]
            page = plain_page(leaf, picked[number])
            pages.append(page)
            chunks.append(PlacedChunk(leaf, UNCOMPRESSED, picked[number].entries, place, 0, len(page)))
            place += len(page)
        columns = decode(self.frame.around(pages, chunks, rows)).columns
        kinds = [field.type for field, build in zip(self.target, self.builders, strict=True) if build is None]
        return [column.cast(kind) for column, kind in zip(columns, kinds, strict=True)]


def plain_page(leaf: Leaf, picked: Picked) -> bytes:
    pieces: list[bytes] = []
    if picked.repetition is not None:
        pieces += _with_length(levels.pack_levels(picked.repetition, leaf.max_repetition))
    if leaf.max_definition:
        top = leaf.max_definition
        some = picked.definition
        pieces += _with_length(
            levels.same_levels(picked.entries, top) if some is None else levels.pack_levels(some, top)
        )
    if isinstance(picked.values, list):
        for text in picked.values:
            pieces += _with_length(text)
    elif leaf.physical == BOOLEAN:
        pieces.append(np.packbits(np.frombuffer(picked.values, np.uint8), bitorder="little").tobytes())
    else:
        pieces.append(picked.values)
    body = b"".join(pieces)
    return data_page_header(picked.entries, PLAIN, len(body)) + body


def _with_length(data: bytes) -> tuple[bytes, bytes]:
    return len(data).to_bytes(4, "little"), data


@lru_cache(maxsize=_PROJECTIONS_KEPT)
def projection_of(schema: FileSchema, names: tuple[str, ...] | None) -> Projection:
    """None for all columns."""
    tops = tuple(range(len(schema.tops))) if names is None else tuple(_number(schema, name) for name in names)
    target = _arrow_schema(schema, frame_of(schema, tops))
    plain = target if schema.arrow is None else _arrow_schema(schema, frame_of(schema, tops, arrow=False))
    builders = [
        builder_of(schema.leaves[schema.tops[top].leaves[0]], field.type) if field.type.equals(bare.type) else None
        for top, field, bare in zip(tops, target, plain, strict=True)
    ]
    framed = tuple(top for top, build in zip(tops, builders, strict=True) if build is None)
    return Projection(schema, tops, target, tuple(builders), framed, frame_of(schema, framed))


def _number(schema: FileSchema, name: str) -> int:
    if name not in schema.names:
        raise NoPages(f"it has no column {name}, or several")
    return schema.names[name]


def _arrow_schema(schema: FileSchema, frame: Frame) -> pa.Schema:
    int96 = {b".".join(leaf.path).decode() for leaf in schema.leaves if leaf.physical == INT96}
    return as_stored(arrow_schema(frame), int96)
