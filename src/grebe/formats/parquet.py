"""Parquet: records by row number."""

import json
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.calendars import has_ancient, is_old, refused
from grebe.formats.options import OptionTable
from grebe.formats.parquet_file import OpenedParquet, open_parquet, open_with, parse_metadata
from grebe.formats.parquet_pages import (
    NO_PAGES,
    Footer,
    MoreNeeded,
    PageMap,
    PageMaps,
    as_stored,
    pack_maps,
    want,
)
from grebe.formats.parquet_pages.kept_pages import kept_columns
from grebe.formats.parquet_pages.stored_types import field_ids
from grebe.formats.parquet_pages.structure import read_checked_footer
from grebe.formats.protocol import (
    NO_MEMORY,
    ROW_NUMBER,
    DataFile,
    Located,
    LocatorShape,
    Memory,
    wanted_columns,
    without_columns,
)
from grebe.formats.reading import Column, Reading, columns_of
from grebe.formats.spark_types import spark_type, type_text
from grebe.formats.unite import find_column, require_distinct, unite

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_BATCH_ROWS = 64 * 1024
# Of a row group, at most one row in so many is fetched by pages.
_FEW_ROWS = 16
_MOST_CHUNKS = 4000
_OFFSET_INDEX = {4, 5}
"""Fields of a column chunk: where it begins, and its length."""
# A footer that Arrow has parsed takes so many times its bytes.
_METADATA_BYTES = 8


class ParquetFormat:
    name = "parquet"
    suffixes = (".parquet", ".parq", ".pq")
    locator: LocatorShape = ROW_NUMBER
    # Calendars of ancient dates: only what needs no rebasing is read here.
    options = OptionTable(
        defaults={"datetimerebasemode": "EXCEPTION", "int96rebasemode": "EXCEPTION"},
        readable={"datetimerebasemode": frozenset(("CORRECTED",)), "int96rebasemode": frozenset(("CORRECTED",))},
    )
    local_times = False
    by_position = False

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        opened = open_parquet(file)
        metadata = opened.metadata.metadata or {}
        with opened.errors():
            schema = _schema(opened)
            require_distinct(schema.names)
            if _SPARK_SCHEMA in metadata:
                return columns_of(json.loads(metadata[_SPARK_SCHEMA]))
            return tuple(Column(field.name, type_text(spark_type(field.type))) for field in schema)

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        self.options.check_readable(self.name, dict(reading.options))
        opened = open_parquet(file)
        wanted = wanted_columns(reading, names)
        row = 0
        for batch in _batches(opened, range(opened.metadata.num_row_groups), wanted):
            records = unite(batch, wanted, file.uri)
            if has_ancient(records) and is_old(opened.metadata.metadata):
                raise refused(file.uri)
            numbers = pa.array(np.arange(row, row + batch.num_rows))
            yield Located(records, pa.record_batch([numbers], schema=self.locator.schema))
            row += batch.num_rows
        if row != opened.metadata.num_rows:
            raise UnreadableFile(f"{file.uri} has {row} rows and says it has {opened.metadata.num_rows}", detail="ROWS")

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        self.options.check_readable(self.name, dict(reading.options))
        wanted = wanted_columns(reading, names)
        known = memory.recall(file, lambda: self.map_of(file), self.map_bytes)
        rows = locators.column(self.locator.fields[0]).to_numpy()
        found = self._found(file, known, rows, wanted, memory)
        if has_ancient(found) and is_old(open_parquet(file).metadata.metadata):
            raise refused(file.uri)
        return found

    def _found(
        self,
        file: DataFile,
        known: "PageMap | pq.FileMetaData",
        rows: npt.NDArray[np.int64],
        wanted: Sequence[Column],
        memory: Memory,
    ) -> pa.Table:
        if isinstance(known, PageMap) and wanted and _pages_pay(known, rows, file):
            try:
                return _by_pages(file, known, rows, wanted, memory)
            except Unsupported as error:
                if error.code != NO_PAGES:
                    raise
        metadata = open_parquet(file).metadata if isinstance(known, PageMap) else known
        return _by_groups(file, metadata, rows, wanted)

    def map_of(self, file: DataFile) -> "PageMap | pq.FileMetaData":
        """Its pages; the footer alone where those cannot be found without looking for them, or are too many to be kept."""
        footer = read_checked_footer(file)
        if not _has_pages(footer):
            return parse_metadata(file, footer)
        try:
            return PageMap.from_footer(file, footer)
        except Unsupported as error:
            if error.code != NO_PAGES:
                raise
            return parse_metadata(file, footer)

    def pack_maps(self, maps: Sequence[Any]) -> bytes:
        return pack_maps([one if isinstance(one, PageMap) else None for one in maps])

    def unpack_maps(self, data: bytes) -> PageMaps:
        return PageMaps.from_bytes(data)

    def map_bytes(self, of: "PageMap | pq.FileMetaData") -> int:
        return of.nbytes if isinstance(of, PageMap) else _METADATA_BYTES * of.serialized_size


def _by_groups(
    file: DataFile, metadata: pq.FileMetaData, rows: npt.NDArray[np.int64], wanted: Sequence[Column]
) -> pa.Table:
    counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    groups, places = _groups_of(counts, rows, file)
    if not wanted:
        return pa.Table.from_batches([without_columns(len(places))])
    batches = [unite(batch, wanted, file.uri) for batch in _batches(open_with(file, metadata), groups, wanted)]
    table = pa.Table.from_batches(batches, schema=pa.schema([column.arrow for column in wanted]))
    if table.num_rows != sum(counts[group] for group in groups):
        raise UnreadableFile(f"{file.uri} has other rows than its footer says", detail="ROWS")
    return table.take(pa.array(places))


