"""A stream as a task reads a file of an index through it."""

from typing import Any

from tests.spark.served import Served


def stream_of(served: Served, line: str, verified: bool) -> Any:
    """`line`: size, tail, digest and URI of the file, as the Java class `FileChecksum` reads it."""
    gateway = served.lake._spark._shim.gateway
    jvm = gateway.jvm
    loader = served.lake._spark._shim.bridge.getClass().getClassLoader()
    parse = loader.loadClass("grebe.spark.FileChecksum").getDeclaredMethods()
    (parse,) = [one for one in parse if one.getName() == "parse"]
    parse.setAccessible(True)
    expected = parse.invoke(None, _array(gateway, "by_k", line))
    size, _, _, uri = line.split(" ", 3)
    status = jvm.org.apache.hadoop.fs.FileStatus(int(size), False, 1, int(size), 0, jvm.org.apache.hadoop.fs.Path(uri))
    opening = _made(gateway, loader, "IndexFiles$Opening", status, expected, verified)
    store = jvm.org.apache.hadoop.fs.FileSystem.getLocal(served.spark.sparkContext._jsc.hadoopConfiguration())
    return jvm.org.apache.hadoop.fs.FSDataInputStream(_made(gateway, loader, "IndexStream", store, opening))


def forget_ends(served: Served) -> None:
    """Let tasks read the ends of local files again, which they keep for each file system that Hadoop has made."""
    jvm: Any = served.spark.sparkContext._jvm
    conf = served.spark.sparkContext._jsc.hadoopConfiguration()
    jvm.org.apache.hadoop.fs.Path("file:///").getFileSystem(conf).close()


def _made(gateway: Any, loader: Any, name: str, *arguments: Any) -> Any:
    constructor = loader.loadClass(f"grebe.spark.{name}").getDeclaredConstructors()[0]
    constructor.setAccessible(True)
    return constructor.newInstance(_array(gateway, *arguments))


def _array(gateway: Any, *items: Any) -> Any:
    made = gateway.new_array(gateway.jvm.java.lang.Object, len(items))
    for number, item in enumerate(items):
        made[number] = item
    return made
