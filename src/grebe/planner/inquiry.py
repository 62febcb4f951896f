"""Indexes asked about a predicate. What they answer is kept, as the optimizer asks again until nothing changes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from grebe.errors import GrebeError, InvalidPredicate, Unsupported
from grebe.files import FileIds
from grebe.formats.byte_cache import ByteCache
from grebe.indexes.kind import Entries, Hits, Totals
from grebe.indexes.reading import Reader
from grebe.planner.parts import Parts, parts_of
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.predicate.tree import Predicate

Failed = Callable[[KnownTable, KnownIndex, GrebeError], None]
_ENTRY_BYTES = 8


class Inquiry:
    """`failed` hears of an index that is damaged, which then knows nothing. What is wrong with a predicate is no damage."""

    def __init__(self, cache: ByteCache, failed: Failed) -> None:
        self._cache = cache
        self._on_damage = failed

    def _failed(self, table: KnownTable, index: KnownIndex, problem: GrebeError) -> None:
        if not isinstance(problem, InvalidPredicate | Unsupported):
            self._on_damage(table, index, problem)

    def hits(self, table: KnownTable, index: KnownIndex, predicate: Predicate) -> Hits | None:
        if index.pruner is None:
            return None
        try:
            return index.pruner.hits(predicate, Reader(self._cache))
        except GrebeError as problem:
            self._failed(table, index, problem)
            return None

    def entries(self, table: KnownTable, index: KnownIndex, predicate: Predicate, hits: Hits) -> Entries | None:
        key = ("entries", table.uri, table.log, index.name, index.replaced_at, table.log_version, predicate)
        try:
            return self._cache.made(key, lambda: hits.entries(Reader(self._cache)), _size)
        except GrebeError as problem:
            self._failed(table, index, problem)
            return None

    def totals(self, table: KnownTable, index: KnownIndex, predicate: Predicate, files: FileIds) -> Totals | None:
        if index.pruner is None:
            return None
        try:
            return index.pruner.totals(predicate, files, Reader(self._cache))
        except GrebeError as problem:
            self._failed(table, index, problem)
            return None

    def maps(self, table: KnownTable, index: KnownIndex) -> Mapping[int, Any]:
        """What the index remembers of where records lie in files; nothing, where that is damaged."""
        if index.pruner is None:
            return {}
        try:
            return index.pruner.maps(Reader(self._cache))
        except GrebeError as problem:
            self._failed(table, index, problem)
            return {}

    def parts(self, table: KnownTable, index: KnownIndex, entries: Entries, files: FileIds) -> Parts:
        """Of these files, the ranges that hold the records."""
        assert index.pruner is not None
        if entries.locators is None or not files:
            return {}
        reading = index.pruner.reading
        maps = self.maps(table, index) if reading.format == "parquet" else {}
        return parts_of(entries, files.to_numpy().astype(np.int64), reading, maps, table.sizes)


def _size(entries: Entries) -> int:
    parts = (entries.locators, entries.values)
    return len(entries.files) * _ENTRY_BYTES + sum(int(part.nbytes) for part in parts if part is not None)
