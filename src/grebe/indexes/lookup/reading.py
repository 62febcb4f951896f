"""Bytes of index and data files, read side by side, kept as long as they fit, and counted."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from grebe.formats import DataFile
from grebe.formats.byte_cache import ByteCache
from grebe.indexes.columns import Chosen
from grebe.indexes.lookup.tail import Tail, read_tail

_AT_ONCE = 64
Given = TypeVar("Given")
Made = TypeVar("Made")


@cache
def _pool() -> ThreadPoolExecutor:
    """One for the process: requests wait for stores, not for processors."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="grebe-lookup")


def side_by_side(function: Callable[[Given], Made], items: Sequence[Given], local: bool) -> list[Made]:
    """Requests to a store at once; what lies on a local disk is read faster than a thread is woken."""
    if local or len(items) < 2:
        return [function(item) for item in items]
    return list(_pool().map(function, items))


@dataclass
class Spent:
    """What one call cost. Several threads may add to it."""

    requests: int = 0
    bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, requests: int, size: int) -> None:
        with self._lock:
            self.requests += requests
            self.bytes += size


class CachedReader:
    """The `Reader` of one call (`indexes.lookup.probe`): a cache that calls and tables share, and what this call spends."""

    def __init__(self, cache: ByteCache) -> None:
        self._cache = cache
        self.spent = Spent()

    def tails(self, files: Sequence[tuple[DataFile, int]], keys: tuple[Chosen, ...], pin: bool = False) -> list[Tail]:
        def tail(one: tuple[DataFile, int]) -> Tail:
            file, length = one

            def read() -> Tail:
                self.spent.add(1, length)
                return read_tail(file, length, keys)

            return self._cache.made(("tail", file.uri, file.size), read, lambda made: made.nbytes, pin)

        return side_by_side(tail, files, _are_local(file for file, _ in files))

    def spans(self, wanted: Sequence[tuple[DataFile, int, int]]) -> list[bytes]:
        by_file: dict[str, list[int]] = {}
        for place, (file, _, _) in enumerate(wanted):
            by_file.setdefault(file.uri, []).append(place)

        def read(places: list[int]) -> list[bytes]:
            file = wanted[places[0]][0]
            spans = [wanted[place][1:] for place in places]
            self.spent.add(len(spans), sum(length for _, length in spans))
            return file.read_spans(spans)

        groups = list(by_file.values())
        parts = side_by_side(read, groups, _are_local(file for file, _, _ in wanted))
        found: list[bytes] = [b""] * len(wanted)
        for places, data in zip(groups, parts, strict=True):
            for place, part in zip(places, data, strict=True):
                found[place] = part
        return found


def _are_local(files: Iterable[DataFile]) -> bool:
    return all(file.store.uri.startswith("file:") for file in files)
