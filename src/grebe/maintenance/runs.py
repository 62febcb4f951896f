"""Content of an index that is there already: runs, of which small ones are merged with what a refresh adds.

Each run is sorted by itself, and a question goes to all of them. So there must be few: a run is merged as soon as what comes is
not far smaller than it. Then every row is written again as often as the logarithm of the table's size, and a refresh costs as much
as what is new.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grebe.files import FileIds
from grebe.files.untrusted import MOST_BYTES
from grebe.formats import KeepsMaps, format_named
from grebe.indexes.content.by_range import column
from grebe.indexes.content.copies import by_folder
from grebe.indexes.content.maps import NAME as MAPS
from grebe.indexes.content.maps import Maps
from grebe.indexes.kind import FILE_COLUMN
from grebe.log.entry import ContentFile
from grebe.log.states import IndexState
from grebe.spark.content import read_content
from grebe.store.protocol import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RATIO = 3
"""A run of at most so many times the rows that come is merged with them."""
_MOST_RUNS = 8


@dataclass(frozen=True, slots=True)
class Run:
    files: tuple[ContentFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


def runs_of(index: IndexState) -> list[Run]:
    return [Run(tuple(files)) for files in by_folder(index.content).values()]


def to_merge(runs: Sequence[Run], new_rows: int) -> list[Run]:
    """Those to be written anew together with so many new rows."""
    merged: list[Run] = []
    rows = new_rows
    ordered = sorted(runs, key=lambda run: run.rows)
    for place, run in enumerate(ordered):
        if run.rows > _RATIO * rows and len(ordered) - place < _MOST_RUNS:
            break
        merged.append(run)
        rows += run.rows
    return merged


@dataclass(frozen=True, slots=True)
class Older:
    """Rows of an index that are written anew."""

    index: IndexState
    store: Store
    runs: tuple[Run, ...]
    left_out: FileIds
    """Files whose rows are not taken over: only where all runs are merged, so that none of their rows stays behind."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for run in self.runs for file in run.files)

    @property
    def rows(self) -> int:
        """Those of files that are left out included."""
        return sum(run.rows for run in self.runs)

    @property
    def bytes(self) -> int:
        return sum(file.size for run in self.runs for file in run.files)

    def frame(self, session: "SparkSession", fields: Sequence[tuple[str, str]]) -> "DataFrame":
        """Of content with these columns: names, and types as Spark writes them."""
        from pyspark.sql import functions

        files = [file for run in self.runs for file in run.files]
        frame = read_content(session, self.index.name, self.store, files, fields)
        if not self.left_out:
            return frame
        gone = session.createDataFrame([(int(one),) for one in self.left_out.to_numpy()], f"{FILE_COLUMN} int")
        return frame.join(functions.broadcast(gone), FILE_COLUMN, "left_anti").select(*map(column, frame.columns))

    def maps(self) -> dict[int, Any]:
        """What is remembered of their files, by id."""
        format = format_named(self.index.spec.properties["reading"]["format"])
        found: dict[int, Any] = {}
        for path in self.paths:
            if path.endswith(f"/{MAPS}") and isinstance(format, KeepsMaps):
                maps = Maps.of(format, self.store.get(path, MOST_BYTES), f"{self.store.uri}/{path}")
                found.update((file, maps[file]) for file in maps if file not in self.left_out)
        return found
