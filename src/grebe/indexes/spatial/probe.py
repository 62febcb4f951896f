"""A spatial index asked without Spark, in at most three rounds of reading: the tree (of a large one its root, then branches), and
the chunks of entries that it leads to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import CorruptIndex
from grebe.files import FileIds
from grebe.formats import DataFile
from grebe.formats.parquet_pages import PageMap, decode_group, group_span
from grebe.indexes.content.copies import by_folder
from grebe.indexes.content.entries import places_in
from grebe.indexes.content.maps import read_maps
from grebe.indexes.kind import FILE_COLUMN, Entries, Totals
from grebe.indexes.places import Axes, Ring
from grebe.indexes.reading import Reader, side_by_side
from grebe.indexes.spatial.distance import far_from, near_to
from grebe.indexes.spatial.envelopes import of_envelopes
from grebe.indexes.spatial.shape import WKB, Places, places_of
from grebe.indexes.spatial.tree import NAME, Branch, Root, Twig, Units, joined, read_root
from grebe.indexes.version import IndexVersion
from grebe.log.entry import ContentFile
from grebe.log.states import IndexState
from grebe.predicate.about import about, renamed
from grebe.predicate.bounds import Flags, Numbers
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import TRUE, And, Compare, Constant, Holds, In, Or, Path, Predicate, Related, columns_of
from grebe.predicate.verdicts import judge, must_read
from grebe.store.protocol import Store

_READ_WHOLE = 1024 * 1024
"""A tree of at most so many bytes is read in one go."""
_MOST_AT_ONCE, _BRANCHES_AT_ONCE = 64, 8


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks of several content files."""

    sources: tuple[tuple[DataFile, PageMap], ...]
    owners: Numbers = field(repr=False)
    """Of each chunk the source."""
    groups: Numbers = field(repr=False)
    """And its number there."""
    units: Units = field(repr=False)

    @classmethod
    def of(cls, branches: Sequence[Branch]) -> "Chunks | None":
        if not branches:
            return None
        counts = [len(one.units) for one in branches]
        return cls(
            tuple((one.file, one.pages) for one in branches),
            np.repeat(np.arange(len(branches)), counts),
            np.concatenate([np.arange(count) for count in counts]),
            joined([one.units for one in branches]),
        )

    def read(self, numbers: Numbers, reader: Reader) -> list[pa.RecordBatch]:
        owned = [(*self.sources[self.owners[one]], int(self.groups[one])) for one in numbers.tolist()]
        spans = [(file, *group_span(pages, group)) for file, pages, group in owned]

        def parse(place: int, data: bytes) -> pa.RecordBatch:
            file, pages, group = owned[place]
            decoded = decode_group(pages, group, data, uri=file.uri)
            # Runs may differ in which columns their writer took for never NULL.
            return pa.RecordBatch.from_arrays(decoded.columns, decoded.schema.names)

        return reader.parsed("chunk", spans, parse, lambda batch: int(batch.nbytes))


def _all_finite(units: Units) -> Flags:
    return units.finite


@dataclass
class _Near:
    """Chunks in the order of their distance from a point."""

    x: float
    y: float
    _sets: list[Chunks] = field(default_factory=list)
    _left: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 4)))
    """Distance, set, number in it, rows; the nearest first."""

    def add(self, chunks: Chunks) -> None:
        numbers = np.flatnonzero(chunks.units.finite)
        least = near_to(chunks.units.boxes[numbers], self.x, self.y)
        which = np.full(len(numbers), float(len(self._sets)))
        new = np.stack(
            [least, which, numbers.astype(np.float64), chunks.units.rows[numbers].astype(np.float64)], axis=1
        )
        whole = np.concatenate((self._left, new))
        self._left = whole[np.argsort(whole[:, 0], kind="stable")]
        self._sets.append(chunks)

    @property
    def next(self) -> float:
        return float(self._left[0, 0]) if len(self._left) else np.inf

    def enough(self, entries: int) -> int:
        """So many chunks hold that many entries."""
        return int(np.searchsorted(np.cumsum(self._left[:, 3]), entries)) + 1

    def taken(self, most: int, beyond: float) -> list[tuple[Chunks, Numbers]] | None:
        """The next of them, no further away than that; None where there is none."""
        count = min(most, int(np.searchsorted(self._left[:, 0], beyond, "right")))
        if not count:
            return None
        some, self._left = self._left[:count], self._left[count:]
        sets = np.unique(some[:, 1]).astype(np.int64).tolist()
        return [(self._sets[one], some[some[:, 1] == one, 2].astype(np.int64)) for one in sets]


