"""The folder of this machine's user that Grebe may write to."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Where Grebe keeps what it downloads or makes once: `$GREBE_CACHE`, else `grebe` in the user's cache folder."""
    if given := os.environ.get("GREBE_CACHE"):
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "grebe"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "grebe" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grebe"
