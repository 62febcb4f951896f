"""What is told of a predicate: the files and records that hold its rows, and what it took to know."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.shown import html, picture
from grebe.shown.picture import Share
from grebe.sources import Version

Numbers = npt.NDArray[np.int64]
_FILES_SHOWN = 20
_ROWS_SHOWN = 10
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FileAnswer:
    path: str
    """The whole URI."""
    rows: tuple[int, ...] | None
    """Numbers of the rows that may match, from 0; None: all of the file has to be looked at, or its records are known by their
    bytes (`Table.rows`)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`covered`, `uncovered` and `pruned` count files: covered and uncovered are all of the table's; pruned are those covered that
    need not be read."""

    files: tuple[FileAnswer, ...]
    covered: int
    uncovered: int
    pruned: int
    requests: int
    bytes: int
    index: str | None
    indexes: tuple[str, ...]
    pruned_by: Mapping[str, int]
    """Of each index, how many of the files that it covers it rules out by itself."""
    table_version: Version | None
    log_version: int | None

    def _repr_html_(self) -> str:
        shown = [
            {"file": one.path, "rows": "all" if one.rows is None else one.rows[:_ROWS_SHOWN]} for one in self.files
        ]
        more = len(shown) - _FILES_SHOWN
        return html.block(
            html.paragraph(f"{len(self.files):,} files can hold such rows, by {', '.join(self.indexes) or 'no index'}"),
            answer_picture(self),
            html.table(["file", "rows"], shown[:_FILES_SHOWN]),
            html.paragraph(f"… and {more:,} more") if more > 0 else "",
            html.paragraph(f"{self.requests:,} requests, {self.bytes:,} bytes of indexes"),
        )


def answer_picture(answer: Answer) -> str:
    """The files of the table: read for single rows, as a whole, and not at all."""
    some = sum(file.rows is not None for file in answer.files)
    return picture.files(
        [
            Share("read for single rows", some, picture.READ),
            Share("read as a whole", len(answer.files) - some, picture.DIRECT),
            Share("left out", answer.covered + answer.uncovered - len(answer.files), picture.SPARED),
        ]
    )


@dataclass(frozen=True, slots=True)
class Found:
    """Where the rows of a predicate may lie. Places are those in the table's list of files."""

    records: dict[int, pa.Table] = field(default_factory=dict)
    """By place, ascending: locators of single records, each once."""
    whole: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    """Places of files that have to be looked at as a whole, ascending."""
    known: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    """Of each file of the table, whether an index that was used covers it."""
    used: tuple[str, ...] = ()
    """Names of the indexes that said so."""
    values: pa.Table | None = None
    """What the one index of records that was used holds of rows, those of other files among them."""
    positions: dict[int, Numbers] = field(default_factory=dict)
    """By place: where in `values` each of the records is."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Files that each index by itself rules out."""

    def without(self, places: Flags) -> "Found":
        """Less these files."""
        records = {place: one for place, one in self.records.items() if not places[place]}
        return replace(self, records=records, whole=self.whole[~places[self.whole]])

    @property
    def covered(self) -> int:
        return int(self.known.sum())

    @property
    def index(self) -> str | None:
        return self.used[0] if self.used else None
