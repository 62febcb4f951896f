"""One server for all the processes of a test run.

The first process that needs the server starts it and is its host; the others find its address in a file. Each holds a shared lock
while it uses the server, and the host stops it only once it gets that lock alone. The kernel frees the locks of a process that
dies, so nothing waits for the dead.
"""

import contextlib
import dataclasses
import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, TypeVar

Server = TypeVar("Server")

# A forked child of a user may hold its lock for ever.
_LONGEST_WAIT_SECONDS = 120


@contextlib.contextmanager
def shared(folder: Path, kind: type[Server], start: Callable[[], AbstractContextManager[Server]]) -> Iterator[Server]:
    """The server that all processes naming the same `folder` share; `kind` is the dataclass of its address."""
    name = kind.__name__
    address = folder / f"{name}.json"
    with contextlib.ExitStack() as stack:
        users = stack.enter_context((folder / f"{name}.users").open("w"))
        with (folder / f"{name}.turn").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if address.exists():
                server, host = kind(**json.loads(address.read_text())), False
            else:
                server, host = stack.enter_context(start()), True
                address.write_text(json.dumps(_fields(server)))
            fcntl.flock(users, fcntl.LOCK_SH)
        if host:
            stack.callback(_close, folder / f"{name}.turn", users, address)
        yield server


def _fields(server: Any) -> dict[str, Any]:
    return dataclasses.asdict(server)


def _close(turn_file: Path, users: IO[str], address: Path) -> None:
    """Takes the address away from those who come later, and waits for those who came before."""
    with turn_file.open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        address.unlink()
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while time.monotonic() < deadline:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
            else:
                break
