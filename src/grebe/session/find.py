"""`grebe.find`: where in the lake a value occurs.

Columns with an index are asked one by one. All others of a table are searched together, in one pass over its files, and it is said
which they were.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, overload

import pyarrow as pa

from grebe.errors import InvalidPredicate
from grebe.formats import DataFile
from grebe.lookup.engine import Engine, Snapshot
from grebe.predicate.arrow_types import schema_type
from grebe.predicate.builder import col
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.resolve import resolve
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Column, In, Literal, Path, Predicate
from grebe.predicate.types import Type
from grebe.session.sought import Leaves, held_by, leaves_of, literals
from grebe.session.table import Table
from grebe.session.table import open as open_table

_logger = logging.getLogger("grebe.find")
_AT_ONCE = max(4, 2 * (os.cpu_count() or 1))
_PLACES = {"row": pa.int64(), "offset": pa.int64(), "length": pa.int64()}
_SCHEMA = pa.schema(
    {"table": pa.string(), "column": pa.string(), "file": pa.string(), **_PLACES, "indexed": pa.bool_()}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One occurrence: in the record number `row` of its file, from 0, or in text in the `length` bytes at `offset`."""

    table: str
    """As it was asked for."""
    column: str
    file: str
    """The whole URI."""
    row: int | None
    offset: int | None
    length: int | None
    indexed: bool
    """Whether an index knew it; it was found by scanning otherwise."""


