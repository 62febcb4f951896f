"""Where records lie in files of a table, remembered (`formats.Memory`): as an index kept it, or as it was read before."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from grebe.formats import DataFile
from grebe.formats.byte_cache import ByteCache

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class FileMemory:
    """Of one file, which changed last at `modified_ms`."""

    cache: ByteCache
    modified_ms: int
    kept: Callable[[], Any]
    """What an index knows of it; None: nothing."""

    def recall(self, file: DataFile, read: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        key = ("map", file.uri, file.size, self.modified_ms)
        return self.cache.made(key, lambda: read() if (kept := self.kept()) is None else kept, size)
