"""The tables behind the relations of a session's queries: their logs, found once and looked at again now and then.

Every query sees one state of a log. That state may be a moment old, which is never wrong: the files that a query really
reads decide what of an index it uses. What this session itself changes it sees at once.
"""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from grebe import telemetry
from grebe.clock import SYSTEM, Clock
from grebe.config import Config
from grebe.errors import GrebeError, TableNotFound
from grebe.files import RegisteredFiles, canonical_uri
from grebe.indexes.kind import Copy, Pruner
from grebe.indexes.registry import kind_named
from grebe.log.commit import Log
from grebe.log.entry import ContentFile
from grebe.log.location import below, beside, places
from grebe.log.registration import Registry
from grebe.log.states import ACTIVE, IndexState, KeptVersion, TableState
from grebe.planner.observing import Seat
from grebe.planner.tables import KnownIndex, KnownTable, OlderVersion
from grebe.spark.content import checksum_lines
from grebe.spark.shim import Shim
from grebe.spark.source import arrow_bytes, common_root, fact_bytes
from grebe.spark.stores import hadoop_uri, store_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger("grebe.spark")
FRESH_SECONDS = 1.0
"""How long a state of a log is taken for the newest, unless `max_age_seconds` says otherwise."""
NOTHING_SECONDS = 10.0
"""How long "no index here" is remembered."""


Version: TypeAlias = tuple[str, int | None]
"""The name of an index, and the entry that replaced this version of it; None: the current one."""


@dataclass(frozen=True)
class Found:
    """A table in one state. `snapshot` names its registered files in the JVM, which are so many."""

    table: KnownTable
    state: TableState
    log_uri: str
    snapshot: str
    registered: int