def _groups_of(
    counts: Sequence[int], rows: npt.NDArray[np.int64], file: DataFile
) -> tuple[list[int], npt.NDArray[np.int64]]:
    """The groups that hold these rows, and the place of each row once just those groups are read."""
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if len(rows) and (rows.min() < 0 or rows.max() >= total):
        raise _no_such_row(file, total, int(rows.max()))
    group = np.searchsorted(ends, rows, "right")
    needed = np.unique(group)
    starts = ends - np.asarray(counts, np.int64)
    sizes = np.asarray(counts, np.int64)[needed]
    new_starts = np.zeros(len(counts), np.int64)
    new_starts[needed] = np.cumsum(sizes) - sizes
    return needed.tolist(), rows - starts[group] + new_starts[group]


def _no_such_row(file: DataFile, rows: int, number: int) -> Unsupported:
    return Unsupported(f"{file.uri} has {rows} rows, so none with number {number}", detail="LOCATOR")


def _has_pages(footer: Footer) -> bool:
    """A page map is made in Python, chunk by chunk; without a page index finding the pages would cost more than it saves."""
    if len(footer.groups) * len(footer.schema.leaves) > _MOST_CHUNKS:
        return False
    return all(column.keys() >= _OFFSET_INDEX for group in footer.groups for column in group[1])


def _pages_pay(pages: PageMap, rows: npt.NDArray[np.int64], file: DataFile) -> bool:
    """Whether to fetch these rows by their pages, and not by whole row groups."""
    if not len(rows):
        return True
    if rows.min() < 0 or rows.max() >= pages.rows:
        raise _no_such_row(file, pages.rows, int(rows.max()))
    held = np.unique(np.searchsorted(pages.starts, rows, "right")) - 1
    among: int = sum(pages.counts[group] for group in held.tolist())
    return len(rows) * _FEW_ROWS <= among


def _by_pages(
    file: DataFile, pages: PageMap, rows: npt.NDArray[np.int64], wanted: Sequence[Column], memory: Memory
) -> pa.Table:
    sorted_rows, order = (rows, None) if _ascending(rows) else np.unique(rows, return_inverse=True)
    found = _in_file(wanted, pages.names, pages.field_ids, file.uri)
    names = list(found.values())
    keep = _KeptOfFile(file, memory)
    kept = kept_columns(pages, sorted_rows, names, keep, file.read_spans, file.uri)
    rest = [name for name in names if name not in kept]
    table = _picked(file, pages, sorted_rows, rest, keep) if rest or not names else None
    arrays = [kept[name] if table is None or name in kept else _whole(table.column(name)) for name in names]
    batch = pa.RecordBatch.from_arrays(arrays, list(found)) if names else without_columns(len(sorted_rows))
    made = pa.Table.from_batches([unite(batch, wanted, file.uri)])
    return made if order is None else made.take(pa.array(order))


def _picked(
    file: DataFile, pages: PageMap, rows: npt.NDArray[np.int64], names: Sequence[str], keep: "_KeptOfFile"
) -> pa.Table:
    ask = want(pages, rows, names, uri=file.uri, dictionaries=keep)
    try:
        return ask.table(file.read_spans(ask.spans), _helper())
    except MoreNeeded as more:
        return more.wanted.table(file.read_spans(more.wanted.spans))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _ascending(rows: npt.NDArray[np.int64]) -> bool:
    return len(rows) < 2 or bool((rows[1:] > rows[:-1]).all())


@dataclass(frozen=True, slots=True)
class _KeptOfFile:
    """Dictionaries and pages of one file, in the memory of whoever fetches."""

    file: DataFile
    memory: Memory

    def get(self, what: Hashable) -> Any | None:
        return self.memory.get(self.file, what)

    def is_worth(self, what: Hashable, nbytes: int) -> bool:
        return self.memory.is_worth(self.file, what, nbytes)

    def put(self, what: Hashable, value: Any, nbytes: int | None = None) -> None:
        self.memory.put(self.file, what, value, value.nbytes if nbytes is None else nbytes)


@cache
def _helper() -> ThreadPoolExecutor | None:
    """Decompresses half of many pages, if there is a processor for it."""
    processors = os.cpu_count() or 1
    return ThreadPoolExecutor(processors - 1, thread_name_prefix="grebe-pages") if processors > 1 else None


def _schema(opened: OpenedParquet) -> pa.Schema:
    schema = opened.parquet.schema
    leaves = (schema.column(i) for i in range(len(schema)))
    return as_stored(opened.parquet.schema_arrow, {leaf.path for leaf in leaves if leaf.physical_type == "INT96"})


def _batches(opened: OpenedParquet, groups: Sequence[int], wanted: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    with opened.errors():
        schema = _schema(opened)
    found = _in_file(wanted, schema.names, field_ids(opened.parquet.schema_arrow), opened.raw.file.uri)
    names = list(found.values())
    if not names:
        for group in groups:
            yield without_columns(opened.metadata.row_group(group).num_rows)
        return
    target = pa.schema([schema.field(name) for name in names])
    batches = opened.parquet.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=names)
    while True:
        with opened.errors():
            batch = next(batches, None)
            if batch is None:
                return
            made = batch.select(names).cast(target).rename_columns(list(found))
        yield made


def _in_file(wanted: Sequence[Column], names: Sequence[str], ids: Sequence[int | None], uri: str) -> dict[str, str]:
    """By the name in the table the name in the file, of those that it has."""
    found = ((column.name, find_column(column, names, ids, uri)) for column in wanted)
    return {name: stored for name, stored in found if stored is not None}


PARQUET = ParquetFormat()
