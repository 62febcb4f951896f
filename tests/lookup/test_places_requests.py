"""What boxes and neighbours ask of a store: how many requests wait for one another."""

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.indexes.spatial import probe
from grebe.session.table import Table
from testbed import maven
from testbed.proxy import FaultProxy, Seen, rounds
from testbed.s3 import S3Server
from testbed.spark import use_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("s3")]
LATENCY = 0.1
BOX = (10.0, 10.0, 10.6, 10.6)


@pytest.fixture(scope="module")
def place(spark: "SparkSession", s3_server: S3Server) -> str:
    if not maven.s3a_jars():
        pytest.skip("there is no s3a for this Spark")
    use_s3(spark, s3_server)
    uri = s3_server.uri(SYSTEM.new_id())
    hadoop = uri.replace("s3://", "s3a://")
    columns = ("id", "pmod(xxhash64(id), 36000) / 100D AS x", "pmod(xxhash64(id, 1), 18000) / 100D AS y")
    spark.range(0, 60_000, 1, 4).selectExpr(*columns).write.parquet(hadoop)
    lake = grebe.attach(spark)
    try:
        lake.table(hadoop).create(grebe.Spatial("place", x="x", y="y"))
    finally:
        lake.detach()
    return uri


@pytest.fixture
def cold(place: str, s3_server: S3Server, proxy: FaultProxy) -> Iterator[Table]:
    proxy.plan(latency=LATENCY)
    config = grebe.Config(cache_bytes=50_000_000 + random.SystemRandom().randrange(10**6))
    options = {**s3_server.storage_options, "endpoint": proxy.endpoint}
    yield grebe.open(place, storage_options=options, config=config)
    proxy.plan()


def asked(proxy: FaultProxy) -> list[Seen]:
    seen = proxy.seen()
    proxy.plan(latency=LATENCY)
    return seen


def test_a_cold_box_takes_the_tree_the_entries_and_the_rows(cold: Table, proxy: FaultProxy) -> None:
    asked(proxy)
    found = cold.within(BOX)
    seen = asked(proxy)
    assert 0 < found.num_rows < 50
    assert rounds(seen) <= 3, seen


def test_a_large_tree_takes_one_round_more(cold: Table, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_READ_WHOLE", 0)
    asked(proxy)
    assert cold.within(BOX, ["x", "y"]).num_rows > 0
    assert rounds(asked(proxy)) <= 3


def test_coordinates_of_a_warm_index_take_one_round(cold: Table, proxy: FaultProxy) -> None:
    cold.warm("place")
    asked(proxy)
    assert cold.within(BOX, ["x", "y"]).num_rows > 0
    assert rounds(asked(proxy)) <= 1


def test_neighbours_take_few_rounds(cold: Table, proxy: FaultProxy) -> None:
    asked(proxy)
    assert cold.nearest(100.0, 100.0, 10).num_rows == 10
    seen = asked(proxy)
    assert rounds(seen) <= 5, seen
