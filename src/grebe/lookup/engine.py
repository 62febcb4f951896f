"""Carries out a lookup: the index says where rows may lie, those are fetched, and the predicate decides again on each of them.

Files that no index covers are read as a whole. So the rows are always those of a full scan; an index only decides how few bytes
that takes.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from grebe.errors import GrebeError
from grebe.files import FileList
from grebe.formats import DataFile, Format, Reading
from grebe.formats.byte_cache import ByteCache
from grebe.indexes.kind import Pruner
from grebe.indexes.reading import Reader, side_by_side
from grebe.lookup.answer import Answer, FileAnswer, Found, Numbers
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import FALSE, Predicate, columns_of
from grebe.sources import Source, Version

_logger = logging.getLogger("grebe.lookup")
NOWHERE = -1


@dataclass(frozen=True)
class Snapshot:
    """A table in one state: its files, what their ids are in the log (or `NOWHERE`), and the indexes that know them."""

    source: Source
    files: FileList
    ids: Numbers
    reading: Reading
    indexes: tuple[Pruner, ...]
    table_version: Version | None = None
    log_version: int | None = None


class Engine:
    def __init__(self, snapshot: Snapshot, cache: ByteCache) -> None:
        self.snapshot = snapshot
        self._cache = cache
        self._data_files: Sequence[DataFile] = snapshot.source.data_files(snapshot.files)
        self._partitions = snapshot.source.partition_values(snapshot.files, snapshot.reading)
        self._set_aside: set[str] = set()
        known = snapshot.ids != NOWHERE
        self._place_of = dict(zip(snapshot.ids[known].tolist(), np.flatnonzero(known).tolist(), strict=True))

    def files(self, predicate: Predicate) -> Answer:
        reader = Reader(self._cache)
        found = self._find(predicate, reader)
        uris = self.snapshot.files.uris()
        answers = [FileAnswer(uris[place].as_py(), tuple(rows.tolist())) for place, rows in found.rows.items()]
        answers += [FileAnswer(uris[place].as_py(), None) for place in found.whole]
        return Answer(
            files=tuple(sorted(answers, key=lambda one: one.path)),
            covered=found.covered,
            uncovered=len(self.snapshot.files) - found.covered,
            pruned=len(self.snapshot.files) - len(answers),
            requests=reader.spent.requests,
            bytes=reader.spent.bytes,
            index=found.index,
            table_version=self.snapshot.table_version,
            log_version=self.snapshot.log_version,
        )

    def scan(self, predicate: Predicate, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows for which the (bound and normalised) predicate is true, with these columns."""
        reader = Reader(self._cache)
        found = self._find(predicate, reader)
        names = [column.name for column in self.snapshot.reading.columns] if columns is None else list(columns)
        needed = list(dict.fromkeys([*names, *(path[0] for path in columns_of(predicate))]))
        wanted: list[tuple[int, Numbers | None]] = [*found.rows.items(), *((place, None) for place in found.whole)]
        local = self.snapshot.source.uri.startswith("file:")
        parts = side_by_side(lambda one: self._read(one[0], one[1], needed, predicate), wanted, local)
        schema = pa.schema([self.snapshot.reading.schema.field(name) for name in names])
        tables = [part.select(names).cast(schema) for part in parts]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _find(self, predicate: Predicate, reader: Reader) -> Found:
        everything = tuple(range(len(self.snapshot.files)))
        if predicate == FALSE:
            return Found(covered=len(everything))
        for index in self._helping(predicate):
            try:
                return self._by_index(index, predicate, reader)
            except GrebeError as problem:
                # A file of the index is gone or damaged: the answer is right all the same, by the next index or by scanning.
                self._warn(index, problem)
        return Found(whole=everything)

    def _helping(self, predicate: Predicate) -> Iterator[Pruner]:
        for index in self.snapshot.indexes:
            agrees = self.snapshot.reading.agrees_on(index.reading, [path[0] for path in index.columns])
            if agrees and index.name not in self._set_aside and index.helps(predicate):
                yield index

    def _by_index(self, index: Pruner, predicate: Predicate, reader: Reader) -> Found:
        entries = index.hits(predicate, reader).entries(reader)
        covered = index.covered.contains(self.snapshot.ids) & (self.snapshot.ids != NOWHERE)
        rows: dict[int, Numbers] = {}
        whole = set(np.flatnonzero(~covered).tolist())
        for file in np.unique(entries.files).tolist():
            place = self._place_of.get(file)
            if place is None or not covered[place]:
                continue
            if entries.locators is None:
                whole.add(place)
            else:
                rows[place] = np.unique(entries.locators["row"].to_numpy()[entries.files == file])
        return Found(dict(sorted(rows.items())), tuple(sorted(whole)), int(covered.sum()), index.name)

    def _warn(self, index: Pruner, problem: GrebeError) -> None:
        if index.name not in self._set_aside:
            self._set_aside.add(index.name)
            _logger.warning("event=index_set_aside index=%s code=%s", index.name, problem.code)

    def _read(
        self,
        place: int,
        rows: Numbers | None,
        names: Sequence[str],
        predicate: Predicate,
    ) -> pa.Table:
        """The rows of one file for which the predicate is true."""
        format: Format = self.snapshot.source.format
        file, reading = self._data_files[place], self.snapshot.reading
        own = [column.name for column in reading.file_columns if column.name in names]
        if rows is not None:
            locators = pa.record_batch([pa.array(rows)], schema=format.locator.schema)
            return self._kept(format.fetch(file, reading, locators, own), place, names, predicate)
        found = [
            self._kept(pa.Table.from_batches([part.records]), place, names, predicate)
            for part in format.read(file, reading, own)
        ]
        schema = pa.schema([reading.schema.field(name) for name in names])
        return pa.concat_tables(found) if found else schema.empty_table()

    def _kept(self, table: pa.Table, place: int, names: Sequence[str], predicate: Predicate) -> pa.Table:
        for column in self.snapshot.reading.partition_columns:
            if column.name in names:
                value = self._partitions[column.name][place]
                table = table.append_column(column.arrow, pa.repeat(value, table.num_rows))
        whole = table.select([name for name in names if name in table.column_names])
        return whole.filter(matches(whole, predicate)) if len(whole) else whole
