"""A million files against a predicate of five terms: how long that takes, and how much memory it needs.

There are no such files: a sample of them is sketched by the product's own classes, written as often as need be as the content of an
index, and that is opened and asked like any other, in a process of its own.
"""

import contextlib
import io
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench._stage import Stage
from bench.harness import in_fresh_process, medians, timed
from bench.sieve.memory import resident
from grebe.files import FileIds
from grebe.formats import Column, Reading
from grebe.formats.byte_cache import ByteCache
from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.reading import Reader
from grebe.indexes.summary import directory
from grebe.indexes.summary.fold import SketchFold
from grebe.indexes.summary.probe import SummaryIndex
from grebe.indexes.summary.shape import shape_of
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import ACTIVE, IndexState
from grebe.lookup.finding import Finder
from grebe.predicate.arrow_types import schema_type
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import Predicate
from grebe.store.local import LocalStore

READING = Reading.of(
    "parquet",
    {},
    [
        Column("at", "timestamp"),
        Column("device", "long"),
        Column("kind", "string"),
        Column("price", "double"),
        Column("spot", "long"),
    ],
    "UTC",
    local_times=False,
)
FIVE_KINDS = (
    *(grebe.MinMax("at"), grebe.Bloom("device"), grebe.ValueList("kind")),
    *(grebe.MinMax("price"), grebe.Intervals("spot")),
)
FIVE_BOUNDS = tuple(grebe.MinMax(column.name) for column in READING.columns)
OF_FIVE_KINDS = (
    "at >= TIMESTAMP'2024-03-01 00:00:00Z' AND at < TIMESTAMP'2024-05-01 00:00:00Z' AND device = 123456789012"
    " AND kind IN ('kind-03', 'kind-14') AND price > 250 AND spot BETWEEN 400000000 AND 420000000"
)
OF_FIVE_BOUNDS = (
    "at >= TIMESTAMP'2024-03-01 00:00:00Z' AND at < TIMESTAMP'2024-05-01 00:00:00Z' AND device < 5000000000"
    " AND kind > 'kind-55' AND price > 250 AND spot BETWEEN 400000000 AND 420000000"
)
BY_DUCKDB = (
    "s0_max >= epoch_us(TIMESTAMP '2024-03-01') AND s0_min < epoch_us(TIMESTAMP '2024-05-01') AND s1_min < 5000000000"
    " AND s2_max > 'kind-55' AND s3_max > 250 AND s4_max >= 400000000 AND s4_min <= 420000000"
)
Sketches = Sequence["grebe.MinMax | grebe.Bloom | grebe.ValueList | grebe.Intervals"]
_NAME = "probed"
_MOST_MS, _MOST_BYTES = 250, 200
_ROWS, _KINDS = 16, 60
_SAMPLE = 2_000
_FILES_A_FILE = 100_000
_CACHE_BYTES = 4 << 30


@dataclass(frozen=True)
class Probed:
    milliseconds: float
    found: float
    """Milliseconds until it is known where in the list of the table's files they lie, as a lookup does it."""
    first: float
    """Seconds, of the first time: all is read."""
    kept: int
    counted: float
    """Bytes a file and sketch that the cache counts."""
    grown: float
    """Bytes a file and sketch by which the process grew."""


def probing(stage: Stage) -> None:
    files, runs = stage.scale.pick((100_000, 5), (1_000_000, 15))
    case, limit, most = f"{files:,} files, 5 terms", f"{_MOST_MS} ms a million", _MOST_MS * files / 1_000_000
    with _index_of(FIVE_KINDS, files) as (folder, content):
        probed: Probed = in_fresh_process(_probed, folder, content, FIVE_KINDS, OF_FIVE_KINDS, files, runs).value
    stage.report.add(f"{case}, five kinds of sketches", "ms", probed.milliseconds, limit, most, runs)
    stage.report.add(f"{case}, as found by a lookup", "ms", probed.found, limit, most, runs)
    stage.report.add(f"{case}, the first time", "s", probed.first)
    stage.report.add(f"{case}, not ruled out", "files", probed.kept)
    limit = f"{_MOST_BYTES} bytes a file and sketch"
    stage.report.add(f"{case}, memory as counted", "bytes", probed.counted, limit, _MOST_BYTES)
    stage.report.add(f"{case}, memory of the process", "bytes", probed.grown, limit, _MOST_BYTES)
    with _index_of(FIVE_BOUNDS, files) as (folder, content):
        raced = in_fresh_process(_against_duckdb, folder, content, FIVE_BOUNDS, OF_FIVE_BOUNDS, files, runs).value
    stage.report.add(f"{case}, five bounds", "ms", raced[0], "DuckDB, bounds in a table of it", raced[1], runs)


@contextlib.contextmanager
def _index_of(sketches: Sketches, files: int) -> Iterator[tuple[str, tuple[ContentFile, ...]]]:
    """Written by a process of its own, so that none of its memory is found in the one that asks."""
    with tempfile.TemporaryDirectory(prefix="grebe-bench-") as folder:
        yield folder, in_fresh_process(_written, folder, sketches, files).value


