"""Entries below an old checkpoint are removed; nothing but the length of the history tells."""

import itertools
from collections.abc import Iterator

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import CorruptLog
from grebe.files import FileIds
from grebe.log import names
from grebe.log.commit import Log
from grebe.log.entry import TableSeen, Verb
from grebe.log.liveness import the_dead
from grebe.log.operation import begin
from grebe.log.snapshot import history, newest_or_empty, read_on
from grebe.log.states import TableState
from grebe.maintenance.garbage import Limits
from grebe.maintenance.vacuum import vacuum
from grebe.store.memory import MemoryStore, Moment
from tests.log.worlds import TABLE, register, writer

DAY = 86_400.0
MONTH = Limits(DAY, 30 * DAY)


class Crash(BaseException):
    """The process is gone."""


def log_of(store: MemoryStore, clock: SimulatedClock, name: str = "ann") -> Log:
    return Log(store, clock, writer(name), patience=5.0, checkpoint_every=4)


def grown(entries: int = 10, days_each: float = 5) -> tuple[MemoryStore, SimulatedClock, Log]:
    """A log of so many entries, one every few days, with a checkpoint after every fourth."""
    clock = SimulatedClock()
    store = MemoryStore("retained", clock)
    log = log_of(store, clock).create(TABLE)
    for number in range(1, entries):
        clock.sleep(days_each * DAY)
        register(log, f"file {number}")
    return store, clock, log


def numbers(store: MemoryStore) -> list[int]:
    return [n for one in store.list("log") if (n := names.entry_number(one.path)) is not None]


def test_entries_below_an_old_checkpoint_go_and_the_state_stays() -> None:
    store, clock, log = grown(12)
    before = log.state
    # The entries are 55 to 0 days old; that of checkpoint 3 is 40 days old, that of checkpoint 7 is 20.
    vacuum(log, limits=MONTH)
    assert numbers(store)[0] == 3
    assert newest_or_empty(store).state.segments == before.segments
    store.delete(names.HINT)
    assert newest_or_empty(store).state.segments == before.segments
    assert [entry.number for entry in history(store, log.newest.number)] == numbers(store)
    assert [entry.number for entry in history(store, log.newest.number, 2)] == numbers(store)[-2:]
    register(log_of(store, clock).open(), "one more")


def test_the_young_stay() -> None:
    store, _, log = grown(12, days_each=1)
    vacuum(log, limits=MONTH)
    assert numbers(store)[0] == 0


def test_entries_stay_as_long_as_the_bytes_that_they_took_out_of_use() -> None:
    store, _, log = grown(12)
    vacuum(log, limits=Limits(90 * DAY, 1))
    assert numbers(store)[0] == 0


def test_without_a_checkpoint_that_can_be_read_nothing_goes() -> None:
    store, _, log = grown(12)
    store.put(names.checkpoint_path(3), b"damaged")
    vacuum(log, limits=MONTH)
    assert numbers(store)[0] == 0


def test_the_begin_of_a_running_operation_stays() -> None:
    store, clock, log = grown(2)
    log.commit("nothing", lambda state: ())
    running = begin(log, Verb.VACUUM, [], heartbeat_seconds=DAY)
    for number in range(20):
        clock.sleep(5 * DAY)
        store.put(names.heartbeat_path(running.id), b"")
        register(log, f"more {number}")
    vacuum(log, limits=MONTH)
    assert running.version in numbers(store)
    running.rollback("over")


def test_an_operation_whose_begin_and_heartbeat_are_gone_is_dead() -> None:
    store, clock, log = grown(2)
    running = begin(log, Verb.VACUUM, [], heartbeat_seconds=DAY)
    store.delete(names.heartbeat_path(running.id))
    store.delete(names.entry_path(running.version))
    operations = list(log.state.operations.values())
    assert the_dead(store, operations, clock) == operations


def test_whoever_knows_an_older_state_arrives_at_the_newest() -> None:
    store, clock, log = grown(2)
    old_reader = log_of(store, clock, "old").open()
    old_writer = log_of(store, clock, "older").open()
    hint = store.get(names.HINT)
    for number in range(20):
        clock.sleep(5 * DAY)
        register(log, f"more {number}")
    vacuum(log, limits=MONTH)
    assert 1 not in numbers(store)
    assert old_reader.reload() == log.newest
    register(old_writer, "by the old writer")
    store.put(names.HINT, hint)
    assert newest_or_empty(store).number == old_writer.newest.number
    assert read_on(store, old_writer.newest) == old_writer.newest


def test_a_history_that_was_removed_meanwhile_is_empty_and_no_damage() -> None:
    store, clock, log = grown(2)
    known = log.newest.number
    for number in range(20):
        clock.sleep(5 * DAY)
        register(log, f"more {number}")
    vacuum(log, limits=MONTH)
    assert known not in numbers(store)
    assert list(history(store, known)) == list(history(store, known, 1)) == []
    assert [entry.number for entry in history(store, log.newest.number)] == numbers(store)


def test_a_writer_that_was_held_up_looks_again_before_it_takes_a_number() -> None:
    store, clock, log = grown(2)
    slow = log_of(store, clock, "slow").open()
    held_up = iter([True])

    def propose(state: TableState) -> list[TableSeen]:
        if next(held_up, False):
            for number in range(20):
                clock.sleep(5 * DAY)
                register(log, f"more {number}")
            vacuum(log, limits=MONTH)
        return [TableSeen(FileIds.of_ranges([(0, state.next_file_id)]), "v")]

    next_number = slow.newest.number + 1
    made = slow.commit("look", propose)
    assert next_number not in numbers(store)
    assert made.number == numbers(store)[-1] == log.newest.number + 1


def test_a_hole_that_no_checkpoint_stands_in_for_is_told() -> None:
    store, _, log = grown(10)
    store.delete(names.entry_path(8))
    with pytest.raises(CorruptLog) as broken:
        list(history(store, log.newest.number))
    assert broken.value.code == "CORRUPT_LOG_GAP"


def deaths() -> Iterator[tuple[MemoryStore, SimulatedClock]]:
    """A vacuum that removes entries dies at each of its writes."""
    for dies_at in itertools.count(1):
        store, clock, log = grown(12)
        writes = itertools.count(1)

        def script(moment: Moment, call: str, path: str) -> None:
            if moment == "before" and call in ("put", "put_if_absent", "delete") and next(writes) >= dies_at:  # noqa: B023
                raise Crash

        store.script = script
        try:
            vacuum(log, limits=MONTH)
        except Crash:
            pass
        else:
            return
        finally:
            store.script = lambda moment, call, path: None
        yield store, clock


def test_a_vacuum_may_die_at_any_write() -> None:
    died = 0
    for store, clock in deaths():
        died += 1
        for without_hint in (False, True):
            if without_hint:
                store.delete(names.HINT)
            opened = log_of(store, clock, "bob").open()
            assert len(opened.state.segments) == 11
            told = [entry.number for entry in history(store, opened.newest.number)]
            assert told == list(range(told[0], opened.newest.number + 1))
        register(opened, "another")
        vacuum(opened, limits=MONTH)
        assert numbers(store) == list(range(3, opened.newest.number + 1))
    assert died > 4
