"""An index of summaries asked without Spark: a verdict for every file it covers.

What it holds of all files is read once and kept ready; pieces of sieves are read as predicates need them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import CorruptIndex
from grebe.files import FileIds
from grebe.formats import DataFile
from grebe.indexes.content.copies import by_folder
from grebe.indexes.content.sealed import unsealed
from grebe.indexes.kind import FILE_COLUMN, Entries, Extreme, Totals
from grebe.indexes.reading import Reader
from grebe.indexes.sieving.keys import Keys, keys_for, unpack_separators
from grebe.indexes.sieving.sieve import Sieve
from grebe.indexes.sketches.columns import subject
from grebe.indexes.sketches.min_max import Extents
from grebe.indexes.sketches.protocol import Judge
from grebe.indexes.sketches.ranges import code_ranges
from grebe.indexes.summary import directory
from grebe.indexes.summary.directory import Listed
from grebe.indexes.summary.pieces import opened
from grebe.indexes.summary.shape import PAYLOAD, ROWS, HeldSieve, Shape, shape_of
from grebe.indexes.version import IndexVersion
from grebe.log.states import IndexState
from grebe.predicate.bounds import named
from grebe.predicate.tree import And, Column, In, Or, Path, Predicate
from grebe.predicate.verdicts import Verdict, Verdicts, both, either, judge, must_read, same
from grebe.store.protocol import Store

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Summaries:
    """Of all files that the content knows, in one order: their ids and rows, and a judge for each sketch."""

    ids: Ids
    rows: Ids
    judges: tuple[Judge, ...]

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.rows.nbytes + sum(one.nbytes for one in self.judges)


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known of a predicate: of these files, by id, one verdict each."""

    files: Ids
    verdicts: Verdicts

    @property
    def likely(self) -> int:
        """Nothing more has to be read to tell the files."""
        return 0

    def entries(self, reader: Reader) -> Entries:
        return Entries(self.files[must_read(self.verdicts)], None, None)


