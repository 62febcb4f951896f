"""ORC: records by row number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import orc

from grebe.errors import Unsupported
from grebe.formats.local_time import instants
from grebe.formats.options import OptionTable
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
        row = 0
        for stripe in range(opened.orc.nstripes):
            batch = _stripe(opened, stripe, wanted, reading, file)
            numbers = pa.array(np.arange(row, row + batch.num_rows))
            yield Located(unite(batch, wanted, file.uri), pa.record_batch([numbers], schema=self.locator.schema))
            row += batch.num_rows

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        """Reads all columns of a stripe that holds a record, and the first column of the others to count their
        rows."""
        rows = locators.column("row").to_numpy()
        wanted = wanted_columns(reading, names)
        opened = _opened(file)
        if len(rows) and (rows.min() < 0 or rows.max() >= opened.orc.nrows):
            raise Unsupported(
                f"{file.uri} has {opened.orc.nrows} rows, so none with number {rows.max()}", detail="LOCATOR"
            )
        if not wanted:
            return pa.Table.from_batches([without_columns(len(rows))])
        start, places = 0, np.zeros(len(rows), np.int64)
        found: list[pa.RecordBatch] = []
        for stripe in range(opened.orc.nstripes):
            count = _count(opened, stripe)
            here = (rows >= start) & (rows < start + count)
            if here.any():
                places[here] = rows[here] - start + sum(batch.num_rows for batch in found)
                found.append(unite(_stripe(opened, stripe, wanted, reading, file), wanted, file.uri))
            start += count
        return pa.Table.from_batches(found, schema=pa.schema([column.arrow for column in wanted])).take(
            pa.array(places)
        )


@dataclass(frozen=True, slots=True)
class _Opened:
    orc: orc.ORCFile
    raw: RangeFile


def _opened(file: DataFile) -> _Opened:
    raw = RangeFile(file)
    with arrow_errors(raw, "ORC"):
        return _Opened(orc.ORCFile(pa.PythonFile(raw, "r")), raw)


def _type_text(field: pa.Field) -> str:
    meant: str = (field.metadata or {}).get(_MEANT, b"").decode()
    if meant in ("timestamp", "timestamp_ntz"):
        return meant
    return "timestamp" if pa.types.is_timestamp(field.type) else type_text(spark_type(field.type))


def _stripe(opened: _Opened, stripe: int, wanted: Sequence[Column], reading: Reading, file: DataFile) -> pa.RecordBatch:
    schema = opened.orc.schema
    names = [name for column in wanted if (name := find_name(column.name, schema.names)) is not None]
    if not names:
        return without_columns(_count(opened, stripe))
    with arrow_errors(opened.raw, "ORC"):
        batch = opened.orc.read_stripe(stripe, names).select(names)
    types = {name: column.type for column in wanted if (name := find_name(column.name, schema.names)) is not None}
    arrays = [_timed(batch.column(i), types[name], reading.time_zone, file) for i, name in enumerate(names)]
    return pa.record_batch(arrays, names=names)


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


def _count(opened: _Opened, stripe: int) -> int:
    if opened.orc.nstripes == 1:
        return int(opened.orc.nrows)
    with arrow_errors(opened.raw, "ORC"):
        return int(opened.orc.read_stripe(stripe, opened.orc.schema.names[:1]).num_rows)


ORC = OrcFormat()
