"""Indexes of a table on S3: content written by Spark through s3a, the log through conditional puts."""

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.clock import SYSTEM
from grebe.indexes.covering.spec import Covering
from grebe.log.commit import Log
from grebe.log.location import beside
from grebe.session.lake_table import LakeTable
from grebe.store.opening import open_store
from testbed.s3 import S3Server
from testbed.spark import use_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def parquet(*ids: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), sink)
    return sink.getvalue()


def test_an_index_on_s3_is_created_and_refreshed(spark: "SparkSession", s3_server: S3Server) -> None:
    use_s3(spark, s3_server)
    uri = f"{s3_server.uri(SYSTEM.new_id())}/my orders"
    files = open_store(uri, s3_server.storage_options)
    files.put("a.parquet", parquet(1, 2, 3))
    table = LakeTable(spark, uri.replace("s3://", "s3a://"))
    assert table.uri == uri
    (made,) = table.create(Covering("i", on="id", buckets=2))
    assert (made.rows, made.files_covered, made.files_stale) == (3, 1, 0)
    files.put("b.parquet", parquet(4))
    assert table.index("i").files_stale == 1
    (refreshed,) = table.refresh()
    assert (refreshed.rows, refreshed.files_covered, refreshed.files_stale) == (4, 2, 0)
    log = Log(open_store(beside(uri), s3_server.storage_options)).open()
    copy = Covering.copy_of(log.state.indexes["i"], log.store)
    read = [
        pq.read_table(pa.BufferReader(log.store.get(path)))["id"].to_pylist()
        for path in copy.content["path"].to_pylist()
    ]
    assert sorted(id for ids in read for id in ids) == [1, 2, 3, 4]
    objects = {info.path for info in log.store.list("data")}
    assert objects == {file.path for file in log.state.indexes["i"].content} | set(log.state.retired)
