"""Bytes of index and data files, read side by side, kept as long as they fit, and counted."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

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

    def read(self, wanted: Sequence[tuple[DataFile, int, int]], parse: Callable[[int, bytes], Made]) -> list[Made]:
        """As `parsed`, but nothing is kept."""

        def one(place: int) -> Made:
            file, start, length = wanted[place]
            self.spent.add(1, length)
            return parse(place, file.read(start, length))

        return side_by_side(one, range(len(wanted)), _are_local(wanted))

    def parsed(
        self,
        what: str,
        wanted: Sequence[tuple[DataFile, int, int]],
        parse: Callable[[int, bytes], Made],
        size: Callable[[Made], int],
        pin: bool = False,
    ) -> list[Made]:
        """Of each (file, start, length) what `parse` makes of its place and its bytes; kept under the name `what`, `size` bytes
        large. What lies in one file is read together."""
        keys = [(what, file.uri, file.size, start) for file, start, _ in wanted]
        found: list[Any] = [self.cache.get(key) for key in keys]
        lacking: dict[str, list[int]] = {}
        for place, (file, _, _) in enumerate(wanted):
            if found[place] is None or pin:
                lacking.setdefault(file.uri, []).append(place)

        def read(places: list[int]) -> list[Made]:
            spans = [wanted[place][1:] for place in places]
            self.spent.add(len(spans), sum(length for _, length in spans))
            made = [parse(*one) for one in zip(places, wanted[places[0]][0].read_spans(spans), strict=True)]
            for place, one in zip(places, made, strict=True):
                self.cache.put(keys[place], one, size(one), pin)
            return made

        def single(places: list[int]) -> list[Made]:
            if len(places) > 1 or pin:
                return read(places)
            return [self.cache.made(keys[places[0]], lambda: read(places)[0], size)]

        groups = list(lacking.values())
        for places, made in zip(groups, side_by_side(single, groups, _are_local(wanted)), strict=True):
            for place, one in zip(places, made, strict=True):
                found[place] = one
        return found


def _are_local(wanted: Iterable[tuple[DataFile, int, int]]) -> bool:
    return all(file.store.uri.startswith("file:") for file, _, _ in wanted)
