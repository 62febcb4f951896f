"""Jobs of Spark that belong to an operation, so that they can be stopped with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _tag(operation: str) -> str:
    return f"grebe-{operation}"


@contextmanager
def jobs_of(session: "SparkSession", operation: str) -> Iterator[None]:
    """Jobs that this thread starts meanwhile, and threads that inherit from it, are those of the operation."""
    context = session.sparkContext
    context.addJobTag(_tag(operation))
    try:
        yield
    finally:
        context.removeJobTag(_tag(operation))


def cancel_jobs(session: "SparkSession", operation: str) -> None:
    """Those of this session's Spark."""
    session.sparkContext.cancelJobsWithTag(_tag(operation))
