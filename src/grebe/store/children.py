"""The names right below a folder of a store, without a listing of all that is below them."""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from grebe.store.protocol import Store


@runtime_checkable
class ListsChildren(Protocol):
    """A store that can list one level of a folder by itself."""

    def children(self, prefix: str = "") -> Sequence[str]:
        """Return the names of the objects and, each with a `/` behind it, of the folders in the folder `prefix`, in any order."""
        ...


def children_of(store: Store, prefix: str = "") -> Sequence[str]:
    """Return the names right below a folder; those of folders end in `/`. A folder that is not there is empty."""
    if isinstance(store, ListsChildren):
        return store.children(prefix)
    return children_among((one.path for one in store.list(prefix)), prefix)


def children_among(paths: Iterable[str], prefix: str) -> list[str]:
    """Return the names right below a folder, of these paths of objects."""
    start = len(f"{prefix.rstrip('/')}/") if prefix.rstrip("/") else 0
    below = (path[start:].partition("/") for path in paths)
    return list(dict.fromkeys(first + slash for first, slash, _ in below))
