"""Who this process is, so that others can tell whether it is still there."""

import getpass
import hashlib
import os
import socket
from functools import cache
from pathlib import Path

from grebe.clock import process_start_id
from grebe.log.entry import Writer


def this_writer() -> Writer:
    return _writer(os.getpid())  # by process number: a forked child is another writer


@cache
def _writer(pid: int) -> Writer:
    return Writer(host=process_table(), pid=pid, process_start=process_start_id(), name=_name())


@cache
def process_table() -> str:
    """What tells this process table from all others: host names repeat among containers, and so do process numbers."""
    facts = [socket.gethostname()]
    boot, namespace = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if boot.exists():
        facts.append(boot.read_text().strip())
    if namespace.is_symlink():
        facts.append(str(namespace.readlink()))
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _name() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no entry and no variable
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
