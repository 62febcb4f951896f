"""What writers may leave in stores that have folders: drafts of objects, and folders without anything in them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from grebe.store.protocol import ObjectInfo


@runtime_checkable
class HasFolders(Protocol):
    """A store with folders that stay when they are empty, and with drafts that no listing shows."""

    def drafts(self) -> Sequence[ObjectInfo]:
        """Return the drafts that lie below the root. `delete` removes one."""
        ...

    def folders(self, prefix: str) -> Sequence[ObjectInfo]:
        """Return the folders below the folder `prefix` and that folder itself, each after those in it, with the time of its last
        change and without a size. A folder that is not there has none."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder, if it is empty; another, or none, is no error."""
        ...
