"""A table of a lake format rewritten by a commit of that format that changes no row: some of its files go, and their rows come back
in others. Whatever others commit meanwhile stays, or this fails and changes nothing."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from grebe.errors import Conflict, GrebeError, StoreUnreachable, Unsupported
from grebe.spark.conditions import condition_of
from grebe.spark.shim import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Arrange: TypeAlias = "Callable[[DataFrame, Sequence[str]], DataFrame]"
"""The rows in another order and in other partitions. The texts are expressions that tell a row's partition of the table."""
_UNKNOWN = "CommitStateUnknownException"


@dataclass(frozen=True, slots=True)
class Rewritten:
    version: str
    """Of the table, that the commit made."""
    files: int
    """That were written."""
    bytes: int


@contextmanager
def apart(session: "SparkSession") -> "Iterator[SparkSession]":
    """A session like this one in which no index is used, active while this runs."""
    from pyspark.sql import SparkSession

    jvm: Any = session._jvm
    made = session._jsparkSession.cloneSession()
    load(session).bridge.setEnabled(made, False)
    sessions = jvm.org.apache.spark.sql.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(made)
    try:
        yield SparkSession(session.sparkContext, made)
    finally:
        sessions.setActiveSession(before.get() if before.isDefined() else session._jsparkSession)


def count_of(frame: "DataFrame") -> int:
    """Its rows, counted without a query of Spark's, which would be recorded as one that somebody asked."""
    return int(frame.selectExpr("1 AS one")._jdf.queryExecution().toRdd().count())


def require_all_there(wanted: int, found: int, uri: str) -> None:
    if found != wanted:
        raise Conflict(
            f"{wanted - found} of the files of {uri} that were to be rewritten are gone: somebody else changed the table "
            "meanwhile. Nothing was changed; try again",
            detail="TABLE_CHANGED",
        )


def require_same_rows(expected: int, written: int, uri: str) -> None:
    """The last look before a commit."""
    if expected != written:
        raise GrebeError(
            f"the files of {uri} that were to be rewritten have {expected:,} rows, and {written:,} were written. Nothing was "
            "committed; please report it",
            detail="ROWS_LOST",
        )


@contextmanager
def format_errors(uri: str, conflicts: Collection[str], during: str) -> Iterator[None]:
    """What a format raises, as errors of ours. `conflicts`: classes that say that somebody else was first."""
    try:
        yield
    except Exception as problem:
        if type(problem).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        classes = _classes(problem)
        if classes & set(conflicts):
            raise Conflict(
                f"somebody else changed {uri} while it was rewritten, in a way that does not go together with it "
                f"({condition_of(problem)}). Nothing was changed; try again",
                detail="TABLE_CHANGED",
            ) from problem
        if _UNKNOWN in classes:
            raise StoreUnreachable(
                f"whether the rewrite of {uri} was committed is not known; look at its newest snapshot. Either way no row is lost",
                detail="COMMIT",
            ) from problem
        raise GrebeError(
            f"{uri} could not be rewritten: {during} failed in Spark ({condition_of(problem)}). Nothing was changed; the cause of "
            "this error says why",
            detail="SPARK",
        ) from problem


def _classes(problem: BaseException) -> set[str]:
    """Of a Java exception and all that caused it, with the classes above them, without their packages."""
    found: set[str] = set()
    thrown = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    while thrown is not None:
        kind = thrown.getClass()
        while kind is not None:
            found.add(str(kind.getSimpleName()))
            kind = kind.getSuperclass()
        thrown = thrown.getCause()
    return found


@contextmanager
def calls_of(uri: str, what: str) -> Iterator[None]:
    """Around what is called before anything is written. Raises `Unsupported` where a version does not have it."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except (TypeError, Py4JError) as other:  # a class that is not there is to py4j a package, which cannot be called
        if isinstance(other, Py4JJavaError):
            raise
        raise Unsupported(
            f"{uri} cannot be rewritten in place by this version of {what}; use another, or let organise make an index beside the "
            "table (without in_place)",
            detail="IN_PLACE_VERSION",
        ) from other
