"""The rows that indexes are built from: read once where reading is dear, and counted, so that none is lost on the way.

Columnar files are cheap to scan for a few columns, so each index scans them by itself. Text is dear to parse: it is parsed once and
kept on disk, as soon as it is read twice (several indexes, or an index that is sorted as a whole, which samples its key first).
"""

import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from grebe.errors import CorruptIndex, Unsupported
from grebe.files import FileIds, FileList
from grebe.formats.parquet_pages import read_row_count
from grebe.formats.spark_types import type_text
from grebe.indexes.classic import functions
from grebe.indexes.kind import FILE_COLUMN, ROW_COLUMN, Facts, FileFold, LocatedRows, locator_columns
from grebe.indexes.view.definition import Base
from grebe.log.entry import NO_FILES
from grebe.maintenance.facts import data_files, facts_of, spread_over
from grebe.maintenance.folding import folded
from grebe.maintenance.located import Kept, located_rows
from grebe.maintenance.runs import Older
from grebe.spark.source import SparkSource
from grebe.spark.views import frame_of_base
from grebe.store.protocol import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHEAP_TO_SCAN = ("parquet", "orc")
_NUMBERED_BY_SPARK = ("parquet",)
_SOME_FILES, _SOME_ROWS = 4, 25_000
_FOOTERS_AT_ONCE = 16
# With these Spark leaves files out that it cannot read, so that footers do not tell how many rows it will find.
_LENIENT = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "ignorecorruptfiles",
    "ignoremissingfiles",
)


