"""An incremental refresh reads only what is new, in runs that are merged before they are many; answers are those of a full scan."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.files import FileIds
from grebe.indexes.covering.spec import Covering
from grebe.indexes.lookup.spec import Lookup
from grebe.log.entry import ContentFile
from grebe.maintenance.runs import Run, runs_of, to_merge
from grebe.session.lake_table import LakeTable
from tests.indexes.covering_lake import log_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]


def rows(start: int, stop: int) -> pa.Table:
    ids = [number * 7919 % 100_003 for number in range(start, stop)]
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"text {id}" for id in ids], "n": list(range(start, stop))})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    for number in range(4):
        pq.write_table(rows(number * 1000, number * 1000 + 1000), tmp_path / "t" / f"{number}.parquet")
    return tmp_path / "t"


@pytest.fixture
def table(spark: "SparkSession", folder: Path) -> LakeTable:
    table = LakeTable(spark, str(folder))
    table.create(
        Lookup("look", on="id"),
        Covering("cover", on="id", include="v", buckets=4),
        Covering("whole", on="v", buckets=0),
    )
    return table


def found(folder: Path) -> list[int]:
    """What lookups find of every tenth row that was ever there, checked against a scan of the files that are there."""
    there = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet")))
    opened = grebe.open(str(folder))
    for number in (0, 999, 1500, 2222, 3999, 4005, 4099, 5001):
        (key,) = rows(number, number + 1)["id"].to_pylist()
        expected = there.filter(pa.compute.equal(there["id"], key))["n"].to_pylist()
        assert sorted(opened.get("id", key)["n"].to_pylist()) == sorted(expected)
        assert opened.files(grebe.col("id") == key).index == "look"
    return sorted(opened.scan("id >= 0")["n"].to_pylist())


def test_new_files_become_a_run_of_their_own(table: LakeTable, folder: Path) -> None:
    before = {file.path for index in log_of(table.uri).state.indexes.values() for file in index.content}
    pq.write_table(rows(4000, 4100), folder / "4.parquet")
    refreshed = table.refresh()
    assert {info.files_covered for info in refreshed} == {5}
    assert {info.files_stale for info in refreshed} == {0}
    for index in log_of(table.uri).state.indexes.values():
        assert [run.rows for run in runs_of(index)] == [4000, 100]
        assert before & {file.path for file in index.content}
    assert found(folder) == list(range(4100))


def test_small_runs_are_merged(table: LakeTable, folder: Path) -> None:
    for number in range(4):
        start = 4000 + number * 20
        pq.write_table(rows(start, start + 20), folder / f"{4 + number}.parquet")
        table.refresh()
        assert found(folder) == list(range(start + 20))
    for index in log_of(table.uri).state.indexes.values():
        assert len(runs_of(index)) <= 3
        assert sum(run.rows for run in runs_of(index)) == 4080


def test_files_that_go_are_left_out_and_come_back(table: LakeTable, spark: "SparkSession", folder: Path) -> None:
    away = folder.parent / "away.parquet"
    # A file that is moved away and back is the same by its size and time alone; its change time is another one.
    table = LakeTable(spark, str(folder), config=grebe.Config(identity="times"))
    (folder / "1.parquet").rename(away)
    table.refresh()
    state = log_of(table.uri).state.indexes["look"]
    assert (len(state.covered), len(state.dormant)) == (3, 1)
    assert found(folder) == [*range(1000), *range(2000, 4000)]
    away.rename(folder / "1.parquet")
    table.refresh(mode="quick")
    state = log_of(table.uri).state.indexes["look"]
    assert (len(state.covered), len(state.dormant)) == (4, 0)
    assert found(folder) == list(range(4000))


def test_much_that_is_new_is_merged_with_all_and_nothing_dormant_stays(table: LakeTable, folder: Path) -> None:
    away = folder.parent / "away.parquet"
    (folder / "1.parquet").rename(away)
    (folder / "0.parquet").unlink()
    table.refresh("look")
    away.rename(folder / "1.parquet")
    pq.write_table(rows(4000, 9000), folder / "5.parquet")
    table.refresh()
    for index in log_of(table.uri).state.indexes.values():
        assert index.dormant == FileIds.of([])
        assert [run.rows for run in runs_of(index)] == [8000]
    assert found(folder) == list(range(1000, 9000))


def test_quick_only_records_what_changed(table: LakeTable, folder: Path) -> None:
    pq.write_table(rows(4000, 4100), folder / "4.parquet")
    (folder / "2.parquet").unlink()
    table.refresh(mode="quick")
    state = log_of(table.uri).state.indexes["look"]
    assert (len(state.covered), len(state.dormant), len(runs_of(state))) == (3, 1, 1)
    assert found(folder) == [*range(2000), *range(3000, 4100)]


def test_where_nothing_changed_nothing_is_written(table: LakeTable) -> None:
    before = log_of(table.uri).state.indexes
    table.refresh()
    assert log_of(table.uri).state.indexes == before


def test_what_is_merged_is_written_again_a_logarithmic_number_of_times() -> None:
    runs: list[Run] = []
    written = 0
    for _ in range(1000):
        merged = to_merge(runs, 10)
        size = 10 + sum(run.rows for run in merged)
        written += size
        runs = [run for run in runs if run not in merged] + [Run((ContentFile(f"{written}", 1, size),))]
        assert len(runs) <= 8
    assert written <= 10 * 1000 * math.log2(1000)
    assert sum(run.rows for run in runs) == 10_000
