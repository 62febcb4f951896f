"""Tables on HDFS and S3: blocks keep their places, and queries are served where the data lies."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.files import canonical_uri
from testbed import maven
from testbed.hdfs import HdfsServer
from testbed.s3 import S3Server
from testbed.spark import use_s3
from tests.spark.served import Served, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark places")]


def _table(spark: "SparkSession", place: str) -> None:
    for start in (0, 300):
        frame = spark.range(start, start + 300).selectExpr("id % 40 AS k", "id AS v")
        frame.coalesce(1).write.mode("append").parquet(place)


def _hosts(frame: Any) -> list[str]:
    """Where the blocks of all files lie that the frame's scans read."""
    found: list[str] = []

    def look(plan: Any) -> None:
        for number in range(plan.children().size()):
            look(plan.children().apply(number))
        if plan.getClass().getSimpleName() == "LogicalRelation":
            found.extend(_hosts_of(plan.relation().location()))

    look(frame._jdf.queryExecution().optimizedPlan())
    return found


def _hosts_of(files: Any) -> Iterator[str]:
    nothing = files.rootPaths().drop(1_000)
    for directory in _items(files.listFiles(nothing, nothing)):
        for file in _items(directory.files()):
            blocks = file.fileStatus().getBlockLocations()
            assert len(blocks) > 0
            yield from (host for block in blocks for host in block.getHosts())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))


def test_restricted_scans_on_hdfs_know_where_their_blocks_lie(served: Served, hdfs_server: HdfsServer) -> None:
    place = hdfs_server.uri(SYSTEM.new_id())
    _table(served.spark, place)
    served.lake.table(place).create(grebe.Covering("near", on="k", include=["v"], buckets=4))

    def filtered(spark: "SparkSession") -> Any:
        return spark.read.parquet(place).where("k = 7").select("v")

    served.same(filtered, "near")
    served.lake.enabled = False
    where = set(_hosts(filtered(served.spark)))
    served.lake.enabled = True
    assert set(_hosts(filtered(served.spark))) == where != set()
    _table(served.spark, place)
    served.same(filtered, "near")
    hosts = _hosts(filtered(served.spark))
    assert len(hosts) >= 3
    assert set(hosts) == where


def test_tables_on_s3_are_served(served: Served, s3_server: S3Server) -> None:
    if not maven.s3a_jars():
        pytest.skip("there is no s3a for this Spark")
    use_s3(served.spark, s3_server)
    place = s3_server.uri(SYSTEM.new_id()).replace("s3://", "s3a://")
    _table(served.spark, place)
    served.lake.table(place).create(grebe.Covering("far", on="k", include=["v"], buckets=4))
    served.same(lambda spark: spark.read.parquet(place).groupBy("k").sum("v"), "far")
    _table(served.spark, place)
    seen = served.same(lambda spark: spark.read.parquet(place).groupBy("k").sum("v"), "far")
    assert seen.exchanges == 1


@pytest.mark.core
@pytest.mark.parametrize(
    "written",
    [
        "file:/a/b c/d%20e",
        "file:///a/b%25c",
        "/a/ä/日本",
        "s3a://Bucket/key=1/x",
        "s3n://bucket/key",
        "hdfs://HOST:8020/a/b",
        "abfss://box@account.dfs.core.windows.net/a",
        "wasbs://box@account.blob.core.windows.net/a",
        "gs://bucket/a+b",
    ],
)
def test_java_and_python_call_a_place_by_the_same_name(served: Served, written: str) -> None:
    gateway = served.lake._spark._shim.gateway
    jvm = gateway.jvm
    uri = Path(written).as_uri() if written.startswith("/") else written.replace(" ", "%20")
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    types = gateway.new_array(jvm.java.lang.Class, 1)
    types[0] = path.getClass()
    loader = served.lake._spark._shim.bridge.getClass().getClassLoader()
    method = loader.loadClass("grebe.spark.Snapshot").getDeclaredMethod("canonical", types)
    method.setAccessible(True)
    arguments = gateway.new_array(jvm.java.lang.Object, 1)
    arguments[0] = path
    assert method.invoke(None, arguments) == canonical_uri(uri, encoded=True)


def test_indexes_of_one_table_at_two_places_are_not_taken_for_each_other(served: Served, tmp_path: Path) -> None:
    """Not even if both logs are equally long and their indexes have the same names."""
    place, query = tmp_path / "t", "SELECT * FROM twice WHERE v = 777"
    write(place, {"v": [777, 1]}, {"v": [2, 3]}, {"v": [4, 5]})
    for location, rows_there in (("one", 1), ("other", 2)):
        served.lake.table(str(place), location=str(tmp_path / location)).create(
            grebe.Lookup("by_v", on="v"), grebe.Covering("copy", on="v", buckets=2)
        )
        served.view("twice", place)
        assert served.same_rows(query).rows.total() == rows_there
        with served.lake.only("by_v"):
            assert served.same(query, "by_v").rows.total() == rows_there
        write(place, {"v": [777, 8]})
