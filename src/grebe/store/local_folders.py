"""Folders below the root of a local store, reached without following a symbolic link.

Each part of a path is opened relative to the folder above it, with `O_NOFOLLOW`: a link that somebody puts there at any moment ends
the call and is never gone through. The root itself may be a link, or lie behind one. Where the platform cannot open relative to a
folder (Windows), each part is looked at before it is used instead.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grebe.errors import StoreRefused
from grebe.store.local_access import Access

_RACE_FREE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0)
# A folder that may be entered but not listed can still be gone through.
_THROUGH = getattr(os, "O_PATH", os.O_RDONLY)
# A FIFO in the place of an object must not hold up whoever opens it.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CLOSED = 0o700
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder. Names given to its methods are entries of it; a link among them is never followed."""

    path: Path
    handle: int | None
    """None where the platform has no handles of folders, and where links are followed."""
    follow_links: bool = False

    def _at(self, name: str) -> str:
        if self.handle is not None:
            return name
        place = self.path / name
        if not self.follow_links and place.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
        return str(place)

    def open_file(self, name: str) -> int:
        """Open for reading whatever it is, and wait for nothing."""
        flags = _READ | (0 if self.follow_links else _NO_FOLLOW)
        return os.open(self._at(name), flags, dir_fd=self.handle)

    def open_draft(self, name: str, access: Access | None) -> int:
        """Create a new file for writing, open to nobody but its owner until it has the access it is to have."""
        handle = os.open(self._at(name), _DRAFT | _NO_FOLLOW, 0o666 if access is None else 0o600, dir_fd=self.handle)
        if access is not None:
            try:
                access.give_to_file(handle)
            except OSError:
                os.close(handle)
                with contextlib.suppress(OSError):  # a draft that stays is no object
                    self.unlink(name)
                raise
        return handle

    def enter(self, name: str, *, to_list: bool = False) -> "Folder":
        """Open a folder in this one."""
        if self.handle is None:
            place = Path(self._at(name))
            if not place.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            return Folder(place, None)
        flags = (os.O_RDONLY if to_list else _THROUGH) | _FOLDER | _NO_FOLLOW
        return Folder(self.path / name, os.open(name, flags, dir_fd=self.handle))

    def make(self, name: str, access: Access | None) -> None:
        """Create a folder in this one, on disk; one that is there already is left as it is."""
        try:
            os.mkdir(self._at(name), 0o777 if access is None else _CLOSED, dir_fd=self.handle)
        except FileExistsError:
            return
        if access is not None and self.handle is not None:
            try:
                self._open_to(name, access)
            except OSError:
                with contextlib.suppress(OSError):  # who finds it later takes it to be as open as it should be
                    os.rmdir(name, dir_fd=self.handle)
                raise
        self.flush()

    def open_if_left(self, below: "Folder", access: Access | None) -> None:
        """Give a folder in this one the access that it was to have, if whoever made it failed before that: it is closed to all but
        its owner, and empty."""
        if access is None or below.handle is None:
            return
        found = os.fstat(below.handle)
        if found.st_mode & 0o7777 != _CLOSED or found.st_uid != os.geteuid():
            return
        with contextlib.closing(self.enter(below.path.name, to_list=True)) as listed:
            is_empty = listed.is_empty()
        if is_empty:
            self._open_to(below.path.name, access)

    def _open_to(self, name: str, access: Access) -> None:
        handle = os.open(name, os.O_RDONLY | _FOLDER | _NO_FOLLOW, dir_fd=self.handle)
        try:
            access.give_to_folder(handle)
        finally:
            os.close(handle)

    def link(self, existing: str, name: str) -> None:
        os.link(self._at(existing), self._at(name), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def replace(self, existing: str, name: str) -> None:
        os.replace(self._at(existing), self._at(name), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def unlink(self, name: str) -> None:
        os.unlink(self._at(name), dir_fd=self.handle)

    def remove_folder(self, name: str) -> None:
        """Remove a folder in this one, if it is empty."""
        try:
            os.rmdir(self._at(name), dir_fd=self.handle)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise

    def stat(self, name: str) -> os.stat_result:
        """Of the entry itself, if it is a link."""
        return os.stat(self._at(name), dir_fd=self.handle, follow_symlinks=False)

    def entries(self) -> list[tuple[str, bool]]:
        """Names, and whether each is a folder; links are none of them. The folder must have been opened to be listed."""
        with os.scandir(self.path if self.handle is None else self.handle) as found:
            return [(one.name, one.is_dir(follow_symlinks=False)) for one in found if not one.is_symlink()]

    def is_empty(self) -> bool:
        """Tell whether nothing at all lies in it, links included."""
        with os.scandir(self.path if self.handle is None else self.handle) as found:
            return next(found, None) is None

    def flush(self) -> None:
        """Write the names in it to disk."""
        if self.handle is None:
            return
        handle = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=self.handle)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some mounted file systems cannot flush a folder by itself
                raise
        finally:
            os.close(handle)

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)


@contextlib.contextmanager
def opened(root: Path, parts: Sequence[str], *, to_list: bool = False) -> Iterator[Folder]:
    """The folder at these parts below the root."""
    here = _root(root, to_list=to_list and not parts)
    try:
        for number, part in enumerate(parts, 1):
            below = here.enter(part, to_list=to_list and number == len(parts))
            here.close()
            here = below
        yield here
    finally:
        here.close()


@contextlib.contextmanager
def made(root: Path, parts: Sequence[str], access: Access | None) -> Iterator[Folder]:
    """The folder at these parts below the root, made with all that is missing above it."""
    try:
        here = _root(root)
    except FileNotFoundError:
        make_root(root, access)
        here = _root(root)
    try:
        for part in parts:
            try:
                below = here.enter(part)
            except FileNotFoundError:
                here.make(part, access)
                below = here.enter(part)
            above, here = here, below
            with contextlib.closing(above):
                above.open_if_left(below, access)
        yield here
    finally:
        here.close()


@contextlib.contextmanager
def made_with_draft(
    root: Path, parts: Sequence[str], draft: str, access: Access | None
) -> Iterator[tuple[Folder, int]]:
    """The folder at these parts, made as `made` does, and a new file in it. An empty folder may be removed by a vacuum between the
    two steps; then it is made again."""
    for last in (False, False, True):
        with contextlib.ExitStack() as stack:
            here = stack.enter_context(made(root, parts, access))
            try:
                handle = here.open_draft(draft, access)
            except FileNotFoundError:
                if last:
                    raise
                continue
            yield here, handle
            return


def make_root(root: Path, access: Access | None) -> None:
    """Create the root of a store. Folders above it hold names only: they are made like the folder that they are made in."""
    parent = root.parent
    if not parent.is_dir():
        make_root(parent, access and access.of_parents)
    with contextlib.closing(_root(parent)) as above:
        above.make(root.name, access)
    if root.is_symlink() and not root.exists():
        raise StoreRefused(
            f"{root} is a link that leads nowhere (to {root.readlink()}), so nothing can be stored there; make the folder that it "
            "names, or remove the link",
            detail="PATH",
        )


def _root(root: Path, *, to_list: bool = False) -> Folder:
    if not _RACE_FREE:
        os.stat(root)  # noqa: PTH116 - for the error that it raises
        return Folder(root, None)
    return Folder(root, os.open(root, (os.O_RDONLY if to_list else _THROUGH) | _FOLDER))
