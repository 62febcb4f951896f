"""Parquet: records by row number."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.options import OptionTable
from grebe.formats.parquet_pages import NO_PAGES, MoreNeeded, PageMap, as_stored, naming, parse_footer, read_tail, want
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
from grebe.formats.range_file import RangeFile, arrow_errors
from grebe.formats.reading import Column, Reading, columns_of
from grebe.formats.spark_types import spark_type, type_text
from grebe.formats.unite import find_name, unite

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_BATCH_ROWS = 64 * 1024
# Of a row group, at most one row in so many is fetched by pages.
_FEW_ROWS = 16
_MOST_CHUNKS = 4000


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
        opened = _opened(file)
        metadata = opened.metadata.metadata or {}
        if _SPARK_SCHEMA in metadata:
            return columns_of(json.loads(metadata[_SPARK_SCHEMA]))
        return tuple(Column(field.name, type_text(spark_type(field.type))) for field in _schema(opened.parquet))

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        self.options.check_readable(self.name, dict(reading.options))
        opened = _opened(file)
        wanted = wanted_columns(reading, names)
        row = 0
        for batch in _batches(opened, range(opened.metadata.num_row_groups), wanted):
            records = unite(batch, wanted, file.uri)
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
        ending = _ending(file)
        metadata = ending.metadata
        counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        groups, places = _groups_of(counts, locators.column("row").to_numpy(), file)
        if not wanted:
            return pa.Table.from_batches([without_columns(len(places))])
        if _pages_pay(metadata, groups, len(places)):
            try:
                return _by_pages(file, ending, groups, places, wanted)
            except Unsupported as error:
                if error.code != NO_PAGES:
                    raise
        batches = [unite(batch, wanted, file.uri) for batch in _batches(_opened(file, metadata), groups, wanted)]
        table = pa.Table.from_batches(batches, schema=pa.schema([column.arrow for column in wanted]))
        return table.take(pa.array(places))


def _groups_of(
    counts: Sequence[int], rows: npt.NDArray[np.int64], file: DataFile
) -> tuple[list[int], npt.NDArray[np.int64]]:
    """The groups that hold these rows, and the place of each row once just those groups are read."""
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if len(rows) and (rows.min() < 0 or rows.max() >= total):
        raise Unsupported(f"{file.uri} has {total} rows, so none with number {rows.max()}", detail="LOCATOR")
    group = np.searchsorted(ends, rows, "right")
    needed = np.unique(group)
    starts = ends - np.asarray(counts, np.int64)
    sizes = np.asarray(counts, np.int64)[needed]
    new_starts = np.zeros(len(counts), np.int64)
    new_starts[needed] = np.cumsum(sizes) - sizes
    return needed.tolist(), rows - starts[group] + new_starts[group]


@dataclass(frozen=True, slots=True)
class _Ending:
    """The footer with what was read around it."""

    metadata: pq.FileMetaData
    tail: bytes
    start: int


def _ending(file: DataFile) -> _Ending:
    tail, start = read_tail(file)
    with arrow_errors(RangeFile(file), "Parquet"):
        return _Ending(pq.read_metadata(pa.BufferReader(tail)), tail, start)


def _pages_pay(metadata: pq.FileMetaData, groups: Sequence[int], count: int) -> bool:
    """Whether to fetch so many rows of these row groups by their pages. Without a page index finding those would cost more
    than it saves; and a page map is made in Python, chunk by chunk, of the whole footer."""
    if not groups or metadata.num_row_groups * metadata.num_columns > _MOST_CHUNKS:
        return False
    rows = sum(metadata.row_group(group).num_rows for group in groups)
    columns = range(metadata.num_columns)
    indexed = all(metadata.row_group(group).column(column).has_offset_index for group in groups for column in columns)
    return indexed and count * _FEW_ROWS <= rows


def _by_pages(
    file: DataFile, ending: _Ending, groups: Sequence[int], places: npt.NDArray[np.int64], wanted: Sequence[Column]
) -> pa.Table:
    with naming(file.uri):
        footer = parse_footer(ending.tail, ending.start)
    pages = PageMap.from_footer(file, footer.only(groups))
    names = [name for column in wanted if (name := find_name(column.name, pages.names)) is not None]
    rows, order = np.unique(places, return_inverse=True)
    ask = want(pages, rows, names, uri=file.uri)
    try:
        table = ask.table(file.read_spans(ask.spans))
    except MoreNeeded as more:
        table = more.wanted.table(file.read_spans(more.wanted.spans))
    batches = [unite(batch, wanted, file.uri) for batch in table.combine_chunks().to_batches()]
    return pa.Table.from_batches(batches, schema=pa.schema([column.arrow for column in wanted])).take(pa.array(order))


@dataclass(frozen=True, slots=True)
class _Opened:
    parquet: pq.ParquetFile
    raw: RangeFile

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.parquet.metadata


def _opened(file: DataFile, metadata: pq.FileMetaData | None = None) -> _Opened:
    raw = RangeFile(file)
    with arrow_errors(raw, "Parquet"):
        source = pa.PythonFile(raw, "r")
        return _Opened(
            pq.ParquetFile(source, metadata=metadata, coerce_int96_timestamp_unit="us", pre_buffer=True), raw
        )


def _schema(opened: pq.ParquetFile) -> pa.Schema:
    leaves = (opened.schema.column(i) for i in range(len(opened.schema)))
    return as_stored(opened.schema_arrow, {leaf.path for leaf in leaves if leaf.physical_type == "INT96"})


def _batches(opened: _Opened, groups: Sequence[int], wanted: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    schema = _schema(opened.parquet)
    names = [name for column in wanted if (name := find_name(column.name, schema.names)) is not None]
    if not names:
        for group in groups:
            yield without_columns(opened.metadata.row_group(group).num_rows)
        return
    target = pa.schema([schema.field(name) for name in names])
    batches = opened.parquet.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=names)
    while True:
        with arrow_errors(opened.raw, "Parquet"):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch.select(names).cast(target)


PARQUET = ParquetFormat()
