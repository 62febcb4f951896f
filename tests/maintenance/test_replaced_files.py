"""A file that is replaced by another one of the same size and the same time, as `cp -p`, `rsync -t` and backups leave it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.session.lake_table import LakeTable
from grebe.store import local
from grebe.store.hdfs import HdfsStore
from grebe.store.opening import open_table_store
from testbed.changing import KEYS_OF_A_FILE, SCHEMA, ChangingTable, rows_of
from testbed.hdfs import HdfsServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("replaced files")]
QUERY = "SELECT id, value, text FROM t WHERE id IN (7, 1007)"
WANTED = (7, KEYS_OF_A_FILE + 7)


@pytest.fixture(params=["parquet", "csv"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> ChangingTable:
    (tmp_path / "t").mkdir()
    made = ChangingTable(open_table_store(tmp_path / "t"), request.param, tmp_path / "t")
    made.add(0, 1, 2)
    return made


def test_it_is_another_file_for_queries_lookups_refresh_and_verify(spark: "SparkSession", table: ChangingTable) -> None:
    place = str(table.folder)

    def expected() -> list[tuple[int, str, str]]:
        return rows_of(table.now, lambda row: row[0] in WANTED, [0, 1, 2])

    def answered() -> list[tuple[int, str, str]]:
        spark.read.format(table.format).schema(SCHEMA).load(place).createOrReplaceTempView("t")
        return sorted(tuple(row) for row in spark.sql(QUERY).collect())

    frame = spark.read.format(table.format).schema(SCHEMA).load(place)
    lake = grebe.attach(spark)
    try:
        own = lake.table(frame)
        own.create(grebe.Lookup("by_id", on="id"), grebe.Covering("cov", on="id", include=["value", "text"], buckets=2))
        with lake.only():
            assert answered() == expected()
        table.change(1, "restore")
        assert [one.files_stale for one in own.indexes()] == [2, 2], "one came, one went"
        assert answered() == expected()
        with lake.only("cov"):
            assert answered() == expected()
        with lake.only("by_id"):
            assert answered() == expected()
        opened = grebe.open(place)
        assert opened.get_many("id", WANTED).num_rows == 2
        assert opened.get("id", WANTED[1])["value"].to_pylist() == [expected()[1][1]]
        told = own.verify(deep=True)
        assert not told.findings
        assert any("changed" in one for one in told.unchecked), told
        refreshed = own.refresh()
        assert [one.files_stale for one in refreshed] == [0, 0]
        assert not own.verify(deep=True).unchecked
        with lake.only():
            assert answered() == expected()
        assert grebe.open(place).files(f"id = {WANTED[1]}").uncovered == 0
    finally:
        lake.detach()


@pytest.mark.parametrize("index", ["cov", "by_id"])
def test_its_rows_are_read_beside_those_of_an_index_that_serves_the_other_files(
    spark: "SparkSession", table: ChangingTable, index: str
) -> None:
    table.add(*range(3, 12))
    place = str(table.folder)
    frame = spark.read.format(table.format).schema(SCHEMA).load(place)
    lake = grebe.attach(spark)
    try:
        lake.table(frame).create(
            grebe.Covering("cov", on="id", include=["value", "text"], buckets=2),
            grebe.Lookup("by_id", on="id"),
        )
        table.change(1, "restore")
        spark.read.format(table.format).schema(SCHEMA).load(place).createOrReplaceTempView("t")
        with lake.only(index):
            asked = spark.sql("SELECT * FROM t WHERE id IN (7, 1007, 2007)")
            assert lake.explain(asked).to_dict()["used"] == [index]
            found = sorted(tuple(row) for row in asked.collect())
        assert found == rows_of(table.now, lambda row: row[0] in (7, 1007, 2007), range(12))
    finally:
        lake.detach()


def test_the_end_of_a_file_tells_it_apart_where_the_store_knows_nothing_more(
    spark: "SparkSession", table: ChangingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = local.local_info
    monkeypatch.setattr(local, "local_info", lambda path, facts: replace(plain(path, facts), etag=None))
    careful, place = grebe.Config(identity="footer"), str(table.folder)
    frame = spark.read.format(table.format).schema(SCHEMA).load(place)
    LakeTable(spark, frame, config=careful).create(grebe.Lookup("by_id", on="id"))
    assert grebe.open(place, config=careful).files("id = 7").uncovered == 0
    table.change(1, "restore")
    assert grebe.open(place).files("id = 7").uncovered == 0, "size and time alone do not tell"
    assert grebe.open(place, config=careful).files("id = 7").uncovered == 1
    assert any("changed" in one for one in grebe.open(place, config=careful).verify().unchecked)


def test_size_and_time_alone_count_where_that_is_asked_for(spark: "SparkSession", table: ChangingTable) -> None:
    loose, place = grebe.Config(identity="times"), str(table.folder)
    frame = spark.read.format(table.format).schema(SCHEMA).load(place)
    LakeTable(spark, frame).create(grebe.Lookup("by_id", on="id"))
    own = LakeTable(spark, frame, config=loose)
    (file,) = Path(place).glob(f"{table.name(1)}*")
    file.chmod(0o640)
    opened, careful = grebe.open(place, config=loose), grebe.open(place)
    assert [one.files_stale for one in own.indexes()] == [0]
    assert (opened.files("id = 1007").uncovered, careful.files("id = 1007").uncovered) == (0, 1)
    file.chmod(0o600)
    assert opened.get("id", 1007).num_rows == 1
    with pytest.raises(grebe.SourceChanged):
        careful.get("id", 1007)


def test_on_hdfs_the_file_id_tells_it_apart(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    uri = hdfs_server.uri(f"{SYSTEM.new_id()}/t")
    store = HdfsStore(uri, {})
    table = ChangingTable(store, "parquet", None)
    table.add(0, 1)
    spark.read.parquet(uri).createOrReplaceTempView("t")
    lake = grebe.attach(spark)
    try:
        own = lake.table(uri)
        own.create(grebe.Covering("cov", on="id", include=["value", "text"], buckets=2))
        assert [one.files_stale for one in own.indexes()] == [0]
        before = store.stat(table.name(1))
        table.change(1, "overwrite")
        jvm = spark._jvm
        assert jvm is not None
        path = jvm.org.apache.hadoop.fs.Path(f"{uri}/{table.name(1)}")
        path.getFileSystem(spark._jsc.hadoopConfiguration()).setTimes(path, before.modified_ms, -1)
        now = store.stat(table.name(1))
        assert (now.size, now.modified_ms) == (before.size, before.modified_ms)
        assert [one.files_stale for one in own.indexes()] == [2], "one came, one went"
        spark.read.parquet(uri).createOrReplaceTempView("t")
        answer = sorted(tuple(row) for row in spark.sql(QUERY).collect())
        assert answer == rows_of(table.now, lambda row: row[0] in WANTED, [0, 1])
        assert [one.files_stale for one in own.refresh()] == [0]
    finally:
        lake.detach()
