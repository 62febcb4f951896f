"""The content of a lookup index: every row once with its place, in small chunks, and nothing that is there is ever denied."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from grebe.formats.byte_cache import ByteCache
from grebe.indexes.content.entries import parts_for
from grebe.indexes.kind import FILE_COLUMN, ROW_COLUMN
from grebe.indexes.lookup.build import CHUNK_ROWS
from grebe.indexes.lookup.probe import LookupIndex
from grebe.indexes.reading import Reader
from grebe.log.commit import Log
from grebe.predicate.bind import bind
from grebe.predicate.builder import col
from grebe.predicate.normalise import normalise
from grebe.store.local import LocalStore
from tests.lookup.conftest import FILES, KEYS, KINDS, ROWS

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("lookup")]


def opened(lake: Path, name: str) -> LookupIndex:
    store = LocalStore(lake / "_grebe" / "t")
    return LookupIndex.of(Log(store).open().state.indexes[f"by_{name.replace('.', '_')}"], store)


def reader() -> Reader:
    return Reader(ByteCache(64 * 1024 * 1024))


@pytest.mark.parametrize("name", KINDS)
def test_every_row_is_there_once_with_its_place(lake: Path, table: pa.Table, name: str) -> None:
    index = opened(lake, name)
    paths = [file.path for file in index.state.content if file.rows]
    entries = pa.concat_tables(pq.read_table(pa.BufferReader(index.store.get(path))) for path in paths)
    files, rows = (entries[column].to_numpy() for column in (FILE_COLUMN, ROW_COLUMN))
    ids = sorted(set(files.tolist()))
    assert len(ids) == FILES
    place = np.searchsorted(ids, files) * (ROWS // FILES) + rows
    assert sorted(place) == list(range(ROWS))
    mine, theirs = entries[name].cast(table[name].type), table[name].take(pa.array(place))
    assert repr(mine.to_pylist()) == repr(theirs.to_pylist())


@pytest.mark.parametrize("name", KEYS)
def test_chunks_are_small(lake: Path, name: str) -> None:
    index, asked = opened(lake, name), reader()
    everything = index.hits(normalise(bind(col("number") >= 0, pa.schema({"number": pa.int64()}))), asked)
    assert everything.likely == ROWS
    # The Parquet of Spark 3.5 cuts by bytes, of which these keys have few.
    most = CHUNK_ROWS if pyspark.__version__ >= "4" else ROWS
    assert max(one.tail.pages.counts[one.group] for one in everything.chunks) <= most


@pytest.mark.parametrize(("name", "absent"), [("id", -5), ("id", 10**12), ("text", "key zz"), ("bytes", b"\xff" * 9)])
def test_keys_beyond_all_others_cost_no_chunk(lake: Path, table: pa.Table, name: str, absent: Any) -> None:
    predicate = normalise(bind(col(name) == absent, table.schema))
    assert opened(lake, name).hits(predicate, reader()).chunks == ()


def test_keys_that_are_not_there_are_mostly_denied_by_the_filters(lake: Path, table: pa.Table) -> None:
    there = set(table["id"].to_pylist())
    absent = [key for key in range(0, ROWS * 7, 37) if key not in there]
    index, asked = opened(lake, "id"), reader()
    predicates = [normalise(bind(col("id") == key, table.schema)) for key in absent]
    asked_for = sum(len(index.hits(predicate, asked).chunks) for predicate in predicates)
    assert asked_for <= (0.02 if pyspark.__version__ >= "4" else 0.1) * len(absent)


def test_files_are_as_many_as_rows_need() -> None:
    assert [parts_for(rows) for rows in (0, 10, 100_000, 2_000_000, 20_000_000)] == [1, 1, 2, 8, 20]
