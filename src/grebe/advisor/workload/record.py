"""What is told of queries waits in memory, and a thread in the background writes it: no query ever waits for that, or fails by it.

One recorder a process. What it holds at its end is written then; what a process that is killed had not yet written is lost.
"""

import atexit
import contextlib
import logging
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from grebe import telemetry
from grebe.advisor.workload import blocks
from grebe.advisor.workload.consolidate import Retention, consolidate
from grebe.advisor.workload.literals import Mark, hashing
from grebe.advisor.workload.observed import Observed, to_table
from grebe.advisor.workload.shapes import of_lookup, of_query
from grebe.clock import SYSTEM, Clock
from grebe.config import Config
from grebe.errors import GrebeError
from grebe.log import identity
from grebe.log.ownership import owner_of, require_nothing_foreign
from grebe.maintenance.surroundings import require_place
from grebe.planner.observing import HearsLookups, HearsQueries, LookedUp, Ran
from grebe.store.access import taking_access_of
from grebe.store.patient import PatientStore
from grebe.store.protocol import ObjectExists, ObjectMissing, Store

_logger = logging.getLogger("grebe.advisor")
_SECONDS = 2.0
_MANY = 1000
"""So many queries are written at once, without waiting longer."""
_ROOM = 20_000
"""More than these do not wait: the oldest are let go."""
_STORES = 64
"""So many are kept open."""
_LOOKS_AT_BLOCKS = 1 / 32
"""Of the writes that each client makes, so many end with a look at whether there are too many blocks."""
_PATIENCE = 5.0
"""Seconds that a look at a folder may take where the store gives no clear answer."""
_KEY = f"{blocks.FOLDER}/key"
_MOST_KEY_BYTES = 1024

Opener = Callable[[str], Store]


@dataclass(frozen=True, slots=True)
class _Target:
    """How the queries of one handle are to be stored. `place`: of lookups, the folder of the table's log."""

    opener: Opener
    hashed: bool
    retention: Retention
    place: str = ""


class Recorder:
    def __init__(self, clock: Clock = SYSTEM, seconds: float = _SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._reset()

    def _reset(self) -> None:
        """Also in a forked process: what waits is written by the one that it was told to."""
        self._waiting: deque[tuple[LookedUp | Ran, _Target]] = deque(maxlen=_ROOM)
        self._some = threading.Event()
        self._many = threading.Event()
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stores: dict[tuple[str, _Target], Store] = {}
        self._tables: dict[str, str] = {}
        """By the place of its log the table of a query that was heard of."""
        self._keys: dict[str, bytes] = {}
        self._complained: set[str] = set()

    def lookups(self, place: str, opener: Opener, config: Config) -> HearsLookups:
        """What records the lookups of a table whose log is at this place, or would be."""
        target = _target(opener, config, place)
        return lambda seen: self._hear(seen, target)

    def queries(self, opener: Opener, config: Config) -> HearsQueries:
        """What records the queries of a Spark session."""
        target = _target(opener, config, "")
        return lambda seen: self._hear(seen, target)

    def _hear(self, seen: LookedUp | Ran, target: _Target) -> None:
        self._waiting.append((seen, target))
        if not self._some.is_set():
            self._some.set()
            if self._thread is None:
                self._start()
        elif len(self._waiting) >= _MANY:
            self._many.set()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="grebe workload", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._some.wait()
            self._many.wait(self._seconds)
            self._some.clear()
            self._many.clear()
            self.flush()

    def flush(self) -> None:
        """Writes what waits; never raises for it."""
        with self._writing:
            while self._waiting:
                self._write([self._waiting.popleft() for _ in range(min(_MANY, len(self._waiting)))])

    def _write(self, told: list[tuple[LookedUp | Ran, _Target]]) -> None:
        if len(self._tables) >= _STORES:
            self._tables.clear()
        by_place: dict[str, list[Observed]] = {}
        targets: dict[str, _Target] = {}
        for seen, target in told:
            try:
                found = self._observed(seen, target)
            except Exception as problem:  # noqa: BLE001 - whatever is wrong with one query, the others are recorded
                self._complain("workload_query_not_recorded", "", type(problem).__name__)
                continue
            for place, one in found.items():
                by_place.setdefault(place, []).append(one)
                targets[place] = target
        for place, queries in by_place.items():
            target = targets[place]
            try:
                store = self._store(place, target)
                blocks.write(store, to_table(queries), self._clock)
                if self._clock.random() < _LOOKS_AT_BLOCKS:
                    consolidate(store, target.retention, self._clock)
            except Exception as problem:  # noqa: BLE001 - a store that refuses, or a fault of ours: no query is to suffer
                code = problem.code if isinstance(problem, GrebeError) else type(problem).__name__
                self._complain("workload_not_written", place, code)

    def _observed(self, seen: LookedUp | Ran, target: _Target) -> dict[str, Observed]:
        query, client = self._clock.new_id(), _client()
        if isinstance(seen, LookedUp):
            self._tables[target.place] = seen.table
            return {target.place: of_lookup(seen, query, client, self._mark(target.place, target))}
        places = dict.fromkeys(seat.place for seat in seen.seats if seat.place)
        self._tables.update((seat.place, seat.table) for seat in seen.seats)
        return of_query(seen, query, client, {place: self._mark(place, target) for place in places})

    def _mark(self, place: str, target: _Target) -> Mark | None:
        """Of each table the key is its own, and the same for all clients."""
        if not target.hashed:
            return None
        if place not in self._keys:
            self._keys[place] = _key(self._store(place, target))
        return hashing(self._keys[place])

    def _store(self, place: str, target: _Target) -> Store:
        """As the handle that told of the query opens it: another one may have other credentials."""
        if (place, target) not in self._stores:
            if len(self._stores) >= _STORES:
                self._stores.clear()
            opened = target.opener(place)
            table, patient = self._tables[place], PatientStore(opened, self._clock, _PATIENCE)
            if owner_of(patient) is None:
                require_nothing_foreign(patient)
                require_place(place, table, target.opener)
            self._stores[place, target] = taking_access_of(opened, table)
        return self._stores[place, target]

    def _complain(self, event: str, place: str, code: str) -> None:
        """Once for each place."""
        if (known := f"{event} {place}") not in self._complained:
            self._complained.add(known)
            telemetry.event(_logger, logging.WARNING, event, place=place or None, code=code)


def _target(opener: Opener, config: Config, place: str) -> _Target:
    return _Target(opener, config.workload_literals == "hashed", Retention.of_settings(config), place)


def _client() -> str:
    writer = identity.this_writer()
    return f"{writer.host}-{writer.pid}-{writer.process_start}"


def _key(store: Store) -> bytes:
    try:
        return store.get(_KEY, _MOST_KEY_BYTES)
    except ObjectMissing:
        with contextlib.suppress(ObjectExists):
            store.put_if_absent(_KEY, secrets.token_bytes(32))
        return store.get(_KEY, _MOST_KEY_BYTES)


RECORDER = Recorder()
"""That of this process."""
atexit.register(RECORDER.flush)
os.register_at_fork(after_in_child=RECORDER._reset)
