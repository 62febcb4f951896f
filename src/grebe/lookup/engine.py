"""Carries out a lookup: indexes say where rows may lie, those are fetched, and the predicate decides again on each of them.

Files that no index covers are read as a whole. So the rows are always those of a full scan; an index only decides how few bytes
that takes.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.errors import GrebeError, SourceChanged
from grebe.files import FileList
from grebe.formats import DataFile, Reading
from grebe.formats.byte_cache import ByteCache
from grebe.formats.protocol import BYTE_SPAN
from grebe.indexes.kind import Pruner
from grebe.indexes.reading import Reader, side_by_side
from grebe.lookup.answer import Answer, FileAnswer, Found, Numbers
from grebe.lookup.explain import LookupExplanation, not_used
from grebe.lookup.fetching import LOCATED, Beside, Fetch
from grebe.lookup.finding import Finder
from grebe.lookup.memory import FileMemory
from grebe.lookup.pin.pins import Held, Pins, PinsSeen, State
from grebe.lookup.telling import Teller
from grebe.planner.observing import HearsLookups
from grebe.planner.reasons import Code, Reason, unless_not_refreshable
from grebe.predicate.about import about
from grebe.predicate.arrow_types import schema_type
from grebe.predicate.bind import bind
from grebe.predicate.builder import path_of
from grebe.predicate.evaluate import Evaluator, matches
from grebe.predicate.normalise import normalise
from grebe.predicate.tree import TRUE, Predicate, columns_of
from grebe.predicate.types import Type
from grebe.sources import Deleted, Source, Version


@dataclass(frozen=True)
class Snapshot:
    """A table in one state: its files, what their ids are in the log (or `NOWHERE`), and the indexes that know them."""

    source: Source
    files: FileList
    ids: Numbers
    reading: Reading
    indexes: tuple[Pruner, ...]
    table_version: Version | None = None
    log_version: int | None = None
    unused: tuple[Reason, ...] = ()
    """Why other indexes of the table cannot help, whatever is asked."""
    older: Mapping[str, int] = field(default_factory=dict)
    """Indexes of which an older version is used, and which."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Why some of the indexes can no longer be refreshed."""


