"""ORC: records by row number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.calendars import has_ancient, refused
from grebe.formats.guarded import POOL, decode_guarded
from grebe.formats.local_time import instants
from grebe.formats.options import OptionTable
from grebe.formats.orc_decoder import ROWS, TAIL, Request, decode
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
from grebe.formats.unite import find_name, require_distinct, unite

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
        schema = _known(file).schema
        require_distinct(schema.names)
        return tuple(Column(field.name, _type_text(field)) for field in schema)

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        self.options.check_readable(self.name, dict(reading.options))
        known = _known(file)
        wanted = wanted_columns(reading, names)
        row = 0
        for number, stripe in enumerate(known.layout.stripes):
            (batch,) = _stripes(file, known, [number], wanted, reading)
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
        found = _stripes(file, known, stripes.tolist(), wanted, reading)
        table = pa.Table.from_batches(found, schema=pa.schema([column.arrow for column in wanted]))
        return table.take(pa.array(rows - starts[stripe_of] + moved[stripe_of]))


@dataclass(frozen=True, slots=True)
class _Known:
    """What opens a file without reading it again."""

    tail: bytes
    layout: Layout
    schema: pa.Schema


def _known(file: DataFile) -> _Known:
    if file.guarded:
        POOL.warm()
    raw = HeldFile(file)
    start, tail = raw.tail()
    footer = _decoded(raw, Request(file.size, [(start, tail)]))
    told = footer.schema.metadata
    layout = layout_of(told[TAIL], file)
    if sum(stripe.rows for stripe in layout.stripes) != int(told[ROWS]):
        raise UnreadableFile(f"the stripes of {file.uri} have not as many rows as the file", detail="ORC")
    return _Known(tail, layout, footer.schema.remove_metadata())


def _decoded(raw: HeldFile, request: Request) -> pa.Table:
    """Decode in a guarded process, or in this one for files that are trusted."""
    if not raw.file.guarded:
        with arrow_errors(raw, "ORC"):
            return decode(request, raw.ask)
    try:
        return decode_guarded(request, raw.ask, raw.file.uri)
    except UnreadableFile as error:
        if raw.failure is not None:
            raise raw.failure from error
        raise


def _of_no_stripe(wanted: Sequence[Column], count: int) -> pa.Table:
    if not wanted:
        return pa.Table.from_batches([without_columns(count)])
    return pa.schema([column.arrow for column in wanted]).empty_table()


def _type_text(field: pa.Field) -> str:
    meant: str = (field.metadata or {}).get(_MEANT, b"").decode()
    if meant in ("timestamp", "timestamp_ntz"):
        return meant
    return "timestamp" if pa.types.is_timestamp(field.type) else type_text(spark_type(field.type))


def _stripes(
    file: DataFile, known: _Known, numbers: Sequence[int], wanted: Sequence[Column], reading: Reading
) -> list[pa.RecordBatch]:
    """The wanted columns of these stripes, their bytes read at once."""
    own, rows = known.schema.names, [known.layout.stripes[number].rows for number in numbers]
    types = {name: column.type for column in wanted if (name := find_name(column.name, own)) is not None}
    if not types:
        return [unite(without_columns(count), wanted, file.uri) for count in rows]
    raw = HeldFile(file, known.tail)
    spans = raw.spans(known.layout.spans(file, numbers, list(types)))
    table = _decoded(raw, Request(file.size, spans, numbers, list(types)))
    found = []
    for batch in _by_stripe(table, rows, list(types), file):
        arrays = [_timed(batch.column(name), kind, reading.time_zone, file) for name, kind in types.items()]
        records = unite(pa.record_batch(arrays, names=list(types)), wanted, file.uri)
        if has_ancient(records):
            raise refused(file.uri)
        found.append(records)
    return found


def _by_stripe(table: pa.Table, rows: Sequence[int], names: Sequence[str], file: DataFile) -> Iterator[pa.RecordBatch]:
    """Return the batches of a decoded table, one for each stripe; a table drops those without rows."""
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    if [batch.num_rows for batch in batches] != [count for count in rows if count] or table.column_names != names:
        raise UnreadableFile(f"a stripe of {file.uri} has other rows than its footer says", detail="ORC")
    left = iter(batches)
    for count in rows:
        yield next(left) if count else pa.record_batch([pa.nulls(0, kind) for kind in table.schema.types], table.schema)


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
