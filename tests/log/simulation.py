"""Deterministic simulation: writers and readers as greenlets over a memory store that switches at every call.

A schedule is a seed and, at most, a fault at one call (or random faults all along). The scheduler picks who runs next from the
seed alone, so a failing schedule replays. What a schedule must leave behind is checked in `verdict`.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import greenlet

from grebe.clock import SimulatedClock
from grebe.errors import Conflict, GrebeError, IndexExists, StoreUnreachable, WrongState
from grebe.files import FileIds, FileList
from grebe.log import codec, invariants, names, snapshot
from grebe.log.commit import Log
from grebe.log.entry import (
    ContentFile,
    IndexChanged,
    IndexCreated,
    IndexSpec,
    Keep,
    OperationEnded,
    TableInfo,
    Verb,
    Writer,
)
from grebe.log.liveness import the_dead
from grebe.log.operation import begin
from grebe.log.registration import Registry
from grebe.log.snapshot import Snapshot
from grebe.log.states import Impossible, IndexState, TableState, apply
from grebe.store.memory import MemoryStore, Moment
from grebe.store.probe import probe
from grebe.store.protocol import ObjectExists, ObjectInfo, OutcomeUnknown

HEARTBEAT = 10.0
OLD = 1000.0
"""Seconds, longer than any schedule takes: entries of that age may be removed."""
TABLE = TableInfo("memory://table", "plain")
FILES = ("a", "b", "c", "d", "last")
FAULTS = ("crash before", "crash after", "lost request", "lost reply", "late", "false exists")


class Crash(BaseException):
    """The process is gone. No code of ours may catch it."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong at the `call`-th store call of a schedule."""

    call: int
    kind: str


@dataclass
class World:
    seed: int
    fault: Fault | None = None
    fault_rate: float = 0.0
    old: Mapping[str, bytes] | None = None
    """Objects that have been there for long when the schedule starts."""
    clock: SimulatedClock = field(init=False)
    store: "SimulatedStore" = field(init=False)
    claims: dict[str, str] = field(default_factory=dict)
    """Operation id -> what its writer believes: committed, refused or unknown."""
    crashed: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.clock = SimulatedClock(self.seed)
        self.store = SimulatedStore(self)
        self.late: list[Callable[[], None]] = []
        self.running = ""
        self._call_of: dict[str, int] = {}
        self._scheduler: greenlet.greenlet | None = None
        probe(MemoryStore("simulated"))  # asked once a process, so that every schedule starts alike
        if self.old is not None:
            self.store.start_from(self.old)
            self.clock.advance(2 * OLD)
        elif not self.registers:
            self.store.start_from(_with_files_registered())

    @property
    def registers(self) -> bool:
        """In every fifth schedule the writers register the files themselves; elsewhere they find them registered."""
        return self.seed % 5 == 0 and self.old is None

    def run(self, actors: dict[str, Callable[["World", str], None]]) -> None:
        """Runs all actors to their end, switching at every store call."""
        self._scheduler = greenlet.getcurrent()
        alive = {name: greenlet.greenlet(_guarded(actor)) for name, actor in actors.items()}
        while alive:
            name = self.random.choice(sorted(alive))
            self.running = name
            alive[name].switch(self, name)
            if self.late and self.random.random() < 0.3:
                self.late.pop(self.random.randrange(len(self.late)))()
            alive = {n: g for n, g in alive.items() if not g.dead}
        while self.late:
            self.late.pop()()
        self._scheduler = None

    def at_call(self, moment: Moment, call: str, path: str) -> None:
        """The script of the store: lets others run, then lets go wrong what is to go wrong here."""
        me = self.running
        if moment == "before":
            self.calls.append(call)
            self.clock.advance(0.001)
            self._call_of[me] = len(self.calls)
        number = self._call_of[me]
        if self._scheduler is not None and moment == "before":
            self._scheduler.switch()
            self.running = me
        if me in self.crashed:
            raise Crash
        kind = self._fault_at(number, moment, call)
        if kind == f"crash {moment}":
            self.crashed.add(me)
            raise Crash
        if kind == ("lost request" if moment == "before" else "lost reply"):
            raise OutcomeUnknown(f"{kind} at call {number}")
        if kind == "false exists" and moment == "before":
            raise ObjectExists(f"{path}: a conflicting write is under way")

    def _fault_at(self, number: int, moment: Moment, call: str) -> str:
        if self._scheduler is None:
            return ""
        kind = ""
        if self.fault is not None and self.fault.call == number:
            kind = self.fault.kind
        elif self.fault_rate and moment == "before" and self.random.random() < self.fault_rate:
            kind = self.random.choice(FAULTS[:1] if self.random.random() < 0.15 else FAULTS[2:])
        elif self.fault_rate and moment == "after" and self.random.random() < self.fault_rate:
            kind = self.random.choice(("lost reply", "crash after", "lost reply", "lost reply"))
        if kind in ("late", "false exists") and call != "put_if_absent":
            kind = ""
        return kind


