"""A table and its log in memory, on which the real verbs run; only what Spark would write is written here instead.

A content file lists the ids of the files whose rows it would hold. So a reader of an index can be played: of every file that it
covers it must find the rows just once.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import IndexExists, TableNotFound, WrongState
from grebe.files import FileIds, FileList
from grebe.formats import Column, Reading
from grebe.indexes.covering.spec import Covering
from grebe.indexes.faults import Fault
from grebe.log import invariants, names
from grebe.log.commit import Log
from grebe.log.entry import ContentFile, IndexSpec, TableInfo, Verb, Writer
from grebe.log.operation import Running, begin
from grebe.log.states import ACTIVE, DELETED, IndexState
from grebe.maintenance import create as creating
from grebe.maintenance import repair as repairing
from grebe.maintenance import steps
from grebe.maintenance.build import Built, Files, Planned
from grebe.maintenance.cancel import cancel
from grebe.maintenance.create import create
from grebe.maintenance.delete import delete, restore
from grebe.maintenance.garbage import Limits
from grebe.maintenance.logs import Place
from grebe.maintenance.optimize import optimize
from grebe.maintenance.refresh import refresh
from grebe.maintenance.reorganise import reorganise
from grebe.maintenance.repair import repair
from grebe.maintenance.runs import Run
from grebe.maintenance.vacuum import vacuum
from grebe.store.memory import MemoryStore, Moment
from grebe.store.protocol import Store

ROOT = "memory://lake"
HEARTBEAT = 10.0
_WRITES = ("put", "put_if_absent", "delete")
_PART = "part-00000-a_00000.c000.gix"


class Crash(BaseException):
    """The process is gone. No code of ours may catch it."""


class Conf:
    def get(self, name: str) -> str:
        return {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}[name]


class Session:
    conf = Conf()


@dataclass
class Source:
    """What the verbs ask of a `SparkSource`."""

    sizes: Mapping[str, int]
    uri: str = ROOT
    kind: str = "plain"
    version: str = ""
    case_sensitive: bool = False
    settling_ms: int = 0
    session: Session = field(default_factory=Session)
    reading: Reading = field(default_factory=lambda: Reading("parquet", (), (Column("a", "long"),)))

    def files(self) -> FileList:
        return FileList.build(ROOT, list(self.sizes), list(self.sizes.values()), [1] * len(self.sizes))


@dataclass(frozen=True, slots=True)
class InMemory(Place):
    """Its log has the clock of the world."""

    clock: SimulatedClock = field(default_factory=SimulatedClock)

    def made(self, table: TableInfo) -> Log:
        return Log(self.opener(""), self.clock, Writer("host of ann", 1, "1", "ann"), patience=5.0).create(table)


class World:
    """The store outlives its writers; `dies_at` is the number of the write at which the next one dies."""

    def __init__(self, before: "World | None" = None) -> None:
        """`before`: with its objects, as they lie there."""
        self.clock: SimulatedClock = SimulatedClock(7) if before is None else SimulatedClock(8, before.clock.now_ms())
        self.store: Store = self._empty_store()
        self.source: Source = Source({} if before is None else before.source.sizes)
        self.writes = 0
        self.dies_at: int | None = None
        self._dead = False
        self.has_log = True
        if before is not None:
            self.has_log = before.has_log
            for path in before.paths():
                self._place(path, before.store.get(path))
            self.writes = 0

    def _empty_store(self) -> Store:
        return MemoryStore("log", self.clock, self._at_call)

    def _place(self, path: str, data: bytes) -> None:
        self.store.put(path, data)

    def _at_call(self, moment: Moment, call: str, path: str) -> None:
        if self._dead:
            raise Crash
        if moment == "before" and call in _WRITES:
            self.writes += 1
            if self.writes == self.dies_at:
                self._dead = True
                raise Crash

    def log(self, name: str = "ann") -> Log:
        """As another process opens it: none can look up the process of another."""
        return self.opened(Writer(f"host of {name}", 1, "1", name))

    def opened(self, writer: Writer) -> Log:
        log = Log(self.store, self.clock, writer, patience=5.0)
        try:
            return log.open()
        except TableNotFound:
            if self.has_log:
                raise
            return log

    def place(self) -> Place:
        return InMemory(ROOT, "memory://log", None, lambda uri: self.store, self.clock)

    def outlived(self) -> None:
        """The writer is gone, whatever it still tries; others go on."""
        self._dead, self.dies_at, self.writes = False, None, 0

    def paths(self) -> set[str]:
        return {one.path for one in self.store.list()}

    def under(self, *folders: str) -> set[str]:
        return {path for path in self.paths() if path.partition("/")[0] in folders}


def ids_in(store: Any, run: Sequence[ContentFile]) -> list[int]:
    return [one for file in run for one in json.loads(store.get(file.path))]


def stub_build(source: Any, log: Log, running: Running, planned: Mapping[str, Planned], of: Files) -> dict[str, Built]:
    """As `maintenance.build.build`, for content of this world."""
    made = {}
    for name, one in planned.items():
        ids = list(map(int, of.ids))
        rows = int(of.files.total_bytes)
        if one.older is not None:
            left = [i for run in one.older.runs for i in ids_in(log.store, run.files) if i not in one.older.left_out]
            ids, rows = ids + left, rows + one.older.rows
        path = f"{running.folder(name)}/{_PART}"
        data = json.dumps(sorted(ids)).encode()
        log.store.put(path, data)
        made[name] = Built(one.spec, (ContentFile(path, len(data), rows),), of.covered)
    return made


def missing_content(source: Any, log: Log, deep: bool) -> dict[str, list[Fault]]:
    """As `repair._faulty`, for content of this world."""
    there = {one.path for one in log.store.list("data")}
    lost = {
        name: [Fault(name, path, "CORRUPT_INDEX_MISSING", "") for path in sorted(index.paths) if path not in there]
        for name, index in log.state.indexes.items()
        if index.state == ACTIVE
    }
    return {name: faults for name, faults in lost.items() if faults}


def files_of(source: Any, log: Log, index: Any, run: Run) -> FileIds:
    return FileIds.of(ids_in(log.store, run.files))


def without_spark(patch: pytest.MonkeyPatch) -> None:
    for module in (creating, steps, repairing):
        patch.setattr(module, "build", stub_build)
    patch.setattr(repairing, "_faulty", missing_content)
    patch.setattr(repairing, "_files_of", files_of)


def prepared() -> World:
    """`i` has three runs and is stale; `gone` is deleted; content has been replaced."""
    world = World()
    source = world.source
    source.sizes = {"a": 900}
    create(source, world.place(), [Covering("i", on="a"), Covering("gone", on="a")])  # type: ignore[arg-type]  # it has what is asked
    for name, size in (("b", 100), ("c", 10)):
        source.sizes = {**source.sizes, name: size}
        refresh(source, world.log(), ["i"])  # type: ignore[arg-type]  # it has what is asked
    delete(world.log(), "gone")
    world.clock.advance(60)
    return world


@dataclass(frozen=True)
class Act:
    """A verb as somebody calls it, and what has to be there before."""

    name: str
    run: Callable[[World, Log], object]
    before: Callable[[World], object] = lambda world: None


def _table_changes(world: World) -> None:
    sizes = dict(world.source.sizes)
    del sizes["b"]
    world.source.sizes = {**sizes, "d": 1, "e": 1}


def _lose_content(world: World) -> None:
    _table_changes(world)
    content = world.log().state.indexes["i"].content
    world.store.delete(content[1].path)


def _somebody_begins(world: World) -> None:
    log = world.log("dead")
    running = begin(log, Verb.REFRESH, ["i"], heartbeat_seconds=HEARTBEAT)
    log.store.put(f"{running.folder('i')}/{_PART}", b"[]")


def _refresh(mode: str) -> Act:
    return Act(
        f"refresh {mode}",
        lambda world, log: refresh(world.source, log, [], mode, HEARTBEAT),  # type: ignore[arg-type]  # it has what is asked
        _table_changes,
    )


def _optimize(mode: str) -> Act:
    return Act(
        f"optimize {mode}",
        lambda world, log: optimize(world.source, log, ["i"], mode, HEARTBEAT),  # type: ignore[arg-type]  # it has what is asked
    )


def _anew(index: IndexState) -> tuple[IndexSpec, Sequence[ContentFile]]:
    """A part of it, by another property."""
    return replace(index.spec, properties={**index.spec.properties, "tree": "another"}), index.content[:2]


def _create(world: World, log: Log) -> None:
    create(
        world.source,  # type: ignore[arg-type]  # it has what is asked
        world.place(),
        [Covering("new", on="a"), Covering("newer", on="a")],
        heartbeat_seconds=HEARTBEAT,
    )


def _nothing_is_indexed(world: World) -> None:
    for path in world.paths():
        world.store.delete(path)
    world.has_log = False


ACTS = [
    Act("first create", _create, _nothing_is_indexed),
    Act("create", _create, _table_changes),
    _refresh("full"),
    _refresh("incremental"),
    _refresh("quick"),
    _optimize("quick"),
    _optimize("full"),
    Act("reorganise", lambda world, log: reorganise(world.source, log, "i", _anew, HEARTBEAT)),  # type: ignore[arg-type]  # it has what is asked
    Act("delete", lambda world, log: delete(log, "i", HEARTBEAT)),
    Act("restore", lambda world, log: restore(log, "gone", HEARTBEAT)),
    Act("vacuum", lambda world, log: vacuum(log, None, Limits(0), HEARTBEAT)),
    Act("cancel", lambda world, log: cancel(log, "i"), _somebody_begins),
    Act("repair", lambda world, log: repair(world.source, log, False, HEARTBEAT), _lose_content),  # type: ignore[arg-type]  # it has what is asked
]


def problems(world: World, lost: bool = False) -> list[str]:
    """What a reader finds wrong. `lost`: content is known to be missing."""
    state = world.log("reader").state
    found, there = list(invariants.broken(state)), world.paths()
    for index in state.indexes.values():
        missing = [file.path for file in index.content if file.path not in there]
        if missing:
            found += [] if lost else [f"{index.name}: {path} is missing" for path in missing]
            continue
        held = Counter(ids_in(world.store, index.content))
        if held != Counter(list(index.held)):
            found.append(f"{index.name} holds {held} and should hold {index.held}")
    return found


_AFTER = {"delete": DELETED, "restore": ACTIVE}


def again(world: World, act: Act) -> None:
    """The verb once more, by another process. It may have been done already."""
    try:
        act.run(world, world.log("bob"))
    except IndexExists:
        assert act.name in ("create", "first create")
    except WrongState as done:
        if done.code != f"WRONG_STATE_IS_{_AFTER[act.name]}":
            raise


def require_clean(world: World) -> None:
    """A vacuum leaves just what is in use."""
    world.clock.advance(3600)
    vacuum(world.log("bob"), None, Limits(0), HEARTBEAT)
    state = world.log("bob").state
    assert not state.operations
    used = state.content_paths | {segment.path for segment in state.segments}
    others = {path.partition("/")[0] for path in world.paths()} - {"log", names.MARKER}
    # Of an index that lost files before, they are in use and not there.
    assert world.under(*others) == used & world.paths()