def _specified(sketches: Sketches) -> IndexSpec:
    return grebe.Skipping(_NAME, *sketches).spec(READING, case_sensitive=False)


def _written(folder: str, sketches: Sketches, files: int) -> tuple[ContentFile, ...]:
    """The content of an index of so many files."""
    store = LocalStore(Path(folder))
    shape = shape_of(_NAME, _specified(sketches))
    fold = SketchFold(shape.sketches)
    sample = fold.rows(range(_SAMPLE), [fold.state(rows) for rows in _some_files(_SAMPLE)])
    drawn = np.random.default_rng(5).integers(0, _SAMPLE, files)
    for first in range(0, files, _FILES_A_FILE):
        some = drawn[first : first + _FILES_A_FILE]
        table = pa.Table.from_batches([sample]).take(some)
        table = table.set_column(0, FILE_COLUMN, pa.array(np.arange(first, first + len(some)), pa.int32()))
        for name, stored in shape.fields[table.num_columns :]:
            table = table.append_column(name, pa.nulls(len(some), arrow_type(type_json(stored))))
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="zstd")
        store.put(f"{_NAME}/part-{first:08}.gix", sink.getvalue())
    return directory.describe(_NAME, store)


class Asked:
    """The index, opened."""

    def __init__(self, folder: str, content: tuple[ContentFile, ...], sketches: Sketches, sql: str, files: int) -> None:
        covered = FileIds.of(range(files))
        state = IndexState(_NAME, _specified(sketches), ACTIVE, 1, content, covered, "", 0, 0)
        self._index = SummaryIndex.of(state, LocalStore(Path(folder)))
        self._predicate: Predicate = normalise(bind(parse(sql), schema_type(READING.schema), time_zone="UTC"))
        self._finder = Finder((self._index,), np.arange(files))
        self._cache = ByteCache(_CACHE_BYTES)

    def files(self) -> int:
        """Which files the index does not rule out."""
        reader = Reader(self._cache)
        return len(self._index.hits(self._predicate, reader).entries(reader).files)

    def found(self) -> int:
        """Where in the list of the table's files those lie."""
        return len(self._finder.find(self._predicate, Reader(self._cache)).whole)

    @property
    def nbytes(self) -> int:
        """What the cache has counted."""
        return self._cache.nbytes


def _some_files(count: int) -> Iterator[pa.RecordBatch]:
    """Of 16 rows each, so that no file has more than 16 values of anything."""
    rng = np.random.default_rng(4)
    year = int(np.datetime64("2024-01-01", "us").astype(np.int64))
    for number in range(count):
        day = year + (number % 365) * 86_400_000_000
        yield pa.record_batch(
            {
                "at": pa.array(day + rng.integers(0, 10**10, _ROWS), pa.timestamp("us", "UTC")),
                "device": rng.integers(0, 2**40, _ROWS),
                "kind": pa.array([f"kind-{one:02}" for one in rng.integers(0, _KINDS, 4).tolist() * (_ROWS // 4)]),
                "price": rng.random(_ROWS) * rng.integers(1, 1000),
                "spot": rng.integers(0, 2**30, _ROWS),
            }
        )


def _probed(
    folder: str, content: tuple[ContentFile, ...], sketches: Sketches, sql: str, files: int, runs: int
) -> Probed:
    asked = Asked(folder, content, sketches, sql, files)
    before, start = resident(), time.perf_counter()
    kept = asked.files()
    first = time.perf_counter() - start
    pa.default_memory_pool().release_unused()
    grown = resident() - before
    costs = medians({"hits": timed(asked.files), "found": timed(asked.found)}, runs)
    each = files * len(sketches)
    return Probed(costs["hits"] * 1e3, costs["found"] * 1e3, first, kept, asked.nbytes / each, grown / each)


def _against_duckdb(
    folder: str, content: tuple[ContentFile, ...], sketches: Sketches, sql: str, files: int, runs: int
) -> tuple[float, float]:
    """Milliseconds of ours and of theirs."""
    import duckdb

    asked = Asked(folder, content, sketches, sql, files)
    kept = asked.files()
    connection = duckdb.connect()
    parts = [str(Path(folder) / one.path) for one in content if one.rows]
    connection.execute(f"CREATE TABLE bounds AS SELECT * FROM read_parquet({parts})")

    def by_duckdb() -> int:
        return len(connection.execute(f"SELECT {FILE_COLUMN} FROM bounds WHERE {BY_DUCKDB}").fetchnumpy()[FILE_COLUMN])

    if by_duckdb() != kept:
        raise AssertionError(f"DuckDB keeps {by_duckdb()} files by the same bounds, and the index {kept}")
    costs = medians({"ours": timed(asked.files), "DuckDB": timed(by_duckdb)}, runs)
    return costs["ours"] * 1e3, costs["DuckDB"] * 1e3