class SimulatedStore(MemoryStore):
    def __init__(self, world: World) -> None:
        super().__init__("simulated", world.clock, world.at_call)
        self._world = world
        self.entries: dict[str, bytes] = {}
        """Every entry that was ever stored."""

    def _set(self, path: str, data: bytes) -> None:
        super()._set(path, data)
        if names.entry_number(path) is not None and self.entries.setdefault(path, bytes(data)) != data:
            self._world.problems.append(f"{path} was written twice")

    def put_if_absent(self, path: str, data: bytes) -> None:
        world = self._world
        if world._fault_at(len(world.calls) + 1, "before", "put_if_absent") == "late":
            world.calls.append("put_if_absent")
            world.late.append(lambda: self._land(path, data))
            raise OutcomeUnknown("still on its way")
        super().put_if_absent(path, data)

    def _land(self, path: str, data: bytes) -> None:
        if path not in self._objects:
            self._set(path, data)

    def start_from(self, objects: Mapping[str, bytes]) -> None:
        for path, data in objects.items():
            self._set(path, data)

    def peek(self) -> list[ObjectInfo]:
        """All objects, without a call."""
        return [ObjectInfo(p, len(d), m) for p, (d, m) in sorted(self._objects.items())]


def _guarded(actor: Callable[[World, str], None]) -> Callable[[World, str], None]:
    def run(world: World, name: str) -> None:
        try:
            actor(world, name)
        except Crash:
            pass
        except StoreUnreachable:
            pass  # the writer was told that the outcome is unknown; the verdict looks at what became of it
        except (
            GrebeError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            AssertionError,
        ) as error:
            world.problems.append(f"{name}: {type(error).__name__} {error}")

    return run


def open_log(world: World, name: str) -> Log:
    writer = Writer(host=f"host of {name}", pid=1, process_start="1", name=name)
    return Log(world.store, world.clock, writer, patience=30.0, checkpoint_every=3).create(TABLE)


@cache
def listing(*files: str) -> FileList:
    return FileList.build("memory://table", list(files), [1] * len(files), [1] * len(files))


@cache
def _with_files_registered() -> dict[str, bytes]:
    """The objects of a log in which all files have their ids, in the order of their names."""
    store = MemoryStore("simulated", SimulatedClock())
    log = Log(store, SimulatedClock(), Writer("host of nobody", 1, "1", "nobody")).create(TABLE)
    Registry(log).register(listing(*FILES))
    return {path: data for path, (data, _) in store._objects.items()}


def register(world: World, log: Log, *files: str) -> FileIds:
    if world.registers:
        return FileIds.of(Registry(log).register(listing(*files)).to_numpy())
    return FileIds.of([FILES.index(file) for file in files])


def refresher(*files: str, sleeps: bool = False, anew: bool = False) -> Callable[[World, str], None]:
    """Registers files, then creates the index, or refreshes it to cover what it does not cover yet; `anew`: to cover just these,
    and to keep what it was before."""

    def act(world: World, name: str) -> None:
        log = open_log(world, name)
        ids = register(world, log, *files)
        verb = Verb.REFRESH if log.state.index("i") else Verb.CREATE
        spec = IndexSpec("sim", ("a",))
        try:
            operation = begin(
                log, verb, ["i"], {"i": spec} if verb is Verb.CREATE else None, heartbeat_seconds=HEARTBEAT
            )
        except (WrongState, IndexExists):
            return
        with operation:
            world.claims[operation.id] = "unknown"
            path = f"{operation.folder('i')}/part.gix"
            if sleeps:
                _oversleep(world, log)
            log.store.put(path, name.encode())
            content = (ContentFile(path, len(name)),)

            def created(state: TableState) -> list[IndexCreated]:
                return [IndexCreated("i", spec, operation.version, content, ids, "v")]

            def changed(state: TableState) -> list[IndexChanged]:
                index = state.index("i")
                if index is not None and anew:
                    return [_rewritten(index, operation.version, content, ids)]
                cover = ids - index.covered if index else ids
                return [IndexChanged("i", operation.version, add=content, cover=cover, table_version="v")]

            try:
                operation.commit(created if verb is Verb.CREATE else changed)
                world.claims[operation.id] = "committed"
            except (Conflict, WrongState):
                world.claims[operation.id] = "refused"

    return act


def _rewritten(index: IndexState, version: int, content: tuple[ContentFile, ...], ids: FileIds) -> IndexChanged:
    return IndexChanged(
        index.name,
        version,
        add=content,
        remove=tuple(file.path for file in index.content),
        cover=ids,
        uncover=index.covered,
        purge=index.held,
        table_version="v",
        keep=Keep(1),
    )


