"""Where records lie in files of a table, remembered (`formats.Memory`): as an index kept it, or as it was read before."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from grebe.formats import DataFile
from grebe.formats.byte_cache import ByteCache

Value = TypeVar("Value")
_VERY_OFTEN = 64


@dataclass(frozen=True, slots=True)
class FileMemory:
    """Of one file in one state: what was read of another state is never found."""

    cache: ByteCache
    identity: tuple[Hashable, ...]
    """What tells it from others of its name and size."""
    kept: Callable[[], Any]
    """What an index knows of it; None: nothing."""

    def recall(self, file: DataFile, read: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        key = self._key(file, "map")
        return self.cache.made(key, lambda: read() if (kept := self.kept()) is None else kept, size)

    def get(self, file: DataFile, what: Hashable) -> Any | None:
        return self.cache.get(self._key(file, what))

    def put(self, file: DataFile, what: Hashable, value: Any, nbytes: int) -> None:
        self.cache.put(self._key(file, what), value, nbytes)

    def is_worth(self, file: DataFile, what: Hashable, nbytes: int) -> bool:
        """What nobody asked for before is not: most of it is never asked for again. And where there is no room, only what is asked
        for very often: else things that do not fit together would drive each other out for ever."""
        asked = self.cache.asked(self._key(file, what))
        return asked > 1 and (self.cache.has_room(nbytes) or asked % _VERY_OFTEN == 0)

    def _key(self, file: DataFile, what: Hashable) -> Hashable:
        return ("data", file.uri, file.size, self.identity, what)
