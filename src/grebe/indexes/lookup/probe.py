"""A lookup index asked without Spark: which entries make a predicate true, in at most three rounds of reading.

The directory says which files can hold them, the tail of a file which of its chunks, and the chunks hold the entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.formats import DataFile
from grebe.formats.parquet_pages import decode_group, group_span
from grebe.indexes.columns import Chosen
from grebe.indexes.content.copies import copy_of
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN, ROW_COLUMN, Copy
from grebe.indexes.lookup.tail import Tail
from grebe.log.states import IndexState
from grebe.predicate.about import about, renamed
from grebe.predicate.bounds import Bounds, bounds_of, by_bounds
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import TRUE, And, Compare, Constant, In, IsNull, Or, Path, Predicate, StartsWith, columns_of
from grebe.predicate.verdicts import judge, must_read
from grebe.store.protocol import Store

Numbers = npt.NDArray[np.int64]


class Reader(Protocol):
    """How files of an index are read: all at once where that pays, and from memory what was read before."""

    def tails(self, files: Sequence[tuple[DataFile, int]], keys: tuple[Chosen, ...]) -> list[Tail]:
        """Of files and the lengths of their tails."""
        ...

    def spans(self, wanted: Sequence[tuple[DataFile, int, int]]) -> list[bytes]:
        """(file, start, length)."""
        ...


@dataclass(frozen=True, slots=True)
class Entries:
    """Rows that make what an index knows of a predicate true; there may be rows among them that fail the rest of it."""

    files: Numbers
    """The id of each row's file."""
    rows: Numbers | None
    """The number of each row in its file; None where the index knows files only."""
    values: pa.Table
    """The columns of the index, flat, under the names of the content."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """Which chunks of an index have to be read for a predicate."""

    asked: Predicate
    """What the index knows of the predicate."""
    places: tuple[tuple[Tail, int], ...]

    @property
    def rows(self) -> int:
        """So many entries at most."""
        return sum(int(tail.pages.counts[group]) for tail, group in self.places)


@dataclass(frozen=True)
class LookupIndex:
    """One version of an index. Everything here is immutable; what is read goes through the reader."""

    copy: Copy
    shape: Shape = field(repr=False)
    store: Store = field(repr=False)

    @classmethod
    def of(cls, index: IndexState, store: Store) -> "LookupIndex":
        return cls(copy_of(index, store), shape_of(index.name, index.spec), store)

    @property
    def name(self) -> str:
        return self.copy.name

    @property
    def columns(self) -> frozenset[Path]:
        return frozenset(self.copy.columns)

    @property
    def locates_rows(self) -> bool:
        return ROW_COLUMN in self.shape.locators

    def helps(self, predicate: Predicate) -> bool:
        """Whether the predicate narrows down the first key column."""
        return narrows(predicate, self.shape.on[0].path)

    def chunks(self, predicate: Predicate, reader: Reader) -> "Chunks":
        """Where entries of the (bound and normalised) predicate may lie; reads tails of files at most."""
        asked = about(predicate, self.columns)
        tails = reader.tails(self._files_for(asked), self.shape.on)
        return Chunks(asked, tuple((tail, group) for tail in tails for group in tail.chunks_for(asked)))

    def entries(self, chunks: "Chunks", reader: Reader) -> Entries:
        places = chunks.places
        data = reader.spans([(tail.file, *group_span(tail.pages, group)) for tail, group in places])
        flat = renamed(chunks.asked, self.copy.columns)
        found = [self._matching(tail, group, part, flat) for (tail, group), part in zip(places, data, strict=True)]
        whole = pa.Table.from_batches([batch for batch in found if batch.num_rows] or found[:1], self._schema(found))
        files = whole[FILE_COLUMN].to_numpy().astype(np.int64)
        rows = whole[ROW_COLUMN].to_numpy() if self.locates_rows else None
        own = [name for name in whole.column_names if name != FILE_COLUMN and name not in self.shape.locators]
        return Entries(files, rows, whole.select(own))

    def _matching(self, tail: Tail, group: int, data: bytes, asked: Predicate) -> pa.RecordBatch:
        batch = decode_group(tail.pages, group, data, uri=tail.file.uri)
        return batch if asked == TRUE else batch.filter(matches(batch, asked))

    def _schema(self, found: list[pa.RecordBatch]) -> pa.Schema:
        if found:
            return found[0].schema
        own = [(name, self.copy.content.schema.field("min").type) for name in self.copy.columns.values()]
        places = [(FILE_COLUMN, pa.int32()), *((name, pa.int64()) for name in self.shape.locators)]
        return pa.schema([*own, *places])

    def _files_for(self, asked: Predicate) -> list[tuple[DataFile, int]]:
        content = self.copy.content
        bounds = self._bounds
        kept = np.arange(len(content))
        if bounds is not None:
            kept = np.flatnonzero(must_read(judge(asked, len(content), lambda one: by_bounds(bounds, one))))
        if asked == Constant(False):
            return []
        chosen = content.select(["path", "size", "tail"]).take(pa.array(kept)).to_pylist()
        return [(DataFile(self.store, one["path"], one["size"]), one["tail"]) for one in chosen]

    @cached_property
    def _bounds(self) -> Bounds | None:
        content = self.copy.content
        low, high = (content[name].combine_chunks() for name in ("min", "max"))
        if not len(content):
            return None
        rows, nulls = content["rows"].to_numpy(), content["nulls"].fill_null(-1).to_numpy()
        return bounds_of(self.shape.on[0].path, low, high, rows, nulls)


def narrows(predicate: Predicate, column: Path) -> bool:
    """Whether only some values of the column can make it true, as far as an index in its order can tell."""
    match predicate:
        case And(below):
            return any(narrows(one, column) for one in below)
        case Or(below):
            return all(narrows(one, column) for one in below)
        case Compare("=" | "<=>" | "<" | "<=" | ">" | ">=") | In() | StartsWith() | IsNull():
            return columns_of(predicate) == {column}
        case Constant(value):
            return value is not True
    return False
