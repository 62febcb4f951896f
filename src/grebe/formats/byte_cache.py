"""What was read and may be needed again, within a bound of bytes: the least recently used goes first.

Keys name things that never change (a file of an index, a data file with its identity), so that nothing here is ever stale. One
cache may serve many tables and threads.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

Value = TypeVar("Value")
_COUNTED = 100_000


class ByteCache:
    """`limit` bounds the bytes that the values say they take; a value larger than that is not kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._pinned: set[Hashable] = set()
        self._making: dict[Hashable, Future[Any]] = {}
        self._bytes = 0
        self._asked: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> Any | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def asked(self, key: Hashable) -> int:
        """How often somebody has asked for this by now, counting this time. Long ago counts for less."""
        with self._lock:
            count = self._asked[key] = self._asked.get(key, 0) + 1
            if len(self._asked) > _COUNTED:
                self._asked = {known: number // 2 for known, number in self._asked.items() if number > 1}
            return count

    def has_room(self, nbytes: int) -> bool:
        """Whether something of this size can be put without driving anything else out."""
        return self._bytes + nbytes <= self.limit

    def put(self, key: Hashable, value: Any, nbytes: int, pin: bool = False) -> None:
        """`pin`: it stays, whatever else comes."""
        with self._lock:
            self._drop(key)
            if nbytes > self.limit and not pin:
                return
            self._kept[key] = (value, nbytes)
            self._bytes += nbytes
            if pin:
                self._pinned.add(key)
            self._make_room(key)

    def made(self, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int], pin: bool = False) -> Value:
        """The value, made now if it is not here. Of several threads that ask at once one makes it; its failure is that of all."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                value: Value = found[0]
                return value
            waiting = self._making.get(key)
            mine: Future[Value] = Future()
            if waiting is None:
                self._making[key] = mine
        if waiting is not None:
            waited: Value = waiting.result()
            return waited
        try:
            value = make()
        except BaseException as problem:
            mine.set_exception(problem)
            with self._lock:
                self._making.pop(key, None)
            raise
        self.put(key, value, size(value), pin)
        mine.set_result(value)
        with self._lock:
            self._making.pop(key, None)
        return value

    def _make_room(self, newest: Hashable) -> None:
        if self._bytes <= self.limit:
            return
        for key in list(self._kept):
            if self._bytes <= self.limit:
                return
            if key not in self._pinned and key != newest:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
            self._pinned.discard(key)


@cache
def shared_cache(limit: int) -> ByteCache:
    """That of the process: one for each bound that somebody asks for."""
    return ByteCache(limit)
