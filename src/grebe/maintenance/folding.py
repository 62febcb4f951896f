"""One row for each file of a table, made of its rows in Spark's tasks.

Columnar files are read by Grebe's own reader, whole files to a task: no row passes through the JVM, and nothing is shuffled. What
that reader refuses, and all text, comes as Spark reads it: then parts of a file may lie in several tasks, and are brought together.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import GrebeError, Unsupported
from grebe.files import FileIds, FileList
from grebe.formats import format_named
from grebe.formats.parquet_statistics import footer_of
from grebe.indexes.classic import functions
from grebe.indexes.columns import spark_schema
from grebe.indexes.kind import FILE_COLUMN, FileFold
from grebe.indexes.workers import map_in_arrow
from grebe.maintenance.located import record_reader
from grebe.maintenance.record_reader import REFUSED_COLUMN, TASK, RecordReader
from grebe.spark.source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_READ_BY_US = ("parquet", "orc")
_STATE = "_grebe_state"
_FILES_A_TASK = 500


@dataclass(frozen=True, slots=True)
class Folded:
    frame: "DataFrame"
    kept: "DataFrame | None" = None
    """On the disks of the executors until it is unpersisted."""


def folded(
    source: SparkSource,
    files: FileList,
    ids: npt.NDArray[np.uint32],
    names: Sequence[str],
    fold: FileFold,
    by_spark: "DataFrame",
) -> Folded:
    """`by_spark` are the same files as Spark reads them, with `FILE_COLUMN`."""
    from pyspark import StorageLevel

    reader = _reader(source, files, ids, names)
    if reader is None:
        return Folded(_through_spark(by_spark, names, fold, len(files)))
    kept = _run(source, WholeFiles(reader, fold)).persist(StorageLevel.MEMORY_AND_DISK)
    refused = [
        int(row[0]) for row in kept.where(functions.col(REFUSED_COLUMN).isNotNull()).select(FILE_COLUMN).collect()
    ]
    made = kept.drop(REFUSED_COLUMN)
    if not refused:
        return Folded(made, kept)
    places = np.flatnonzero(FileIds.of(refused).contains(ids))
    others = source.frame(files.take(places), ids[places])
    read = kept.where(functions.col(REFUSED_COLUMN).isNull()).drop(REFUSED_COLUMN)
    return Folded(read.union(_through_spark(others, names, fold, len(places))), kept)


def _reader(
    source: SparkSource, files: FileList, ids: npt.NDArray[np.uint32], names: Sequence[str]
) -> RecordReader | None:
    """None where Spark has to read."""
    if source.reading.format not in _READ_BY_US:
        return None
    try:
        format_named(source.reading.format).options.check_readable(source.reading.format, dict(source.reading.options))
        return record_reader(source, files, ids, set(names))
    except Unsupported:
        return None


def _run(source: SparkSource, files: "WholeFiles") -> "DataFrame":
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(spark_schema([*files.fold.fields, (REFUSED_COLUMN, "string")]))
    tasks = files.reader.tasks
    return map_in_arrow(source.session.range(0, tasks, 1, max(1, tasks)), files.read, schema)


@dataclass(frozen=True, slots=True)
class WholeFiles:
    reader: RecordReader
    fold: FileFold

    def read(self, tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        format = format_named(self.reader.reading.format)
        numbers = self.reader.files[TASK].to_numpy()
        for task in (number for batch in tasks for number in batch.column(0).to_pylist()):
            start, stop = np.searchsorted(numbers, [task, task + 1])
            for file in self.reader.files.slice(start, stop - start).to_batches(max_chunksize=1):
                number = file.column(FILE_COLUMN)[0].as_py()
                try:
                    told = self._told(file)
                    states = (
                        [told] if told is not None else [self.fold.state(p) for p in self.reader.records(file, format)]
                    )
                except GrebeError as problem:
                    yield self._with(self._nothing(number), str(problem.args[0]))
                    continue
                states = states or [self.fold.state(self.reader.no_records)]
                yield self._with(self.fold.rows([number], [self.fold.joined(states)]), None)

    def _told(self, file: pa.RecordBatch) -> Any | None:
        """By the footer alone, where that says enough."""
        if self.reader.reading.format != "parquet":
            return None
        columns = {column.name: column for column in self.reader.columns}
        return self.fold.told(footer_of(self.reader.data_file(file)), columns)

    def _nothing(self, number: int) -> pa.RecordBatch:
        return self.fold.rows([number], [self.fold.state(self.reader.no_records)])

    def _with(self, row: pa.RecordBatch, refused: str | None) -> pa.RecordBatch:
        return pa.record_batch(
            [*row.columns, pa.array([refused], pa.string())], names=[*row.schema.names, REFUSED_COLUMN]
        )


def _through_spark(frame: "DataFrame", names: Sequence[str], fold: FileFold, files: int) -> "DataFrame":
    from pyspark.sql.types import StructType

    tasks = max(1, -(-files // _FILES_A_TASK))
    own = frame.select(*("`" + name.replace("`", "``") + "`" for name in names), FILE_COLUMN)
    parts = map_in_arrow(own, _Parts(fold), f"{FILE_COLUMN} int, {_STATE} binary")
    together = parts.repartition(tasks, FILE_COLUMN).sortWithinPartitions(FILE_COLUMN)
    return map_in_arrow(together, _Whole(fold), StructType.fromJson(spark_schema(fold.fields)))


@dataclass(frozen=True, slots=True)
class _Parts:
    """States of the rows of files that lie in one task, those of a file one after the other."""

    fold: FileFold

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        file, states = -1, list[Any]()
        for batch in batches:
            numbers = batch.column(batch.num_columns - 1).to_numpy()
            first = np.ones(len(numbers), np.bool_)
            first[1:] = numbers[1:] != numbers[:-1]
            starts = np.flatnonzero(first).tolist()
            for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=bool(starts)):
                if numbers[start] != file:
                    if states:
                        yield self._row(file, states)
                    file, states = int(numbers[start]), []
                states.append(self.fold.state(batch.slice(start, stop - start)))
        if states:
            yield self._row(file, states)

    def _row(self, file: int, states: Sequence[Any]) -> pa.RecordBatch:
        state = pickle.dumps(self.fold.joined(states))
        return pa.record_batch(
            [pa.array([file], pa.int32()), pa.array([state], pa.binary())], names=[FILE_COLUMN, _STATE]
        )


@dataclass(frozen=True, slots=True)
class _Whole:
    fold: FileFold

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        file, states = -1, list[Any]()
        for batch in batches:
            for number, state in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                if number != file:
                    if states:
                        yield self.fold.rows([file], [self.fold.joined(states)])
                    file, states = number, []
                states.append(pickle.loads(state.as_buffer()))
        if states:
            yield self.fold.rows([file], [self.fold.joined(states)])
