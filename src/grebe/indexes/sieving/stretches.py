"""What a sieve says once unpacked: disjoint stretches of keys in order, and the files of each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import pointers_of, spread


def require_order(starts: NDArray[np.uint64], ends: NDArray[np.uint64]) -> None:
    if len(starts) != len(ends) or (starts > ends).any() or (ends[:-1] >= starts[1:]).any():
        raise ValueError("stretches that are not in order")


@dataclass(frozen=True, slots=True)
class Stretches:
    """From `starts` to `ends`, both included; the files of stretch i are `files[pointers[i]:pointers[i + 1]]`, and not none."""

    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    pointers: NDArray[np.int64]
    files: NDArray[np.int64]

    def checked(self) -> "Stretches":
        """Raises `ValueError` where they are not in order, or their lists of files do not fit."""
        require_order(self.starts, self.ends)
        if self.pointers[-1] != len(self.files) or (np.diff(self.pointers) < 0).any():
            raise ValueError("lists of files that do not fit together")
        return self

    def within(self, starts: NDArray[np.uint64], ends: NDArray[np.uint64]) -> "Stretches":
        """What lies in one of some stretches, which are disjoint and in order themselves."""
        first = np.searchsorted(ends, self.starts)
        count = np.maximum(np.searchsorted(starts, self.ends, "right") - first, 0)
        own = np.repeat(np.arange(len(self.starts)), count)
        piece = spread(first, count)
        sizes = np.diff(self.pointers)[own]
        return Stretches(
            np.maximum(self.starts[own], starts[piece]),
            np.minimum(self.ends[own], ends[piece]),
            pointers_of(sizes),
            self.files[spread(self.pointers[own], sizes)],
        )
