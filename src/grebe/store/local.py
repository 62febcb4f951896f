"""A folder of a local or mounted disk.

An object appears under its name whole and already on disk, or not at all: it is written under a draft's name beside, flushed, and
then linked (`put_if_absent`: the kernel refuses a second link of that name) or renamed (`put`). The folder is flushed last, so that
the name itself survives a power cut.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from grebe.clock import SYSTEM
from grebe.errors import GrebeError, StoreRefused
from grebe.store.paths import DRAFT_SUFFIX, checked, folder, is_draft
from grebe.store.protocol import ObjectExists, ObjectInfo, ObjectMissing, OutcomeUnknown

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
_NO_SUCH_NAME = {errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class LocalStore:
    def __init__(self, root: Path) -> None:
        # `..` is resolved as text, as it is in a URI.
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - Path.absolute keeps `..`

    @property
    def uri(self) -> str:
        return "file://" + str(self._root).rstrip("/")

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    def get(self, path: str) -> bytes:
        with self._reading(path):
            return self._place(path).read_bytes()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get_ranges(path, [(start, length)])[0]

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with self._reading(path), self._place(path).open("rb", buffering=0) as file:
            return [_read_at(file.fileno(), start, length) for start, length in ranges]

    def put_if_absent(self, path: str, data: bytes) -> None:
        place = self._place(path)
        with self._writing(path), _draft_beside(place, data) as draft:
            try:
                place.hardlink_to(draft)
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
            self._flush_name(place)

    def put(self, path: str, data: bytes) -> None:
        place = self._place(path)
        with self._writing(path), _draft_beside(place, data) as draft:
            draft.replace(place)
            self._flush_name(place)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        top = folder(prefix)
        with self._reading(prefix):
            yield from _walk(self._root / top, top, start_after, frozenset())

    def delete(self, path: str) -> None:
        with self._writing(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            self._place(path).unlink()

    def stat(self, path: str) -> ObjectInfo:
        with self._reading(path):
            facts = self._place(path).stat()
        if not stat.S_ISREG(facts.st_mode):
            raise ObjectMissing(f"{self.uri}/{path} is not a file")
        return _info(path, facts)

    def _flush_name(self, place: Path) -> None:
        """Everybody sees the object by now, so whatever fails here, it must not be called refused."""
        try:
            _flush_folder(place.parent)
        except OSError as error:
            unsure = f"{self.uri}: {place.name} is stored, but may not survive a power cut ({error.strerror})"
            raise OutcomeUnknown(unsure) from error

    def _place(self, path: str) -> Path:
        return self._root / checked(path)

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


def _info(path: str, facts: os.stat_result) -> ObjectInfo:
    return ObjectInfo(path, facts.st_size, facts.st_mtime_ns // 1_000_000)


def _walk(place: Path | str, path: str, start_after: str, above: frozenset[tuple[int, int]]) -> Iterator[ObjectInfo]:
    """In order of whole paths: a folder sorts by its name with the slash behind it, so `a-b` comes before what is in `a`."""
    try:
        here = os.stat(place)  # noqa: PTH116 - scandir gives its paths as text
        with os.scandir(place) as entries:
            found = [
                (f"{path}{entry.name}/" if entry.is_dir() else path + entry.name, entry)
                for entry in entries
                if not is_draft(entry.name)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return
    identity = (here.st_dev, here.st_ino)
    if identity in above:  # a symbolic link that leads back up
        return
    for name, entry in sorted(found, key=lambda each: each[0]):
        if name.endswith("/"):
            if name > start_after or start_after.startswith(name):
                yield from _walk(entry.path, name, start_after, above | {identity})
        elif name > start_after:
            with contextlib.suppress(FileNotFoundError):  # gone since, or a link to nothing
                facts = entry.stat()
                if stat.S_ISREG(facts.st_mode):
                    yield _info(name, facts)


@contextlib.contextmanager
def _draft_beside(place: Path, data: bytes) -> Iterator[Path]:
    """A file beside `place` that holds `data` and is on disk; gone afterwards."""
    draft = place.with_name(f".{SYSTEM.new_id()}{DRAFT_SUFFIX}")
    try:
        file = draft.open("xb", buffering=0)
    except FileNotFoundError:
        _make_folders(place.parent)
        file = draft.open("xb", buffering=0)
    try:
        with file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        yield draft
    finally:
        with contextlib.suppress(OSError):  # a draft that stays is no object, and what was stored is stored
            draft.unlink(missing_ok=True)


def _read_at(handle: int, start: int, length: int) -> bytes:
    """One call of the kernel gives at most 2 GB, and less at its will; nothing means the end."""
    parts = []
    while length and (part := os.pread(handle, length, start)):
        parts.append(part)
        start, length = start + len(part), length - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _make_folders(place: Path) -> None:
    """With all parents, each flushed into the one above it."""
    if place.is_dir():
        return
    _make_folders(place.parent)
    with contextlib.suppress(FileExistsError):
        place.mkdir()
    _flush_folder(place.parent)


def _flush_folder(place: Path) -> None:
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some mounted file systems cannot flush a folder by itself
            raise
    finally:
        os.close(handle)
