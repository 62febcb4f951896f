"""A rival in a process of its own, as the benchmark holds it."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from testbed.packages import packages

_ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Rival:
    name: str
    _process: "subprocess.Popen[str]"
    _said: IO[str]

    def call(self, verb: str, **arguments: object) -> Any:
        """The answer of that method of the rival. A rival that fails ends, and what it said is told."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([verb, arguments]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._process.wait()
            self._said.seek(0)
            raise RuntimeError(f"{self.name} ended in {verb}:\n{self._said.read()[-3000:]}")
        return json.loads(answer)

    def get(self, column: str, values: Sequence[object], columns: Sequence[str] | None) -> tuple[list[float], int]:
        """The seconds of each lookup, and how many rows they found together."""
        seconds, rows = self.call("get", column=column, values=list(values), columns=columns)
        return seconds, rows


@contextlib.contextmanager
def rival(name: str, lock: str = "rivals") -> Iterator[Rival]:
    """Starts `bench/_rivals/<name>.py` with the packages of that lock first on its path."""
    command = [sys.executable, "-m", "bench._rivals.worker", str(packages(lock)), name]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        )
        assert process.stdin is not None
        try:
            yield Rival(name, process, said)
        finally:
            process.stdin.close()
            process.wait()
