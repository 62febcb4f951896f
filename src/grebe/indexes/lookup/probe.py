"""A lookup index asked without Spark: which entries make a predicate true, in at most three rounds of reading.

The directory says which files can hold them, the tail of a file which of its chunks, and the chunks hold the entries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from grebe.files import FileIds
from grebe.formats import DataFile, Reading, format_named
from grebe.formats.parquet_pages import decode_group, group_span
from grebe.indexes.content.copies import copy_of
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN, Copy, Entries
from grebe.indexes.lookup.tail import Tail, read_tail
from grebe.indexes.reading import Reader
from grebe.log.states import IndexState
from grebe.predicate.about import about, renamed
from grebe.predicate.bounds import Bounds, bounds_of, by_bounds
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import TRUE, And, Compare, Constant, In, IsNull, Or, Path, Predicate, StartsWith, columns_of
from grebe.predicate.verdicts import judge, must_read
from grebe.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Chunks:
    """Which chunks of an index have to be read for a predicate."""

    index: "LookupIndex"
    asked: Predicate
    """What the index knows of the predicate."""
    places: tuple[tuple[Tail, int], ...]

    @property
    def most(self) -> int:
        return sum(int(tail.pages.counts[group]) for tail, group in self.places)

    def entries(self, reader: Reader) -> Entries:
        data = reader.spans([(tail.file, *group_span(tail.pages, group)) for tail, group in self.places])
        flat = renamed(self.asked, self.index.columns)
        found = [_matching(*place, part, flat) for place, part in zip(self.places, data, strict=True)]
        shape = self.index.shape
        if not found:
            return Entries(np.empty(0, np.int64), _places(shape, None), None)
        whole = pa.Table.from_batches(found)
        own = [name for name in whole.column_names if name != FILE_COLUMN and name not in shape.locators]
        return Entries(whole[FILE_COLUMN].to_numpy().astype(np.int64), _places(shape, whole), whole.select(own))


def _matching(tail: Tail, group: int, data: bytes, asked: Predicate) -> pa.RecordBatch:
    batch = decode_group(tail.pages, group, data, uri=tail.file.uri)
    return batch if asked == TRUE else batch.filter(matches(batch, asked))


def _places(shape: Shape, found: pa.Table | None) -> pa.Table | None:
    if not shape.locators:
        return None
    schema = format_named(shape.reading.format).locator.schema
    return schema.empty_table() if found is None else found.select(shape.locators).rename_columns(schema.names)


@dataclass(frozen=True)
class LookupIndex:
    """One version of an index (`indexes.kind.Pruner`). Everything here is immutable; what is read goes through the reader."""

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
    def reading(self) -> Reading:
        return self.copy.reading

    @property
    def covered(self) -> FileIds:
        return self.copy.covered

    @property
    def columns(self) -> Mapping[Path, str]:
        return self.copy.columns

    @property
    def bytes(self) -> int:
        return self.copy.bytes

    def helps(self, predicate: Predicate) -> bool:
        """Whether the predicate narrows down the first key column."""
        return narrows(predicate, self.shape.on[0].path)

    def hits(self, predicate: Predicate, reader: Reader) -> Chunks:
        asked = about(predicate, self.columns)
        tails = self._tails(self._files_for(asked), reader)
        return Chunks(self, asked, tuple((tail, group) for tail in tails for group in tail.chunks_for(asked)))

    def warm(self, reader: Reader, pin: bool) -> None:
        self._tails(self._files_for(TRUE), reader, pin)

    def _tails(self, files: list[tuple[DataFile, int]], reader: Reader, pin: bool = False) -> list[Tail]:
        keys = self.shape.on
        ends = [(file, file.size - length, length) for file, length in files]
        return reader.parsed(
            "tail", ends, lambda file, data: read_tail(file, data, keys), lambda made: made.nbytes, pin
        )

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
