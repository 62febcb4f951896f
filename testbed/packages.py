"""Packages that only some process of its own uses: installed once into the cache folder, as their lock says."""

import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path

from testbed.cached import made_once

_LOCKS = Path(__file__).parent.parent / "requirements"


def packages(name: str) -> Path:
    """A folder to put first on the path of a process: what `requirements/<name>.lock` pins, for this Python.

    Raises `CalledProcessError` where a package cannot be had.
    """
    lock = _LOCKS / f"{name}.lock"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]

    def make(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
        # The lock is complete, less what it leaves to the main environment on purpose.
        subprocess.run([*pip, "--no-deps", "--require-hashes", "--target", folder, "-r", lock], check=True)

    return made_once(f"packages/{name}-{digest}-{sysconfig.get_platform()}-{sys.version_info[1]}", make)
