"""A folder of a local or mounted disk.

An object appears under its name whole and already on disk, or not at all: it is written under a draft's name beside, flushed, and
then linked (`put_if_absent`: the kernel refuses a second link of that name) or renamed (`put`). The folder is flushed last, so that
the name itself survives a power cut.

No symbolic link below the root is followed: what lies behind one is no object of the store. Only data files of a table are read
through links (`follow_links`), since Spark reads them so; nothing is ever written or removed through one.
"""

import contextlib
import errno
import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from grebe.clock import SYSTEM
from grebe.errors import GrebeError, StoreRefused
from grebe.store import local_folders
from grebe.store.access import AccessCheck
from grebe.store.local_access import Access, access_of, too_open
from grebe.store.local_folders import Folder
from grebe.store.paths import DRAFT_SUFFIX, checked, folder, is_draft
from grebe.store.protocol import ObjectChanged, ObjectExists, ObjectInfo, ObjectMissing, OutcomeUnknown, require_at_most

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
_LEADS_NOWHERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
_NO_SUCH_NAME = {errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_FILE = {errno.ENXIO, errno.ENODEV}
# On Windows this is the time of creation.
_HAS_CHANGE_TIME = os.name == "posix"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class LocalStore:
    def __init__(self, root: Path, *, follow_links: bool = False) -> None:
        # `..` is resolved as text, as it is in a URI.
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - Path.absolute keeps `..`
        self._follow_links = follow_links
        self._table: Path | None = None
        self._access: Access | None = None

    @property
    def uri(self) -> str:
        return "file://" + str(self._root).rstrip("/")

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    def get(self, path: str, most: int | None = None) -> bytes:
        with self._reading(path), open(self._open(path), "rb", buffering=0) as file:  # noqa: PTH123 - a handle
            if most is not None:
                require_at_most(os.fstat(file.fileno()).st_size, most, f"{self.uri}/{path}")
            return file.readall()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get_ranges(path, [(start, length)])[0]

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        with self._reading(path):
            handle = self._open(path)
            try:
                read = [_read_at(handle, start, length) for start, length in ranges]
                # A write sets the times before it changes a byte, and another file has another inode: what is afterwards as it
                # was expected was so before.
                if expected is not None and not local_info(path, os.fstat(handle)).is_same(expected):
                    raise ObjectChanged(f"{self.uri}/{path} was changed")
                return read
            finally:
                os.close(handle)

    def put_if_absent(self, path: str, data: bytes) -> None:
        with self._draft_beside(path, data) as (here, draft, name):
            try:
                here.link(draft, name)
            except FileExistsError:
                raise ObjectExists(f"{self.uri}/{path} exists already") from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                raise StoreRefused(
                    f"the file system of {self._root} has no hard links ({error.strerror}), so it cannot store a file only if its "
                    "name is free; keep the indexes on another disk or store with location=…",
                    detail="NO_PUT_IF_ABSENT",
                ) from error
            self._flush_name(here, name)

    def put(self, path: str, data: bytes) -> None:
        with self._draft_beside(path, data) as (here, draft, name):
            here.replace(draft, name)
            self._flush_name(here, name)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        top = folder(prefix)
        with self._reading(prefix):
            if self._follow_links:
                yield from _walk_links(self._root / top, top, start_after, frozenset())
                return
            with _nothing_there(), local_folders.opened(self._root, top.split("/")[:-1], to_list=True) as here:
                yield from _walk(here, top, start_after)

    def children(self, prefix: str = "") -> Sequence[str]:
        found: list[str] = []
        with self._reading(prefix), _nothing_there():
            if self._follow_links:
                found = [one.name + "/" * _is_folder(one) for one in os.scandir(self._root / folder(prefix))]
            else:
                with local_folders.opened(self._root, folder(prefix).split("/")[:-1], to_list=True) as here:
                    found = [name + "/" * is_folder for name, is_folder in here.entries()]
        return [name for name in found if not is_draft(name.rstrip("/"))]

    def drafts(self) -> Sequence[ObjectInfo]:
        with self._reading(""), _nothing_there(), local_folders.opened(self._root, [], to_list=True) as here:
            return [one for one in _walk_all(here, "") if is_draft(one.path.rpartition("/")[2])]
        return []

    def folders(self, prefix: str) -> Sequence[ObjectInfo]:
        parts = checked(prefix).split("/")
        with self._reading(prefix), _nothing_there(), local_folders.opened(self._root, parts, to_list=True) as here:
            below = [one for one in _walk_all(here, f"{prefix}/") if one.path.endswith("/")]
            own = os.stat(here.path if here.handle is None else here.handle)  # noqa: PTH116 - a handle
            named = [replace(one, path=one.path.rstrip("/")) for one in below]
            return [*named, ObjectInfo(prefix, 0, own.st_mtime_ns // 1_000_000)]
        return []

    def remove_folder(self, path: str) -> None:
        *parts, name = checked(path).split("/")
        with self._writing(path), _nothing_there(), local_folders.opened(self._root, parts) as here:
            here.remove_folder(name)

    def delete(self, path: str) -> None:
        *parts, name = checked(path).split("/")
        with self._writing(path), _nothing_there(), local_folders.opened(self._root, parts) as here:
            here.unlink(name)

    def stat(self, path: str) -> ObjectInfo:
        *parts, name = checked(path).split("/")
        with self._reading(path):
            if self._follow_links:
                facts = (self._root / path).stat()
            else:
                with local_folders.opened(self._root, parts) as here:
                    facts = here.stat(name)
        if not stat.S_ISREG(facts.st_mode):
            raise ObjectMissing(f"{self.uri}/{path} is not a file")
        return local_info(path, facts)

    def take_access_of(self, table: str) -> None:
        """From now on new folders and files are as open as those of the table at this URI, if it is local."""
        if table.startswith("file://") and self._table is None:
            self._table = Path(table.removeprefix("file://") or "/")

    def make_folder(self, path: str) -> None:
        """Make a folder that others than this store will write to."""
        with self._writing(path), local_folders.made(self._root, checked(path).split("/"), self._to_give()):
            pass

    def give_access(self, path: str) -> None:
        """Give what others wrote to a folder the access that it would have got here."""
        access = self._to_give()
        if access is not None:
            with (
                self._writing(path),
                local_folders.opened(self._root, checked(path).split("/"), to_list=True) as here,
            ):
                _give(here, access)

    def access_check(self, table: str) -> AccessCheck | None:
        """Compare the root, and all that lies in it, with the table at this canonical URI; None where one of both is not there."""
        if not table.startswith("file://") or not self._root.is_dir():
            return None
        found = too_open(Path(table.removeprefix("file://") or "/"), self._root)
        advice = f"chmod -R go-rwx {shlex.quote(str(self._root))}"
        return AccessCheck(str(self._root), tuple(map(str, found)), advice)

    def _to_give(self) -> Access | None:
        if self._access is None and self._table is not None:
            self._access = access_of(self._table, self._root)
        return self._access

    def _open(self, path: str) -> int:
        """Open a file for reading without waiting: to open a FIFO takes as long as it takes somebody to write to it."""
        where = f"{self.uri}/{path}"
        try:
            handle = self._handle_of(path)
        except OSError as error:
            if error.errno in _NO_FILE:
                raise _no_file(where) from error
            raise
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            return handle
        os.close(handle)
        raise ObjectMissing(f"{where} is not a file") if stat.S_ISDIR(mode) else _no_file(where)

    def _handle_of(self, path: str) -> int:
        *parts, name = checked(path).split("/")
        if self._follow_links:
            return Folder((self._root / path).parent, None, True).open_file(name)
        with local_folders.opened(self._root, parts) as here:
            return here.open_file(name)

    @contextlib.contextmanager
    def _draft_beside(self, path: str, data: bytes) -> Iterator[tuple[Folder, str, str]]:
        """The folder of an object, a file in it that holds `data` and is on disk, and the object's name; it goes afterwards."""
        *parts, name = checked(path).split("/")
        draft, access = f".{SYSTEM.new_id()}{DRAFT_SUFFIX}", self._to_give()
        with self._writing(path), local_folders.made_with_draft(self._root, parts, draft, access) as (here, handle):
            try:
                with open(handle, "wb", buffering=0) as file:  # noqa: PTH123 - a handle
                    rest = memoryview(data)
                    while rest:
                        rest = rest[file.write(rest) :]
                    os.fsync(file.fileno())
                yield here, draft, name
            finally:
                with contextlib.suppress(OSError):  # a draft that stays is no object, and what was stored is stored
                    here.unlink(draft)

    def _flush_name(self, here: Folder, name: str) -> None:
        """Everybody sees the object by now, so whatever fails here, it must not be called refused."""
        try:
            here.flush()
        except OSError as error:
            unsure = f"{self.uri}: {name} is stored, but may not survive a power cut ({error.strerror})"
            raise OutcomeUnknown(unsure) from error

    @contextlib.contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = f"{self.uri}/{path}".rstrip("/")
            if error.errno in _NOT_THERE:
                raise ObjectMissing(f"{where} is not there") from error
            raise _failure(where, error) from error

    @contextlib.contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = f"{self.uri}/{path}"
            if error.errno in _NO_SUCH_NAME:
                raise StoreRefused(f"no file can be at {where} ({error.strerror})", detail="PATH") from error
            raise _failure(where, error) from error


def _failure(where: str, error: OSError) -> GrebeError:
    if error.errno in _NOT_ALLOWED:
        return StoreRefused(
            f"no permission for {where} ({error.strerror}); change its permissions, or keep the indexes elsewhere with location=…",
            detail="NO_PERMISSION",
        )
    if error.errno in _NO_ROOM:
        return StoreRefused(f"no room for {where} ({error.strerror}); free some and try again", detail="NO_ROOM")
    return OutcomeUnknown(f"{where}: {error.strerror}")


def _no_file(where: str) -> StoreRefused:
    return StoreRefused(f"{where} is a FIFO, a socket or a device, not a file; remove it", detail="NOT_A_FILE")


def local_info(path: str, facts: os.stat_result) -> ObjectInfo:
    """Return what is known of a file. Its etag tells it from another one of the same size and time (`cp -p`, a restore): its inode,
    and in ns the time of the last change of any kind, which nobody can set. The JVM makes the same text (`FileFacts`)."""
    etag = f"{facts.st_ino:x}-{facts.st_ctime_ns:x}" if _HAS_CHANGE_TIME else None
    return ObjectInfo(path, facts.st_size, facts.st_mtime_ns // 1_000_000, etag)


@contextlib.contextmanager
def _nothing_there() -> Iterator[None]:
    """What is gone, lies behind a link, or is a link that leads nowhere, is no object: no error."""
    try:
        yield
    except OSError as error:
        if error.errno not in _LEADS_NOWHERE:
            raise


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a folder or a link to one. A link that leads nowhere, to itself for example, is none."""
    with _nothing_there():
        return entry.is_dir()
    return False


def _walk(here: Folder, path: str, start_after: str) -> Iterator[ObjectInfo]:
    """In order of whole paths: a folder sorts by its name with the slash behind it, so `a-b` comes before what is in `a`."""
    found = (f"{path}{name}/" if is_folder else path + name for name, is_folder in here.entries() if not is_draft(name))
    for each in sorted(found):
        name = each.rstrip("/").rpartition("/")[2]
        if each.endswith("/") and (each > start_after or start_after.startswith(each)):
            with _nothing_there(), contextlib.closing(here.enter(name, to_list=True)) as below:
                yield from _walk(below, each, start_after)
        elif not each.endswith("/") and each > start_after:
            with contextlib.suppress(FileNotFoundError):
                facts = here.stat(name)
                if stat.S_ISREG(facts.st_mode):
                    yield local_info(each, facts)


def _walk_all(here: Folder, path: str) -> Iterator[ObjectInfo]:
    """Everything, drafts and folders too: these after what is in them, and with a `/` at the end."""
    for name, is_folder in here.entries():
        with _nothing_there():
            facts = here.stat(name)
            if is_folder:
                with contextlib.closing(here.enter(name, to_list=True)) as below:
                    yield from _walk_all(below, f"{path}{name}/")
                yield ObjectInfo(f"{path}{name}/", 0, facts.st_mtime_ns // 1_000_000)
            else:
                yield local_info(path + name, facts)


def _give(here: Folder, access: Access) -> None:
    for name, is_folder in here.entries():
        if is_folder:
            with contextlib.closing(here.enter(name, to_list=True)) as below:
                _give(below, access)
                if below.handle is not None:
                    access.give_to_folder(below.handle)
        else:
            handle = here.open_file(name)
            try:
                access.give_to_file(handle)
            finally:
                os.close(handle)


def _walk_links(
    place: Path | str, path: str, start_after: str, above: frozenset[tuple[int, int]]
) -> Iterator[ObjectInfo]:
    """As `_walk`, through links."""
    found: list[tuple[str, os.DirEntry[str]]] = []
    identity = (0, 0)
    with _nothing_there():
        here = os.stat(place)  # noqa: PTH116 - scandir gives its paths as text
        identity = (here.st_dev, here.st_ino)
        with os.scandir(place) as entries:
            found = [
                (f"{path}{entry.name}/" if _is_folder(entry) else path + entry.name, entry)
                for entry in entries
                if not is_draft(entry.name)
            ]
    if identity in above:  # a symbolic link that leads back up
        return
    for name, entry in sorted(found, key=lambda each: each[0]):
        if name.endswith("/"):
            if name > start_after or start_after.startswith(name):
                yield from _walk_links(entry.path, name, start_after, above | {identity})
        elif name > start_after:
            facts = None
            with _nothing_there():  # gone since, or a link to nothing
                facts = entry.stat()
            if facts is not None and stat.S_ISREG(facts.st_mode):
                yield local_info(name, facts)


def _read_at(handle: int, start: int, length: int) -> bytes:
    """One call of the kernel gives at most 2 GB, and less at its will; nothing means the end."""
    parts = []
    while length and (part := os.pread(handle, length, start)):
        parts.append(part)
        start, length = start + len(part), length - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
