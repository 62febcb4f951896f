"""Counts what is asked of a store: the currency in which lookups and plans are priced."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from grebe import telemetry
from grebe.store.children import children_of
from grebe.store.protocol import ObjectInfo, Store

_PAGE = 1000


@runtime_checkable
class ReadsInSpans(Protocol):
    """A store that reads neighbouring ranges in one request."""

    def spans(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]: ...


@dataclass(frozen=True)
class Counts:
    """Requests by the name of the call that made them, and bytes both ways; what is read between near ranges counts as well."""

    by_call: dict[str, int] = field(default_factory=dict)
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def requests(self) -> int:
        return sum(self.by_call.values())

    def since(self, earlier: "Counts") -> "Counts":
        """What came on top of an earlier count of the same store."""
        calls = {call: count - earlier.by_call.get(call, 0) for call, count in self.by_call.items()}
        return Counts(
            {call: count for call, count in calls.items() if count},
            self.bytes_read - earlier.bytes_read,
            self.bytes_written - earlier.bytes_written,
        )


class Counting:
    """Passes everything on to `store`. Calls that fail count as well; what a client repeats by itself does not.

    It belongs around the store itself, below any other wrapper: only there is it known which ranges are read together.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spans = store.spans if isinstance(store, ReadsInSpans) else None
        self._by_call: Counter[str] = Counter()
        self._read = 0
        self._written = 0
        self._lock = threading.Lock()

    @property
    def inner(self) -> Store:
        return self._store

    @property
    def uri(self) -> str:
        return self._store.uri

    def __repr__(self) -> str:
        return f"Counting({self._store!r})"

    @property
    def counts(self) -> Counts:
        with self._lock:
            return Counts(dict(self._by_call), self._read, self._written)

    def get(self, path: str, most: int | None = None) -> bytes:
        self._count("get")
        data = self._store.get(path, most)
        self._count("get", requests=0, read=len(data))
        return data

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get_ranges(path, [(start, length)])[0]

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        spans = ranges if self._spans is None else self._spans(ranges)
        self._count("get_ranges", requests=len(spans))
        parts = self._store.get_ranges(path, ranges, expected)
        end = max((start + len(part) for (start, _), part in zip(ranges, parts, strict=True) if part), default=0)
        self._count("get_ranges", requests=0, read=sum(max(min(length, end - start), 0) for start, length in spans))
        return parts

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._count("put_if_absent", written=len(data))
        self._store.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._count("put", written=len(data))
        self._store.put(path, data)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        """One request a page of a thousand."""
        self._count("list")
        for number, info in enumerate(self._store.list(prefix, start_after)):
            if number and number % _PAGE == 0:
                self._count("list")
            yield info

    def children(self, prefix: str = "") -> Sequence[str]:
        self._count("list")
        return children_of(self._store, prefix)

    def delete(self, path: str) -> None:
        self._count("delete")
        self._store.delete(path)

    def stat(self, path: str) -> ObjectInfo:
        self._count("stat")
        return self._store.stat(path)

    def _count(self, call: str, *, requests: int = 1, read: int = 0, written: int = 0) -> None:
        with self._lock:
            self._by_call[call] += requests
            self._read += read
            self._written += written
        telemetry.requested(requests, read)
