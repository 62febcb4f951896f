"""The root of an index: which of its files can hold a key. One small read for each run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from grebe.errors import CorruptIndex
from grebe.formats import DataFile
from grebe.indexes.content.copies import by_folder, listed
from grebe.indexes.content.directory import NAME, parse_directory
from grebe.indexes.content.shape import Shape
from grebe.indexes.lookup.points import Points
from grebe.indexes.reading import Reader
from grebe.log.entry import ContentFile
from grebe.log.states import IndexState
from grebe.predicate.bounds import Bounds, Stretches, bounds_of, by_bounds, in_order, stretches
from grebe.predicate.tree import Predicate
from grebe.predicate.verdicts import judge, must_read
from grebe.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Ending:
    """Where the tail of a file of the index lies, and what its bytes are."""

    file: DataFile
    length: int
    digest: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Run:
    """Files that follow each other in the order of the key."""

    endings: tuple[Ending, ...]
    bounds: Bounds | None = field(repr=False)
    stretches: Stretches | None = field(repr=False)

    def holding(self, points: Points) -> Iterator[tuple[int, int, int]]:
        """Files that can hold some of the points, by number, and which of them: (file, from, to)."""
        return iter(()) if self.stretches is None else self.stretches.holding(points.values)

    def files_for(self, asked: Predicate) -> Sequence[Ending]:
        """Those that can hold an entry for which the predicate is true."""
        bounds = self.bounds
        if bounds is None:
            return self.endings
        verdicts = judge(asked, len(self.endings), lambda one: by_bounds(bounds, one))
        return [self.endings[number] for number in np.flatnonzero(must_read(verdicts)).tolist()]


def read_root(index: IndexState, shape: Shape, store: Store, reader: Reader) -> tuple[Run, ...]:
    folders = by_folder(index.content)
    directories = [_directory(index, store, folder, files) for folder, files in folders.items()]
    tables = reader.parsed(
        "directory",
        [(one, 0, one.size) for one in directories],
        lambda place, data: parse_directory(data, directories[place].uri),
        lambda table: int(table.nbytes),
    )
    runs = zip(tables, folders.items(), strict=True)
    return tuple(_run(listed(table, store.uri, *folder), shape, store) for table, folder in runs)


def _directory(index: IndexState, store: Store, folder: str, files: Sequence[ContentFile]) -> DataFile:
    for file in files:
        if file.path == f"{folder}/{NAME}":
            return DataFile(store, file.path, file.size)
    raise CorruptIndex(f"index {index.name} names no directory of {store.uri}/{folder}; create it anew", detail="SPEC")


def _run(table: pa.Table, shape: Shape, store: Store) -> Run:
    columns = (table[name].to_pylist() for name in ("path", "size", "tail", "tail_digest"))
    endings = [Ending(DataFile(store, path, size), *tail) for path, size, *tail in zip(*columns, strict=True)]
    low, high = (table[name].combine_chunks() for name in ("min", "max"))
    rows, nulls = table["rows"].to_numpy(), table["nulls"].fill_null(-1).to_numpy()
    bounds = bounds_of(shape.on[0].path, low, high, rows, nulls)
    if bounds is None:
        return Run(tuple(endings), None, None)
    ordered = in_order(bounds)
    return Run(tuple(endings), ordered, stretches(ordered))
