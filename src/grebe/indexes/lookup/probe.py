"""A lookup index asked without Spark: which entries make a predicate true, in at most three rounds of reading.

The directory says which files can hold them, the tail of a file which of its chunks, and the chunks hold the entries.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.files import FileIds
from grebe.formats.parquet_pages import decode_group, group_span
from grebe.indexes.content.entries import places_in
from grebe.indexes.content.maps import read_maps
from grebe.indexes.content.sealed import require
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN, Entries, Totals
from grebe.indexes.lookup.points import Points, points_of
from grebe.indexes.lookup.root import Ending, Run, read_root
from grebe.indexes.lookup.tail import Tail, read_tail
from grebe.indexes.reading import Reader, side_by_side
from grebe.indexes.version import IndexVersion
from grebe.log.states import IndexState
from grebe.predicate.about import about, renamed
from grebe.predicate.bounds import Numbers
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import TRUE, And, Compare, Constant, In, IsNull, Or, Path, Predicate, StartsWith, columns_of
from grebe.store.protocol import Store

_ROWS_OF_A_KEY = 2
"""A guess: keys that are looked up are mostly unique."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One that has to be read, for all its entries or for some of the points."""

    tail: Tail
    group: int
    start: int = 0
    stop: int = 0

    @property
    def rows(self) -> int:
        return self.tail.pages.counts[self.group]

    @property
    def rows_of_points(self) -> int:
        if self.tail.is_filled(self.group):
            return self.rows
        return min(self.rows, _ROWS_OF_A_KEY * (self.stop - self.start))


@dataclass(frozen=True, slots=True)
class Chunks:
    """Which chunks of an index have to be read for a predicate."""

    index: "LookupIndex"
    asked: Predicate
    """What the index knows of the predicate."""
    points: Points | None
    chunks: tuple[Chunk, ...]

    @property
    def likely(self) -> int:
        """All entries of the chunks; of single keys some for each, unless a key fills the chunk."""
        return sum(one.rows if self.points is None else one.rows_of_points for one in self.chunks)

    def entries(self, reader: Reader) -> Entries:
        found = [self._matching(*one) for one in zip(self.chunks, self._read(reader), strict=True)]
        shape = self.index.shape
        if not found:
            return Entries(np.empty(0, np.int64), places_in(shape.reading, shape.locators, None), None)
        whole = pa.Table.from_batches(found)
        own = [name for name in whole.column_names if name != FILE_COLUMN and name not in shape.locators]
        return Entries(
            whole[FILE_COLUMN].to_numpy().astype(np.int64),
            places_in(shape.reading, shape.locators, whole),
            whole.select(own),
        )

    def _read(self, reader: Reader) -> list[pa.RecordBatch]:
        spans = [(one.tail.file, *group_span(one.tail.pages, one.group)) for one in self.chunks]

        def parse(place: int, data: bytes) -> pa.RecordBatch:
            chunk = self.chunks[place]
            decoded = decode_group(chunk.tail.pages, chunk.group, data, uri=chunk.tail.file.uri)
            # Runs may differ in which columns their writer took for never NULL.
            return pa.RecordBatch.from_arrays(decoded.columns, decoded.schema.names)

        return reader.parsed("chunk", spans, parse, lambda batch: int(batch.nbytes))

    def _matching(self, chunk: Chunk, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.points is not None:
            held = self.points.rows_in(batch[self.index.columns[self.points.column]], chunk.start, chunk.stop)
            batch = batch[held] if isinstance(held, slice) else batch.filter(held)
            if self.points.exact:
                return batch
        flat = renamed(self.asked, self.index.columns)
        return batch if flat == TRUE or not len(batch) else batch.filter(matches(batch, flat))


@dataclass(frozen=True)
class LookupIndex(IndexVersion[Shape]):
    """One version of an index (`indexes.kind.Pruner`). All that is read of it goes through the reader."""

    @classmethod
    def of(cls, index: IndexState, store: Store) -> "LookupIndex":
        """Reads nothing."""
        return cls(index, shape_of(index.name, index.spec), store)

    @property
    def by_file(self) -> bool:
        return False

    @property
    def chosen(self) -> str:
        return ""

    def leads(self, column: Path) -> bool:
        return self.shape.on[0].path == column

    def helps(self, predicate: Predicate) -> bool:
        """Whether the predicate narrows down the first key column."""
        return narrows(predicate, self.shape.on[0].path)

    def hits(self, predicate: Predicate, reader: Reader) -> Chunks:
        asked = about(predicate, self.columns)
        runs = self._root(reader)
        points = points_of(asked, self.shape.on[0].path)
        if points is not None and all(run.stretches is not None for run in runs):
            return Chunks(self, asked, points, tuple(self._chunks_with(points, asked, runs, reader)))
        tails = self._tails([ending for run in runs for ending in run.files_for(asked)], reader)
        return Chunks(
            self, asked, None, tuple(Chunk(tail, group) for tail in tails for group in tail.chunks_for(asked))
        )

    def _chunks_with(self, points: Points, asked: Predicate, runs: Sequence[Run], reader: Reader) -> Iterator[Chunk]:
        held = [(run.endings[place], start, stop) for run in runs for place, start, stop in run.holding(points)]
        tails = self._tails([ending for ending, _, _ in held], reader)
        for tail, (_, start, stop) in zip(tails, held, strict=True):
            if tail.stretches is None:
                yield from (Chunk(tail, group, start, stop) for group in tail.chunks_for(asked))
                continue
            possible = None if points.exact else frozenset(tail.chunks_for(asked))
            for group, first, after in tail.chunks_with(points, start, stop):
                if possible is None or group in possible:
                    yield Chunk(tail, group, first, after)

    def certain(self, predicate: Predicate, reader: Reader) -> tuple[Numbers, Numbers]:
        """Of a file it knows entries, but not whether these are all."""
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def totals(self, predicate: Predicate, files: FileIds, reader: Reader) -> Totals | None:
        """Its entries would have to be read."""
        return None

    def maps(self, reader: Reader) -> Mapping[int, Any]:
        self._root(reader)
        maps: Mapping[int, Any] = self._known["maps"]
        return maps

    def warm(self, reader: Reader, pin: bool) -> None:
        self._tails([ending for run in self._root(reader) for ending in run.endings], reader, pin)

    def _root(self, reader: Reader) -> tuple[Run, ...]:
        """Read together with the maps, which whoever finds entries needs next."""
        if "root" not in self._known:
            maps, root = side_by_side(
                lambda read: read(reader), (self._read_maps, self._read_root), self.store.uri.startswith("file:")
            )
            self._known.update(maps=maps, root=root)
        runs: tuple[Run, ...] = self._known["root"]
        return runs

    def _read_root(self, reader: Reader) -> tuple[Run, ...]:
        return read_root(self.state, self.shape, self.store, reader)

    def _read_maps(self, reader: Reader) -> Mapping[int, Any]:
        return read_maps(self.state, self.reading, self.store, reader)

    def _tails(self, endings: Sequence[Ending], reader: Reader, pin: bool = False) -> list[Tail]:
        keys = self.shape.on

        def parse(place: int, data: bytes) -> Tail:
            file = endings[place].file
            require(data, endings[place].digest, file.uri)
            return read_tail(file, data, keys)

        wanted = [(one.file, one.file.size - one.length, one.length) for one in endings]
        return reader.parsed("tail", wanted, parse, lambda made: made.nbytes, pin)


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
