"""What Spark raises while an index is built, as our errors. Its messages may hold values of the data: only their class is shown."""

from collections.abc import Iterator
from contextlib import contextmanager

from grebe.errors import GrebeError, SourceChanged, StoreRefused, UnreadableFile
from grebe.spark.conditions import condition_of

_GONE = ("FileNotFoundException", "FILE_NOT_EXIST", "NoSuchFileException")
_REFUSED = ("AccessControlException", "AccessDeniedException", "Permission denied", "Mkdirs failed")
_NO_ROOM = ("No space left on device", "DSQuotaExceededException")
_UNREADABLE = ("FAILED_READ_FILE", "MALFORMED_RECORD", "CANNOT_READ_FILE_FOOTER", "PARQUET_COLUMN_DATA_TYPE_MISMATCH")


@contextmanager
def spark_errors(what: str, folder: str) -> Iterator[None]:
    """`what` is being done; `folder` is where it writes."""
    try:
        yield
    except Exception as problem:
        # PySpark and py4j have no common class of errors.
        if type(problem).__module__.partition(".")[0] in ("pyspark", "py4j"):
            raise _ours(problem, what, folder) from problem
        raise


def _ours(problem: Exception, what: str, folder: str) -> GrebeError:
    text = str(problem)
    said = f"{what} failed in Spark ({condition_of(problem)})"
    if any(sign in text for sign in _REFUSED):
        return StoreRefused(
            f"{said}: {folder} cannot be written to; change its permissions, or keep the indexes elsewhere with location=…",
            detail="PERMISSION",
        )
    if any(sign in text for sign in _NO_ROOM):
        return StoreRefused(f"{said}: no room left; free some and try again", detail="NO_ROOM")
    if any(sign in text for sign in _GONE):
        return SourceChanged(f"{said}: a file vanished while it was read; try again", detail="FILE_GONE")
    if any(sign in text for sign in _UNREADABLE):
        return UnreadableFile(f"{said}: a data file cannot be read; the cause of this error names it", detail="SPARK")
    return GrebeError(f"{said}; the cause of this error says why", detail="SPARK")