@dataclass(frozen=True, slots=True)
class Found:
    """Which chunks of an index have to be read for a predicate."""

    index: "SpatialIndex"
    asked: Predicate
    """What the index knows of the predicate."""
    chunks: Chunks | None
    numbers: Numbers

    @property
    def likely(self) -> int:
        """All entries of the chunks."""
        return 0 if self.chunks is None else int(self.chunks.units.rows[self.numbers].sum())

    def entries(self, reader: Reader) -> Entries:
        places = self.index.shape
        found = [] if self.chunks is None else [self._matching(one) for one in self.chunks.read(self.numbers, reader)]
        if not found:
            return Entries(np.empty(0, np.int64), places_in(places.reading, places.locators, None), None)
        whole = pa.Table.from_batches(found)
        values = whole.select(places.held) if places.held else None
        located = places_in(places.reading, places.locators, whole)
        return Entries(whole[FILE_COLUMN].to_numpy().astype(np.int64), located, values)

    def _matching(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        flat = self.asked if self.index.shape.form == WKB else renamed(self.asked, self.index.columns)
        return batch if flat == TRUE or not len(batch) else batch.filter(matches(batch, flat))


@dataclass(frozen=True)
class SpatialIndex(IndexVersion[Places]):
    """One version of an index (`indexes.kind.Pruner`, `indexes.places.KnowsPlaces`). All that is read of it goes through the
    reader."""

    @classmethod
    def of(cls, index: IndexState, store: Store) -> "SpatialIndex":
        """Reads nothing."""
        return cls(index, places_of(index.name, index.spec), store)

    @property
    def by_file(self) -> bool:
        return False

    @property
    def chosen(self) -> str:
        return ""

    @property
    def axes(self) -> Axes:
        return Axes(tuple(one.path for one in self.shape.shape.on))

    def leads(self, column: Path) -> bool:
        return False

    def helps(self, predicate: Predicate) -> bool:
        """Whether the predicate narrows down a coordinate."""
        return narrows(predicate, frozenset(one.path for one in self.shape.shape.on))

    def hits(self, predicate: Predicate, reader: Reader) -> Found:
        asked = self._asked(predicate)
        roots = self._roots(reader)

        def needed(units: Units) -> Flags:
            return np.asarray(must_read(judge(asked, len(units), units.verdicts)))

        chunks = self._chunks(roots, needed, reader)
        numbers = np.empty(0, np.int64) if chunks is None else np.flatnonzero(needed(chunks.units))
        return Found(self, asked, chunks, numbers)

    def _asked(self, predicate: Predicate) -> Predicate:
        """What the index knows of it."""
        if self.shape.form == WKB:
            return of_envelopes(predicate, self.axes.columns[0])
        return about(predicate, self.columns)

    def around(self, x: float, y: float, wanted: int, reader: Reader) -> Iterator[Ring]:
        roots = self._roots(reader)
        if all(root.inside is not None for root in roots):
            stages: Iterator[tuple[Chunks | None, float]] = iter([(self._chunks(roots, _all_finite, reader), np.inf)])
        else:
            stages = self._branches_around(roots, x, y, reader)
        take = 1
        near = _Near(x, y)
        for chunks, beyond in stages:
            if chunks is not None:
                near.add(chunks)
            take = max(take, near.enough(2 * wanted))
            while (found := near.taken(min(take, _MOST_AT_ONCE), beyond)) is not None:
                batches = [batch for some, numbers in found for batch in some.read(numbers, reader)]
                yield self._ring(pa.Table.from_batches(batches), x, y, min(near.next, beyond))
                take *= 2

    def _branches_around(
        self, roots: Sequence[Root], x: float, y: float, reader: Reader
    ) -> Iterator[tuple[Chunks | None, float]]:
        """Of large trees: some branches at a time, from near to far, and how near those can be that are still to come."""
        twigs = [(root, twig) for root in roots for twig in root.twigs]
        least = np.concatenate([np.where(root.units.finite, near_to(root.units.boxes, x, y), np.nan) for root in roots])
        order = [place for place in np.argsort(least, kind="stable").tolist() if not np.isnan(least[place])]
        for start in range(0, len(order), _BRANCHES_AT_ONCE):
            some, rest = order[start : start + _BRANCHES_AT_ONCE], order[start + _BRANCHES_AT_ONCE :]
            branches = self._branches([twigs[place] for place in some], reader)
            yield Chunks.of(branches), float(least[rest[0]]) if rest else np.inf

    def _ring(self, entries: pa.Table, x: float, y: float, beyond: float) -> Ring:
        names = [one.content for one in self.shape.corners]
        least, most = (
            [entries[name].cast(pa.float64(), safe=False).to_numpy() for name in two] for two in (names[:2], names[-2:])
        )
        distances = (far_from if self.shape.form == WKB else near_to)(np.stack([*least, *most], axis=1), x, y)
        files = entries[FILE_COLUMN].to_numpy().astype(np.int64)
        return Ring(files, places_in(self.shape.reading, self.shape.locators, entries), distances, beyond)

    def certain(self, predicate: Predicate, reader: Reader) -> tuple[Numbers, Numbers]:
        """Of a file it knows entries, but not whether these are all."""
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def totals(self, predicate: Predicate, files: FileIds, reader: Reader) -> Totals | None:
        """Its entries would have to be read."""
        return None

    def maps(self, reader: Reader) -> Mapping[int, Any]:
        self._roots(reader)
        maps: Mapping[int, Any] = self._known["maps"]
        return maps

    def warm(self, reader: Reader, pin: bool) -> None:
        roots = self._roots(reader)
        self._branches([(root, twig) for root in roots for twig in root.twigs], reader, pin)

    def _roots(self, reader: Reader) -> tuple[Root, ...]:
        """Read together with the maps, which whoever finds entries needs next."""
        if "roots" not in self._known:
            maps, roots = side_by_side(
                lambda read: read(reader), (self._read_maps, self._read_roots), self.store.uri.startswith("file:")
            )
            self._known.update(maps=maps, roots=roots)
        roots_known: tuple[Root, ...] = self._known["roots"]
        return roots_known

    def _read_maps(self, reader: Reader) -> Mapping[int, Any]:
        return read_maps(self.state, self.reading, self.store, reader)

    def _read_roots(self, reader: Reader) -> tuple[Root, ...]:
        trees = [
            self._tree(folder, files)
            for folder, files in by_folder(self.state.content).items()
            if any(file.rows for file in files)
        ]
        wanted = []
        for tree in trees:
            length = tree.size if tree.size <= _READ_WHOLE else tree.footer
            wanted.append((DataFile(self.store, tree.path, tree.size), tree.size - length, length))

        def parse(place: int, data: bytes) -> Root:
            return read_root(wanted[place][0], trees[place].footer, data, self.shape.corners)

        return tuple(reader.parsed("tree", wanted, parse, lambda root: root.nbytes))

    def _tree(self, folder: str, files: Sequence[ContentFile]) -> ContentFile:
        for file in files:
            if file.path == f"{folder}/{NAME}":
                return file
        raise CorruptIndex(
            f"index {self.name} names no tree of {self.store.uri}/{folder}; create it anew", detail="SPEC"
        )

    def _chunks(self, roots: Sequence[Root], needed: Callable[[Units], Flags], reader: Reader) -> Chunks | None:
        """All chunks of small trees; of large ones those of the content files that are needed."""
        if all(root.inside is not None for root in roots):
            if "chunks" not in self._known:
                twigs = [(root, twig) for root in roots for twig in root.twigs]
                self._known["chunks"] = Chunks.of(self._branches(twigs, reader))
            known: Chunks | None = self._known["chunks"]
            return known
        found = [(root, root.twigs[place]) for root in roots for place in np.flatnonzero(needed(root.units)).tolist()]
        return Chunks.of(self._branches(found, reader))

    def _branches(self, twigs: Sequence[tuple[Root, Twig]], reader: Reader, pin: bool = False) -> list[Branch]:
        corners = self.shape.corners
        inside = [
            (place, twig.branch(root.inside[twig.start : twig.start + twig.length], corners))
            for place, (root, twig) in enumerate(twigs)
            if root.inside is not None
        ]
        outside = [(place, *one) for place, one in enumerate(twigs) if one[0].inside is None]
        read = reader.parsed(
            "branch",
            [(root.tree, twig.start, twig.length) for _, root, twig in outside],
            lambda place, data: outside[place][2].branch(data, corners),
            lambda made: made.nbytes,
            pin,
        )
        placed = {**dict(inside), **{one[0]: made for one, made in zip(outside, read, strict=True)}}
        return [placed[place] for place in range(len(twigs))]


def narrows(predicate: Predicate, columns: frozenset[Path]) -> bool:
    """Whether only some values of one of the columns can make it true, as far as boxes can tell."""
    match predicate:
        case And(below):
            return any(narrows(one, columns) for one in below)
        case Or(below):
            return all(narrows(one, columns) for one in below)
        case Holds(Related()):
            return columns_of(predicate) <= columns
        case Compare("=" | "<=>" | "<" | "<=" | ">" | ">=") | In():
            return len(columns_of(predicate)) == 1 and columns_of(predicate) <= columns
        case Constant(value):
            return value is not True
    return False
