"""A store of any kind with seeded faults in front of it: requests and replies that get lost, and false claims of a conflict."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from grebe.store.protocol import ObjectExists, ObjectInfo, OutcomeUnknown, Store

T = TypeVar("T")


class FaultyStore:
    """`rate` of all calls go wrong, half of them after having been carried out. Counts the entries of a log that were tried."""

    def __init__(self, store: Store, seed: int, rate: float) -> None:
        self._store = store
        self._random = random.Random(seed)
        self._rate = rate
        self.entry_puts = 0

    @property
    def uri(self) -> str:
        return self._store.uri

    def get(self, path: str, most: int | None = None) -> bytes:
        return self._risk(lambda: self._store.get(path, most))

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self._risk(lambda: self._store.get_range(path, start, length))

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        return self._risk(lambda: self._store.get_ranges(path, ranges, expected))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.entry_puts += path.startswith("log/")
        if self._random.random() < self._rate / 3:
            raise ObjectExists(f"{path}: a conflicting write is under way")
        self._risk(lambda: self._store.put_if_absent(path, data))

    def put(self, path: str, data: bytes) -> None:
        self._risk(lambda: self._store.put(path, data))

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        return self._risk(lambda: self._store.list(prefix, start_after))

    def delete(self, path: str) -> None:
        self._risk(lambda: self._store.delete(path))

    def stat(self, path: str) -> ObjectInfo:
        return self._risk(lambda: self._store.stat(path))

    def _risk(self, call: Callable[[], T]) -> T:
        chance = self._random.random()
        if chance < self._rate / 2:
            raise OutcomeUnknown("the request was lost")
        answer = call()
        if chance < self._rate:
            raise OutcomeUnknown("the reply was lost")
        return answer
