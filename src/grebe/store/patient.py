"""A store that asks again where the answer is unknown and asking twice does no harm.

Everything but `put_if_absent` is idempotent. What an unknown answer to that one means only its caller can find out (see
`log/commit`), so it passes through.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from grebe.clock import Clock
from grebe.errors import StoreUnreachable
from grebe.store.children import children_of
from grebe.store.folders import HasFolders
from grebe.store.protocol import ObjectInfo, OutcomeUnknown, Store

T = TypeVar("T")


class Patience:
    """Waits between tries: longer each time, with jitter, and gives up after `seconds` in all."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._until = clock.monotonic() + seconds
        self._pause = 0.01

    def wait(self, problem: OutcomeUnknown) -> None:
        """Raises `StoreUnreachable` when patience is at an end."""
        if self._clock.monotonic() >= self._until:
            raise StoreUnreachable(
                f"the store gave no clear answer in time ({problem.args[0]}). Check that it is reachable, then try again: that is "
                "safe, even if the last request was carried out."
            ) from problem
        self._clock.sleep(self._pause * (0.5 + self._clock.random()))
        self._pause = min(self._pause * 2, 2.0)


class PatientStore:
    def __init__(self, store: Store, clock: Clock, seconds: float = 60.0) -> None:
        self._store = store
        self._clock = clock
        self._seconds = seconds

    @property
    def inner(self) -> Store:
        return self._store

    @property
    def uri(self) -> str:
        return self._store.uri

    def __repr__(self) -> str:
        return f"PatientStore({self._store!r})"

    def patience(self) -> Patience:
        return Patience(self._clock, self._seconds)

    def get(self, path: str, most: int | None = None) -> bytes:
        return self._again(lambda: self._store.get(path, most))

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self._again(lambda: self._store.get_range(path, start, length))

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        return self._again(lambda: self._store.get_ranges(path, ranges, expected))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._store.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._again(lambda: self._store.put(path, data))

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        patience = self.patience()
        while True:
            try:
                for info in self._store.list(prefix, start_after):
                    yield info
                    start_after = info.path  # where to go on after a break
                return
            except OutcomeUnknown as problem:
                patience.wait(problem)

    def children(self, prefix: str = "") -> Sequence[str]:
        return self._again(lambda: children_of(self._store, prefix))

    def drafts(self) -> Sequence[ObjectInfo]:
        store = self._store
        return self._again(store.drafts) if isinstance(store, HasFolders) else ()

    def folders(self, prefix: str) -> Sequence[ObjectInfo]:
        store = self._store
        return self._again(lambda: store.folders(prefix)) if isinstance(store, HasFolders) else ()

    def remove_folder(self, path: str) -> None:
        store = self._store
        if isinstance(store, HasFolders):
            self._again(lambda: store.remove_folder(path))

    def delete(self, path: str) -> None:
        self._again(lambda: self._store.delete(path))

    def stat(self, path: str) -> ObjectInfo:
        return self._again(lambda: self._store.stat(path))

    def _again(self, call: Callable[[], T]) -> T:
        patience = self.patience()
        while True:
            try:
                return call()
            except OutcomeUnknown as problem:
                patience.wait(problem)
