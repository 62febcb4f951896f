"""What an index says that knows where on a plane rows lie, beyond what a predicate can ask."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.files import FileIds
from grebe.formats import Reading
from grebe.indexes.reading import Reader
from grebe.predicate.tree import Path


@dataclass(frozen=True, slots=True)
class Axes:
    """The columns that give a row its place: x and y of a point, x, y, x_max and y_max of a box, or one of WKB."""

    columns: tuple[Path, ...]

    @property
    def is_geometry(self) -> bool:
        return len(self.columns) == 1


@dataclass(frozen=True, slots=True)
class Ring:
    """Some entries, and how near those can be that are still to come."""

    files: npt.NDArray[np.int64]
    locators: pa.Table | None
    distances: npt.NDArray[np.float64]
    """From the point to each entry: of a geometry no less than the true one."""
    beyond: float
    """No other entry is nearer; infinite: there is none."""


@runtime_checkable
class KnowsPlaces(Protocol):
    """A `kind.Pruner` that can be asked what lies near a point."""

    @property
    def name(self) -> str: ...

    @property
    def reading(self) -> Reading: ...

    @property
    def covered(self) -> FileIds: ...

    @property
    def axes(self) -> Axes: ...

    def around(self, x: float, y: float, wanted: int, reader: Reader) -> Iterator[Ring]:
        """Entries with a finite box, roughly from near to far, about as many at first as `wanted`. Raises `CorruptIndex` or
        `UnreadableFile` where the index is damaged."""
        ...
