"""What is told of a predicate: the files and records that hold its rows, and what it took to know."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.sources import Version

Numbers = npt.NDArray[np.int64]


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
    table_version: Version | None
    log_version: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """Where the rows of a predicate may lie. Places are those in the table's list of files."""

    records: dict[int, pa.Table] = field(default_factory=dict)
    """By place, ascending: locators of single records, each once."""
    whole: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    """Places of files that have to be looked at as a whole, ascending."""
    covered: int = 0
    used: tuple[str, ...] = ()
    """Names of the indexes that said so."""
    values: pa.Table | None = None
    """What the one index that was used holds of the rows in covered files."""

    @property
    def index(self) -> str | None:
        return self.used[0] if self.used else None
