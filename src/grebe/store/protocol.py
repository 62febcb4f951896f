"""What Grebe asks of a store, and the outcomes it tells apart.

A store is opened at one root; every path is relative to it, decoded text with `/` between its parts, never starting with `/`.
The whole of Grebe's safety stands on `put_if_absent`: of all writers that name the same path at most one ever gets its bytes
stored, and no reader ever sees half of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from grebe.errors import GrebeError


class ObjectMissing(GrebeError):
    """No object at that path."""


class ObjectExists(GrebeError):
    """The store says that the path is taken. After a lost reply this may be the caller's own write: read it to find out."""


class ObjectTooLarge(GrebeError):
    """The object has more bytes than the reader takes. None of them were read."""


class ObjectChanged(GrebeError):
    """The object at that path is another than the one that was expected."""


class OutcomeUnknown(GrebeError):
    """Time-out, connection reset or 5xx: the call may or may not have been carried out, or may be so later."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object. `modified_ms` is the store's own clock; two of one store can be compared, those of two stores cannot. `etag` is
    what the store has to tell an object from another one of the same size and time: an object store's etag, inode and time of the
    last change of any kind on a local disk, the file id on HDFS."""

    path: str
    size: int
    modified_ms: int
    etag: str | None = None

    def is_same(self, other: "ObjectInfo") -> bool:
        """Return whether both describe the same bytes. Etags count where both sides have one."""
        unlike = self.etag is not None and other.etag is not None and self.etag != other.etag
        return self.size == other.size and self.modified_ms == other.modified_ms and not unlike


def require_at_most(size: int, most: int | None, where: str) -> None:
    """Raise `ObjectTooLarge` if an object has more bytes than its reader takes."""
    if most is not None and size > most:
        raise ObjectTooLarge(f"{where} has {size:,} bytes; {most:,} are the most that it can have")


class Store(Protocol):
    """All methods may raise `OutcomeUnknown`, and `StoreRefused` where permission lacks. Implementations are thread-safe."""

    @property
    def uri(self) -> str:
        """The canonical URI of the root, without credentials and without a trailing slash."""
        ...

    def get(self, path: str, most: int | None = None) -> bytes:
        """Return the whole object. Raises `ObjectMissing`, and `ObjectTooLarge` if it has more than `most` bytes."""
        ...

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`; fewer only where the object ends before. Raises `ObjectMissing`."""
        ...

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        """Several (start, length) of one object, at once where the store can. Raises `ObjectMissing`, and `ObjectChanged` if the
        object was not `expected` all the while: then none of the bytes may be used."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Stores all of `data` or nothing, and only if the path is free; else raises `ObjectExists`."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Stores all of `data` or nothing, replacing what was there in one step."""
        ...

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        """The objects below the folder `prefix`, at any depth, in order of their paths (as UTF-8 bytes), those after `start_after`
        only. A folder that is not there is empty."""
        ...

    def delete(self, path: str) -> None:
        """Removes the object; one that is not there is no error."""
        ...

    def stat(self, path: str) -> ObjectInfo:
        """Raises `ObjectMissing`."""
        ...
