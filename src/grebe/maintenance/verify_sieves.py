"""Whether every value of a column leads, by its sieve, to the files that hold it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.files import FileIds
from grebe.indexes.classic import functions
from grebe.indexes.content.by_range import column, quoted
from grebe.indexes.content.sealed import unsealed
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.sieving.keys import Keys, keys_for, unpack_separators
from grebe.indexes.sketches.columns import physical
from grebe.indexes.summary.pieces import KEY, opened
from grebe.indexes.summary.shape import LOW, PAYLOAD, SIEVE, HeldSieve, shape_of
from grebe.indexes.workers import map_in_arrow
from grebe.log.states import IndexState
from grebe.maintenance.rows import TableRows
from grebe.maintenance.runs import Older

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MISSED = "_grebe_missed"


def not_admitted(index: IndexState, table: TableRows, older: Older, present: FileIds) -> Iterator[tuple[int, int]]:
    """Files that hold values which do not lead to them, and how many. `older`: all runs without a fault; of files that it does not
    hold nothing is said."""
    shape = shape_of(index.name, index.spec)
    content = older.frame(table.session, shape.fields)
    known = FileIds.of(
        [int(row[0]) for row in content.select(FILE_COLUMN).where(column(FILE_COLUMN).isNotNull()).collect()]
    )
    for sieve in shape.sieves:
        asked = _admission(sieve, content)
        if asked is None:
            continue
        key = functions.col(quoted(*sieve.column.path)).alias(KEY)
        pairs = table.frame(again=False).select(key, FILE_COLUMN).where(column(KEY).isNotNull())
        missed = map_in_arrow(pairs, asked, f"{FILE_COLUMN} int, {_MISSED} long")
        summed = missed.groupBy(FILE_COLUMN).agg(functions.sum(_MISSED))
        for file, values in summed.collect():
            if file in known and file in present:
                yield int(file), int(values)


def _admission(sieve: HeldSieve, content: "DataFrame") -> "Admission | None":
    rows = content.where(column(SIEVE) == sieve.number).select(LOW, PAYLOAD).collect()
    packed = [bytes(row[1]) for row in rows if row[0] is None]
    separators = unpack_separators(unsealed(packed[0], "the separators"), sieve.on.type) if packed else None
    keys = keys_for(sieve.on.type, separators)
    if keys is None:
        return None
    parts = [opened(bytes(row[1]), "a piece of the sieve").triples() for row in rows if row[0] is not None]
    lows, highs = (np.concatenate([part[side] for part in parts] or [np.empty(0, np.int64)]) for side in (0, 1))
    files = np.concatenate([part[2] for part in parts] or [np.empty(0, np.uint32)])
    order = np.lexsort((lows, files))
    return Admission(keys, files[order], lows[order], highs[order])


@dataclass(frozen=True, slots=True)
class Admission:
    """Stretches of keys by file, sent to Spark's workers."""

    keys: Keys
    files: npt.NDArray[np.uint32]
    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            codes = self.keys.codes(physical(batch.column(KEY), self.keys.type))
            files = batch.column(FILE_COLUMN).to_numpy()
            found = [(int(file), self._missed(int(file), codes[files == file])) for file in np.unique(files)]
            wrong = [(file, missed) for file, missed in found if missed]
            yield pa.record_batch(
                [
                    pa.array([file for file, _ in wrong], pa.int32()),
                    pa.array([missed for _, missed in wrong], pa.int64()),
                ],
                names=[FILE_COLUMN, _MISSED],
            )

    def _missed(self, file: int, codes: npt.NDArray[np.int64]) -> int:
        start, stop = np.searchsorted(self.files, [file, file + 1])
        if start == stop:
            return len(codes)
        # Stretches of several pieces may overlap: what counts is how far any that begins before a key reaches.
        reach = np.maximum.accumulate(self.highs[start:stop])
        before = np.searchsorted(self.lows[start:stop], codes, "right") - 1
        return int(((before < 0) | (reach[before] < codes)).sum())
