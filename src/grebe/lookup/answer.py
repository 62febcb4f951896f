"""What is told of a predicate: the files and rows that hold its rows, and what it took to know."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from grebe.sources import Version

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FileAnswer:
    path: str
    """The whole URI."""
    rows: tuple[int, ...] | None
    """Numbers of the rows that may match, from 0; None: all of the file has to be looked at."""


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

    rows: dict[int, Numbers] = field(default_factory=dict)
    """Files of which single rows are known, ascending."""
    whole: tuple[int, ...] = ()
    """Files that have to be looked at as a whole, ascending."""
    covered: int = 0
    index: str | None = None
