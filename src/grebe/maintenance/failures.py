"""What Spark raises while an index is built, as our errors. Its messages may hold values of the data: only their class is shown."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from grebe.errors import CorruptIndex, GrebeError, SourceChanged, StoreRefused, UnreadableFile
from grebe.spark.conditions import condition_of
from grebe.spark.jobs import INTERRUPTION

_GONE = ("FileNotFoundException", "FILE_NOT_EXIST", "NoSuchFileException")
_REFUSED = ("AccessControlException", "AccessDeniedException", "Permission denied", "Mkdirs failed")
_NO_ROOM = ("No space left on device", "DSQuotaExceededException")
_UNREADABLE = ("FAILED_READ_FILE", "MALFORMED_RECORD", "CANNOT_READ_FILE_FOOTER", "PARQUET_COLUMN_DATA_TYPE_MISMATCH")
_CORRUPT = re.compile(r"\[CORRUPT_INDEX_(\w+)\] ([^\n]*? of index \S+ [a-z ]+)\.")
"""As the Java class `FileChecksum` words it; it names a file and an index, and no value."""


@contextmanager
def spark_errors(what: str, folder: str) -> Iterator[None]:
    """`what` is being done; `folder` is where it writes."""
    try:
        yield
    except Exception as problem:
        # PySpark and py4j have no common class of errors.
        if type(problem).__module__.partition(".")[0] in ("pyspark", "py4j"):
            if INTERRUPTION.take():
                raise KeyboardInterrupt from problem
            raise _ours(problem, what, folder) from problem
        raise


def _ours(problem: Exception, what: str, folder: str) -> GrebeError:
    text = str(problem)
    said = f"{what} failed in Spark ({condition_of(problem)})"
    corrupt = _CORRUPT.search(text)
    if corrupt is not None:
        found = f"{what}: {corrupt[2]}; refresh the index with mode='full'"
        return CorruptIndex(found, detail=corrupt[1])
    if any(sign in text for sign in _REFUSED):
        return StoreRefused(
            f"{said}: {folder} cannot be written to; change its permissions, or keep the indexes elsewhere with location=…",
            detail="PERMISSION",
        )
    if any(sign in text for sign in _NO_ROOM):
        return StoreRefused(
            f"{said}: no room left in {folder}, or in Spark's own folders (spark.local.dir). Free some and try again; vacuum "
            "removes what this build could not remove by itself.",
            detail="NO_ROOM",
        )
    if any(sign in text for sign in _GONE):
        return SourceChanged(f"{said}: a file vanished while it was read; try again", detail="FILE_GONE")
    if any(sign in text for sign in _UNREADABLE):
        return UnreadableFile(f"{said}: a data file cannot be read; the cause of this error names it", detail="SPARK")
    return GrebeError(f"{said}; the cause of this error says why", detail="SPARK")
