"""Which files and records can make a predicate true, by the indexes that know: one of them, or several for the parts of an OR."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from grebe import telemetry
from grebe.errors import CorruptIndex, GrebeError, InvalidPredicate, Unsupported
from grebe.files import FileIds
from grebe.files.untrusted import decoding
from grebe.indexes.kind import Entries, Hits, Pruner
from grebe.indexes.reading import Reader
from grebe.lookup.answer import Found, Numbers
from grebe.predicate.tree import FALSE, TRUE, Or, Predicate, columns_of

_logger = logging.getLogger("grebe.lookup")
T = TypeVar("T")
NOWHERE = -1
_MOST_SHARE = 16
"""Where more than one row in so many may match, reading all of them is the shorter way."""
_RULED_OUT = 10
_FEW = 20_000
"""So many entries are read without asking what share of the table they are."""


def is_much(hits: Hits, pruner: Pruner) -> bool:
    """Whether reading all files is the shorter way than looking up so many rows."""
    return hits.likely is not None and hits.likely > _FEW and hits.likely * _MOST_SHARE > pruner.rows


@dataclass(frozen=True)
class _Part:
    """What one index says."""

    entries: Entries
    covered: FileIds
    used: tuple[str, ...]


@dataclass(frozen=True)
class Finder:
    """`ids` are those of the table's files in the log, in their order, or `NOWHERE`."""

    pruners: Sequence[Pruner]
    ids: Numbers
    set_aside: dict[str, str] = field(default_factory=dict)
    """Indexes that could not be read, and the code of the error."""

    def find(self, predicate: Predicate, reader: Reader) -> Found:
        """`predicate` is bound and normalised."""
        if predicate == FALSE:
            return Found(known=np.ones(len(self.ids), np.bool_))
        parts = self._parts(predicate, reader)
        found = self._everything() if parts is None else self._placed(parts)
        # What is left are files: those that no index of records knows, or all.
        return self._fewer_files(found, predicate, reader) if len(found.whole) else found

    def _everything(self) -> Found:
        return Found(whole=np.arange(len(self.ids)), known=np.zeros(len(self.ids), np.bool_))

    def usable(self, predicate: Predicate, by_file: bool = False) -> Iterator[Pruner]:
        return (
            one
            for one in self.pruners
            if one.name not in self.set_aside
            and self.ask(one, lambda own: own.by_file == by_file and own.helps(predicate))
        )

    def ask(self, pruner: Pruner, question: Callable[[Pruner], T]) -> T | None:
        """Return the answer of an index; None if it has none. A damaged one is set aside: the answer is right all the same, by
        another index or by scanning. What is wrong with the predicate is no damage, and whoever evaluates it says so."""
        try:
            with decoding(lambda why: CorruptIndex(f"index {pruner.name} cannot be asked: {why}", detail="SPEC")):
                return question(pruner)
        except (InvalidPredicate, Unsupported) as problem:
            telemetry.event(_logger, logging.DEBUG, "index_not_asked", index=pruner.name, code=problem.code)
            return None
        except GrebeError as problem:
            self.warn(pruner, problem)
            return None

    def certain(self, predicate: Predicate, reader: Reader) -> dict[int, int]:
        """Places of files of which every row matches, and how many rows they have."""
        known: dict[int, int] = {}
        for pruner in self.pruners:
            if pruner.name in self.set_aside:
                continue
            told = self.ask(pruner, lambda own: _certain(own, predicate, reader))
            for file, count in told or ():
                if file in self._places:
                    known[self._places[file]] = count
        return known

    def _fewer_files(self, found: Found, predicate: Predicate, reader: Reader) -> Found:
        """By all indexes that tell files."""
        known, kept = found.known.copy(), np.ones(len(self.ids), np.bool_)
        left_out = dict(found.left_out)
        for pruner in self.usable(predicate, by_file=True):
            having = self.ask(pruner, lambda own: own.hits(predicate, reader).entries(reader).files)
            if having is None:
                continue
            own = pruner.covered.contains(self.ids) & (self.ids != NOWHERE)
            without = own & ~np.isin(self.ids, having)
            known |= own
            kept &= ~without
            left_out[pruner.name] = int(without.sum())
        used = (*found.used, *(name for name in left_out if name not in found.used))
        return replace(found, whole=found.whole[kept[found.whole]], known=known, used=used, left_out=left_out)

    def _parts(self, predicate: Predicate, reader: Reader, failed: frozenset[str] = frozenset()) -> list[_Part] | None:
        """What indexes say together; None where nothing better is known than to read everything. `failed`: indexes that had no
        answer."""
        best = self._best(predicate, reader, failed)
        if best is not None:
            pruner, hits = best
            if is_much(hits, pruner):
                return None
            entries = self.ask(pruner, lambda _: hits.entries(reader))
            if entries is None:
                return self._parts(predicate, reader, failed | {pruner.name})
            return [_Part(entries, pruner.covered, (pruner.name,))]
        if isinstance(predicate, Or):
            below = [self._parts(one, reader) for one in predicate.predicates]
            if None not in below:
                return [part for parts in below if parts is not None for part in parts]
        return None

    def _best(self, predicate: Predicate, reader: Reader, failed: frozenset[str]) -> tuple[Pruner, Hits] | None:
        """The index that reads least; each column more that it knows is taken to rule out most of the rest."""
        best: tuple[float, Pruner, Hits] | None = None
        for pruner in self.usable(predicate):
            if pruner.name in failed:
                continue
            hits = self.ask(pruner, lambda own: own.hits(predicate, reader))
            if hits is None:
                continue
            known = sum(path in pruner.columns for path in columns_of(predicate))
            weight = (hits.likely or 0) / _RULED_OUT**known
            if best is None or weight < best[0]:
                best = (weight, pruner, hits)
        return None if best is None else best[1:]

    def _placed(self, parts: Sequence[_Part]) -> Found:
        covered = self.ids != NOWHERE
        for part in parts:
            covered &= part.covered.contains(self.ids)
        whole = [np.flatnonzero(~covered)]
        by_place: dict[int, list[pa.Table]] = {}
        positions: dict[int, Numbers] = {}
        for part in parts:
            files, records = part.entries.files, part.entries.locators
            for place, rows in self._by_place(files, covered):
                if records is None:
                    whole.append(np.array([place]))
                else:
                    own, positions[place] = _in_order(records.take(pa.array(rows)) if len(files) > 1 else records, rows)
                    by_place.setdefault(place, []).append(own)
        all_whole = np.unique(np.concatenate(whole))
        skipped = set(all_whole.tolist())
        several = len(parts) > 1
        found = {place: _each_once(by_place[place]) for place in sorted(by_place) if place not in skipped}
        used = dict.fromkeys(name for part in parts for name in part.used)
        left_out = {} if several else {name: int(covered.sum()) - len(found) for name in used}
        if several:
            return Found(found, all_whole, covered, tuple(used), left_out=left_out)
        return Found(found, all_whole, covered, tuple(used), parts[0].entries.values, positions, left_out)

    def _by_place(
        self, files: Numbers, covered: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> Iterator[tuple[int, Numbers]]:
        """For each file of the table that has entries its place, and which entries they are."""
        if not len(files):
            return
        order = np.argsort(files, kind="stable")
        ordered = files[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(ordered)], strict=True):
            place = self._places.get(int(ordered[start]))
            if place is not None and covered[place]:
                yield place, order[start:stop]

    @property
    def _places(self) -> dict[int, int]:
        known: dict[int, int] | None = self.__dict__.get("_place_of")
        if known is None:
            there = np.flatnonzero(self.ids != NOWHERE)
            known = dict(zip(self.ids[there].tolist(), there.tolist(), strict=True))
            self.__dict__["_place_of"] = known
        return known

    def warn(self, index: Pruner, problem: GrebeError) -> None:
        """Once for each index."""
        if index.name not in self.set_aside:
            self.set_aside[index.name] = problem.code
            telemetry.event(
                _logger, logging.WARNING, "index_set_aside", index=index.name, code=problem.code, why=str(problem)
            )


def _certain(pruner: Pruner, predicate: Predicate, reader: Reader) -> list[tuple[int, int]]:
    if not pruner.by_file or not (predicate == TRUE or pruner.helps(predicate)):
        return []
    files, rows = pruner.certain(predicate, reader)
    return list(zip(files.tolist(), rows.tolist(), strict=True))


def _in_order(records: pa.Table, rows: Numbers) -> tuple[pa.Table, Numbers]:
    """Locators in the order of the file, and which entries they are."""
    if len(records) < 2:
        return records, rows
    order = np.argsort(records.column(0).to_numpy(), kind="stable")
    return records.take(pa.array(order)), rows[order]


def _each_once(tables: list[pa.Table]) -> pa.Table:
    """Locators of one file in the order of the file; two indexes may name the same record."""
    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables).combine_chunks()
    return whole.group_by(whole.column_names).aggregate([]).sort_by(whole.column_names[0])
