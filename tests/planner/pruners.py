"""Indexes that prune, on paper: they know which files hold which values of one column."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grebe.errors import CorruptIndex
from grebe.files import FileIds
from grebe.formats import Reading
from grebe.formats.byte_cache import ByteCache
from grebe.indexes.kind import Entries, Totals
from grebe.indexes.reading import Reader
from grebe.planner.inquiry import Inquiry
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.predicate.about import about
from grebe.predicate.tree import TRUE, Path, Predicate
from tests.planner.lake import Source


@dataclass(frozen=True)
class FoundOnPaper:
    files: tuple[int, ...]
    likely: int | None
    asked: list[str]

    def entries(self, reader: Reader) -> Entries:
        self.asked.append("entries")
        return Entries(np.array(self.files, np.int64), None, None)


@dataclass
class PrunerOnPaper:
    """`files`: where the rows of any predicate on the column lie, one entry each."""

    name: str
    reading: Reading
    covered: FileIds
    columns: Mapping[Path, str]
    files: tuple[int, ...]
    most: int | None
    damaged: bool = False
    bytes: int = 1_000
    rows: int = 0
    asked: list[str] = field(default_factory=list)
    by_file: bool = False
    chosen: str = ""

    def leads(self, column: Path) -> bool:
        return next(iter(self.columns)) == column

    def helps(self, predicate: Predicate) -> bool:
        return about(predicate, self.columns) != TRUE

    def hits(self, predicate: Predicate, reader: Reader) -> FoundOnPaper:
        self.asked.append("hits")
        if self.damaged:
            raise CorruptIndex("a file of the index is damaged", detail="TAIL")
        return FoundOnPaper(self.files, self.most, self.asked)

    def certain(self, predicate: Predicate, reader: Reader) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def totals(self, predicate: Predicate, files: FileIds, reader: Reader) -> Totals | None:
        return None

    def maps(self, reader: Reader) -> Mapping[int, Any]:
        return {}

    def warm(self, reader: Reader, pin: bool) -> None:
        """Nothing is read."""


def pruning(
    source: Source,
    name: str,
    column: str,
    files: Iterable[int],
    *,
    most: int | None = -1,
    covered: Iterable[int] | None = None,
    damaged: bool = False,
    **facts: Any,
) -> KnownIndex:
    """`most` is the number of entries unless said otherwise."""
    found = tuple(files)
    pruner = PrunerOnPaper(
        name,
        source.reading,
        FileIds.of(range(source.files) if covered is None else covered),
        {(column,): column},
        found,
        len(found) if most == -1 else most,
        damaged,
        rows=source.rows,
    )
    return KnownIndex(name, "lookup", "ACTIVE", None, pruner=pruner, **facts)


class Asked(Inquiry):
    """Remembers which indexes failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        super().__init__(ByteCache(1 << 20), self._fails)

    def _fails(self, table: KnownTable, index: KnownIndex, problem: Exception) -> None:
        self.failed.append(index.name)


def asked(index: KnownIndex) -> list[str]:
    """What the index was asked for."""
    assert isinstance(index.pruner, PrunerOnPaper)
    return index.pruner.asked