@dataclass(frozen=True)
class SummaryIndex(IndexVersion[Shape]):
    """One version of an index (`indexes.kind.Pruner`)."""

    @classmethod
    def of(cls, index: IndexState, store: Store) -> "SummaryIndex":
        """Reads nothing."""
        return cls(index, shape_of(index.name, index.spec), store)

    @property
    def by_file(self) -> bool:
        return True

    @property
    def chosen(self) -> str:
        return "; ".join(self.state.spec.properties.get("chosen", ()))

    def leads(self, column: Path) -> bool:
        kind = next((on.type for held in self.shape.sketches for on in held.on if on.path == column), None)
        return kind is not None and self._knows(In(Column(column, kind), ()))

    def helps(self, predicate: Predicate) -> bool:
        """Whether a part of it is about something that a sketch or a sieve knows."""
        asked = False

        def leaf(simple: Predicate, within: And | None = None) -> None:
            nonlocal asked
            asked = asked or self._knows(simple)

        judged(predicate, 1, leaf)
        return asked

    def _knows(self, simple: Predicate) -> bool:
        return any(held.sketch.helps(held.on, simple) for held in self.shape.sketches)

    def hits(self, predicate: Predicate, reader: Reader) -> Judged:
        known = self._summaries(reader)

        def leaf(simple: Predicate, within: And | None = None) -> Verdicts | None:
            found: Verdicts | None = None
            for held, one in zip(self.shape.sketches, known.judges, strict=True):
                whole = within is not None and held.sketch.helps(held.on, within)
                if not whole and held.sketch.helps(held.on, simple):
                    found = _together(found, one.verdicts(simple))
            for sieve in self.shape.sieves if within is None else ():
                found = _together(found, self._sieved(sieve, simple, known, reader))
            return found

        # Where nothing is known of any file there is no judge to ask.
        verdicts = judged(predicate, len(known.ids), leaf) if len(known.ids) else same(Verdict.MUST_READ, 0)
        there = self.covered.contains(known.ids)
        # A covered file of which the content says nothing must be read: that of one without rows may be missing.
        unknown = (self.covered - FileIds.of(known.ids)).to_numpy().astype(np.int64)
        return Judged(
            np.concatenate((known.ids[there], unknown)),
            np.concatenate((verdicts[there], np.ones(len(unknown), np.int8))),
        )

    def certain(self, predicate: Predicate, reader: Reader) -> tuple[Ids, Ids]:
        asked, known = self.hits(predicate, reader), self._summaries(reader)
        surely = np.isin(known.ids, asked.files[asked.verdicts == Verdict.ALL_MATCH])
        return known.ids[surely], known.rows[surely]

    def totals(self, predicate: Predicate, files: FileIds, reader: Reader) -> Totals | None:
        asked = self.hits(predicate, reader)
        known = self._summaries(reader)
        here = files.contains(asked.files)
        if int(here.sum()) != len(files) or (asked.verdicts[here] == Verdict.MUST_READ).any():
            return None
        matching = np.isin(known.ids, asked.files[here & (asked.verdicts == Verdict.ALL_MATCH)])
        found: dict[Path, Extreme] = {}
        for one in known.judges:
            told = one.over(matching) if isinstance(one, Extents) else None
            # Of a column there may be bounds, and beside them NULLs alone.
            if (
                told is not None
                and isinstance(one, Extents)
                and (told.least is not None or one.bounds.column not in found)
            ):
                found[one.bounds.column] = told
        return Totals(int(known.rows[matching].sum()), found)

    def maps(self, reader: Reader) -> Mapping[int, Any]:
        return {}

    def warm(self, reader: Reader, pin: bool) -> None:
        self._summaries(reader, pin)
        for sieve in self.shape.sieves:
            self._pieces(sieve, [one for one in self._listed(reader) if one.sieve == sieve.number], reader, pin)

    def _listed(self, reader: Reader) -> tuple[Listed, ...]:
        """Of all runs."""
        if "listed" not in self._known:
            folders = list(by_folder(self.state.content).items())
            wanted = [(self._directory(folder, files), files) for folder, files in folders]
            spans = [(file, 0, file.size) for file, _ in wanted]

            def parse(place: int, data: bytes) -> tuple[Listed, ...]:
                return directory.parse(data, self.store, folders[place][0], folders[place][1])

            read = reader.parsed("directory", spans, parse, lambda made: 200 * len(made))
            self._known["listed"] = tuple(one for run in read for one in run)
        listed: tuple[Listed, ...] = self._known["listed"]
        return listed

    def _directory(self, folder: str, files: Sequence[Any]) -> DataFile:
        path = f"{folder}/{directory.NAME}"
        found = next((file for file in files if file.path == path), None)
        if found is None:
            raise CorruptIndex(
                f"the log names no directory of {self.store.uri}/{folder}; refresh the index with mode='full'",
                detail="DIRECTORY",
            )
        return DataFile(self.store, path, found.size)

    def _summaries(self, reader: Reader, pin: bool = False) -> Summaries:
        files = [one for one in self._listed(reader) if one.files]
        key = ("summaries", self.store.uri, tuple(one.file.path for one in files))
        if pin:
            reader.cache.put(key, made := self._read_summaries(files, reader), made.nbytes, pin)
            return made
        if "summaries" not in self._known:
            made = reader.cache.made(key, lambda: self._read_summaries(files, reader), lambda one: one.nbytes)
            if made.nbytes <= reader.cache.limit:
                return made
            # More than the cache may hold, but every question needs it.
            self._known["summaries"] = made
        known: Summaries = self._known["summaries"]
        return known

    def _read_summaries(self, files: Sequence[Listed], reader: Reader) -> Summaries:
        spans = [(one.file, 0, one.file.size) for one in files]
        tables = reader.read(spans, lambda place, data: files[place].parsed(data))
        whole = pa.concat_tables(tables).combine_chunks() if tables else None
        stored = _Stored(whole)
        judges = (
            held.sketch.judge(held.on, {name: stored[held.field(name)] for name in held.sketch.fields(held.on)})
            for held in self.shape.sketches
        )
        if whole is None:
            return Summaries(np.empty(0, np.int64), np.empty(0, np.int64), ())
        return Summaries(_numbers(stored[FILE_COLUMN]), _numbers(stored[ROWS]), tuple(judges))

    def _sieved(self, sieve: HeldSieve, simple: Predicate, known: Summaries, reader: Reader) -> Verdicts | None:
        listed = [one for one in self._listed(reader) if one.sieve == sieve.number]
        keys = self._keys(sieve, listed, reader)
        ranges = None if keys is None else code_ranges(simple, sieve.on, keys)
        if ranges is None:
            return None
        needed = [one for one in listed if _meets(one, ranges)]
        kept = [piece.files(ranges) for piece in self._pieces(sieve, needed, reader)]
        files = np.unique(np.concatenate(kept)) if kept else np.empty(0, np.uint32)
        possible = np.isin(known.ids, files)
        return named(~possible, np.zeros_like(possible))

    def _keys(self, sieve: HeldSieve, listed: Sequence[Listed], reader: Reader) -> Keys | None:
        name = f"keys{sieve.number}"
        if name not in self._known:
            separators = None
            unbounded = [one for one in listed if one.low is None]
            if unbounded:
                tables = reader.read(
                    [(unbounded[0].file, 0, unbounded[0].file.size)], lambda _, d: unbounded[0].parsed(d)
                )
                packed = unsealed(tables[0][PAYLOAD][0].as_py(), unbounded[0].file.uri)
                separators = unpack_separators(packed, sieve.on.type)
            self._known[name] = keys_for(sieve.on.type, separators)
        keys: Keys | None = self._known[name]
        return keys

    def _pieces(self, sieve: HeldSieve, listed: Sequence[Listed], reader: Reader, pin: bool = False) -> list[Sieve]:
        files = [one for one in listed if one.low is not None]

        def parse(place: int, data: bytes) -> list[Sieve]:
            table = files[place].parsed(data)
            return [opened(one.as_py(), files[place].file.uri) for one in table[PAYLOAD]]

        spans = [(one.file, 0, one.file.size) for one in files]
        # A file may hold pieces of several sieves.
        kept_as = f"pieces of sieve {sieve.number}"
        read = reader.parsed(kept_as, spans, parse, lambda made: sum(one.nbytes for one in made), pin)
        return [piece for pieces in read for piece in pieces]


