"""Writes the content of an index: Parquet files under names of our own, by Spark's own writer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grebe.spark.shim import load
from grebe.spark.stores import hadoop_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
