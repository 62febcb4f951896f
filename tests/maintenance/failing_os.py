"""The calls by which the local store writes to a disk. Any of them may fail, for want of room or by an I/O error."""

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from grebe.store import local, local_access, local_folders

_OF_OS = ("fsync", "link", "replace", "mkdir", "unlink", "rmdir", "fchmod")
_ROOM_NEEDED = ("open", "write", "fsync", "link", "replace", "mkdir")


@dataclass(frozen=True, slots=True)
class Failure:
    """What happens at the call of the number `at`, or from it on."""

    number: int
    """Of the error."""
    lasts: bool = False
    is_late: bool = False
    """Whether the call is carried out all the same."""

    def __str__(self) -> str:
        how = ("late " if self.is_late else "") + ("lasting" if self.lasts else "single")
        return f"{how} {errno.errorcode[self.number]}"

    def is_raised_by(self, call: str) -> bool:
        """What frees room works on a full disk."""
        return not self.lasts or self.number != errno.ENOSPC or call in _ROOM_NEEDED


FAILURES = [
    Failure(errno.ENOSPC),
    Failure(errno.ENOSPC, lasts=True),
    Failure(errno.EIO),
    Failure(errno.EIO, lasts=True),
    Failure(errno.EIO, is_late=True),
    Failure(errno.EIO, lasts=True, is_late=True),
]


class FailingOs:
    """Stands where the local store looks for the module `os`. Nothing is flushed: no power cut is played here."""

    def __init__(self) -> None:
        self.calls = 0
        self.failed: list[str] = []
        self._failure: Failure | None = None
        self._at = 0
        self._lock = threading.Lock()
        for name in _OF_OS:
            setattr(self, name, self._failing(name, getattr(os, name)))
        self.fsync = self._failing("fsync", lambda handle: None)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fail(self, failure: Failure, at: int) -> None:
        self.calls, self.failed, self._failure, self._at = 0, [], failure, at

    def recover(self) -> None:
        self._failure = None

    def open(self, path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if not flags & os.O_CREAT:
            return os.open(path, flags, *rest, **options)
        handle: int = self.carried_out("open", os.open, path, flags, *rest, closes=True, **options)
        return handle

    def open_file(self, handle: int, mode: str = "r", buffering: int = -1) -> Any:
        """As the function `open`, of a handle."""
        file = open(handle, mode, buffering)  # noqa: SIM115 - a handle
        return _FailingFile(file, self) if "w" in mode else file

    def _failing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **options: self.carried_out(name, real, *arguments, **options)

    def carried_out(
        self, name: str, real: Callable[..., Any], *arguments: Any, closes: bool = False, **options: Any
    ) -> Any:
        failure = self._failing_now(name)
        if failure is None:
            return real(*arguments, **options)
        if failure.is_late:
            made = real(*arguments, **options)
            if closes:  # whoever is told of an error gets no handle
                os.close(made)
        raise OSError(failure.number, os.strerror(failure.number))

    def _failing_now(self, call: str) -> Failure | None:
        with self._lock:
            self.calls += 1
            failure = self._failure
            due = self.calls >= self._at if failure is not None and failure.lasts else self.calls == self._at
            if failure is None or not due or not failure.is_raised_by(call):
                return None
            self.failed.append(call)
            return failure


class _FailingFile:
    """A disk takes half of what is written to it, and then the rest or nothing."""

    def __init__(self, file: Any, disk: FailingOs) -> None:
        self._file = file
        self._disk = disk
        self._is_begun = False

    def __enter__(self) -> "_FailingFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()  # a handle is gone even where closing it fails
        self._disk.carried_out("close", lambda: None)

    def fileno(self) -> int:
        return int(self._file.fileno())

    def write(self, data: memoryview) -> int:
        if not self._is_begun and len(data) > 1:
            self._is_begun = True
            return int(self._file.write(data[: len(data) // 2]))
        return int(self._disk.carried_out("write", self._file.write, data))


def failing_os(patch: pytest.MonkeyPatch) -> FailingOs:
    """Put it in the place of `os` in the modules of the local store."""
    disk = FailingOs()
    for module in (local, local_folders, local_access):
        patch.setattr(module, "os", disk)
    patch.setattr(local, "open", disk.open_file, raising=False)
    return disk
