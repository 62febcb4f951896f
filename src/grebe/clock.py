"""Time, ids and randomness. Nothing else in Grebe calls the clock, so that a failing seed replays."""

import os
import random
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock in milliseconds since the epoch: for people to read, never to order events by."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock of this process that never goes back."""
        ...

    def sleep(self, seconds: float) -> None: ...

    def new_id(self) -> str:
        """32 hex digits, never given twice."""
        ...

    def random(self) -> float:
        """Uniform in [0, 1)."""
        ...

    def every(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        """Calls again and again in the background, until what is returned is called; that waits for a call under way."""
        ...


class SystemClock:
    """The real one."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def random(self) -> float:
        return random.random()

    def every(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        stopped = threading.Event()

        def run() -> None:
            while not stopped.wait(seconds):
                call()

        thread = threading.Thread(target=run, name="grebe clock", daemon=True)
        thread.start()

        def stop() -> None:
            stopped.set()
            thread.join()

        return stop


class SimulatedClock:
    """Seeded: the same seed gives the same ids; time passes only by `sleep` and `advance`, and nothing runs in the background."""

    def __init__(self, seed: int = 0, start_ms: int = 1_600_000_000_000) -> None:
        self._random = random.Random(seed)
        self._ms = float(start_ms)

    def now_ms(self) -> int:
        return int(self._ms)

    def monotonic(self) -> float:
        return self._ms / 1000

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._ms += seconds * 1000

    def new_id(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def random(self) -> float:
        return self._random.random()

    def every(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


SYSTEM: Clock = SystemClock()


def process_start_id() -> str:
    """What tells this process from a later one with the same number; empty where the platform does not say."""
    return start_id_of(os.getpid()) or ""


def start_id_of(pid: int) -> str | None:
    """The start id of a process on this host; None if there is no such process, empty text if it cannot be known."""
    try:
        os.kill(pid, 0)  # asks only: /proc may hide the processes of other users
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass
    try:
        # Counted after the name in brackets, which may itself hold spaces and brackets.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()
    except OSError:
        return ""
    state, start = fields[0], fields[19]
    return None if state in (b"Z", b"X") else start.decode()
