"""What Spark's Python workers do for a build: they read whole files with Grebe's own reader, which knows where each record lies.

What that reader refuses is no failure of a task: it comes out as a row that says why, beside the rows of the other files.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import GrebeError
from grebe.formats import Column, DataFile, Format, Located, Reading, format_named
from grebe.indexes.kind import FILE_COLUMN, locator_columns
from grebe.store.opening import open_table_store

REFUSED_COLUMN = "_grebe_refused"
"""Why a file could not be read; NULL in every row of those that could."""
PATH, SIZE, TIME, ETAG, TASK = "_grebe_path", "_grebe_size", "_grebe_time", "_grebe_etag", "_grebe_task"
LISTED = (FILE_COLUMN, PATH, SIZE, TIME, ETAG, TASK)
"""What is known of each file before it is read: names that no column of a table has. No time where files never change."""
# A task has this much to do. Opening a file takes as long as reading some of it: little of a disk, much over a network.
_TASK_BYTES, _OPENING_BYTES, _OPENING_LOCAL_BYTES = 32 << 20, 1 << 20, 1 << 16
_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Some columns of the files of a table, with lineage and locators. Sent to the workers, and so no more than data."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    """What opens the store of the table in another process."""
    reading: Reading
    columns: tuple[Column, ...]
    files: pa.Table
    """One row a file: `LISTED`, in the order of the tasks, and the values of the partition columns."""
    guard_decoders: bool = True

    @property
    def tasks(self) -> int:
        return int(self.files[TASK][-1].as_py()) + 1 if len(self.files) else 0

    @property
    def schema(self) -> pa.Schema:
        """Of what comes out: the columns, the file, the locators, and what was refused."""
        places = [(FILE_COLUMN, pa.int32()), *((name, pa.int64()) for name in locator_columns(self.reading.format))]
        return pa.schema([*(column.arrow for column in self.columns), *places, (REFUSED_COLUMN, pa.string())])

    def read(self, tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Of the files of these tasks, which are given by their numbers."""
        format = format_named(self.reading.format)
        numbers = self.files[TASK].to_numpy()
        for task in (number for batch in tasks for number in batch.column(0).to_pylist()):
            start, stop = np.searchsorted(numbers, [task, task + 1])
            for file in self.files.slice(start, stop - start).to_batches(max_chunksize=1):
                try:
                    yield from self._read_one(file, format)
                except GrebeError as problem:
                    yield self._refused(file, str(problem.args[0]))

    @property
    def no_records(self) -> pa.RecordBatch:
        schema = pa.schema([column.arrow for column in self.columns])
        return pa.record_batch([pa.nulls(0, one.type) for one in schema], schema=schema)

    def records(self, file: pa.RecordBatch, format: Format) -> Iterator[pa.RecordBatch]:
        """The columns of one file, given by its row of `files`, and nothing else."""
        names = [column.name for column in self.columns]
        for part in self._parts(file, format):
            yield pa.record_batch(self._values(part, file), names=names)

    def _parts(self, file: pa.RecordBatch, format: Format) -> Iterator[Located]:
        own = [column.name for column in self.columns if not column.partition]
        yield from format.read(self.data_file(file), self.reading, own)

    def data_file(self, file: pa.RecordBatch) -> DataFile:
        store = open_table_store(self.uri, self.storage_options)
        listed = (file.column(name)[0].as_py() for name in (PATH, SIZE, TIME, ETAG))
        return DataFile(store, *listed, guarded=self.guard_decoders)

    def _read_one(self, file: pa.RecordBatch, format: Format) -> Iterator[pa.RecordBatch]:
        for part in self._parts(file, format):
            whole = self._with_places(part, file)
            for start in range(0, whole.num_rows, _BATCH_ROWS):
                yield whole.slice(start, _BATCH_ROWS)

    def _values(self, part: Located, file: pa.RecordBatch) -> list[pa.Array]:
        count = part.locators.num_rows
        return [
            pa.repeat(file.column(column.name)[0], count) if column.partition else part.records.column(column.name)
            for column in self.columns
        ]

    def _with_places(self, part: Located, file: pa.RecordBatch) -> pa.RecordBatch:
        count, values = part.locators.num_rows, self._values(part, file)
        lineage = [pa.repeat(file.column(FILE_COLUMN)[0], count), *part.locators.columns]
        return pa.record_batch([*values, *lineage, pa.nulls(count, pa.string())], schema=self.schema)

    def _refused(self, file: pa.RecordBatch, reason: str) -> pa.RecordBatch:
        known = {FILE_COLUMN: file.column(FILE_COLUMN), REFUSED_COLUMN: pa.array([reason])}
        return pa.record_batch([known.get(one.name, pa.nulls(1, one.type)) for one in self.schema], schema=self.schema)


def in_tasks(sizes: npt.NDArray[np.int64], local: bool = False) -> npt.NDArray[np.int64]:
    """The number of the task of each file: neighbours, of about as many bytes."""
    work = sizes + (_OPENING_LOCAL_BYTES if local else _OPENING_BYTES)
    before = np.cumsum(work) - work
    numbers: npt.NDArray[np.int64] = np.unique(before // _TASK_BYTES, return_inverse=True)[1]
    return numbers