class _Followed:
    """One log that is followed. All changes happen under its lock; what was found is immutable."""

    def __init__(self, log: Log, shim: Shim, session: "SparkSession") -> None:
        self.lock = threading.Lock()
        self._log = log
        self._registry = Registry(log)
        self._shim = shim
        self._session = session
        self._snapshot = ""
        self._generation = -1
        self._sent = 0
        self._count = 0
        self._roles: dict[Version, tuple[IndexState, Copy | None, Pruner | None]] = {}
        self._aside: dict[Version, tuple[tuple[ContentFile, ...], str]] = {}
        """Content that is not used any more, and why; once the index has other content it is used again."""
        self._found: Found | None = None
        self.looked_at = -1.0

    def now(self, moment: float, fresh_seconds: float) -> Found:
        with self.lock:
            if self._found is None or moment - self.looked_at >= fresh_seconds:
                if self._found is not None:
                    self._log.reload()
                if self._found is None or self._found.table.log_version != self._log.newest.number:
                    self._found = self._known()
                self.looked_at = moment
            return self._found

    @property
    def uri(self) -> str:
        """Of the table."""
        return self._found.table.uri if self._found is not None else ""

    def forget(self) -> None:
        with self.lock:
            self.looked_at = -1e9

    def lost(self, path: str, why: str) -> None:
        """The file at this path below the log's folder. Of a version that was replaced meanwhile it is no loss."""
        with self.lock:
            for version, index in self._versions().items():
                if any(file.path == path for file in index.content):
                    self._put_aside(version, index, why)

    def set_aside(self, name: str, why: str, replaced_at: int | None = None) -> None:
        """An index, or an older version of it, that could not be asked; said once."""
        with self.lock:
            index = self._versions().get((name, replaced_at))
            if index is not None:
                self._put_aside((name, replaced_at), index, why)

    def _put_aside(self, version: Version, index: IndexState, why: str) -> None:
        if not self._why_aside(version, index):
            _tell_aside(version, why)
            self._aside[version] = (index.content, why)
            self._found = self._known()

    def _why_aside(self, version: Version, index: IndexState) -> str:
        content, why = self._aside.get(version, ((), ""))
        return why if content == index.content else ""

    def _versions(self) -> dict[Version, IndexState]:
        """All indexes, each in its current version and in those that are kept."""
        found: dict[Version, IndexState] = {}
        for name, index in self._log.state.indexes.items():
            found[name, None] = index
            found |= {(name, kept.replaced_at): index.as_kept(kept) for kept in index.kept}
        return found

    def _known(self) -> Found:
        state = self._log.state
        registered = self._registry.files(state)
        key = self._log.store.uri
        self._send(registered)
        uri = state.table.uri if state.table else key
        sizes = np.zeros(registered.next_id, np.int64)
        sizes[registered.ids.to_numpy()] = registered.files.table["size"].to_numpy()
        there = self._versions()
        self._roles = {version: roles for version, roles in self._roles.items() if version in there}
        indexes = tuple(self._index((index.name, None), index) for index in state.indexes.values())
        newest = self._log.newest
        known = KnownTable(uri, newest.number, indexes, sizes, f"{key}#{newest.digest}")
        return Found(known, state, key, self._snapshot, self._count)

    def _send(self, registered: RegisteredFiles) -> None:
        """Send what the JVM does not have yet. Ids never change; of a log that was removed and made anew all are sent again."""
        if self._generation != self._log.generation:
            self._shim.bridge.forget(self._snapshot)
            self._snapshot, self._generation = f"{self._log.store.uri}#{SYSTEM.new_id()}", self._log.generation
            self._sent = self._count = 0
        snapshot = self._shim.bridge.snapshot(self._snapshot)
        new = registered.ids.to_numpy() >= self._sent
        if new.any():
            files = registered.files.filter(new)
            snapshot.add(*arrow_bytes(files, registered.ids.to_numpy()[new]), fact_bytes(files))
            self._sent = registered.next_id
            self._count += len(files)

    def _index(self, version: Version, index: IndexState) -> KnownIndex:
        aside = self._why_aside(version, index)
        try:
            copy, pruner = self._roles_of(version, index) if index.state == ACTIVE and not aside else (None, None)
        except GrebeError as problem:
            _tell_aside(version, problem.code)
            copy, pruner, aside = None, None, problem.code
            self._aside[version] = (index.content, aside)
        older = tuple(
            OlderVersion(
                kept.version, kept.replaced_at, kept.held, kept.bytes, partial(self._opened, index.as_kept(kept), kept)
            )
            for kept in index.kept
        )
        return KnownIndex(
            index.name,
            index.spec.kind,
            index.state,
            copy,
            aside,
            pruner,
            older,
            index.version,
            version[1],
            index.problem,
        )

    def _opened(self, index: IndexState, kept: KeptVersion) -> KnownIndex:
        """Asked for by whoever plans a query, so that nothing is read of versions that no query needs."""
        with self.lock:
            return self._index((index.name, kept.replaced_at), index)

    def _roles_of(self, version: Version, index: IndexState) -> tuple[Copy | None, Pruner | None]:
        known = self._roles.get(version)
        # What was replaced does not change any more.
        if known is None or (version[1] is None and known[0] != index):
            kind = kind_named(index.spec.kind)
            copy, pruner = kind.copy_of(index, self._log.store), kind.pruner_of(index, self._log.store)
            if copy is not None:
                self._announce(copy)
            self._roles[version] = known = (index, copy, pruner)
        return known[1:]

    def _announce(self, copy: Copy) -> None:
        if not self._shim.bridge.hasContent(copy.key):
            root = hadoop_uri(self._session, self._log.store.uri)
            self._shim.bridge.addContent(copy.key, copy.name, checksum_lines(copy.content, root))


