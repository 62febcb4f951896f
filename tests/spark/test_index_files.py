"""Files of an index in an object store: opened without a request, their ends fetched once, and read in one round."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.store.opening import open_store
from testbed import maven
from testbed.proxy import FaultProxy, Seen, Step, rounds
from testbed.s3 import S3Server
from testbed.spark import use_s3
from tests.project.tree import ROOT
from tests.spark.served import Served
from tests.spark.streams import stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark index files")]

LATENCY = 0.05


@pytest.fixture
def place(served: Served, s3_server: S3Server, proxy: FaultProxy) -> Iterator[str]:
    if not maven.s3a_jars():
        pytest.skip("there is no s3a for this Spark")
    use_s3(served.spark, replace(s3_server, endpoint=proxy.endpoint))
    uri = s3_server.uri(SYSTEM.new_id()).replace("s3://", "s3a://")
    _forget_server(served.spark, uri)
    yield uri
    use_s3(served.spark, s3_server)
    _forget_server(served.spark, uri)


def _forget_server(spark: "SparkSession", uri: str) -> None:
    """The JVM remembers for every bucket which server it is on."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(uri)
    path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).close()


def _of_index(proxy: FaultProxy) -> list[Seen]:
    return [one for one in proxy.seen() if ".gix" in one.path and "directory" not in one.path]


def _laid_out(served: Served, place: str, rows: int) -> str:
    """In one file, with an index of pages that is longer than what is fetched at first."""
    frame = served.spark.range(rows).selectExpr("id", "id % 977 AS k", *(f"hash(id, {n}) AS c{n}" for n in range(8)))
    frame.coalesce(1).write.parquet(place)
    queries = [f"k BETWEEN {low} AND {low + 40} AND c0 > 0" for low in range(0, 900, 30)]
    served.lake.table(place).create(grebe.Layout("laid_out", queries=queries))
    return "SELECT count(*), sum(c1), sum(c2), max(c3) FROM far WHERE k IN ({0}, {0} + 1, {1})"


def test_a_file_is_opened_in_few_rounds_and_its_end_is_fetched_once(
    served: Served, place: str, proxy: FaultProxy, s3_server: S3Server
) -> None:
    from py4j.protocol import Py4JJavaError

    query = _laid_out(served, place, 150_000)
    served.spark.read.parquet(place).createOrReplaceTempView("far")
    served.same(query.format(3, 5), "laid_out")
    served.same(query.format(100, 120), "laid_out")
    proxy.plan(latency=LATENCY)
    assert served.run(query.format(200, 220)).used == ["laid_out"]
    seen = _of_index(proxy)
    proxy.plan()
    files = {one.path for one in seen}
    assert {one.kind for one in seen} == {"GET"}
    assert 1 <= rounds(seen) <= len(files), seen
    lengths = {file: _length(served.spark, file) for file in files}
    assert all(int(one.span.split("-")[1]) < lengths[one.path] - 8 for one in seen), "no footer again"
    asked = Counter((one.path, one.span.split("-")[0]) for one in seen)
    assert asked.most_common(1)[0][1] == 1, "no dictionary before the data"
    # What is kept of a file does not hide that it is gone.
    _delete(s3_server, place)
    with pytest.raises(Py4JJavaError, match="CORRUPT_INDEX_MISSING"):
        served.run(query.format(300, 310))
    assert served.same_rows(query.format(300, 310)).used == []


def _delete(server: S3Server, place: str) -> None:
    store = open_store(server.uri(f"_grebe/{place.rsplit('/', 1)[1]}"), server.storage_options)
    for found in list(store.list("data")):
        if "part-" in found.path:
            store.delete(found.path)


def _length(spark: "SparkSession", file: str) -> int:
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"s3a:/{file}")
    found: int = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).getFileStatus(path).getLen()
    return found


def test_small_files_are_kept(served: Served, place: str, proxy: FaultProxy) -> None:
    served.spark.range(3_000).selectExpr("id % 50 AS k", "id AS v").coalesce(1).write.parquet(place)
    served.lake.table(place).create(grebe.Covering("small", on="k", include=["v"], buckets=2))
    query = f"SELECT count(*), sum(v) FROM parquet.`{place}` WHERE k = 7"
    served.same(query, "small")
    proxy.plan()
    served.same(query, "small")
    assert _of_index(proxy) == []


def test_requests_that_fail_are_asked_again(served: Served, place: str, proxy: FaultProxy) -> None:
    query = _laid_out(served, place, 20_000)
    served.spark.read.parquet(place).createOrReplaceTempView("far")
    faults = ("503 before", "cut short", "reset before")
    proxy.plan([Step(fault, "GET", ".gix", 1) for fault in faults])
    served.same(query.format(3, 9), "laid_out")
    assert {one.fault for one in proxy.seen()} >= set(faults)


@pytest.mark.parametrize("size", [1, 100, 65_535, 65_536, 65_537, 1_500_000, 4_000_000])
def test_whatever_is_read_of_a_file_is_what_it_holds(served: Served, tmp_path: Path, size: int) -> None:
    """At places of all sorts, most of them near its end, in any order: from memory, from the file, and across."""
    chance = np.random.default_rng(size)
    content = chance.bytes(size)
    (tmp_path / "file").write_bytes(content)
    stream = _stream(served, tmp_path / "file", size)
    distances = np.minimum(size, (2 ** chance.uniform(0, np.log2(size + 1), 40)).astype(int))
    for start in (size - distances).tolist():
        length = int(min(size - start, 2 ** chance.uniform(0, 17)))
        stream.seek(start)
        assert stream.readNBytes(length) == content[start : start + length], (start, length)
        assert stream.getPos() == start + length
    stream.seek(size)
    assert stream.read() == -1
    stream.close()


def _stream(served: Served, file: Path, size: int) -> Any:
    """Of a file that is not compared with anything."""
    return stream_of(served, f"{size} 0 00 file:{file}", verified=False)


_ON_EXECUTORS = """
import os, sys
from pathlib import Path
import grebe
from testbed import maven
from testbed.s3 import s3_server
from testbed.spark import SHORT_LIVED, spark_session, use_s3
jars = os.pathsep.join(map(str, maven.s3a_jars()))
cluster = {"spark.master": "local-cluster[1,2,1024]", "spark.executor.extraClassPath": jars}
with s3_server() as server, spark_session(Path(sys.argv[1]), {**SHORT_LIVED, **cluster}) as spark:
    use_s3(spark, server)
    place = server.uri("t").replace("s3://", "s3a://")
    spark.range(200_000).selectExpr("id", "id % 1000 AS k", "hex(id) AS text").write.parquet(place)
    lake = grebe.attach(spark)
    lake.table(place).create(grebe.Covering("by_k", on="k", include=["id", "text"]))
    frame = spark.read.parquet(place).where("k = 7")
    assert "by_k" in str(lake.explain(frame))
    rows = frame.collect()
    lake.enabled = False
    assert sorted(rows) == sorted(spark.read.parquet(place).where("k = 7").collect()) and len(rows) == 200
print("executors have it")
"""


@pytest.mark.soak
def test_executors_in_processes_of_their_own_find_the_classes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _ON_EXECUTORS, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.stdout.splitlines()[-1:] == ["executors have it"], ran.stderr[-2000:]
