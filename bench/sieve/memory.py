"""How much memory the processes of a session hold while something runs, and how many bytes they read. Linux only."""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_BETWEEN = 0.2


def jvm_of(spark: "SparkSession") -> int:
    """The id of the process."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.ProcessHandle.current().pid())


def bytes_read(*processes: int) -> int:
    """So far, by these processes, from whatever they read."""
    counted = ((Path("/proc") / str(one) / "io").read_text() for one in (*processes, os.getpid()))
    return sum(int(line.split()[1]) for text in counted for line in text.splitlines() if line.startswith("rchar:"))


class Watch:
    """Looks several times a second. What processes share counts for each in part, so that sums are true."""

    def __init__(self, spark: "SparkSession") -> None:
        self._jvm = jvm_of(spark)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.jvm = 0
        """The most that it held, in bytes."""
        self.workers = 0
        """The most that all Python workers of it held together."""

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.is_set():
            self.jvm = max(self.jvm, _held(self._jvm))
            self.workers = max(self.workers, sum(map(_held, _below(self._jvm))))
            self._done.wait(_SECONDS_BETWEEN)


def _below(process: int) -> list[int]:
    found: list[int] = []
    for children in (Path("/proc") / str(process) / "task").glob("*/children"):
        for child in map(int, _text(children).split()):
            found += [child, *_below(child)]
    return found


def _held(process: int) -> int:
    lines = _text(Path("/proc") / str(process) / "smaps_rollup").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _text(file: Path) -> str:
    """Nothing of a process that has ended meanwhile."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def resident() -> int:
    """Of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
