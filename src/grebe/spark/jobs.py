"""Jobs of Spark that belong to an operation, so that they can be stopped with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_AT_WORK: "dict[str, SparkContext]" = {}
"""Of each operation of this process that is in a block of `jobs_of`, where its jobs run."""


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
