"""Is the writer of a running operation still there?

While an operation runs it overwrites its heartbeat object. A judge writes a marker of its own and compares the two times that the
*store* gives them; no two machines' clocks are ever compared. A process of this very process table that is gone is dead at once.
Judging a living one dead is harmless: the log has ended its operation, so its commit is refused.
"""

import logging
from collections.abc import Callable

from grebe import telemetry
from grebe.clock import Clock, start_id_of
from grebe.errors import GrebeError
from grebe.log import identity, names
from grebe.log.entry import Writer
from grebe.log.states import Operation
from grebe.store.protocol import ObjectMissing, Store

_logger = logging.getLogger("grebe.log")
_COARSEST_STORE_CLOCK_MS = 1000
_BEATS_PER_LAPSE = 4


class Heartbeat:
    """The first beat comes at once, the others from `start` until `stop`. After each, `still_runs` is asked whether the log
    still has the operation under way; once it has not, there are no more."""

    still_runs: Callable[[], bool]

    def __init__(self, store: Store, operation: str, seconds: float, clock: Clock) -> None:
        self._store = store
        self._path = names.heartbeat_path(operation)
        self._interval = seconds / _BEATS_PER_LAPSE
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
    dead = [o for o in operations if is_gone(o.writer)]
    unsure = [o for o in operations if o not in dead]
    if unsure:
        now = store_time(store, clock)
        dead += [
            o for o in unsure if now - _last_sign(store, o) > o.heartbeat_seconds * 1000 + _COARSEST_STORE_CLOCK_MS
        ]
    return dead


def is_gone(writer: Writer) -> bool:
    """Known only for processes of this process table."""
    if writer.host != identity.process_table() or not writer.process_start:
        return False
    now_there = start_id_of(writer.pid)
    return now_there is None or (now_there != "" and now_there != writer.process_start)


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
        return store.stat(names.entry_path(operation.number)).modified_ms
