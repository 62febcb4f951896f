"""Indexes that earlier releases wrote are read by this one, without Spark and with it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from testbed.released import FILES, ROWS, archives, unpacked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("releases")  # each lies at a place of its own, which the log names


@pytest.fixture(params=archives(), ids=lambda archive: archive.name)
def table(request: pytest.FixtureRequest) -> Path:
    return unpacked(request.param)


def test_there_is_one_of_every_release() -> None:
    assert archives() != []


def test_an_index_of_a_release_serves_lookups(table: Path) -> None:
    opened = grebe.open(str(table))
    infos = {info.name: info for info in opened.indexes()}
    assert sorted(infos) == ["covering", "lookup", "sieve", "skipping"]
    assert {(info.files_covered, info.files_stale, info.state) for info in infos.values()} == {(FILES, 0, "ACTIVE")}
    assert opened.verify(deep=True).ok
    assert opened.get("name", "name 123").to_pylist() == [{"id": 123, "name": "name 123", "price": 15.375}]
    assert opened.files("name = 'name 123'").index == "lookup"
    assert opened.files("id = 123").pruned == FILES - 1
    assert opened.scan("price < 1").num_rows == 8
    assert opened.history()[0].action == "create table"


@pytest.mark.spark
def test_an_index_of_a_release_serves_queries_and_verbs(spark: "SparkSession", table: Path) -> None:
    lake = grebe.attach(spark)
    try:
        opened = lake.table(str(table))
        assert opened.verify(deep=True).ok
        assert [info.files_stale for info in opened.refresh()] == [0] * 4
        assert [info.rows for info in opened.refresh("covering", mode="full")] == [ROWS]
        frame = spark.read.parquet(str(table)).where("id = 7").select("price")
        assert [row.price for row in frame.collect()] == [0.875]
    finally:
        lake.detach()
