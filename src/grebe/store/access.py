"""Stores in which new folders and files can be made as open as those of a table, and no more.

A local disk and HDFS have owners, modes and access control lists; an object store has policies, which are the owner's to set.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from grebe.store.protocol import Store


@runtime_checkable
class KeepsAccess(Protocol):
    def take_access_of(self, table: str) -> None:
        """From now on new folders and files are as open as those of this table (a canonical URI), if it lies here too."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder that others than this store will write to."""
        ...

    def give_access(self, path: str) -> None:
        """Give what others wrote to a folder the access that it would have got from this store."""
        ...


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """The folder of a table's indexes, compared with the table."""

    folder: str
    """What was looked at."""
    too_open: tuple[str, ...]
    """Folders and files that somebody gets at who may not read the table; a few of them if there are many."""
    advice: str
    """The command that takes it from them."""


@runtime_checkable
class ChecksAccess(Protocol):
    def access_check(self, table: str) -> AccessCheck | None:
        """Compare the folder of indexes that this store is with their table (a canonical URI); None where there are none."""
        ...


@runtime_checkable
class _Wraps(Protocol):
    @property
    def inner(self) -> Store: ...


def keeper_of(store: Store) -> KeepsAccess | None:
    """Return the store itself, below whatever lies around it, if it keeps access."""
    while isinstance(store, _Wraps):
        store = store.inner
    return store if isinstance(store, KeepsAccess) else None


def taking_access_of(store: Store, table: str) -> Store:
    """Return the store, which makes new folders and files as open as those of the table from now on."""
    keeper = keeper_of(store)
    if keeper is not None:
        keeper.take_access_of(table)
    return store
