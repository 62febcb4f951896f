"""Parquet: records by row number."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.options import OptionTable
from grebe.formats.protocol import ROW_NUMBER, DataFile, Located, LocatorShape, wanted_columns
from grebe.formats.range_file import RangeFile
from grebe.formats.reading import Column, Reading, columns_of
from grebe.formats.spark_types import TIMESTAMP, spark_type, type_text
from grebe.formats.unite import find_name, unite

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_BATCH_ROWS = 64 * 1024


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
        return tuple(Column(field.name, type_text(spark_type(field.type))) for field in _schema(opened))

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        self.options.check_readable(self.name, dict(reading.options))
        opened = _opened(file)
        wanted = wanted_columns(reading, names)
        row = 0
        for batch in _batches(opened, range(opened.metadata.num_row_groups), wanted, file):
            records = unite(batch, wanted, file.uri)
            numbers = pa.array(np.arange(row, row + batch.num_rows))
            yield Located(records, pa.record_batch([numbers], schema=self.locator.schema))
            row += batch.num_rows
        if row != opened.metadata.num_rows:
            raise UnreadableFile(f"{file.uri} has {row} rows and says it has {opened.metadata.num_rows}", detail="ROWS")

    def fetch(
        self, file: DataFile, reading: Reading, locators: pa.RecordBatch, names: Sequence[str] | None = None
    ) -> pa.Table:
        self.options.check_readable(self.name, dict(reading.options))
        wanted = wanted_columns(reading, names)
        opened = _opened(file)
        counts = [opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups)]
        groups, places = _groups_of(counts, locators.column("row").to_numpy(), file)
        batches = [unite(batch, wanted, file.uri) for batch in _batches(opened, groups, wanted, file)]
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


def _opened(file: DataFile) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(pa.PythonFile(RangeFile(file), "r"), coerce_int96_timestamp_unit="us", pre_buffer=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: DataFile, error: Exception) -> UnreadableFile:
    return UnreadableFile(f"{file.uri} is no Parquet file that can be read: {error}", detail="PARQUET")


def _schema(opened: pq.ParquetFile) -> pa.Schema:
    """Of Arrow, with the timestamps that Spark takes for instants marked as such: Arrow forgets which were INT96."""
    leaves = (opened.schema.column(i) for i in range(len(opened.schema)))
    int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    return (
        pa.schema([_instants(field, field.name, int96) for field in opened.schema_arrow])
        if int96
        else opened.schema_arrow
    )


def _instants(field: pa.Field, path: str, int96: set[str]) -> pa.Field:
    kind = field.type
    if path in int96:
        return field.with_type(TIMESTAMP)
    if pa.types.is_struct(kind):
        return field.with_type(
            pa.struct([_instants(kind.field(i), f"{path}.{kind.field(i).name}", int96) for i in range(kind.num_fields)])
        )
    if pa.types.is_map(kind):
        key = _instants(kind.key_field, f"{path}.key_value.key", int96)
        return field.with_type(pa.map_(key, _instants(kind.item_field, f"{path}.key_value.value", int96)))
    if pa.types.is_list(kind):
        below = next((p for p in int96 if p.startswith(f"{path}.")), "")
        step = ".".join(below.split(".")[path.count(".") + 1 :][:2])
        return field.with_type(pa.list_(_instants(kind.value_field, f"{path}.{step}", int96)))
    return field


def _batches(
    opened: pq.ParquetFile, groups: Sequence[int], wanted: Sequence[Column], file: DataFile
) -> Iterator[pa.RecordBatch]:
    schema = _schema(opened)
    names = [name for column in wanted if (name := find_name(column.name, schema.names)) is not None]
    if not names:
        for group in groups:
            yield _rows_only(opened.metadata.row_group(group).num_rows)
        return
    target = pa.schema([schema.field(name) for name in names])
    try:
        for batch in opened.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=names):
            yield batch.select(names).cast(target)
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(file, error) from error


def _rows_only(count: int) -> pa.RecordBatch:
    empty: list[dict[str, Any]] = [{}] * count
    return pa.RecordBatch.from_struct_array(pa.array(empty, pa.struct([])))


PARQUET = ParquetFormat()
