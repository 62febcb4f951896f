"""A real one-node HDFS: Hadoop's MiniDFSCluster in a JVM of its own.

The JVM runs py4j's gateway, which comes with PySpark, and the cluster is built over it: so no Java source has to be compiled, and a
run-time without a compiler will do.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grebe.spark.java import find_java
from testbed import maven
from testbed.process import Child, running, scratch_folder

_FROM_PYSPARK = [
    "hadoop-client-api",
    "hadoop-client-runtime",
    "slf4j-api",
    "jcl-over-slf4j",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "log4j-1.2-api",  # Hadoop 3.3, which comes with Spark 3.5, still speaks to log4j 1
    "py4j",
]


@dataclass(frozen=True)
class HdfsServer:
    address: str

    def uri(self, path: str = "") -> str:
        return f"hdfs://{self.address}/{path}".rstrip("/")


@contextlib.contextmanager
def hdfs_server() -> Iterator[HdfsServer]:
    folder = scratch_folder("hdfs")
    jars = [*maven.minicluster_jars(), *(maven.spark_jar(name) for name in _FROM_PYSPARK)]
    command: list[str | Path] = [
        find_java().home / "bin" / "java",
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        os.pathsep.join(map(str, jars)),
        "py4j.GatewayServer",
        "--enable-auth",
        "0",
    ]
    with running(folder, command) as child:
        child.wait_until(lambda: _gateway(child) is not None)
        yield HdfsServer(f"127.0.0.1:{_start_cluster(child)}")


def _gateway(child: Child) -> tuple[int, str] | None:
    """Port and secret of the gateway, which it prints on two lines when it is ready."""
    said = re.match(r"(\d+)\n(\S+)\n", child.output())
    return (int(said[1]), said[2]) if said else None


def _start_cluster(child: Child) -> int:
    from py4j.java_gateway import GatewayParameters, JavaGateway

    found = _gateway(child)
    assert found is not None
    port, secret = found
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
    try:
        configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
        configuration.set("dfs.namenode.http-address", "127.0.0.1:0")
        configuration.set("dfs.datanode.use.datanode.hostname", "false")
        # A file may be closed as soon as its last block is committed, which takes two datanodes: here the client asks before the
        # datanode has reported, and would then wait for half a second.
        configuration.set("dfs.namenode.file.close.num-committed-allowed", "1")
        # A listing comes in pages of this many, so that a test need not make thousands of files to see two.
        configuration.set("dfs.ls.limit", "100")
        # What is written is thrown away with the server: nothing is gained by waiting for the disk.
        configuration.set("dfs.namenode.edits.noeditlogchannelflush", "true")
        # Hadoop 3.3 logs its metrics through classes of log4j 1 that the bridge does not have.
        configuration.set("dfs.namenode.metrics.logger.period.seconds", "0")
        configuration.set("dfs.datanode.metrics.logger.period.seconds", "0")
        folder = gateway.jvm.java.io.File(str(child.folder / "dfs"))
        builder = gateway.jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(configuration, folder)
        cluster = builder.numDataNodes(2).nameNodePort(0).build()
        cluster.waitActive()
        return int(cluster.getNameNodePort())
    finally:
        gateway.close()
