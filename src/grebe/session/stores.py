"""The stores of one table, opened once each, and what was asked of them."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from grebe.store.counting import Counting, Counts
from grebe.store.opening import open_store, patient, raw_table_store
from grebe.store.protocol import Store


@dataclass(frozen=True, slots=True)
class CountedStores:
    _opened: list[Counting] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def open(self, uri: str, storage_options: Mapping[str, str] | None = None) -> Store:
        """That of a table's log."""
        return self._counted(open_store(uri, storage_options))

    def open_table(self, uri: str, storage_options: Mapping[str, str] | None = None) -> Store:
        """That of a table's own files."""
        return patient(self._counted(raw_table_store(uri, storage_options)))

    def _counted(self, opened: Store) -> Store:
        store = Counting(opened)
        with self._lock:
            self._opened.append(store)
        return store

    @property
    def counts(self) -> Counts:
        """Of all of them together, so far."""
        each = [store.counts for store in self._opened]
        calls = sum((Counter(one.by_call) for one in each), Counter())
        return Counts(dict(calls), sum(one.bytes_read for one in each), sum(one.bytes_written for one in each))
