"""Rows of single files for which a predicate is true."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from grebe.errors import SourceChanged
from grebe.lookup.answer import Numbers
from grebe.predicate.evaluate import Evaluator
from grebe.sources import Deleted

LOCATED = "\0locator\0"
"""Before the names of the columns of a locator."""


class ReadsFiles(Protocol):
    """What `engine.Engine` offers."""

    @property
    def deleted(self) -> Deleted: ...

    @property
    def whole_records(self) -> bool:
        """Whether all columns of a record lie together, so that one more costs nothing to read."""
        ...

    def changed(self, place: int) -> SourceChanged: ...

    def read(
        self, place: int, records: pa.Table | None, names: Sequence[str], maps: Mapping[int, Any]
    ) -> Sequence[tuple[pa.Table, pa.Table]]: ...


@dataclass(frozen=True, slots=True)
class Beside:
    """Columns of rows that an index holds."""

    values: pa.Table
    positions: Mapping[int, Numbers]

    def added(self, table: pa.Table, place: int, names: Sequence[str]) -> pa.Table:
        """To the other columns of the records of a file, in their order."""
        own = self._of(place)
        return pa.table({name: (own if name in own.column_names else table)[name] for name in names})

    def differs(self, table: pa.Table, place: int) -> bool:
        """Whether the records of a file have other values than the index holds of them, in columns that were read of both."""
        own = self._of(place)
        both = [name for name in own.column_names if name in table.column_names]
        # No NaN equals another.
        return any(
            not own[name].equals(table[name].cast(own[name].type))
            for name in both
            if not pa.types.is_floating(own[name].type)
        )

    def _of(self, place: int) -> pa.Table:
        return self.values.take(pa.array(self.positions[place]))


@dataclass(frozen=True, slots=True)
class Fetch:
    """The rows of one file for which the predicate is true."""

    engine: ReadsFiles
    evaluator: Evaluator
    names: list[str]
    maps: Mapping[int, Any]
    beside: Beside | None = None
    located: bool = False

    def __call__(self, wanted: tuple[int, pa.Table | None]) -> pa.Table:
        place, records = wanted
        kept = []
        beside = self.beside if records is not None and place not in self.engine.deleted else None
        names = self.names
        if beside is not None and not self.engine.whole_records:
            names = [one for one in self.names if one not in beside.values.column_names]
        for table, locators in self.engine.read(place, records, names, self.maps):
            if beside is not None:
                if beside.differs(table, place):
                    raise self.engine.changed(place)
                table = beside.added(table, place, self.names)
            flags = self.evaluator.matches(table)
            if self.located:
                table = locators.rename_columns([LOCATED + name for name in locators.column_names])
            kept.append(table.filter(flags))
        return pa.concat_tables(kept) if kept else pa.table({})
