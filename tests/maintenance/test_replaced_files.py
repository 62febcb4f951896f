"""A file that is replaced by another one of the same size and the same time, as `cp -p`, `rsync -t` and backups leave it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.session.lake_table import LakeTable
from grebe.store import local
from grebe.store.opening import open_table_store
from testbed.changing import KEYS_OF_A_FILE, SCHEMA, ChangingTable, rows_of

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
