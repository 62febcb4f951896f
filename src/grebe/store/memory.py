"""A store in memory, for tests and simulations, with a clock of its own and a script of faults.

A script is a function that sees every call before it is carried out and again after, and may raise at either point: raising
`OutcomeUnknown` before means that the request never arrived, after that the reply was lost.
"""

import bisect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from grebe.clock import SYSTEM, Clock
from grebe.store.paths import checked, folder
from grebe.store.protocol import ObjectChanged, ObjectExists, ObjectInfo, ObjectMissing, require_at_most

Moment = Literal["before", "after"]
Script = Callable[[Moment, str, str], None]


def no_faults(moment: Moment, call: str, path: str) -> None:
    """The script of a store that always works."""


class MemoryStore:
    def __init__(self, name: str = "memory", clock: Clock = SYSTEM, script: Script = no_faults) -> None:
        self._name = name
        self._clock = clock
        self.script = script
        self._objects: dict[str, tuple[bytes, int]] = {}
        self._paths: list[str] = []
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        return f"memory://{self._name}"

    def __repr__(self) -> str:
        return f"MemoryStore({self.uri!r})"

    def get(self, path: str, most: int | None = None) -> bytes:
        self.script("before", "get", checked(path))
        data = self._content(path)
        require_at_most(len(data), most, f"{self.uri}/{path}")
        self.script("after", "get", path)
        return data

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get(path)[start : start + length]

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        data = self.get(path)
        if expected is not None and not self.stat(path).is_same(expected):
            raise ObjectChanged(f"{self.uri}/{path} was changed")
        return [data[start : start + length] for start, length in ranges]

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.script("before", "put_if_absent", checked(path))
        with self._lock:
            taken = path in self._objects
            if not taken:
                self._set(path, data)
        self.script("after", "put_if_absent", path)
        if taken:
            raise ObjectExists(f"{self.uri}/{path} exists already")

    def put(self, path: str, data: bytes) -> None:
        self.script("before", "put", checked(path))
        with self._lock:
            self._set(path, data)
        self.script("after", "put", path)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        top = folder(prefix)
        self.script("before", "list", prefix)
        with self._lock:
            start = bisect.bisect_right(self._paths, max(start_after, top))
            found = []
            for path in self._paths[start:]:
                if not path.startswith(top):
                    break
                data, modified = self._objects[path]
                found.append(ObjectInfo(path, len(data), modified))
        self.script("after", "list", prefix)
        return iter(found)

    def delete(self, path: str) -> None:
        self.script("before", "delete", checked(path))
        with self._lock:
            if self._objects.pop(path, None) is not None:
                self._paths.remove(path)
        self.script("after", "delete", path)

    def stat(self, path: str) -> ObjectInfo:
        self.script("before", "stat", checked(path))
        with self._lock:
            if path not in self._objects:
                raise ObjectMissing(f"{self.uri}/{path} is not there")
            data, modified = self._objects[path]
        self.script("after", "stat", path)
        return ObjectInfo(path, len(data), modified)

    def _content(self, path: str) -> bytes:
        with self._lock:
            if path not in self._objects:
                raise ObjectMissing(f"{self.uri}/{path} is not there")
            return self._objects[path][0]

    def _set(self, path: str, data: bytes) -> None:
        if path not in self._objects:
            bisect.insort(self._paths, path)
        self._objects[path] = (bytes(data), self._clock.now_ms())
