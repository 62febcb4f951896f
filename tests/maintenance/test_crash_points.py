"""A writer dies at any of its writes: the table answers the same at once, the next verb works, and a vacuum clears up.

Every verb, at every write it makes, over a store in memory. What lies in the store changes at writes alone, so these are all the
points at which it matters that a process dies.
"""

from collections.abc import Iterator
from functools import cache

import pytest

from grebe.maintenance.cancel import cancel
from grebe.maintenance.refresh import refresh
from tests.maintenance.crash_world import (
    ACTS,
    HEARTBEAT,
    Act,
    Crash,
    World,
    again,
    prepared,
    problems,
    require_clean,
    without_spark,
)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch)


@cache
def start() -> World:
    return prepared()


def world_for(act: Act) -> World:
    world = World(start())
    act.before(world)
    world.writes = 0
    return world


def deaths(act: Act) -> Iterator[World]:
    """A world for each write of the verb, in which its writer died there."""
    whole = world_for(act)
    act.run(whole, whole.log())
    assert whole.writes > 1
    for number in range(1, whole.writes + 1):
        world = world_for(act)
        world.dies_at = number
        with pytest.raises(Crash):
            act.run(world, world.log())
        world.outlived()
        yield world


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_after_its_heartbeat_lapsed_nobody_has_to_do_anything(act: Act) -> None:
    for world in deaths(act):
        assert problems(world, lost=act.name == "repair") == []
        world.clock.advance(HEARTBEAT * 2 + 2)
        again(world, act)
        assert problems(world) == []
        refresh(world.source, world.log("bob"), heartbeat_seconds=HEARTBEAT)  # type: ignore[arg-type]  # it has what is asked
        assert problems(world) == []
        require_clean(world)
        assert problems(world) == []


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_once_it_is_cancelled_the_next_verb_works_at_once(act: Act) -> None:
    for world in deaths(act):
        log = world.log("bob")
        while log.state.operations:
            cancel(log, next(iter(log.state.operations.values())).indexes[0])
        again(world, act)
        assert problems(world) == []
        require_clean(world)
        assert problems(world) == []


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_a_vacuum_alone_clears_up_what_the_dead_left(act: Act) -> None:
    for world in deaths(act):
        before = problems(world, lost=act.name == "repair")
        require_clean(world)
        assert problems(world, lost=act.name == "repair") == before == []