class LeafInGroup(Protocol):
    def __call__(self, simple: Predicate, within: And | None = None) -> Verdicts | None:
        """What is known of a simple predicate. `within`: the AND of all that is said of its column; that is asked by itself, so
        that whoever understands it need not be asked for its parts."""
        ...


def judged(predicate: Predicate, files: int, leaf: LeafInGroup) -> Verdicts:
    """As `judge`; what an AND says of one column is asked as a whole, since a range is less than its two halves."""
    match predicate:
        case Or(below):
            whole = same(Verdict.CANNOT_MATCH, files)
            for part in below:
                whole = either(whole, judged(part, files, leaf))
            return whole
        case And(below):
            whole = same(Verdict.ALL_MATCH, files)
            by_column: dict[Path | None, list[Predicate]] = {}
            for part in below:
                by_column.setdefault(subject(part), []).append(part)
            for column, parts in by_column.items():
                group = And(tuple(parts)) if column is not None and len(parts) > 1 else None
                for part in parts:
                    one = (
                        judged(part, files, leaf) if group is None else judge(part, files, partial(leaf, within=group))
                    )
                    whole = both(whole, one)
                answer = None if group is None else leaf(group)
                whole = whole if answer is None else both(whole, answer)
            return whole
    return judge(predicate, files, leaf)


class _Stored:
    """Columns of the content, each as one array."""

    def __init__(self, table: pa.Table | None) -> None:
        self._table = table

    def __getitem__(self, name: str) -> pa.Array:
        assert self._table is not None
        column = self._table[name]
        return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _numbers(column: pa.Array) -> Ids:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)


def _together(one: Verdicts | None, other: Verdicts | None) -> Verdicts | None:
    """What two summaries say of the same predicate: whatever the one rules out, or knows for sure, holds."""
    if one is None or other is None:
        return one if other is None else other
    ruled_out = both(one, other)
    return np.where((ruled_out != 0) & (np.maximum(one, other) == 2), np.int8(2), ruled_out)


def _meets(listed: Listed, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether it has pieces with keys of these ranges."""
    if listed.low is None or listed.high is None:
        return False
    return any(first <= listed.high and last >= listed.low for first, last in ranges)
