"""Bytes of index and data files, read side by side, kept as long as they fit, and counted."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from grebe.formats import DataFile
from grebe.formats.byte_cache import ByteCache

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


class Reader:
    """How one call reads files of indexes: side by side where that pays, through a shared cache, and counted."""

    def __init__(self, cache: ByteCache) -> None:
        self.cache = cache
        self.spent = Spent()

    def parsed(
        self,
        what: str,
        wanted: Sequence[tuple[DataFile, int, int]],
        parse: Callable[[DataFile, bytes], Made],
        size: Callable[[Made], int],
        pin: bool = False,
    ) -> list[Made]:
        """Of each (file, start, length) what `parse` makes of its bytes; kept under the name `what`, `size` bytes large."""

        def one(span: tuple[DataFile, int, int]) -> Made:
            file, start, length = span

            def read() -> Made:
                self.spent.add(1, length)
                return parse(file, file.read(start, length))

            return self.cache.made((what, file.uri, file.size, start), read, size, pin)

        return side_by_side(one, wanted, _are_local(file for file, _, _ in wanted))

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
