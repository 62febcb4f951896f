"""What the planner knows of a table: the indexes that its log lists, and the sizes of its files."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grebe.files import FileIds
from grebe.indexes.kind import Copy, Pruner
from grebe.planner.selectivity import NOTHING_KNOWN, Statistics

_FEW = 64
"""So many ranges are summed up one by one; of more, the single files are gathered at once."""


@dataclass(frozen=True, slots=True)
class OlderVersion:
    """Content of an index that was replaced, and kept: what the log says of it, and the index as it was, once it is asked for."""

    version: int
    replaced_at: int
    """The entry of the log that replaced it; tells the versions of an index apart."""
    held: FileIds
    bytes: int
    opened: Callable[[], "KnownIndex"]


@dataclass(frozen=True, slots=True)
class KnownIndex:
    name: str
    kind: str
    state: str
    """`CREATING`, `ACTIVE` or `DELETED`."""
    copy: Copy | None
    set_aside: str = ""
    """Why this session does not use it though it is active: a file of it was missing or damaged."""
    pruner: Pruner | None = None
    older: tuple[OlderVersion, ...] = ()
    version: int = 0
    replaced_at: int | None = None
    """None: it is the current version."""
    problem: str = ""
    """Why it can no longer be refreshed; empty if it can."""

    @property
    def older_version(self) -> int | None:
        """Which, if it is not the current one."""
        return None if self.replaced_at is None else self.version


@dataclass(frozen=True, slots=True)
class KnownTable:
    uri: str
    log_version: int
    indexes: tuple[KnownIndex, ...]
    sizes: npt.NDArray[np.int64]
    """Bytes of every registered file, by its id."""
    log: str = ""
    """What tells its log, in this state, from every other one: a table may have several, at several places."""

    believed: Statistics = NOTHING_KNOWN
    """What else is known of its columns."""
    rows: float | None = None
    """How many it has, where that is known from elsewhere than its indexes."""

    def index(self, name: str, replaced_at: int | None = None) -> KnownIndex | None:
        """The index of that name, or a version of it that was replaced by that entry; None if it is there no more."""
        found = next((one for one in self.indexes if one.name == name), None)
        if found is None or replaced_at is None:
            return found
        return next((one.opened() for one in found.older if one.replaced_at == replaced_at), None)

    def bytes_of(self, files: FileIds) -> int:
        ranges = files.ranges
        if len(ranges) <= _FEW:
            return sum(int(self.sizes[start:stop].sum()) for start, stop in ranges)
        return int(self.sizes[files.to_numpy()].sum())