def quitter(world: World, name: str) -> None:
    """Begins, then thinks better of it."""
    log = open_log(world, name)
    try:
        operation = begin(log, Verb.CREATE, ["j"], {"j": IndexSpec("sim", ("b",))}, heartbeat_seconds=HEARTBEAT)
    except WrongState:
        return
    with operation:
        world.claims[operation.id] = "refused"


def reader(world: World, name: str) -> None:
    """Reads again and again; what it sees must be the history up to some entry, and never go back."""
    seen = Snapshot()
    for _ in range(4):
        try:
            found = snapshot.newest_or_empty(world.store)
        except OutcomeUnknown:
            continue
        if found.number < seen.number:
            world.problems.append(f"{name} saw entry {seen.number}, then only {found.number}")
        seen = found
        world.problems += [f"{name}: {p}" for p in invariants.broken(found.state)]
        expected = replay(world, found.number)
        if expected != found:
            world.problems.append(f"{name} saw another state at {found.number} than the history gives")


def _oversleep(world: World, log: Log) -> None:
    """Time passes without a heartbeat, and everybody else gets a chance to notice."""
    world.clock.advance(HEARTBEAT * 3)
    for _ in range(6):
        log.store.stat(names.entry_path(log.newest.number))


def replay(world: World, upto: int | None = None) -> Snapshot:
    """The history as it lies in the store, folded by hand."""
    state = Snapshot()
    while upto is None or state.number < upto:
        path = names.entry_path(state.number + 1)
        if path not in world.store.entries:
            break
        state = state.after(*codec.decode_entry(world.store.entries[path], path), where=path)
    return state


def verdict(world: World) -> list[str]:
    """Everything that is wrong with what the schedule left behind; empty if all is well."""
    problems = list(world.problems)
    stored = sorted(n for n in map(names.entry_number, world.store.entries) if n is not None)
    if stored != list(range(len(stored))):
        return [*problems, f"holes in the log: {stored}"]
    entries = [codec.decode_entry(world.store.entries[names.entry_path(n)], str(n))[0] for n in stored]
    problems += [f"transaction {t} is in the log {c} times" for t, c in Counter(e.id for e in entries).items() if c > 1]
    state = TableState()
    try:
        for entry in entries:
            state = apply(state, entry)
            problems += [f"after entry {entry.number}: {p}" for p in invariants.broken(state)]
    except Impossible as problem:
        problems.append(f"entry {entry.number} cannot follow: {problem}")
    ended = Counter(c.id for e in entries for c in e.changes if isinstance(c, OperationEnded) and c.committed)
    for operation, claim in world.claims.items():
        if claim == "committed" and ended[operation] != 1:
            problems.append(f"operation {operation} says committed, the log has it {ended[operation]} times")
        if claim == "refused" and ended[operation]:
            problems.append(f"operation {operation} says refused, but it is in the log")
    try:
        return problems + _afterwards(world)
    except GrebeError as error:
        return [*problems, f"the next verb failed: {error}"]


def _afterwards(world: World) -> list[str]:
    """The next verb succeeds by itself, whatever happened before, and then nothing is left under way on that index."""
    world.running = "afterwards"
    world.clock.advance(HEARTBEAT * 5)
    before = set(world.claims)
    refresher("last")(world, "afterwards")
    made = [claim for operation, claim in world.claims.items() if operation not in before]
    if made != ["committed"]:
        return [f"the next verb did not succeed: {made or 'it was refused at begin'}"]
    log = open_log(world, "afterwards")
    left = [o for o in log.state.operations_on(("i",)) if o not in the_dead(world.store, [o], world.clock)]
    index = log.state.index("i")
    last = register(world, log, "last")
    problems = [f"{o.verb} is still under way" for o in left]
    return problems if index is not None and last <= index.covered else [*problems, "the last file is not covered"]


def all_faults(clean: World) -> list[Fault]:
    """Each fault at each call that it can happen to."""
    return [
        Fault(number, kind)
        for number, call in enumerate(clean.calls, 1)
        for kind in (FAULTS if call == "put_if_absent" else FAULTS[:4])
    ]


def schedule(seed: int, fault: Fault | None = None, fault_rate: float = 0.0) -> World:
    """Three writers, one of which oversleeps in every other seed, and a reader."""
    world = World(seed, fault, fault_rate)
    world.run(
        {
            "one": refresher("a", "b"),
            "two": refresher("b", "c", sleeps=seed % 2 == 1),
            "three": quitter if seed % 4 == 0 else refresher("d", anew=seed % 3 == 0),
            "reader": reader,
        }
    )
    return world
