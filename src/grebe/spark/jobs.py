"""Jobs of Spark that belong to an operation, so that they can be stopped with it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_AT_WORK: "dict[str, SparkContext]" = {}
"""Of each operation of this process that is in a block of `jobs_of`, where its jobs run."""


class Interruption:
    """The user's wish to stop what the main thread does: asked for, and raised there as a `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.raised = threading.Event()

    def take(self) -> bool:
        """Return whether to raise it now: jobs that were cancelled for it fail in many ways, none of which says why."""
        if not self.asked.is_set():
            return False
        self.raised.set()
        return True

    def clear(self) -> None:
        self.asked.clear()
        self.raised.clear()


INTERRUPTION = Interruption()


def _tag(operation: str) -> str:
    return f"grebe-{operation}"


@contextmanager
def jobs_of(session: "SparkSession", operation: str) -> Iterator[None]:
    """Jobs that this thread starts meanwhile, and threads that inherit from it, are those of the operation."""
    context = session.sparkContext
    context.addJobTag(_tag(operation))
    _AT_WORK[operation] = context
    try:
        yield
    finally:
        del _AT_WORK[operation]
        context.removeJobTag(_tag(operation))


def cancel_jobs(session: "SparkSession", operation: str) -> None:
    """Those of this session's Spark."""
    session.sparkContext.cancelJobsWithTag(_tag(operation))


def stop_jobs(operation: str) -> None:
    """Those that this process runs for the operation now, if any."""
    context = _AT_WORK.get(operation)
    if context is not None:
        context.cancelJobsWithTag(_tag(operation))
