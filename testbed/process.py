"""Child processes that never outlive us, and ports for them."""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_GUARD = Path(__file__).with_name("guard.py")


@dataclass(frozen=True)
class Child:
    """A running server: its scratch folder, and what it has said so far."""

    folder: Path
    process: "subprocess.Popen[bytes]"

    def output(self) -> str:
        return (self.folder / "output.log").read_text(errors="replace")[-4000:]

    def wait_until(self, ready: Callable[[], bool], seconds: float = 120) -> None:
        """Polls `ready`; raises with the server's own words if it ended or took too long."""
        deadline = time.monotonic() + seconds
        while not ready():
            if (code := self.process.poll()) is not None:
                raise RuntimeError(f"the server ended with code {code}:\n{self.output()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server was not ready after {seconds:.0f} s:\n{self.output()}")
            time.sleep(0.05)


def scratch_folder(name: str) -> Path:
    """An empty folder for a server, removed by the guard when the server ends."""
    return Path(tempfile.mkdtemp(prefix=f"grebe-{name}-"))


@contextlib.contextmanager
def running(folder: Path, command: Sequence[str | Path]) -> Iterator[Child]:
    """Runs a program in `folder` under the guard; its output goes to `output.log` there."""
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", _GUARD, folder, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the tests; the server ends when they do.
            start_new_session=True,
        )
    assert process.stdin is not None
    try:
        yield Child(folder, process)
    finally:
        process.stdin.close()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on, all different: they are held until the last is known."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