class TableRows:
    """The rows of some files of a table, for all indexes that are built at once. To be closed: it may keep data on disk."""

    def __init__(
        self,
        source: SparkSource,
        files: FileList,
        ids: npt.NDArray[np.uint32],
        store: Store,
        columns: Iterable[str],
        indexes: int,
    ) -> None:
        self._source = source
        self._files = files
        self._ids = ids
        self._store = store
        self._columns = sorted(set(columns))
        self._dear = source.reading.format not in _CHEAP_TO_SCAN
        self._shared = indexes > 1
        self._frame = source.frame(files, ids)
        self._kept: DataFrame | None = None
        self._folded: list[DataFrame] = []
        self._lock = threading.Lock()
        self._by_us: dict[tuple[str, ...], Kept | str] = {}
        self._locating = threading.Lock()
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="grebe-footers")
        self._footers: Future[int] | None = None
        self.facts = facts_of(files, source.reading, store)

    def located(self, columns: Collection[str]) -> LocatedRows:
        if self._source.reading.format in _NUMBERED_BY_SPARK:
            numbered = self._source.frame(self._files, self._ids, row_numbers=True)
            return LocatedRows(numbered, (ROW_COLUMN,))
        with self._locating:
            found = self._located_by_us(self._columns)
            if isinstance(found, str) and set(columns) < set(self._columns):
                # It may be a column of another index that cannot be read.
                found = self._located_by_us(sorted(columns))
        if isinstance(found, str):
            return LocatedRows(self.frame(again=True), (), file_level=found)
        return LocatedRows(found.frame, locator_columns(self._source.reading.format), found.rows)

    def _located_by_us(self, columns: Sequence[str]) -> Kept | str:
        """What our own reader finds, or why it cannot be used."""
        known = tuple(columns)
        if known not in self._by_us:
            try:
                self._by_us[known] = located_rows(self._source, self._files, self._ids, known, self._frame)
            except Unsupported as refusal:
                self._by_us[known] = str(refusal.args[0])
        return self._by_us[known]

    def frame(self, again: bool) -> "DataFrame":
        if not self._dear or not (again or self._shared):
            return self._frame
        from pyspark import StorageLevel

        with self._lock:
            if self._kept is None:
                names = [_quoted(name) for name in self._columns]
                self._kept = self._frame.select(*names, FILE_COLUMN).persist(StorageLevel.DISK_ONLY)
            return self._kept

    @property
    def session(self) -> "SparkSession":
        return self._source.session

    @property
    def count(self) -> int:
        """Of files."""
        return len(self._files)

    def folded(self, fold: FileFold, columns: Collection[str]) -> "DataFrame":
        found = folded(self._source, self._files, self._ids, sorted(columns), fold, self._frame)
        if found.kept is not None:
            self._folded.append(found.kept)
        return found.frame

    def some(self) -> "DataFrame":
        places = spread_over(len(self._files), _SOME_FILES)
        heads = [self._source.frame(self._files.take(at), self._ids[at]).limit(_SOME_ROWS) for at in places[:, None]]
        frame = heads[0] if heads else self._frame
        for head in heads[1:]:
            frame = frame.union(head)
        return frame

    def in_footers(self) -> "Future[int] | None":
        """The number of all rows, read beside Spark and without it; None where the files do not say."""
        lenient = any(name in _LENIENT for name, _ in self._source.reading.options)
        if self._source.reading.format != "parquet" or lenient or not self.facts.measured:
            return None
        with self._lock:
            if self._footers is None:
                self._footers = self._aside.submit(self._sum)
            return self._footers

    def _sum(self) -> int:
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            return sum(pool.map(read_row_count, data_files(self._files, self._store)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._aside.shutdown(cancel_futures=True)
        if self._kept is not None:
            self._kept.unpersist()
        for one in self._folded:
            one.unpersist()
        for found in self._by_us.values():
            if not isinstance(found, str):
                found.kept.unpersist()


class IndexRows:
    """The same for one of the indexes (`indexes.kind.Rows`): what it takes of them is counted."""

    def __init__(self, table: TableRows, index: str, older: Older | None = None, existing: Older | None = None) -> None:
        self._table = table
        self._index = index
        self._older = older
        self._existing = existing
        self._taken: DataFrame | None = None
        self._footers: Future[int] | None = None

    @property
    def facts(self) -> Facts:
        facts, older = self._table.facts, self._older
        if older is None:
            return facts
        return replace(facts, rows=facts.rows + older.rows, older_rows=older.rows, older_bytes=older.bytes)

    def frame(self, again: bool = False) -> "DataFrame":
        return self._table.frame(again)

    def located(self, columns: Collection[str]) -> LocatedRows:
        found = self._table.located(columns)
        if self._older is None or found.rows is None:
            return found
        return replace(found, rows=found.rows + self._older.rows)

    def some(self) -> "DataFrame":
        return self._table.some()

    def other(self, base: Base) -> "DataFrame":
        return frame_of_base(self._table.session, base)

    def counted(self, frame: "DataFrame", whole: bool) -> "DataFrame":
        """Counted by itself, not in passing: whatever lost rows on their way would lose them from such a count too. Rows that
        the index has already come along."""
        self._taken = frame
        self._footers = self._table.in_footers() if whole else None
        older = self._older_rows(frame)
        return frame if older is None else frame.unionByName(older)

    def _older_rows(self, frame: "DataFrame") -> "DataFrame | None":
        """With the same columns."""
        if self._older is None:
            return None
        fields = [(field.name, type_text(field.dataType.jsonValue())) for field in frame.schema.fields]
        return self._older.frame(frame.sparkSession, fields)

    @property
    def files(self) -> int:
        return self._table.count

    @property
    def left_out(self) -> FileIds:
        return NO_FILES if self._older is None else self._older.left_out

    def folded(self, fold: FileFold, columns: Collection[str]) -> "DataFrame":
        return self._table.folded(fold, columns)

    def older(self, fields: Sequence[tuple[str, str]]) -> "DataFrame | None":
        return None if self._older is None else self._older.frame(self._table.session, fields)

    def existing(self, fields: Sequence[tuple[str, str]]) -> "DataFrame | None":
        return None if self._existing is None else self._existing.frame(self._table.session, fields)

    def require(self, written: int) -> None:
        """That just the rows that were taken have been written. Raises `CorruptIndex`."""
        if self._taken is None:
            return
        taken = self._footers.result() if self._footers is not None else int(self._taken.count())
        older = 0 if self._older is None else self._older.rows
        if older and self._older is not None and self._older.left_out:
            rows = self._older_rows(self._taken)
            older = 0 if rows is None else int(rows.count())
        if taken + older != written and self._footers is None:
            taken = _count_whole(self._taken)
        taken += older
        if taken != written:
            raise CorruptIndex(
                f"index {self._index}: {written:,} rows were written of {taken:,}; nothing was changed. Try again, and report it "
                "if it stays so",
                detail="ROWS",
            )


def _count_whole(frame: "DataFrame") -> int:
    """Every column is read: a plain count reads none, and then finds records that a parser drops when it looks at them."""
    names = map(_quoted, frame.columns)
    (found,) = frame.agg(functions.count(functions.lit(1)), functions.max(functions.xxhash64(*names))).collect()
    return int(found[0])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
