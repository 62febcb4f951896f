"""Places that are none of a table's business, and who opens anything there."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})
SECRET = pa.table({"id": pa.array([4711], pa.int64()), "name": ["a secret"]})


@contextlib.contextmanager
def opened_in(folder: Path) -> Iterator[list[str]]:
    """Gather the names of files that anybody opens in a folder, libraries without Python among them, or of the folder itself."""
    libc, in_open = ctypes.CDLL(None, use_errno=True), 0x20
    handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert libc.inotify_add_watch(handle, os.fsencode(folder), in_open) >= 0
    found: list[str] = []
    try:
        yield found
        with contextlib.suppress(BlockingIOError):
            while events := os.read(handle, 65536):
                while events:
                    length = struct.unpack("iIII", events[:16])[3]
                    found.append(events[16 : 16 + length].rstrip(b"\0").decode())
                    events = events[16 + length :]
    finally:
        os.close(handle)


def make_pipe(place: Path, linked: bool) -> None:
    """Put a pipe at a place, or a link to one that lies in no folder of a log."""
    os.mkfifo(place.with_name("a pipe") if linked else place)
    if linked:
        (place.parent.parent / "pipes").mkdir()
        place.with_name("a pipe").rename(place.parent.parent / "pipes" / "one")
        place.symlink_to(place.parent.parent / "pipes" / "one")