class Tables:
    """All that a session's queries have met."""

    def __init__(self, session: "SparkSession", shim: Shim, config: Config, clock: Clock = SYSTEM) -> None:
        self._session = session
        self._shim = shim
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._by_place: dict[str, _Followed] = {}
        self._by_root: dict[str, tuple[float, str | None]] = {}
        self._extra: dict[str, str] = {}
        self._touched: set[str] = set()
        """Tables that a verb of this session was on, whether or not a query has met them."""
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="grebe-logs")

    def find(self, roots: Sequence[str]) -> Found | None:
        """The table that these roots are, or are parts of."""
        root = common_root(roots)
        now = self._clock.monotonic()
        with self._lock:
            looked_at, place = self._by_root.get(root, (-1e9, None))
        if place is None and now - looked_at >= NOTHING_SECONDS:
            place = self._nearest(root)
            with self._lock:
                self._by_root[root] = (now, place)
        if place is None:
            return None
        fresh = FRESH_SECONDS if self._config.max_age_seconds is None else self._config.max_age_seconds
        return self._by_place[place].now(now, fresh)

    def seat(self, roots: Sequence[str]) -> Seat:
        """The table that these roots are, or are parts of, and where its log is; or the one that they would be, and where that
        would be."""
        found, root = self.find(roots), common_root(roots)
        if found is not None:
            return Seat(found.table.uri, found.log_uri)
        shared = self._config.location
        usual = below(canonical_uri(shared), root) if shared else beside(root)
        with self._lock:
            return Seat(root, self._extra.get(root, usual))

    def configure(self, config: Config) -> None:
        self._config = config
        self.changed()

    def located(self, table: str, location: str) -> None:
        """The indexes of this table lie at a place that nobody would look at by himself."""
        with self._lock:
            self._extra[table] = location

    def changed(self, table: str | None = None) -> None:
        """Something was created, refreshed or deleted through this session: look again."""
        with self._lock:
            if table:
                self._touched.add(table)
            self._by_root.clear()
            followed = list(self._by_place.values())
        for log in followed:
            log.forget()
        self._shim.bridge.lookAgain()

    def lost(self, path: str) -> None:
        """A task did not find this file of an index, or could not read it: the index is not used in this session any more."""
        with self._lock:
            followed = [(place, log) for place, log in self._by_place.items() if path.startswith(f"{place}/data/")]
        for place, log in followed:
            log.lost(path.removeprefix(f"{place}/"), f"{path} is missing or cannot be read")

    def set_aside(self, table: str, index: str, why: str, replaced_at: int | None = None) -> None:
        """An index of this table, or an older version of it, is damaged, and not used in this session any more."""
        with self._lock:
            followed = list(self._by_place.values())
        for log in followed:
            if log.uri == table:
                log.set_aside(index, why, replaced_at)

    def of_snapshot(self, table: str, snapshot: str) -> Found | None:
        """Return the table at this URI by the log whose file ids this snapshot has; None if that log is gone or was made anew.
        A table may have several logs, and each counts its files by itself."""
        now = self._clock.monotonic()
        with self._lock:
            followed = list(self._by_place.values())
        found = (log.now(now, FRESH_SECONDS) for log in followed if log.uri == table)
        return next((one for one in found if one.snapshot == snapshot), None)

    def known(self) -> list[Found]:
        """Every table with indexes that was met."""
        now = self._clock.monotonic()
        for table in sorted(self._touched):
            self.find([table])
        with self._lock:
            followed = list(self._by_place.values())
        return [log.now(now, FRESH_SECONDS) for log in followed]

    def _nearest(self, root: str) -> str | None:
        """All places where the log may be are asked at once; the nearest counts."""
        shared = canonical_uri(self._config.location) if self._config.location else None
        where = [location for table, location in self._extra.items() if root == table or root.startswith(table + "/")]
        where += places(root, shared)
        opened = list(self._pool.map(self._open, where))
        return next((place for place, there in zip(where, opened, strict=True) if there), None)

    def _open(self, place: str) -> bool:
        with self._lock:
            if place in self._by_place:
                return True
        try:
            log = Log(store_for(self._session, place)).open()
        except TableNotFound:
            return False
        except GrebeError as problem:
            # A log that cannot be read is no reason for a query to fail, or to be slow again and again.
            telemetry.event(_logger, logging.WARNING, "log_not_read", place=place, code=problem.code)
            return False
        with self._lock:
            self._by_place.setdefault(place, _Followed(log, self._shim, self._session))
        return True


def _tell_aside(version: Version, code: str) -> None:
    index, replaced_at = version
    telemetry.event(_logger, logging.WARNING, "index_set_aside", index=index, replaced_at=replaced_at, code=code)