class Engine:
    def __init__(
        self,
        snapshot: Snapshot,
        cache: ByteCache,
        time_zone: str,
        hears: HearsLookups | None = None,
        pins: Pins | None = None,
    ) -> None:
        """`hears` is told of every lookup once it is done. `pins` are rows that are in memory."""
        self.snapshot = snapshot
        self._told = Teller(snapshot.source.uri, snapshot.files, hears)
        self._whole_schema = snapshot.reading.schema
        self._schemas: dict[tuple[str, ...], pa.Schema] = {}
        self.type = schema_type(self._whole_schema)
        self.time_zone = time_zone
        self._cache = cache
        self.local = snapshot.source.uri.startswith("file:")
        self._data_files: Sequence[DataFile] = snapshot.source.data_files(snapshot.files)
        facts = (snapshot.files.table[name].to_pylist() for name in ("modified_ms", "etag", "tag"))
        self._identities: list[tuple[Hashable, ...]] = list(zip(*facts, strict=True))
        self._partitions = snapshot.source.partition_values(snapshot.files, snapshot.reading)
        self._pruners: dict[str, Pruner] = {}
        self._read_differently: list[Reason] = []
        for one in snapshot.indexes:
            if snapshot.reading.agrees_on(one.reading, [path[0] for path in one.columns]):
                self._pruners[one.name] = one
            else:
                self._read_differently.append(
                    Reason(Code.READ_DIFFERENTLY, one.name, {"differs": "columns or options"})
                )
        self._finder = Finder(tuple(self._pruners.values()), snapshot.ids)
        self.state = State(
            snapshot.files,
            snapshot.reading,
            self._partitions,
            lambda: self.deleted,
            snapshot.table_version,
            snapshot.log_version,
        )
        self._pinned = PinsSeen(pins or Pins(), self.state)

    @cached_property
    def deleted(self) -> Deleted:
        """Rows that files still have and the table has not. Known only once rows are read."""
        return self.snapshot.source.deleted(self.snapshot.files)

    @property
    def whole_records(self) -> bool:
        """Whether all columns of a record lie together, so that one more costs nothing to read."""
        return self.snapshot.source.format.locator == BYTE_SPAN

    def changed(self, place: int) -> SourceChanged:
        """Tell that a file is no longer what it was when the table was opened."""
        return self._data_files[place].changed()

    def type_of(self, column: str) -> Type | None:
        """Of a column or field, by its name in any case; None if there is none."""
        kind: Type | None = self.type
        for name in path_of(column):
            fields = {} if kind is None else {field.name.lower(): field.type for field in kind.fields}
            kind = fields.get(name.lower())
        return kind

    @property
    def pruners(self) -> Sequence[Pruner]:
        """The indexes that can be asked."""
        return [one for one in self._pruners.values() if one.name not in self._finder.set_aside]

    def set_aside(self, index: str, problem: GrebeError) -> None:
        """An index that could not be read."""
        self._finder.warn(self._pruners[index], problem)

    def bound(self, predicate: Predicate) -> Predicate:
        """With types, and in its normal form: as all questions below want it."""
        return normalise(bind(predicate, self.type, time_zone=self.time_zone))

    def reader(self) -> Reader:
        return Reader(self._cache)

    def files(self, predicate: Predicate) -> Answer:
        """`predicate` is bound and normalised, here and below."""
        reader = self.reader()
        with self._told.lookup("files", predicate) as told:
            found = self._narrowed(self.find(predicate, reader), predicate)
            answer = self._answer(found, reader)
            told.found(found, reader)
        return answer

    def explain(self, predicate: Predicate) -> LookupExplanation:
        """Reads the index as a lookup would, and no data."""
        reader = self.reader()
        found = self.find(predicate, reader)
        answer = self._answer(found, reader)
        reasons = [
            *self.snapshot.unused,
            *self._read_differently,
            *not_used(self._finder, self._pruners, found.used, predicate, reader),
        ]
        reasons = [unless_not_refreshable(one, self.snapshot.problems.get(one.index, "")) for one in reasons]
        chosen = {name: why for name in found.used if (why := self._pruners[name].chosen)}
        older = {name: self.snapshot.older[name] for name in found.used if name in self.snapshot.older}
        pinned = int(self._pinned.held(predicate, ()).places.sum())
        return LookupExplanation(answer, found.used, tuple(reasons), chosen, older, pinned)

    def find(self, predicate: Predicate, reader: Reader) -> Found:
        found = self._finder.find(predicate, reader)
        asked = about(predicate, [(name,) for name in self._partitions.column_names])
        if asked == TRUE or not self._partitions.num_columns:
            return found
        # What the partitions of files say cannot be told by an index that does not know these columns.
        kept = matches(self._partitions, asked).to_numpy(zero_copy_only=False)
        return found.without(~kept)

    def _held(self, predicate: Predicate, names: Sequence[str] = ()) -> Held:
        """What is pinned of a query's rows. The query is remembered: the next pin is laid out for such."""
        self._pinned.pins.asked.hear(predicate)
        return self._pinned.held(predicate, names)

    def _left(self, held: Held, predicate: Predicate, reader: Reader) -> Found:
        """Where the other rows may lie."""
        if held.everything:
            return Found(known=held.places)
        found = self.find(predicate, reader)
        return found.without(held.places) if held.parts else found

    def _narrowed(self, found: Found, predicate: Predicate) -> Found:
        """Without files of which pinned rows tell that none matches."""
        held = self._held(predicate)
        if not held.parts:
            return found
        try:
            having = held.files(predicate)
        except GrebeError:
            # A cast that fails is told to whoever reads the rows.
            return found
        return replace(found.without(held.places & ~having), known=found.known | held.places)

    def _answer(self, found: Found, reader: Reader) -> Answer:
        uris = self.snapshot.files.uris()
        answers = [FileAnswer(uris[place].as_py(), _row_numbers(records)) for place, records in found.records.items()]
        answers += [FileAnswer(uris[place].as_py(), None) for place in found.whole.tolist()]
        return Answer(
            files=tuple(sorted(answers, key=lambda one: one.path)),
            covered=found.covered,
            uncovered=len(self.snapshot.files) - found.covered,
            pruned=len(self.snapshot.files) - len(answers),
            requests=reader.spent.requests,
            bytes=reader.spent.bytes,
            index=found.index,
            indexes=found.used,
            pruned_by=found.left_out,
            table_version=self.snapshot.table_version,
            log_version=self.snapshot.log_version,
        )

    def scan(self, predicate: Predicate, columns: Sequence[str] | None = None, heard: bool = True) -> pa.Table:
        """All rows for which the predicate is true, with these columns. `heard`: it is a query, and not a part of one."""
        reader = self.reader()
        known = self.snapshot.reading.columns
        names = [column.name for column in known] if columns is None else list(columns)
        with self._told.lookup("scan", predicate, tuple(names), heard) as told:
            needed = list(dict.fromkeys([*names, *(path[0] for path in columns_of(predicate))]))
            held = self._held(predicate, needed)
            found = self._left(held, predicate, reader)
            parts = [*held.tables(predicate, needed), *self._parts(found, predicate, needed, reader)]
            schema = self._schema(tuple(names))
            tables = [_as(part.select(names), schema) for part in parts if len(part)]
            made = pa.concat_tables(tables) if tables else schema.empty_table()
            told.found(found, reader, made.num_rows)
        return made

    def _parts(self, found: Found, predicate: Predicate, needed: list[str], reader: Reader) -> list[pa.Table]:
        """The rows of each file, or from the index itself where it holds all that is asked for."""
        wanted: list[tuple[int, pa.Table | None]] = [(one, None) for one in found.whole.tolist()]
        known = [] if found.values is None else self._from_index(found, predicate, needed)
        if known is None or found.values is None:
            wanted = [*found.records.items(), *wanted]
        fetch = Fetch(self, Evaluator(predicate), needed, self.maps(found, reader), self._beside(found, needed))
        return [*(known or ()), *side_by_side(fetch, wanted, self.local)]

    def _from_index(self, found: Found, predicate: Predicate, needed: list[str]) -> list[pa.Table] | None:
        """None where the index does not hold all of these columns, or rows that the table no longer has."""
        if any(place in self.deleted for place in found.records):
            return None
        held = self._pruners[found.used[0]].columns  # only an index of records has values, and it is named first
        if found.values is None or not all((name,) in held for name in needed):
            return None
        covered = [found.positions[place] for place in found.records]
        rows = np.concatenate(covered) if covered else np.empty(0, np.int64)
        values = found.values if len(rows) == len(found.values) else found.values.take(pa.array(rows))
        table = _as(
            values.select([held[(name,)] for name in needed]).rename_columns(needed), self._schema(tuple(needed))
        )
        return [table.filter(matches(table, predicate))]

    def _beside(self, found: Found, needed: Sequence[str]) -> Beside | None:
        """What need not be read of rows, since the index holds it, where something else has to be."""
        if found.values is None:
            return None
        held = self._pruners[found.used[0]].columns
        names = [name for name in needed if (name,) in held]
        if not names or len(names) == len(needed):
            return None
        values = found.values.select([held[(name,)] for name in names]).rename_columns(names)
        return Beside(_as(values, self._schema(tuple(names))), found.positions)

    def _schema(self, names: tuple[str, ...]) -> pa.Schema:
        known = self._schemas.get(names)
        if known is None:
            known = self._schemas[names] = pa.schema([self._whole_schema.field(name) for name in names])
        return known

    def count(self, predicate: Predicate) -> int:
        """How many rows a scan would give. Files of which an index knows that every row matches are not read."""
        reader = self.reader()
        with self._told.lookup("count", predicate) as told:
            held = self._held(predicate)
            sure = {} if held.everything else self._certain(predicate, reader)
            sure = {place: rows for place, rows in sure.items() if not held.places[place]}
            found = self._left(held, predicate, reader)
            known = np.zeros(len(self.snapshot.files), np.bool_)
            known[list(sure)] = True
            left = replace(found.without(known), values=None)
            parts = self._parts(left, predicate, self._asked(predicate), reader)
            rows = held.count(predicate) + sum(sure.values()) + sum(map(len, parts))
            told.found(left, reader, rows)
        return rows

    def exists(self, predicate: Predicate) -> bool:
        """Whether a scan would give a row. The first one that is found ends it."""
        reader = self.reader()
        with self._told.lookup("exists", predicate) as told:
            held = self._held(predicate)
            if held.some(predicate) or (not held.everything and any(self._certain(predicate, reader).values())):
                told.add(files=0, requests=reader.spent.requests, bytes=reader.spent.bytes)
                return True
            found = self._left(held, predicate, reader)
            fetch = Fetch(self, Evaluator(predicate), self._asked(predicate), self.maps(found, reader))
            whole: list[tuple[int, pa.Table | None]] = [(one, None) for one in found.whole.tolist()]
            told.found(found, reader)
            return any(len(fetch(one)) for one in (*found.records.items(), *whole))

    def _certain(self, predicate: Predicate, reader: Reader) -> dict[int, int]:
        """Of files with deleted rows an index does not know how many are left."""
        sure = self._finder.certain(predicate, reader)
        return {place: rows for place, rows in sure.items() if place not in self.deleted} if sure else sure

    def _asked(self, predicate: Predicate) -> list[str]:
        """Columns to count rows by."""
        named = list(dict.fromkeys(path[0] for path in columns_of(predicate)))
        return named or [column.name for column in self.snapshot.reading.columns[:1]]

    def rows(self, predicate: Predicate) -> pa.Table:
        """Where each row lies for which the predicate is true: `file`, and the numbers of the format's locator."""
        reader = self.reader()
        with self._told.lookup("rows", predicate) as told:
            found = self.find(predicate, reader)
            located = self._located(found, predicate, reader)
            told.found(found, reader, located.num_rows)
        return located

    def _located(self, found: Found, predicate: Predicate, reader: Reader) -> pa.Table:
        needed = list(dict.fromkeys(path[0] for path in columns_of(predicate)))
        fetch = Fetch(self, Evaluator(predicate), needed, self.maps(found, reader), located=True)
        wanted: list[tuple[int, pa.Table | None]] = [
            *found.records.items(),
            *((one, None) for one in found.whole.tolist()),
        ]
        locator = self.snapshot.source.format.locator.schema
        schema = pa.schema([pa.field("file", pa.string()), *(pa.field(one.name, one.type) for one in locator)])
        uris = self.snapshot.files.uris()
        tables = []
        for (place, _), part in zip(wanted, side_by_side(fetch, wanted, self.local), strict=True):
            if len(part):
                file = pa.repeat(uris[place], len(part))
                tables.append(pa.table([file, *(part[LOCATED + one.name] for one in locator)], schema=schema))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def warm(self, index: str, pin: bool) -> None:
        if index in self._pruners:
            reader = self.reader()
            self._pruners[index].warm(reader, pin)
            self._pruners[index].maps(reader)

    def maps(self, found: Found, reader: Reader) -> Mapping[int, Any]:
        """What the index that was used remembers of the files, by id."""
        return self._pruners[found.used[0]].maps(reader) if found.used else {}

    def read(
        self, place: int, records: pa.Table | None, names: Sequence[str], maps: Mapping[int, Any]
    ) -> Sequence[tuple[pa.Table, pa.Table]]:
        """Records of one file with these columns, and their locators: those asked for, or all of them, part by part. Rows that
        were deleted are left out."""
        if records is None:
            return list(self.pieces(place, names))
        return [self._present(place, *one) for one in self._fetched(place, records, names, maps)]

    def pieces(self, place: int, names: Sequence[str]) -> Iterator[tuple[pa.Table, pa.Table]]:
        """As `read`, of all records, one part after the other."""
        reading = self.snapshot.reading
        own = [column.name for column in reading.file_columns if column.name in names]
        for part in self.snapshot.source.format.read(self._data_files[place], reading, own):
            table = self._whole(pa.Table.from_batches([part.records]), place, names)
            yield self._present(place, table, pa.Table.from_batches([part.locators]))

    def _present(self, place: int, table: pa.Table, locators: pa.Table) -> tuple[pa.Table, pa.Table]:
        if place not in self.deleted:
            return table, locators
        kept = ~np.isin(locators["row"].to_numpy(), self.deleted[place])
        return table.filter(kept), locators.filter(kept)

    def _fetched(
        self, place: int, records: pa.Table, names: Sequence[str], maps: Mapping[int, Any]
    ) -> list[tuple[pa.Table, pa.Table]]:
        format, reading = self.snapshot.source.format, self.snapshot.reading
        file = self._data_files[place]
        own = [column.name for column in reading.file_columns if column.name in names]
        memory = FileMemory(self._cache, self._identities[place], lambda: maps.get(int(self.snapshot.ids[place])))
        located = records.combine_chunks().to_batches()[0] if len(records) else None
        if located is None:
            return []
        wanted = pa.RecordBatch.from_arrays(located.columns, schema=format.locator.schema)
        return [(self._whole(format.fetch(file, reading, wanted, own, memory), place, names), records)]

    def _whole(self, table: pa.Table, place: int, names: Sequence[str]) -> pa.Table:
        """With the values of the file's partition."""
        for column in self.snapshot.reading.partition_columns:
            if column.name in names:
                value = self._partitions[column.name][place]
                table = table.append_column(column.arrow, pa.repeat(value, table.num_rows))
        return table


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table if table.schema.equals(schema) else table.cast(schema)


def _row_numbers(records: pa.Table) -> tuple[int, ...] | None:
    return tuple(records["row"].to_pylist()) if "row" in records.column_names else None
