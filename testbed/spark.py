"""A small Spark for tests, and how it reaches the servers."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grebe.spark import shim
from grebe.spark.java import find_java
from testbed import maven
from testbed.s3 import S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SHORT_LIVED = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For tests, whose queries are over before the thorough compiler is done with them, and whose few rows are not worth a program of
their own; not for what is measured. All that is compiled has room: the 48 MB that this compiler is given by itself are full after a
minute of tests, and are emptied and filled again from then on."""
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""As is Spark's default."""


@contextlib.contextmanager
def spark_session(folder: Path, settings: Mapping[str, str] | None = None) -> "Iterator[SparkSession]":
    """A session of two threads, without a user interface, that keeps its files below `folder` and knows s3a://."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master("local[2]").appName("grebe tests")
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, (*maven.s3a_jars(), *maven.lake_jars()))),
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "scratch"),
    }
    for key, value in {**defaults, **_lake_settings(folder), **(settings or {})}.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _lake_settings(folder: Path) -> dict[str, str]:
    """The lake formats that there are for this Spark, as their own pages say that they are to be set up."""
    match maven.spark_version():
        case "4.1":
            delta, iceberg = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.iceberg.spark."
            return {
                "spark.sql.extensions": f"{delta},{iceberg}extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                "spark.sql.catalog.ice": f"{iceberg}SparkCatalog",
                "spark.sql.catalog.ice.type": "hadoop",
                "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
                # Few files do not need fifty tasks to list them, and VACUUM not ten thousand.
                "spark.databricks.delta.snapshotPartitions": "1",
                # The one for HDFS, which is the default for files too, starts four processes for each commit.
                "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
                "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
            }
        case "3.5":
            return {
                "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
                "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
                "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            }
        case _:
            return {}


@contextlib.contextmanager
def configured(session: "SparkSession", settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, and then as it was."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def drop_views(session: "SparkSession") -> None:
    """All temporary views of the session."""
    for row in session.sql("SHOW VIEWS").collect():
        if row.isTemporary:
            session.catalog.dropTempView(row.viewName)


def forget_tables() -> None:
    """All that queries and verbs of this process have met: who asks for every table with indexes reads the logs of them all."""
    for loaded in shim._BRIDGES.values():
        if (planning := loaded.planning) is not None:
            for met in (planning.seats, planning.tables._touched, planning.tables._by_root, planning.tables._by_place):
                met.clear()


def use_s3(session: "SparkSession", server: S3Server) -> None:
    """Lets the session read and write `s3a://` on this server, from now on."""
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    for key, value in {
        "endpoint": server.endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": server.key,
        "secret.key": server.secret,
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }.items():
        configuration.set(f"fs.s3a.{key}", value)
