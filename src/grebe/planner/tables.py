"""What the planner knows of a table: the indexes that its log lists, and the sizes of its files."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grebe.files import FileIds
from grebe.indexes.kind import Copy, Pruner

_FEW = 64
"""So many ranges are summed up one by one; of more, the single files are gathered at once."""


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


@dataclass(frozen=True, slots=True)
class KnownTable:
    uri: str
    log_version: int
    indexes: tuple[KnownIndex, ...]
    sizes: npt.NDArray[np.int64]
    """Bytes of every registered file, by its id."""

    def bytes_of(self, files: FileIds) -> int:
        ranges = files.ranges
        if len(ranges) <= _FEW:
            return sum(int(self.sizes[start:stop].sum()) for start, stop in ranges)
        return int(self.sizes[files.to_numpy()].sum())
