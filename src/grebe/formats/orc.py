"""ORC: records by row number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import orc

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.calendars import has_ancient, refused
from grebe.formats.local_time import instants
from grebe.formats.options import OptionTable
from grebe.formats.orc_file import HeldFile
from grebe.formats.orc_layout import Layout, layout_of
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
from grebe.formats.range_file import arrow_errors
from grebe.formats.reading import Column, Reading
from grebe.formats.spark_types import TIMESTAMP_NTZ, spark_type, type_text
from grebe.formats.unite import find_name, unite

# Spark writes the type it meant beside the type of ORC.
_MEANT = b"spark.sql.catalyst.type"


class OrcFormat:
    """ORC keeps a timestamp as local time; Spark reads it in the zone of its JVM, which is what a reading's time zone
    means here."""

    name = "orc"
    suffixes = (".orc",)
    locator: LocatorShape = ROW_NUMBER
    options = OptionTable()
    local_times = True
    by_position = False

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        return tuple(Column(field.name, _type_text(field)) for field in _opened(file).orc.schema)

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        self.options.check_readable(self.name, dict(reading.options))
        opened = _opened(file)
        wanted = wanted_columns(reading, names)
        layout = opened.layout()
        row = 0
        for number, stripe in enumerate(layout.stripes):
            (batch,) = _stripes(opened, layout, [number], wanted, reading)
            numbers = pa.array(np.arange(row, row + stripe.rows))
            yield Located(batch, pa.record_batch([numbers], schema=self.locator.schema))
            row += stripe.rows

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        """Of the stripes that hold a record, the wanted columns, in one reading of their bytes. What is remembered of a file is its
        tail, with which the next call opens it."""
        rows = locators.column("row").to_numpy()
        wanted = wanted_columns(reading, names)
        known = memory.recall(file, lambda: _known(file), lambda made: len(made.tail) + made.layout.nbytes)
        ends = known.layout.ends
        total = int(ends[-1]) if len(ends) else 0
        if len(rows) and (rows.min() < 0 or rows.max() >= total):
            raise Unsupported(f"{file.uri} has {total} rows, so none with number {rows.max()}", detail="LOCATOR")
        if not wanted or not len(rows):
            return _of_no_stripe(wanted, len(rows))
        stripe_of = np.searchsorted(ends, rows, "right")
        stripes = np.unique(stripe_of)
        counts = np.diff(ends, prepend=0)
        starts = ends - counts
        moved = np.zeros(len(ends), np.int64)
        moved[stripes] = np.cumsum(counts[stripes]) - counts[stripes]
        found = _stripes(_opened(file, known.tail), known.layout, stripes.tolist(), wanted, reading)
        table = pa.Table.from_batches(found, schema=pa.schema([column.arrow for column in wanted]))
        return table.take(pa.array(rows - starts[stripe_of] + moved[stripe_of]))


@dataclass(frozen=True, slots=True)
class _Known:
    """What opens a file without reading it again."""

    tail: bytes
    layout: Layout


def _known(file: DataFile) -> _Known:
    opened = _opened(file)
    return _Known(opened.raw.tail(), opened.layout())


def _of_no_stripe(wanted: Sequence[Column], count: int) -> pa.Table:
    if not wanted:
        return pa.Table.from_batches([without_columns(count)])
    return pa.schema([column.arrow for column in wanted]).empty_table()


@dataclass(frozen=True, slots=True)
class _Opened:
    orc: orc.ORCFile
    raw: HeldFile

    def layout(self) -> Layout:
        found = layout_of(self.orc.reader.serialized_file_tail(), self.raw.file)
        if sum(stripe.rows for stripe in found.stripes) != self.orc.nrows:
            raise UnreadableFile(f"the stripes of {self.raw.file.uri} have not as many rows as the file", detail="ORC")
        return found


def _opened(file: DataFile, tail: bytes | None = None) -> _Opened:
    raw = HeldFile(file, tail)
    with arrow_errors(raw, "ORC"):
        return _Opened(orc.ORCFile(pa.PythonFile(raw, "r")), raw)


def _type_text(field: pa.Field) -> str:
    meant: str = (field.metadata or {}).get(_MEANT, b"").decode()
    if meant in ("timestamp", "timestamp_ntz"):
        return meant
    return "timestamp" if pa.types.is_timestamp(field.type) else type_text(spark_type(field.type))


def _stripes(
    opened: _Opened, layout: Layout, numbers: Sequence[int], wanted: Sequence[Column], reading: Reading
) -> list[pa.RecordBatch]:
    """The wanted columns of these stripes, their bytes read at once."""
    file, own = opened.raw.file, opened.orc.schema.names
    types = {name: column.type for column in wanted if (name := find_name(column.name, own)) is not None}
    if not types:
        return [unite(without_columns(layout.stripes[number].rows), wanted, file.uri) for number in numbers]
    opened.raw.hold(layout.spans(file, numbers, list(types)))
    found = []
    for number in numbers:
        with arrow_errors(opened.raw, "ORC"):
            batch = opened.orc.read_stripe(number, list(types)).select(list(types))
        arrays = [_timed(batch.column(name), kind, reading.time_zone, file) for name, kind in types.items()]
        records = unite(pa.record_batch(arrays, names=list(types)), wanted, file.uri)
        if has_ancient(records):
            raise refused(file.uri)
        found.append(records)
    return found


def _timed(array: pa.Array, wanted: str, zone: str | None, file: DataFile) -> pa.Array:
    """ORC's timestamps (nanoseconds of local time) and Spark's own way to keep those without a zone (microseconds in
    a long)."""
    if wanted == "timestamp_ntz" and pa.types.is_int64(array.type):
        return array.cast(TIMESTAMP_NTZ)
    if pa.types.is_timestamp(array.type):
        # Spark has microseconds and cuts the rest.
        local = array.cast(TIMESTAMP_NTZ, safe=False)
        return instants(local, zone or "UTC") if wanted == "timestamp" and array.type.tz is None else local
    if pa.types.is_nested(array.type) and "timestamp" in wanted:
        raise Unsupported(
            f"{file.uri} has timestamps within another type; only Spark can read those of ORC", detail="TYPE"
        )
    return array


ORC = OrcFormat()
