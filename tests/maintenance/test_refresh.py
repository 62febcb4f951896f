"""Refreshes of all of an index: every index as if it were made now, all in one commit; and indexes out of use and back."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import (
    Conflict,
    IndexNotFound,
    InvalidConfig,
    InvalidIndex,
    SourceChanged,
    TableNotFound,
    WrongState,
)
from grebe.files import FileIds
from grebe.indexes import registry
from grebe.indexes.covering.spec import Covering
from grebe.session.lake_table import LakeTable
from tests.indexes.covering_lake import counted, file_ids, index_of, log_of, write
from tests.maintenance.disturbed import Disturbed, content_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [str(id) for id in ids]})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path / "t", [rows(1, 2), rows(3, 4), rows(5, 6)])
    return tmp_path


@pytest.fixture
def table(spark: "SparkSession", lake: Path) -> LakeTable:
    table = LakeTable(spark, str(lake / "t"))
    table.create(Covering("by_id", on="id", include="v", buckets=2), Covering("by_v", on="v", where="id > 2"))
    return table


def change(lake: Path) -> pa.Table:
    """One file is gone, one rewritten, one new, one as it was; the rows that are there now."""
    (lake / "t" / "part-0.parquet").unlink()
    pq.write_table(rows(30, 40), lake / "t" / "part-1.parquet")
    pq.write_table(rows(7), lake / "t" / "part-9.parquet")
    return rows(5, 6, 30, 40, 7)


@pytest.mark.core
def test_after_a_refresh_the_indexes_hold_the_table_as_it_is(table: LakeTable, lake: Path) -> None:
    before = log_of(table.uri)
    now = change(lake)
    assert {info.files_stale for info in table.indexes()} == {4}
    refreshed = table.refresh(mode="full")
    assert [(info.name, info.files_covered, info.files_stale) for info in refreshed] == [
        ("by_id", 3, 0),
        ("by_v", 3, 0),
    ]
    index = index_of(table.uri, "by_id")
    assert index.rows("id", "v") == counted([now])
    assert file_ids(index) == {2, 3, 4}
    assert index.copy.covered == FileIds.of([2, 3, 4])
    assert index_of(table.uri, "by_v").rows("v") == counted([now.select(["v"])])
    assert [entry.action for entry in table.history(limit=3)] == ["refresh begin", "register files", "refresh commit"]
    after = log_of(table.uri).state
    replaced = {file.path for name in after.indexes for file in before.state.indexes[name].content}
    assert set(after.retired) == replaced
    assert replaced < content_files(lake, "t"), "whoever still reads them finds them"


def test_only_those_named_are_refreshed(table: LakeTable, lake: Path) -> None:
    change(lake)
    (info,) = table.refresh("by_v")
    assert (info.name, info.files_stale) == ("by_v", 0)
    assert table.index("by_id").files_stale == 4
    with pytest.raises(IndexNotFound, match="by_id, by_v"):
        table.refresh("nope")
    with pytest.raises(InvalidIndex, match="twice"):
        table.refresh("by_id", "by_id")


def test_a_refresh_may_be_done_by_whoever_has_only_the_path(
    spark: "SparkSession", table: LakeTable, lake: Path
) -> None:
    change(lake)
    LakeTable(spark, str(lake / "t")).refresh(mode="full")
    assert {info.files_stale for info in table.indexes()} == {0}


def test_an_unknown_mode_is_refused(table: LakeTable) -> None:
    with pytest.raises(InvalidConfig, match="full, incremental, quick"):
        table.refresh(mode="nonsense")


def test_where_nothing_is_indexed_nothing_is_refreshed(spark: "SparkSession", tmp_path: Path) -> None:
    fresh = LakeTable(spark, write(tmp_path / "t", [rows(1)]))
    assert fresh.refresh() == []
    for verb in (fresh.refresh, fresh.delete, fresh.restore):
        with pytest.raises(TableNotFound, match="create one"):
            verb("i")
    assert not (tmp_path / "_grebe").exists()


def test_a_table_that_lost_all_its_files_has_an_index_of_nothing(spark: "SparkSession", lake: Path) -> None:
    table = LakeTable(spark, spark.read.schema("id BIGINT, v STRING").format("parquet").load(str(lake / "t")))
    table.create(Covering("i", on="id"))
    for file in (lake / "t").iterdir():
        file.unlink()
    (info,) = table.refresh(mode="full")
    assert (info.rows, info.files_covered, info.files_stale) == (0, 0, 0)


def test_a_column_that_is_gone_is_named(spark: "SparkSession", table: LakeTable, lake: Path) -> None:
    for file in (lake / "t").iterdir():
        pq.write_table(rows(1).select(["id"]), file)
    with pytest.raises(InvalidIndex, match="column v is not there"):
        LakeTable(spark, str(lake / "t")).refresh()
    assert not log_of(table.uri).state.operations


def test_a_deleted_index_is_out_of_use_until_it_is_restored(table: LakeTable, lake: Path) -> None:
    table.delete("by_id")
    assert [(info.name, info.state) for info in table.indexes()] == [("by_id", "DELETED"), ("by_v", "ACTIVE")]
    with pytest.raises(WrongState, match="restore it first"):
        table.refresh("by_id")
    with pytest.raises(WrongState, match="restore it first"):
        table.delete("by_id")
    change(lake)
    assert [info.name for info in table.refresh()] == ["by_v"]
    table.restore("by_id")
    assert table.index("by_id").files_stale == 4, "it is as it was when it was deleted"
    with pytest.raises(WrongState, match="nothing to restore"):
        table.restore("by_id")
    with pytest.raises(IndexNotFound):
        table.delete("nope")


def disturb(monkeypatch: pytest.MonkeyPatch, disturbed: Disturbed) -> None:
    """The index of that name is refreshed by a kind to which something happens."""
    honest = registry.kind_of

    def kind_of(name: str, spec: object) -> object:
        return disturbed if name == disturbed.name else honest(name, spec)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr("grebe.maintenance.refresh.kind_of", kind_of)


def test_an_index_that_is_deleted_meanwhile_is_left_out(
    table: LakeTable, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(lake)
    disturb(monkeypatch, Disturbed("by_v", on="v", where="id > 2", written=lambda: table.delete("by_id")))
    assert [info.name for info in table.refresh()] == ["by_v"]
    state = log_of(table.uri).state
    assert content_files(lake, "t") == {f.path for i in state.indexes.values() for f in i.content} | set(state.retired)


def test_of_two_racing_refreshes_at_most_one_fails(
    spark: "SparkSession", table: LakeTable, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = change(lake)
    together = threading.Barrier(2, timeout=60)
    disturb(monkeypatch, Disturbed("by_id", on="id", include="v", buckets=2, written=together.wait))

    def refresh(_: int) -> object:
        try:
            return LakeTable(spark, str(lake / "t")).refresh("by_id")
        except Conflict as lost:
            return lost

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(refresh, range(2)))
    assert sum(isinstance(result, Conflict) for result in results) <= 1
    assert index_of(table.uri, "by_id").rows("id", "v") == counted([now])
    state = log_of(table.uri).state
    assert content_files(lake, "t") == {f.path for i in state.indexes.values() for f in i.content} | set(state.retired)


def test_a_refresh_that_fails_leaves_the_index_as_it_was(
    table: LakeTable, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = log_of(table.uri).state.indexes
    change(lake)
    victim = lake / "t" / "part-9.parquet"
    disturb(monkeypatch, Disturbed("by_v", on="v", written=victim.unlink))
    with pytest.raises(SourceChanged, match=victim.name):
        table.refresh()
    assert log_of(table.uri).state.indexes == before
    assert content_files(lake, "t") == {file.path for index in before.values() for file in index.content}
