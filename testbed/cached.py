"""Folders of the cache that are made once, and copies of them to work on."""

import fcntl
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from grebe.store.own_folder import cache_folder


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` (a path below the cache) that `make` fills: whole or not there, and made by one process only."""
    folder = cache_folder() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="draft-") as draft:
                made = Path(draft) / "made"
                made.mkdir()
                make(made)
                made.replace(folder)
    return folder


def working_copy(folder: Path, target: Path) -> Path:
    """The files of `folder` below `target`, as copies: a further link to a file changes what tells it from others (its ctime)."""
    shutil.copytree(folder, target)
    return target
