"""A table on an object store is the one that Spark sees there, whatever its files are called."""

from typing import TYPE_CHECKING

import pytest

from grebe.errors import TableNotFound
from grebe.files import canonical_uri
from grebe.sources import open_source
from grebe.store.opening import open_store
from testbed.s3 import S3Server
from testbed.spark import use_s3
from tests.sources.whole_table import read_with_spark, read_without_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NAMES = ["plain.txt", "a b.txt", "50%.txt", "a%20b.txt", "a#b.txt", "ü.txt", "a+b.txt", "a&b;c.txt", "x=y.txt"]


def test_names_partitions_and_globs_on_s3(spark: "SparkSession", s3_server: S3Server) -> None:
    use_s3(spark, s3_server)
    store = open_store(s3_server.uri("sources/odd table"), s3_server.storage_options)
    for name in NAMES:
        for value in ("1", "c%2F #d"):
            store.put(f"k={value}/{name}", f"{value} {name}\n".encode())
    store.put("k=1/_SUCCESS", b"")
    path = "s3a://lake/sources/odd table"
    source = open_source(path, storage_options=s3_server.storage_options)
    assert (source.uri, source.settling_ms) == ("s3://lake/sources/odd table", 2000)
    assert read_without_spark(source) == read_with_spark(spark, "text", [path])
    seen = {canonical_uri(uri, encoded=True) for uri in spark.read.text(path).inputFiles()}
    assert set(source.files().uris().to_pylist()) == seen
    for glob in ("s3a://lake/sources/odd */k=[a-e]*", "s3a://lake/sources/odd table/k=1/*.txt"):
        ours = open_source(glob, storage_options=s3_server.storage_options)
        assert read_without_spark(ours) == read_with_spark(spark, "text", [glob])
    assert source.files().table["etag"].null_count == 0


def test_identity_on_s3_is_what_spark_sees_of_a_file(spark: "SparkSession", s3_server: S3Server) -> None:
    use_s3(spark, s3_server)
    open_store(s3_server.uri("sources/identity"), s3_server.storage_options).put("f.txt", b"some bytes\n")
    row = spark.read.text("s3a://lake/sources/identity").selectExpr(
        "_metadata.file_path", "_metadata.file_size", "unix_millis(_metadata.file_modification_time)"
    )
    files = open_source(s3_server.uri("sources/identity"), storage_options=s3_server.storage_options).files()
    (seen,) = row.collect()
    assert canonical_uri(seen[0], encoded=True) == files.uris()[0].as_py()
    assert (seen[1], seen[2]) == (files.table["size"][0].as_py(), files.table["modified_ms"][0].as_py())


def test_nothing_on_s3_is_no_table(s3_server: S3Server) -> None:
    with pytest.raises(TableNotFound, match="s3://lake/sources/absent"):
        open_source(s3_server.uri("sources/absent"), storage_options=s3_server.storage_options)
