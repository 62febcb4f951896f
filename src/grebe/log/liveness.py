"""Is the writer of a running operation still there?

While an operation runs it overwrites its heartbeat object. A judge writes a marker of its own and compares the two times that the
*store* gives them; no two machines' clocks are ever compared. A process of this very process table that is gone is dead at once;
so is an operation of this very process that has ended here, though its end could not be written to the log (a full disk).
Judging a living one dead is harmless: the log has ended its operation, so its commit is refused.
"""

import logging
import os
import threading
from collections.abc import Callable

from grebe import telemetry
from grebe.clock import Clock, start_id_of
from grebe.errors import GrebeError
from grebe.log import identity, names
from grebe.log.states import Operation
from grebe.store.protocol import ObjectMissing, Store

_logger = logging.getLogger("grebe.log")
_COARSEST_STORE_CLOCK_MS = 1000
_BEATS_PER_LAPSE = 4
LONGEST_LAPSE = 86_400.0
"""Seconds. A longer promise counts as this, so that no operation outlives its process for good."""
_DEFAULT_LAPSE = 60.0

_at_work: dict[tuple[int, str], threading.Thread] = {}
"""The operations of this process that have not ended here, and the threads that began them. By process number too: what a forked
child inherits is its parent's."""


def begins_here(operation: str) -> None:
    """Record that this thread is about to run the operation."""
    _at_work[os.getpid(), operation] = threading.current_thread()


def ended_here(operation: str) -> None:
    """Record that this process does nothing more for the operation, whatever the log says of it."""
    _at_work.pop((os.getpid(), operation), None)


def lapse_of(promised: float) -> float:
    """Return the seconds without a sign of life after which an operation counts as dead, whatever number the log holds: one that
    is no time span above 0 counts as a minute."""
    return float(min(promised, LONGEST_LAPSE)) if promised > 0 else _DEFAULT_LAPSE


class Heartbeat:
    """The first beat comes at once, the others from `start` until `stop`. After each, `still_runs` is asked whether the log
    still has the operation under way; once it has not, there are no more."""

    still_runs: Callable[[], bool]

    def __init__(self, store: Store, operation: str, seconds: float, clock: Clock) -> None:
        self._store = store
        self._path = names.heartbeat_path(operation)
        self._interval = lapse_of(seconds) / _BEATS_PER_LAPSE
        self._clock = clock
        self._stop: Callable[[], None] | None = None
        self._needed = True
        self.still_runs = lambda: True
        self._store.put(self._path, b"")

    def start(self) -> None:
        self._stop = self._clock.every(self._interval, self.beat)

    def beat(self) -> None:
        try:
            if self._needed:
                self._store.put(self._path, b"")
            self._needed = self.still_runs()
        except GrebeError as problem:  # the next beat may come through; if none does, others will say so
            telemetry.event(_logger, logging.WARNING, "heartbeat_missed", code=problem.code)

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()
        try:
            self._store.delete(self._path)
        except GrebeError as problem:  # the operation has ended all the same; vacuum removes what is left
            telemetry.event(_logger, logging.WARNING, "heartbeat_not_removed", code=problem.code)


def the_dead(store: Store, operations: list[Operation], clock: Clock) -> list[Operation]:
    """Those of the operations whose writer is surely gone, or has not been heard of for longer than it promised."""
    dead = [o for o in operations if is_gone(o)]
    unsure = [o for o in operations if o not in dead]
    if unsure:
        now = store_time(store, clock)
        dead += [o for o in unsure if _is_overdue(store, o, now)]
    return dead


def is_gone(operation: Operation) -> bool:
    """Tell whether nobody runs the operation any more. Known only for processes of this process table."""
    writer = operation.writer
    if writer.host != identity.process_table() or not writer.process_start:
        return False
    now_there = start_id_of(writer.pid)
    if now_there is None or (now_there != "" and now_there != writer.process_start):
        return True
    return writer.pid == os.getpid() and not _is_at_work(operation.id)


def _is_at_work(operation: str) -> bool:
    thread = _at_work.get((os.getpid(), operation))
    return thread is not None and thread.is_alive()


def _is_overdue(store: Store, operation: Operation, now: int) -> bool:
    """A sign from the future is none either: it would keep the operation alive until then."""
    return (
        abs(now - _last_sign(store, operation))
        > lapse_of(operation.heartbeat_seconds) * 1000 + _COARSEST_STORE_CLOCK_MS
    )


def store_time(store: Store, clock: Clock) -> int:
    marker = names.judge_path(clock.new_id())
    store.put(marker, b"")
    now = store.stat(marker).modified_ms
    store.delete(marker)
    return now


def _last_sign(store: Store, operation: Operation) -> int:
    try:
        return store.stat(names.heartbeat_path(operation.id)).modified_ms
    except ObjectMissing:  # its heartbeat object was removed: the begin entry is the last sign there is
        pass
    try:
        return store.stat(names.entry_path(operation.number)).modified_ms
    except ObjectMissing:  # removed for its age
        return 0
