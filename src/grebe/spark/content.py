"""Writes and reads the content of an index: Parquet files under names of our own, by Spark's own writer and reader."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from grebe.indexes.columns import spark_schema
from grebe.indexes.content.copies import by_folder, listed
from grebe.indexes.content.directory import NAME, read_directory
from grebe.log.entry import ContentFile
from grebe.spark.shim import load
from grebe.spark.stores import hadoop_uri
from grebe.store.protocol import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DEFAULTS = {
    "compression": "zstd",
    # Nobody but us reads the folder before the log names its files, so that tasks may commit by themselves.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "parquet.summary.metadata.level": "NONE",
}


def write_content(frame: "DataFrame", folder: str, options: Mapping[str, str] | None = None) -> None:
    """Each partition p of the frame becomes one or more files `…_{p:05d}.gix` below the folder (a URI), rows in the given order.

    Options are those of the Parquet writer and of Hadoop; `maxRecordsPerFile` cuts a partition into several files, in order.
    """
    shim = load(frame.sparkSession)
    settings = shim.gateway.jvm.java.util.HashMap()
    for name, value in {**_DEFAULTS, **(options or {})}.items():
        settings.put(name, value)
    shim.bridge.write(frame._jdf, hadoop_uri(frame.sparkSession, folder), settings)


def read_content(
    session: "SparkSession", index: str, store: Store, files: Sequence[ContentFile], fields: Sequence[tuple[str, str]]
) -> "DataFrame":
    """Return the rows of these files of an index; `fields` are names and Spark types of columns. Every byte that Spark reads is
    compared with its checksum. Raises `CorruptIndex` where a directory is damaged; a damaged file fails Spark's job."""
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    folders = {folder: some for folder, some in by_folder(tuple(files)).items() if any(file.rows for file in some)}
    if any(all(file.path != f"{folder}/{NAME}" for file in some) for folder, some in folders.items()):
        # Release 0.1 wrote no directory for geometries.
        uris = [f"{store.uri}/{file.path}" for file in files if file.rows]
        reader = session.read.schema(StructType.fromJson(spark_schema(fields))).format("parquet")
        reader = reader.option("__globPaths__", "false")  # each is the path of one file, whatever signs it has
        return reader.load([hadoop_uri(session, uri) for uri in uris])
    root = hadoop_uri(session, store.uri)
    tables = [listed(read_directory(store, folder), store.uri, folder, some) for folder, some in folders.items()]
    lines = "\n".join(checksum_lines(table, root) for table in tables)
    schema = json.dumps(spark_schema(fields), ensure_ascii=False)
    shim = load(session)
    return DataFrame(shim.bridge.content(session._jsparkSession, index, schema, lines), session)


def checksum_lines(directory: pa.Table, root: str) -> str:
    """Return a line for each file of a directory, as the Java class `FileChecksum` reads it; `root` is the URI of its store."""
    columns = (directory[name].to_pylist() for name in ("size", "tail", "tail_digest", "path"))
    return "\n".join(
        f"{size} {tail} {digest.hex()} {root}/{path}" for size, tail, digest, path in zip(*columns, strict=True)
    )
