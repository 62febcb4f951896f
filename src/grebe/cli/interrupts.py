"""Ctrl-C while a command works with Spark.

PySpark's own handler calls the JVM from within the interrupted call to it, which breaks the connection of the thread and floods the
terminal. Here another thread cancels the jobs, so that the call under way returns, and the main thread is interrupted only where it
is outside of py4j.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from grebe.spark.jobs import INTERRUPTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AGAIN_EVERY = 0.1


@contextmanager
def held_back() -> Iterator[Callable[[], object]]:
    """Keep Ctrl-C back until the block ends, which is to be short: a Java whose start is interrupted is left to itself. The second
    one is let through. The function that is given does so anew, where the block has put another handler in place."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    asked = threading.Event()

    def handler(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    def hold() -> None:
        signal.signal(signal.SIGINT, handler)

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield hold
    finally:
        signal.signal(signal.SIGINT, before)
    if asked.is_set():
        raise KeyboardInterrupt


@contextmanager
def interruptible(session: "SparkSession") -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the main thread on Ctrl-C, after the jobs of the session were cancelled."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    left, again = threading.Event(), threading.Event()
    main = threading.get_ident()

    def cancel() -> None:
        # Again and again: jobs that are started only now are to be stopped as well.
        while not left.wait(_AGAIN_EVERY):
            session.sparkContext.cancelAllJobs()
            if not INTERRUPTION.raised.is_set():
                again.set()
                signal.pthread_kill(main, signal.SIGINT)

    def handler(number: int, frame: FrameType | None) -> None:
        if again.is_set():  # not the user, but the thread above
            again.clear()
            if INTERRUPTION.raised.is_set():
                return
        elif not INTERRUPTION.asked.is_set():
            INTERRUPTION.asked.set()
            threading.Thread(target=cancel, name="grebe interrupt", daemon=True).start()
        if not _calls_the_jvm(frame):
            INTERRUPTION.raised.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    except Exception as problem:
        if INTERRUPTION.take():
            raise KeyboardInterrupt from problem
        raise
    finally:
        INTERRUPTION.raised.set()
        left.set()
        signal.signal(signal.SIGINT, before)
        INTERRUPTION.clear()


def _calls_the_jvm(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == "py4j":
            return True
        frame = frame.f_back
    return False
