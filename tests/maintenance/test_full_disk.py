"""A disk is full, or fails, at any write of any verb: answers stay the same, and the next verb works at once in the same process.

As `test_crash_points`, but the process goes on: it is told what went wrong by one error of ours, and nothing that it began is in
its own way afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from grebe.errors import GrebeError, StoreRefused
from grebe.log import identity
from grebe.log.commit import Log
from grebe.log.entry import TableInfo, Verb
from grebe.log.liveness import ended_here
from grebe.log.operation import begin, roll_back
from grebe.maintenance.logs import Place
from grebe.maintenance.refresh import refresh
from grebe.maintenance.vacuum import vacuum
from grebe.store.memory import Moment
from grebe.store.protocol import OutcomeUnknown
from tests.maintenance.crash_world import (
    ACTS,
    HEARTBEAT,
    Act,
    InMemory,
    World,
    again,
    prepared,
    problems,
    require_clean,
    without_spark,
)

_PUTS = ("put", "put_if_absent")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the store does from a write on: refuse for want of room, or give no answer, before or after it did what was asked."""

    name: str
    moment: Moment
    error: type[GrebeError]
    calls: tuple[str, ...]
    once: bool = False

    def raised(self) -> GrebeError:
        return StoreRefused("no room", detail="NO_ROOM") if self.error is StoreRefused else OutcomeUnknown("I/O error")


FULL = Trouble("full", "before", StoreRefused, _PUTS)
FAILING = Trouble("failing", "before", OutcomeUnknown, (*_PUTS, "delete"))
OTHERS = [
    Trouble("full once", "before", StoreRefused, _PUTS, once=True),
    Trouble("failing once", "before", OutcomeUnknown, (*_PUTS, "delete"), once=True),
    Trouble("stored, but failing", "after", OutcomeUnknown, (*_PUTS, "delete")),
    Trouble("stored, but failing once", "after", OutcomeUnknown, (*_PUTS, "delete"), once=True),
]


@dataclass(frozen=True, slots=True)
class Here(InMemory):
    def made(self, table: TableInfo) -> Log:
        return Log(self.opener(""), self.clock, identity.this_writer(), patience=5.0).create(table)


class FailingWorld(World):
    """Everybody in it is this process. `trouble` begins at the write of the number `at`."""

    trouble: Trouble | None = None
    at = 0
    freed_by = ""
    """The trouble is over once something below this folder is removed."""

    def _at_call(self, moment: Moment, call: str, path: str) -> None:
        if call not in (*_PUTS, "delete"):
            return
        self.writes += moment == "before"
        if self.freed_by and call == "delete" and moment == "after" and path.startswith(self.freed_by):
            self.trouble = None
        trouble = self.trouble
        if trouble is None or moment != trouble.moment or call not in trouble.calls or self.writes < self.at:
            return
        if trouble.once:
            self.trouble = None
        raise trouble.raised()

    def log(self, name: str = "ann") -> Log:
        return self.opened(identity.this_writer())

    def place(self) -> Place:
        return Here("memory://lake", "memory://log", None, lambda uri: self.store, self.clock)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch)


@cache
def start() -> World:
    return prepared()


def world_for(act: Act) -> FailingWorld:
    world = FailingWorld(start())
    act.before(world)
    world.writes = 0
    return world


def troubled(act: Act, trouble: Trouble) -> Iterator[tuple[FailingWorld, GrebeError | None]]:
    """A world for each write of the verb, in which the trouble began there and is over, and what the verb raised."""
    whole = world_for(act)
    act.run(whole, whole.log())
    for number in range(1, whole.writes + 1):
        world = world_for(act)
        log = world.log()
        world.trouble, world.at = trouble, number
        raised: GrebeError | None = None
        try:
            act.run(world, log)
        except GrebeError as problem:
            raised = problem
        world.trouble = None
        yield world, raised


def require_well(act: Act, trouble: Trouble) -> None:
    seen = 0
    for world, raised in troubled(act, trouble):
        seen += raised is not None
        assert raised is None or raised.code in ("STORE_REFUSED_NO_ROOM", "STORE_UNREACHABLE"), raised
        assert problems(world, lost=act.name == "repair") == []
        again(world, act)
        assert problems(world) == []
        refresh(world.source, world.log(), heartbeat_seconds=HEARTBEAT)  # type: ignore[arg-type]  # it has what is asked
        assert problems(world) == []
        # What failed builds left goes at once, though by default bytes stay for a day.
        vacuum(world.log())
        state = world.log().state
        assert world.under("data") <= state.content_paths | set(state.retired)
        require_clean(world)
        assert problems(world) == []
    assert seen or trouble.once


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
@pytest.mark.parametrize("trouble", [FULL, FAILING], ids=lambda trouble: trouble.name)
def test_the_next_verb_works_at_once_in_the_same_process(act: Act, trouble: Trouble) -> None:
    require_well(act, trouble)


@pytest.mark.soak
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
@pytest.mark.parametrize("trouble", OTHERS, ids=lambda trouble: trouble.name)
def test_whatever_the_store_answers_the_next_verb_works_at_once(act: Act, trouble: Trouble) -> None:
    require_well(act, trouble)


def test_a_full_disk_is_left_as_empty_as_it_was() -> None:
    """The bytes of a failed build go before its end is written, which needs room itself."""
    act = next(act for act in ACTS if act.name == "create")
    for world, raised in troubled(act, FULL):
        if raised is not None:
            state = world.log().state
            assert world.under("data") <= state.content_paths | set(state.retired)


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "gone"])
def test_a_vacuum_makes_room_on_a_full_disk_before_it_writes_anything(ended: bool) -> None:
    """What a build left fills the disk: it goes first, since the vacuum could not even ask for the time."""
    world = FailingWorld(start())
    log = world.log()
    running = begin(log, Verb.REFRESH, ["i"])
    world.store.put(f"{running.folder('i')}/half.gix", b"all there is")
    if ended:
        roll_back(log, running.id, "for the test")
    ended_here(running.id)
    world.trouble, world.freed_by = FULL, "data/"
    kept = log.state.content_paths
    vacuum(Log(world.store, world.clock, identity.this_writer(), patience=5.0).open())
    assert world.trouble is None
    assert world.under("data") >= kept
    assert not [path for path in world.under("data") if running.id in path]
    assert problems(world) == []


def test_a_vacuum_that_can_make_no_room_says_so() -> None:
    world = FailingWorld(start())
    log = world.log()
    world.trouble = FULL
    before = world.under("data")
    with pytest.raises(StoreRefused, match="NO_ROOM"):
        vacuum(log)
    assert world.under("data") == before