class Findings(Sequence[Finding]):
    """All occurrences, in no promised order, and what it took to know."""

    def __init__(
        self, found: pa.Table, scanned: Mapping[str, tuple[str, ...]], skipped: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._found = found
        self.scanned = scanned
        """Table -> columns that no index helps with: all files were read for these."""
        self.skipped = skipped
        """Table -> columns that were not searched: arrays and maps, and types that cannot be compared."""

    def __repr__(self) -> str:
        return f"Findings({len(self)} in {len(set(self._found['table'].to_pylist()))} tables)"

    def __len__(self) -> int:
        return int(self._found.num_rows)

    def __iter__(self) -> Iterator[Finding]:
        for batch in self._found.to_batches():
            for row in batch.to_pylist():
                yield Finding(**row)

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> list[Finding]: ...
    def __getitem__(self, place: int | slice) -> Finding | list[Finding]:
        if isinstance(place, slice):
            chosen = range(*place.indices(len(self)))
            return [Finding(**row) for row in self._found.take(pa.array(chosen, pa.int64())).to_pylist()]
        chosen_one = range(len(self))[place]
        return Finding(**self._found.slice(chosen_one, 1).to_pylist()[0])

    def to_table(self) -> pa.Table:
        """One row a finding, with its fields as columns."""
        return self._found

    def to_pylist(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._found.to_pylist()
        return found


def find(
    values: Iterable[object] | str | bytes,
    tables: Iterable[str | PathLike[str] | Table] | PathLike[str] | Table,
    columns: Iterable[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Findings:
    """Where any of the values occurs in these tables: in all columns that can hold it, or just in `columns` (those of them that a
    table has; a struct stands for all its fields)."""
    sought = literals([values] if isinstance(values, str | bytes) or not isinstance(values, Iterable) else values)
    # What is neither one table nor several is refused by whoever opens it.
    named = [tables] if isinstance(tables, str | PathLike | Table) or not isinstance(tables, Iterable) else list(tables)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        opened = list(threads.map(lambda one: _opened(one, storage_options), named))
        searches = _searches(opened, sought, columns)
        found = [part for search in searches for part in search.by_index()]
        found += [part for search in searches for part in search.by_scanning(threads)]
    return Findings(
        pa.concat_tables(found) if found else _SCHEMA.empty_table(),
        {search.name: tuple(map(column_sql, search.scanned)) for search in searches if search.scanned},
        {search.name: tuple(map(column_sql, search.skipped)) for search in searches if search.skipped},
    )


def _opened(table: str | PathLike[str] | Table, storage_options: Mapping[str, str] | None) -> tuple[str, Table, Engine]:
    opened = table if isinstance(table, Table) else open_table(table, storage_options=storage_options)
    # What a table pinned is nobody's business but that of its own package.
    return table.uri if isinstance(table, Table) else fspath(table), opened, opened._engine


@dataclass(frozen=True)
class _Search:
    """What is to be done in one table."""

    name: str
    table: Table
    snapshot: Snapshot
    indexed: Mapping[Path, Predicate]
    scanned: Mapping[Path, Predicate]
    skipped: tuple[Path, ...]

    def by_index(self) -> Iterator[pa.Table]:
        for path, predicate in self.indexed.items():
            rows = self.table.rows(predicate)
            if rows.num_rows:
                yield self._findings(path, rows, indexed=True)

    def by_scanning(self, threads: ThreadPoolExecutor) -> Iterator[pa.Table]:
        if not self.scanned:
            return
        files = len(self.snapshot.files)
        _logger.info("event=find_scans table=%s columns=%d files=%d", self.table.uri, len(self.scanned), files)
        parts = self.snapshot.source.partition_values(self.snapshot.files, self.snapshot.reading)
        data_files = self.snapshot.source.data_files(self.snapshot.files)
        for found in threads.map(lambda place: list(self._scan(data_files[place], place, parts)), range(files)):
            yield from found

    def _scan(self, file: DataFile, place: int, partitions: pa.Table) -> Iterator[pa.Table]:
        reading = self.snapshot.reading
        names = {path[0] for path in self.scanned}
        own = [column.name for column in reading.file_columns if column.name in names]
        for part in self.snapshot.source.format.read(file, reading, own):
            batch = part.records
            for column in reading.partition_columns:
                if column.name in names:
                    value = pa.repeat(partitions[column.name][place], part.locators.num_rows)
                    batch = pa.RecordBatch.from_arrays(
                        [*batch.columns, value], names=[*batch.schema.names, column.name]
                    )
            for path, predicate in self.scanned.items():
                rows = part.locators.filter(matches(batch, predicate))
                if rows.num_rows:
                    located = pa.Table.from_batches([rows])
                    file_column = pa.repeat(pa.scalar(file.uri), rows.num_rows)
                    yield self._findings(path, located.append_column("file", file_column), indexed=False)

    def _findings(self, path: Path, rows: pa.Table, indexed: bool) -> pa.Table:
        count = rows.num_rows
        same = {"table": self.name, "column": column_sql(path), "indexed": indexed}
        columns = []
        for field in _SCHEMA:
            if field.name in same:
                columns.append(pa.repeat(pa.scalar(same[field.name], field.type), count))
            elif field.name in rows.column_names:
                columns.append(rows[field.name].cast(field.type))
            else:
                columns.append(pa.nulls(count, field.type))
        return pa.table(columns, schema=_SCHEMA)


def _searches(
    opened: Sequence[tuple[str, Table, Engine]], sought: Sequence[Literal], columns: Iterable[str] | None
) -> list[_Search]:
    schemas = [schema_type(engine.snapshot.reading.schema) for _, _, engine in opened]
    leaves = list(map(leaves_of, schemas))
    if columns is not None:
        chosen = _meant([columns] if isinstance(columns, str) else list(columns), schemas)
        leaves = list(map(_only, leaves, chosen))
    held: dict[tuple[Type, str], tuple[Literal, ...]] = {}
    searches = []
    for (name, table, engine), below in zip(opened, leaves, strict=True):
        asked: dict[Path, Predicate] = {}
        for path, kind in below.columns.items():
            values = held.get((kind, engine.time_zone))
            if values is None:
                values = held[kind, engine.time_zone] = held_by(kind, sought, engine.time_zone)
            if values:
                asked[path] = normalise(In(Column(path, kind), values))
        indexed = {path: one for path, one in asked.items() if _is_helped(engine.snapshot, one)}
        scanned = {path: one for path, one in asked.items() if path not in indexed}
        searches.append(_Search(name, table, engine.snapshot, indexed, scanned, below.inside))
    return searches


def _is_helped(snapshot: Snapshot, predicate: Predicate) -> bool:
    return any(
        index.helps(predicate) and snapshot.reading.agrees_on(index.reading, [path[0] for path in index.columns])
        for index in snapshot.indexes
    )


def _meant(names: Sequence[str], schemas: Sequence[Type]) -> list[list[Path]]:
    """For each table the paths that the names mean there. Raises `InvalidPredicate` for a name that means nothing anywhere."""
    meant: list[list[Path]] = [[] for _ in schemas]
    for name in names:
        unknown: list[InvalidPredicate] = []
        for paths, schema in zip(meant, schemas, strict=True):
            try:
                paths.append(_resolved(name, schema))
            except InvalidPredicate as problem:
                unknown.append(problem)
        if unknown and len(unknown) == len(schemas):
            raise unknown[0]
    return meant


def _resolved(name: str, schema: Type) -> Path:
    named = col(name).term
    assert isinstance(named, Column)
    found = resolve(named.path, schema, case_sensitive=False)
    return found.path if isinstance(found, Column) else named.path


def _only(leaves: Leaves, chosen: Sequence[Path]) -> Leaves:
    def is_chosen(path: Path) -> bool:
        return any(path[: len(above)] == above for above in chosen)

    columns = {path: kind for path, kind in leaves.columns.items() if is_chosen(path)}
    return Leaves(columns, tuple(filter(is_chosen, leaves.inside)))
