"""Hadoop file systems through Spark's JVM: which get put-if-absent, and that both sides see the same files."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grebe.clock import SYSTEM
from grebe.errors import StoreRefused
from grebe.store.hadoop import HadoopStore, hadoop_store
from grebe.store.hdfs import HdfsStore
from grebe.store.local import LocalStore
from grebe.store.opening import open_store
from grebe.store.protocol import ObjectExists, ObjectMissing, OutcomeUnknown
from testbed import maven
from testbed.hdfs import HdfsServer
from testbed.s3 import S3Server
from testbed.spark import use_s3
from testbed.tcp_proxy import tcp_proxy
from tests.store.hdfs_tables import PARTITIONED, HdfsTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("hdfs")]


def test_local_files_never_go_through_hadoop(spark: "SparkSession", tmp_path: Path) -> None:
    for uri in (str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}"):
        store = hadoop_store(spark, uri)
        assert isinstance(store, LocalStore)
        assert store.uri == f"file://{tmp_path}"


def test_with_and_without_a_jvm_the_same_files_are_seen(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    uri = hdfs_server.uri(SYSTEM.new_id())
    with_jvm, without = hadoop_store(spark, uri), open_store(uri)
    assert with_jvm.uri == without.uri
    with_jvm.put_if_absent("folder/a b%20c=ü", b"by Hadoop")
    without.put_if_absent("folder/other", b"by the native client")
    assert list(with_jvm.list()) == list(without.list())
    assert without.get("folder/a b%20c=ü") == b"by Hadoop"
    for first, second in ((with_jvm, without), (without, with_jvm)):
        path = f"taken by {type(first).__name__}"
        first.put_if_absent(path, b"first")
        with pytest.raises(ObjectExists):
            second.put_if_absent(path, b"second")
        assert second.get(path) == b"first"


def test_losing_leaves_no_draft(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    uri = hdfs_server.uri(SYSTEM.new_id())
    store = hadoop_store(spark, uri)
    store.put_if_absent("object", b"first")
    with pytest.raises(ObjectExists):
        store.put_if_absent("object", b"second")
    assert list(open_store(f"{uri}/.grebe-drafts").list()) == []


def test_what_cannot_be_is_refused(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    store = hadoop_store(spark, hdfs_server.uri(SYSTEM.new_id()))
    store.put("a", b"x")
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StoreRefused) as refused:
            write("a/b", b"x")
        assert refused.value.code == "STORE_REFUSED_PATH"


def test_an_unknown_file_system_is_refused(spark: "SparkSession") -> None:
    with pytest.raises(StoreRefused) as refused:
        hadoop_store(spark, "nosuchfs://host/x")
    assert refused.value.code == "STORE_REFUSED_UNSUPPORTED"


def test_a_rename_that_never_arrives_does_no_harm(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    root = SYSTEM.new_id()
    direct = open_store(hdfs_server.uri(root))
    direct.put("log/0", b"the folder is there")
    with tcp_proxy(hdfs_server.address) as proxy:
        store = hadoop_store(spark, f"hdfs://127.0.0.1:{proxy.port}/{root}")
        proxy.breaks[b"rename2"] = "before"
        try:
            store.put_if_absent("log/1", b"mine")
        except OutcomeUnknown:
            with pytest.raises(ObjectMissing):
                direct.get("log/1")
            store.put_if_absent("log/1", b"mine")
        assert proxy.broken == [b"rename2"]
    assert direct.get("log/1") == b"mine"


@pytest.mark.skipif(not maven.knows_s3a(), reason="the jars for s3a:// are chosen for Hadoop 3.4")
def test_an_object_store_is_read_but_not_trusted_through_hadoop(spark: "SparkSession", s3_server: S3Server) -> None:
    use_s3(spark, s3_server)
    root = SYSTEM.new_id()
    direct = open_store(s3_server.uri(root), s3_server.storage_options)
    direct.put("table/part-0", b"0123456789")
    store = hadoop_store(spark, f"s3a://{s3_server.bucket}/{root}")
    assert isinstance(store, HadoopStore)
    assert store.uri == direct.uri
    assert store.get_range("table/part-0", 3, 4) == b"3456"
    assert [(info.path, info.size) for info in store.list()] == [("table/part-0", 10)]
    with pytest.raises(StoreRefused, match="location=") as refused:
        store.put_if_absent("log/0", b"x")
    assert refused.value.code == "STORE_REFUSED_NO_PUT_IF_ABSENT"


@pytest.mark.skipif(not maven.knows_s3a(), reason="the jars for s3a:// are chosen for Hadoop 3.4")
def test_what_spark_writes_to_s3_is_seen_by_the_store(spark: "SparkSession", s3_server: S3Server) -> None:
    use_s3(spark, s3_server)
    root = SYSTEM.new_id()
    spark.range(10).write.parquet(f"s3a://{s3_server.bucket}/{root}/numbers")
    found = [info.path for info in open_store(s3_server.uri(root), s3_server.storage_options).list("numbers")]
    assert any(path.endswith(".parquet") for path in found)
    assert "numbers/_SUCCESS" in found


@pytest.mark.parametrize(("folder", "file", "expected"), [(0o700, 0o600, 0o700), (0o755, 0o640, 0o750)])
def test_what_is_made_beside_a_table_is_closed_to_whoever_may_not_read_it(
    spark: "SparkSession", hdfs_server: HdfsServer, folder: int, file: int, expected: int
) -> None:
    lake = SYSTEM.new_id()
    table = HdfsStore(hdfs_server.uri(f"{lake}/t"), {})
    table.put("part-0", b"x")
    table._client.set_permission(f"/{lake}/t/part-0", file)
    table._client.set_permission(f"/{lake}/t", folder)
    store = hadoop_store(spark, hdfs_server.uri(f"{lake}/_grebe/t"))
    assert isinstance(store, HadoopStore)
    store.take_access_of(table.uri)
    store.make_folder("data/x")
    store.put_if_absent("log/0", b"x")
    assert table._client.get_file_info(f"/{lake}/_grebe/t").permission & 0o777 == expected


def test_an_access_control_list_of_the_table_is_taken_over(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    from hdfs_native import AclEntry

    lake = SYSTEM.new_id()
    table = HdfsStore(hdfs_server.uri(f"{lake}/t"), {})
    table.put("part-0", b"x")
    table._client.set_permission(f"/{lake}/t/part-0", 0o640)
    table._client.set_permission(f"/{lake}/t", 0o750)
    for path in (f"/{lake}/t", f"/{lake}/t/part-0"):
        table._client.modify_acl_entries(path, [AclEntry("user", "access", "r-x", "alice")])
    store = hadoop_store(spark, hdfs_server.uri(f"{lake}/_grebe/t"))
    assert isinstance(store, HadoopStore)
    store.take_access_of(table.uri)
    store.put_if_absent("log/0", b"x")
    made = table._client.get_acl_status(f"/{lake}/_grebe/t")
    assert {(one.type, one.name, one.permissions) for one in made.entries} >= {("user", "alice", "r-x")}
    assert made.permission & 0o007 == 0
    without = HdfsStore(hdfs_server.uri(f"{lake}/_grebe/u"), {})
    without.take_access_of(table.uri)
    without.put_if_absent("log/0", b"x")
    assert table._client.get_file_info(f"/{lake}/_grebe/u").permission & 0o777 == 0o700


def prepared(spark: "SparkSession", table: HdfsTable) -> None:
    store = hadoop_store(spark, table.uri("_grebe/t"))
    assert isinstance(store, HadoopStore)
    store.take_access_of(table.uri("t"))
    store.put_if_absent(f"log/{SYSTEM.new_id()}", b"x")


@pytest.mark.parametrize("what", PARTITIONED)
def test_what_is_made_beside_a_table_is_closed_to_whom_a_partition_keeps_out(
    spark: "SparkSession", hdfs_server: HdfsServer, what: str
) -> None:
    modes, expected = PARTITIONED[what]
    table = HdfsTable(hdfs_server)
    table.write("t/day=0/hour=0/part-0")
    table.write("t/day=1/hour=1/part-0", **modes)
    prepared(spark, table)
    assert table.mode("_grebe/t") == expected


def test_a_partition_that_is_closed_later_closes_the_indexes(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    for day in range(3):
        table.write(f"t/day={day}/part-0")
    prepared(spark, table)
    assert table.mode("_grebe/t") == 0o755
    table.chmod("t/day=1", 0o700)
    prepared(spark, table)
    assert table.mode("_grebe/t") == 0o700


def test_an_access_control_list_that_a_partition_has_not_is_not_taken_over(
    spark: "SparkSession", hdfs_server: HdfsServer
) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/day=1/part-0", 0o640, t=0o750, day_1=0o750)
    table.grant("t", "alice", "r-x")
    prepared(spark, table)
    assert table.mode("_grebe/t") == 0o700


def test_a_list_that_the_folder_above_hands_down_gets_nobody_in(spark: "SparkSession", hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0", 0o640, t=0o750)
    table.grant("", "carol", "r-x", "default")
    prepared(spark, table)
    entries = table.client.get_acl_status(f"/{table.lake}/_grebe/t").entries
    assert [one.name for one in entries if one.scope == "access" and one.name] == []
    assert table.mode("_grebe/t") == 0o750


def test_the_folder_of_all_indexes_is_as_open_as_that_of_the_tables(
    spark: "SparkSession", hdfs_server: HdfsServer
) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0", 0o600)
    table.chmod("", 0o1777)
    prepared(spark, table)
    assert table.client.get_file_info(f"/{table.lake}/_grebe").permission == 0o1777
    assert table.mode("_grebe/t") == 0o700
