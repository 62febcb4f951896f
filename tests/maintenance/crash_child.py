"""Processes that are killed in the midst of a verb.

`python -m tests.maintenance.crash_child` reads tasks, one JSON a line, and says of each how it ended. A task runs in a process of
its own, forked from one that has everything loaded, and kills itself (SIGKILL) at the given write to the store. Verbs that need
Spark mostly have that of the tests, which saves minutes: its JVM outlives the process, and goes on with what it was told to write.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grebe.config import Config
from grebe.indexes.lookup.spec import Lookup
from grebe.log.commit import Log
from grebe.log.entry import Verb
from grebe.log.operation import begin
from grebe.maintenance.cancel import cancel
from grebe.maintenance.delete import delete, restore
from grebe.maintenance.garbage import Limits
from grebe.maintenance.vacuum import vacuum
from grebe.session.lake_table import LakeTable
from grebe.store.local import LocalStore
from grebe.store.object import ObjectStore
from grebe.store.opening import open_store
from testbed.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = Config(vacuum_retention_seconds=0)
_PROBE = "probe-"


@dataclass(frozen=True)
class Task:
    verb: str
    table: str
    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict)
    dies_at: int = 0
    """The number of the write; 0: it does not die."""
    gateway: tuple[int, str] | None = None
    """Port and secret of the JVM; None: it starts one of its own, which ends when it does."""
    scratch: str = ""
    """A folder for that one."""


def lake_table(task: Task, session: "SparkSession") -> LakeTable:
    return LakeTable(session, task.table.replace("s3://", "s3a://"), location=task.location, config=AT_ONCE)


def log_of(task: Task) -> Log:
    return Log(open_store(task.location, task.storage_options)).open()


WITHOUT_SPARK: dict[str, Callable[[Log], object]] = {
    "begin": lambda log: log.store.put(f"{begin(log, Verb.REFRESH, ['i']).folder('i')}/half.gix", b"half"),
    "delete": lambda log: delete(log, "i"),
    "restore": lambda log: restore(log, "gone"),
    "vacuum": lambda log: vacuum(log, None, Limits(0)),
    "cancel": lambda log: cancel(log, "i"),
}
WITH_SPARK: dict[str, Callable[[LakeTable], object]] = {
    "create": lambda table: table.create(Lookup("new", on="id")),
    "refresh full": lambda table: table.refresh(mode="full"),
    "refresh incremental": lambda table: table.refresh(),
    "refresh quick": lambda table: table.refresh(mode="quick"),
    "optimize quick": lambda table: table.optimize("i"),
    "optimize full": lambda table: table.optimize("i", mode="full"),
    "repair": lambda table: table.repair(deep=False),
}


def carry_out(task: Task) -> None:
    if task.verb in WITHOUT_SPARK:
        WITHOUT_SPARK[task.verb](log_of(task))
    elif task.gateway is not None:
        WITH_SPARK[task.verb](lake_table(task, attached(*task.gateway)))
    else:
        with spark_session(Path(task.scratch)) as session:
            WITH_SPARK[task.verb](lake_table(task, session))


def attached(port: int, secret: str) -> "SparkSession":
    """A session of its own in a JVM that another process has started."""
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()  # type: ignore[no-untyped-call]  # PySpark does not say
    jvm: Any = gateway.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jvm=jvm, _jconf=java.getConf()))
    session = jvm.org.apache.spark.sql.classic.SparkSession.builder().getOrCreate().newSession()
    return SparkSession(context, session)


def dying_at(number: int) -> None:
    """From now on the process is killed right before that write. What tries the store out does not count."""
    writes = 0

    def counted(method: Any) -> Any:
        def write(self: Any, path: str, *rest: Any) -> Any:
            nonlocal writes
            writes += not path.startswith(_PROBE)
            if writes == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(self, path, *rest)

        return write

    for store in (LocalStore, ObjectStore):
        for name in ("put", "put_if_absent", "delete"):
            setattr(store, name, counted(getattr(store, name)))


def main() -> None:
    for line in sys.stdin:
        task = Task(**json.loads(line))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                dying_at(task.dies_at)
                carry_out(task)
                code = 0
            except BaseException:  # noqa: BLE001 - whatever it is, this process ends here, and the test is told
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


class Children:
    """Of the tests."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, task: Task) -> int:
        """How the process ended: 0, or minus the number of a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(task)) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def children() -> Iterator[Children]:
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Children(process)
        assert process.stdin is not None
        process.stdin.close()


if __name__ == "__main__":
    main()


def call_back(spark: "SparkSession") -> None:
    """Each process that attaches itself to the JVM tells it to call that one from now on; this one needs its calls again."""
    from py4j.java_gateway import JavaObject

    gateway: Any = spark.sparkContext._gateway
    if getattr(gateway, "_callback_server", None) is not None:
        server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
        port = gateway._callback_server.server_socket.getsockname()[1]
        server.resetCallbackClient(server.getCallbackClient().getAddress(), port)
