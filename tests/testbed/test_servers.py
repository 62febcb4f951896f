"""The servers of the tests: shared by all workers, and gone with the last of them, however it ends."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed import maven
from testbed.process import free_ports, running
from testbed.sharing import shared


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def eventually(what: Callable[[], bool]) -> bool:
    """Whether it comes to hold within a time that only a hanging process exceeds."""
    deadline = time.monotonic() + 30
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


SLEEPER = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path, how: signal.Signals) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    program = textwrap.dedent(f"""
        import pathlib, time
        from testbed.process import running
        folder = pathlib.Path({str(scratch)!r})
        with running(folder, {SLEEPER!r}) as child:
            child.wait_until(lambda: bool(child.output()))
            print(child.output(), flush=True)
            time.sleep(600)
    """)
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    server = int(parent.stdout.readline())
    assert alive(server)
    parent.send_signal(how)
    parent.wait()
    parent.stdout.close()
    assert eventually(lambda: not alive(server))
    assert eventually(lambda: not scratch.exists())


def test_a_server_that_ends_by_itself_is_quoted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no licence today'); raise SystemExit(3)"]
    with pytest.raises(RuntimeError, match="no licence today"), running(tmp_path, command) as child:
        child.wait_until(lambda: False)


@dataclass(frozen=True)
class Server:
    number: int


def test_one_server_serves_all_users_and_outlives_none(tmp_path: Path) -> None:
    events: list[str] = []

    @contextmanager
    def start() -> Iterator[Server]:
        events.append("start")
        yield Server(len(events))
        events.append("stop")

    host_may_leave, guest_is_in, guest_may_leave = threading.Event(), threading.Event(), threading.Event()
    seen: list[Server] = []

    def host() -> None:
        with shared(tmp_path, Server, start) as server:
            seen.append(server)
            host_may_leave.wait()

    def guest() -> None:
        with shared(tmp_path, Server, start) as server:
            seen.append(server)
            guest_is_in.set()
            guest_may_leave.wait()
            events.append("guest leaves")

    threads = [threading.Thread(target=host), threading.Thread(target=guest)]
    threads[0].start()
    assert eventually(lambda: bool(seen))
    threads[1].start()
    guest_is_in.wait()
    host_may_leave.set()
    guest_may_leave.set()
    for thread in threads:
        thread.join()
    assert seen == [Server(1), Server(1)]
    assert events == ["start", "guest leaves", "stop"]
    with shared(tmp_path, Server, start) as server:
        assert server == Server(4)


def test_ports_differ() -> None:
    assert len(set(free_ports(50))) == 50


def test_jars_are_fetched_once_and_found_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    jars = maven.minicluster_jars()
    assert all(jar.exists() for jar in jars)

    def no_download(*_: object) -> list[str]:
        raise AssertionError("fetched again")

    monkeypatch.setattr(maven, "_download", no_download)
    assert maven.minicluster_jars() == jars


def test_the_environment_is_not_the_checkout(tmp_path: Path) -> None:
    checkout = Path(maven.__file__).parent.parent
    for jar in maven.minicluster_jars():
        assert not jar.is_relative_to(checkout), os.fspath(jar)
