"""Many blocks become few: no query is lost or counted twice, wherever it is killed and whoever else does it at the same time."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial

import pytest

from grebe.advisor.workload import blocks
from grebe.advisor.workload.consolidate import Consolidated, Retention, consolidate
from grebe.advisor.workload.observed import to_table
from grebe.clock import SimulatedClock
from grebe.store.memory import MemoryStore, Moment, Script, no_faults
from grebe.store.protocol import OutcomeUnknown
from tests.advisor.made import START_MS, observed
from tests.advisor.test_blocks import numbers

DAY = 86_400.0
KEEPS_ALL = Retention(days=10_000, bytes=10**9, vacuum_retention_seconds=DAY)
AT_ONCE = Retention(days=10_000, bytes=10**9, vacuum_retention_seconds=0)
BLOCKS = 3


class Died(Exception):
    """The process is killed."""


@cache
def written() -> list[tuple[str, bytes]]:
    """Blocks of two queries each."""
    clock = SimulatedClock(99)
    store = MemoryStore(clock=clock)
    for first in range(BLOCKS):
        blocks.write(store, to_table([observed(first), observed(first + BLOCKS)]), clock)
    return [(one.path, store.get(one.path)) for one in blocks.listed(store)]


def filled(clock: SimulatedClock, script: Script = no_faults) -> MemoryStore:
    store = MemoryStore(clock=clock)
    for path, data in written():
        clock.advance(1)
        store.put(path, data)
    store.script = script
    return store


def test_many_small_blocks_become_one() -> None:
    clock = SimulatedClock()
    store = filled(clock)
    assert consolidate(store, KEEPS_ALL, clock, few=BLOCKS) == Consolidated(merged=BLOCKS, removed=0)
    content = blocks.read(store)
    assert len(content.by_path) == 1
    assert numbers(content.queries) == list(range(2 * BLOCKS))


def test_few_blocks_stay_as_they_are() -> None:
    clock = SimulatedClock()
    store = filled(clock)
    assert consolidate(store, KEEPS_ALL, clock, few=BLOCKS + 1) == Consolidated(0, 0)


def test_merged_blocks_go_once_nobody_can_be_reading_them() -> None:
    clock = SimulatedClock()
    store = filled(clock)
    consolidate(store, KEEPS_ALL, clock, few=BLOCKS)
    clock.advance(DAY - 1)
    blocks.write(store, to_table([observed(100)]), clock)
    assert consolidate(store, KEEPS_ALL, clock, few=2).removed == 0
    clock.advance(2)
    blocks.write(store, to_table([observed(101)]), clock)
    assert consolidate(store, KEEPS_ALL, clock, few=2).removed == BLOCKS
    assert numbers(blocks.read(store).queries) == [*range(2 * BLOCKS), 100, 101]


class At:
    """At the call of this number (each counts twice: before and after it) something happens, once."""

    def __init__(self, number: int, happens: Callable[[], None] = lambda: None) -> None:
        self.left = number
        self._happens = happens

    def __call__(self, moment: Moment, call: str, path: str) -> None:
        self.left -= 1
        if self.left == 0:
            self._happens()


def failing(fault: type[Exception]) -> None:
    raise fault("here")


def twice(store: MemoryStore, clock: SimulatedClock) -> None:
    """What is merged the first time is removed the second."""
    consolidate(store, AT_ONCE, clock, few=2)
    consolidate(store, AT_ONCE, clock, few=2)


@pytest.mark.parametrize("fault", [Died, OutcomeUnknown])
def test_killed_at_any_call_nothing_is_lost_or_doubled(fault: type[Exception]) -> None:
    """And the next one brings it to its end."""
    calls = At(10_000)
    store = filled(SimulatedClock(), calls)
    twice(store, SimulatedClock())
    for at in range(1, 10_000 - calls.left):
        clock = SimulatedClock(at)
        store = filled(clock, At(at, partial(failing, fault)))
        with suppress(fault):  # a write is tried again where it is not known what became of it
            twice(store, clock)
        store.script = no_faults
        assert numbers(blocks.read(store).queries) == list(range(2 * BLOCKS)), f"call {at}"
        blocks.write(store, to_table([observed(100)]), clock)
        twice(store, clock)
        content = blocks.read(store)
        assert numbers(content.queries) == [*range(2 * BLOCKS), 100], f"call {at}"
        assert len(content.by_path) <= 2, f"call {at}"


def all_of_it(store: MemoryStore, clock: SimulatedClock) -> None:
    store.script = no_faults
    blocks.write(store, to_table([observed(100)]), clock)
    twice(store, clock)


def test_two_at_once_at_any_interleaving_lose_and_double_nothing() -> None:
    """The other does all of its work between two calls of the one, at each place in turn, and so does a writer."""
    met = 0
    for at in range(1, 40):
        clock = SimulatedClock(at)
        store = filled(clock)
        store.script = script = At(at, partial(all_of_it, store, clock))
        twice(store, clock)
        store.script = no_faults
        happened = script.left <= 0
        met += happened
        assert numbers(blocks.read(store).queries) == [*range(2 * BLOCKS), *([100] * happened)], f"call {at}"
    assert met > 20


def test_what_is_too_old_is_let_go() -> None:
    clock = SimulatedClock(start_ms=START_MS)
    store = MemoryStore(clock=clock)
    day = int(DAY * 1000)
    for age in (40, 20, 5):
        blocks.write(store, to_table([observed(age, START_MS - age * day), observed(age + 1, START_MS - day)]), clock)
    blocks.write(store, to_table([observed(60, START_MS - 60 * day)]), clock)
    consolidate(store, Retention(days=30, bytes=10**9, vacuum_retention_seconds=0), clock, few=2)
    assert sorted(numbers(blocks.read(store).queries)) == [5, 6, 20, 21, 41]


def test_what_takes_too_many_bytes_is_let_go_oldest_first() -> None:
    clock = SimulatedClock()
    store = MemoryStore(clock=clock)
    for first in range(0, 2000, 500):
        blocks.write(store, to_table([observed(number) for number in range(first, first + 500)]), clock)
    room = sum(one.size for one in blocks.listed(store)) // 2
    for _ in range(2):
        consolidate(store, Retention(days=10_000, bytes=room, vacuum_retention_seconds=0), clock)
    found = numbers(blocks.read(store).queries)
    assert 500 < len(found) < 1500
    assert found == list(range(2000 - len(found), 2000))
    assert sum(one.size for one in blocks.listed(store)) <= room


def test_damaged_blocks_are_neither_merged_nor_in_the_way() -> None:
    clock = SimulatedClock()
    store = filled(clock)
    broken = blocks.listed(store)[0].path
    store.put(broken, store.get(broken)[:-1])
    consolidate(store, AT_ONCE, clock, few=2)
    consolidate(store, AT_ONCE, clock, few=2)
    content = blocks.read(store)
    assert content.damaged == (broken,)
    assert numbers(content.queries) == [n for n in range(2 * BLOCKS) if n % BLOCKS]
