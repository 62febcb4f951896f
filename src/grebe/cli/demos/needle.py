"""One row of a few million, by a lookup index and by a full scan: how long it takes, and what is read for it."""

import io
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from grebe.cli.output import Output, Row
from grebe.cli.spark_work import progress
from grebe.indexes.lookup.spec import Lookup
from grebe.session.lake_table import LakeTable
from grebe.session.table import Table
from grebe.session.table import open as open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS, FILES = 3_000_000, 24
_COLUMNS = (
    "xxhash64(id) AS id",
    "id * 7919 % 500000 AS person",
    "timestamp_micros(1767225600000000 + pmod(xxhash64(id, 1), 31536000000000)) AS at",
    "element_at(array('click', 'view', 'order', 'return'), CAST(1 + id % 4 AS int)) AS kind",
    "pmod(xxhash64(id, 2), 1000000) / 100 AS amount",
    "concat('event ', hex(xxhash64(id, 3))) AS text",
)
_GETS = 100


def prepare(session: "SparkSession", lake_folder: Path, output: Output) -> None:
    """The table and its index."""
    events = lake_folder / "events"
    _generate(session, events)
    size = sum(file.stat().st_size for file in events.glob("*.parquet"))
    output.note(f"\n{EVENTS:,} events in {FILES} Parquet files, {size / 1e6:.0f} MB in {events}")
    start = time.perf_counter()
    with progress(session, "Creating by_id"):
        (made,) = LakeTable(session, str(events)).create(Lookup("by_id", on="id"))
    taken = time.perf_counter() - start
    output.note(f"Index by_id was made in {taken:.1f} s, {made.bytes / size:.0%} of the data's size.")


def compare(lake_folder: Path, output: Output) -> list[Row]:
    """One row a way to get an event by its id, in a process that never heard of Spark."""
    processes = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, processes) as aside:
        rows = aside.submit(_looked_up, str(lake_folder / "events")).result()
    output.note("One event by its id, without Spark and Java; every answer is the same row:")
    return rows


def _generate(session: "SparkSession", folder: Path) -> None:
    """As Spark writes it by default, in no order."""
    rows = session.range(0, EVENTS, 1, FILES).selectExpr(*_COLUMNS)
    rows.write.mode("overwrite").parquet(str(folder))


def _looked_up(table: str) -> list[Row]:
    files = sorted(Path(table).glob("*.parquet"))
    ids = pq.read_table(files[len(files) // 2], columns=["id"])["id"].to_pylist()[: _GETS + 1]
    opened = open_table(table)
    first, *more = [_get(opened, key) for key in ids]
    start = time.perf_counter()
    scanned = ds.dataset(files, format="parquet").to_table(filter=pc.field("id") == ids[0])
    seconds = time.perf_counter() - start
    if not first.rows.equals(scanned.cast(first.rows.schema)) or any(one.rows.num_rows != 1 for one in more):
        raise AssertionError("a lookup and a full scan gave different rows")
    if "pyspark" in sys.modules:
        raise AssertionError("a lookup loaded Spark")
    scan = _Spent(scanned, seconds, *_read_by_scan(files))
    typical = sorted(more, key=lambda one: one.seconds)[len(more) // 2]
    ways = {"full scan with pyarrow": scan, "first lookup": first, f"each of {len(more)} more, median": typical}
    return [
        {
            "way": way,
            "ms": round(one.seconds * 1000, 2),
            "requests": one.requests,
            "bytes": one.bytes,
            "times_faster": round(scan.seconds / one.seconds),
            "times_fewer_bytes": round(scan.bytes / max(one.bytes, 1)),
        }
        for way, one in ways.items()
    ]


@dataclass(frozen=True, slots=True)
class _Spent:
    rows: pa.Table
    seconds: float
    requests: int
    bytes: int


def _get(table: Table, key: int) -> _Spent:
    before, start = table.counts(), time.perf_counter()
    rows = table.get("id", key)
    seconds, spent = time.perf_counter() - start, table.counts().since(before)
    return _Spent(rows, seconds, spent.requests, spent.bytes_read)


def _read_by_scan(files: list[Path]) -> tuple[int, int]:
    """What a scan asks of the files, counted aside: it would slow the scan down."""
    counted = [_CountedFile(file) for file in files]
    for file in counted:
        with pq.ParquetFile(file, pre_buffer=True) as opened:  # as a scan of a dataset does
            opened.read()
    return sum(file.requests for file in counted), sum(file.bytes for file in counted)


class _CountedFile(io.FileIO):
    """A file that counts what is read of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.requests = self.bytes = 0

    def read(self, size: Any = -1, /) -> bytes:
        data = super().read(size) or b""
        self.requests += 1
        self.bytes += len(data)
        return data
