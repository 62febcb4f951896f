"""The content of a lookup index: every row once with its place, small chunks, and tails that never deny a key that is there."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.formats import DataFile
from grebe.indexes.content.directory import read_directory
from grebe.indexes.content.shape import shape_of
from grebe.indexes.kind import FILE_COLUMN, ROW_COLUMN
from grebe.indexes.lookup.build import CHUNK_ROWS, parts_for
from grebe.indexes.lookup.spec import Lookup
from grebe.indexes.lookup.tail import Tail, read_tail
from grebe.log.commit import Log
from grebe.log.states import IndexState
from grebe.predicate.bind import bind
from grebe.predicate.builder import col
from grebe.predicate.normalise import normalise
from grebe.session.lake_table import LakeTable
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

ROWS = 30_000
KINDS: dict[str, pa.Array] = {
    "id": pa.array(np.random.default_rng(1).permutation(ROWS * 7)[:ROWS], pa.int64()),
    "small": pa.array((np.arange(ROWS) * 31 % 30_011 - 15_000).astype("int32")),
    "text": pa.array([f"key {n * 7919 % ROWS:x} é" for n in range(ROWS)]),
    "bytes": pa.array([bytes([n % 256, n // 256 % 256, n % 7]) for n in range(ROWS)], pa.binary()),
    "amount": pa.array([Decimal(n * 17 % ROWS - 9_000).scaleb(-2) for n in range(ROWS)], pa.decimal128(12, 2)),
    "large": pa.array([Decimal(n * 17 % ROWS) * 10**20 for n in range(ROWS)], pa.decimal128(38, 4)),
    "ratio": pa.array([float("nan") if n % 1000 == 0 else (n * 13 % ROWS - 500) / 8 for n in range(ROWS)]),
    "day": pa.array(np.arange(ROWS, dtype="int32") % 9000, pa.date32()),
    "at": pa.array(np.arange(ROWS) * 1_000_003, pa.timestamp("us", "UTC")),
    "skewed": pa.array([7 if n % 2 else n for n in range(ROWS)], pa.int64()),
    "flag": pa.array([n % 3 == 0 for n in range(ROWS)]),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Some NULLs everywhere."""
    holes = np.arange(ROWS) % 97 == 5
    return pa.table({name: pa.array(values.to_pylist(), values.type, mask=holes) for name, values in KINDS.items()})


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Path:
    folder = tmp_path_factory.mktemp("lookups")
    (folder / "t").mkdir()
    for number in range(3):
        pq.write_table(table.slice(number * 10_000, 10_000), folder / "t" / f"{number}.parquet", row_group_size=3_000)
    LakeTable(spark, str(folder / "t")).create(*(Lookup(f"by_{name}", on=name) for name in KINDS))
    return folder


def _state(lake: Path, name: str) -> tuple[IndexState, LocalStore]:
    store = LocalStore(lake / "_grebe" / "t")
    return Log(store).open().state.indexes[f"by_{name}"], store


def _tails(lake: Path, name: str) -> list[Tail]:
    index, store = _state(lake, name)
    keys = shape_of(index.name, index.spec).on
    (folder,) = {file.path.rpartition("/")[0] for file in index.content}
    files = read_directory(store, folder).to_pylist()
    return [read_tail(DataFile(store, f"{folder}/{one['path']}", one["size"]), one["tail"], keys) for one in files]


def _entries(lake: Path, name: str) -> pa.Table:
    index, store = _state(lake, name)
    paths = [file.path for file in index.content if not file.path.endswith("directory.gix")]
    return pa.concat_tables(pq.read_table(pa.BufferReader(store.get(path))) for path in paths)


@pytest.mark.parametrize("name", KINDS)
def test_every_row_is_there_once_with_its_place(lake: Path, table: pa.Table, name: str) -> None:
    entries = _entries(lake, name)
    assert entries.num_rows == ROWS
    files, rows = (entries[column].to_numpy() for column in (FILE_COLUMN, ROW_COLUMN))
    ids = {int(one) for one in files}
    assert len(ids) == 3
    place = np.array([sorted(ids).index(one) for one in files]) * 10_000 + rows
    assert sorted(place) == list(range(ROWS))
    assert (
        entries[name].cast(table[name].type).to_pylist().__repr__()
        == table[name].take(pa.array(place)).to_pylist().__repr__()
    )


@pytest.mark.parametrize("name", KINDS)
def test_chunks_are_small(lake: Path, name: str) -> None:
    for tail in _tails(lake, name):
        assert max(tail.pages.counts) <= CHUNK_ROWS


def _asked(table: pa.Table, name: str, value: Any) -> Any:
    return normalise(bind(col(name) == pa.scalar(value, table[name].type), table.schema))


@pytest.mark.parametrize("name", KINDS)
def test_a_key_that_is_there_is_never_denied(lake: Path, table: pa.Table, name: str) -> None:
    tails = _tails(lake, name)
    read = [[_chunk(tail, group, name) for group in range(len(tail.pages.counts))] for tail in tails]
    for row in range(0, ROWS, 397):
        value = table[name][row].as_py()
        if value is None:
            continue
        predicate = _asked(table, name, value)
        for tail, chunks in zip(tails, read, strict=True):
            holding = [number for number, keys in enumerate(chunks) if _holds(keys, value)]
            assert set(holding) <= set(tail.chunks_for(predicate))


def _chunk(tail: Tail, group: int, name: str) -> list[Any]:
    from grebe.formats.parquet_pages import decode_group, group_span

    start, length = group_span(tail.pages, group)
    keys: list[Any] = decode_group(tail.pages, group, tail.file.read(start, length)).column(name).to_pylist()
    return keys


def _holds(keys: list[Any], value: Any) -> bool:
    return any(key != key for key in keys) if value != value else value in keys


@pytest.mark.parametrize(("name", "absent"), [("id", -5), ("id", 10**12), ("text", "key zz"), ("day", None)])
def test_keys_that_are_not_there_are_mostly_denied(lake: Path, table: pa.Table, name: str, absent: Any) -> None:
    predicate = normalise(bind(col(name).is_null() if absent is None else col(name) == absent, table.schema))
    kept = sum(len(tail.chunks_for(predicate)) for tail in _tails(lake, name))
    assert kept <= (1 if absent is None else 0)


def test_files_are_as_many_as_rows_need() -> None:
    assert [parts_for(rows) for rows in (0, 10, 100_000, 2_000_000, 20_000_000)] == [1, 1, 2, 8, 20]
