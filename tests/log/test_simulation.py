"""Seeded interleavings of three writers and a reader, with a crash or fault before and after every store call.

A failure names its schedule: `verdict(schedule(SEED, Fault(CALL, KIND)))` replays it.
"""

from functools import lru_cache

import pytest

from grebe.files import RegisteredFiles, decode, encode
from grebe.log import codec, registration, snapshot
from grebe.log.commit import Log
from grebe.log.entry import Entry
from grebe.log.names import entry_path
from grebe.store.protocol import ObjectExists, OutcomeUnknown
from tests.log.simulation import all_faults, schedule, verdict

SEEDS = range(28)


@pytest.fixture(autouse=True)
def _what_is_pure_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same few bytes are read and the same few lists of files compared again and again; that is pure, and what it gives is
    immutable. A list of files is taken to be another one unless it is the same object."""
    monkeypatch.setattr(codec, "decode_entry", lru_cache(1000)(codec.decode_entry))
    monkeypatch.setattr(codec, "decode_state", lru_cache(1000)(codec.decode_state))
    monkeypatch.setattr(registration, "decode", lru_cache(1000)(decode))
    monkeypatch.setattr(registration, "encode", lru_cache(1000)(encode))
    for name in ("empty", "register", "concat", "missing", "ids_of"):
        monkeypatch.setattr(RegisteredFiles, name, lru_cache(1000)(getattr(RegisteredFiles, name)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_or_fault_at_any_call_leaves_a_log_that_is_right_and_goes_on(seed: int) -> None:
    clean = schedule(seed)
    assert verdict(clean) == []
    failed = {str(fault): found for fault in all_faults(clean) if (found := verdict(schedule(seed, fault)))}
    assert failed == {}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_a_crash_or_fault_at_any_call_in_many_more_interleavings(seed: int) -> None:
    test_a_crash_or_fault_at_any_call_leaves_a_log_that_is_right_and_goes_on(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(100_000, 150_000, 500))
def test_many_random_faults_in_many_more_schedules(first: int) -> None:
    rates = (0.02, 0.05, 0.1, 0.2)
    failed = {
        seed: found
        for seed in range(first, first + 500)
        if (found := verdict(schedule(seed, fault_rate=rates[seed % 4])))
    }
    assert failed == {}


def test_these_are_at_least_ten_thousand_schedules() -> None:
    assert sum(len(all_faults(schedule(seed))) for seed in SEEDS) + 1000 >= 10_000


@pytest.mark.parametrize("first", range(1000, 2000, 250))
def test_many_random_faults_in_one_schedule_do_no_harm(first: int) -> None:
    failed = {seed: found for seed in range(first, first + 250) if (found := verdict(schedule(seed, fault_rate=0.05)))}
    assert failed == {}


def test_the_same_seed_replays_the_same_history() -> None:
    def history(seed: int) -> list[tuple[str, bytes]]:
        world = schedule(seed, fault_rate=0.05)
        return [(path, data) for path, (data, _) in sorted(world.store._objects.items())]

    assert history(7) == history(7)
    assert history(7) != history(8)


def _found_by_some_schedule(kind: str) -> list[str]:
    """What the schedules with that fault say of a commit protocol that was broken on purpose."""
    found = []
    for seed in range(10):
        clean = schedule(seed)
        entries = [f for f in all_faults(clean) if clean.calls[f.call - 1] == "put_if_absent" and f.kind == kind]
        found += [problem for fault in entries for problem in verdict(schedule(seed, fault))]
    return found


def test_without_reading_who_won_a_transaction_is_committed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(self: Log, entry: Entry, data: bytes) -> bool:
        patience = self.store.patience()
        while True:
            try:
                self.store.put_if_absent(entry_path(entry.number), data)
                return True
            except ObjectExists:
                return False
            except OutcomeUnknown as problem:
                patience.wait(problem)

    monkeypatch.setattr(Log, "_settle", trusting)
    found = _found_by_some_schedule("lost reply")
    assert any("in the log 2 times" in p or "says refused, but it is" in p for p in found)


def test_taking_an_unknown_answer_for_a_no_loses_track_of_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: Log, entry: Entry, data: bytes) -> bool:
        try:
            self.store.put_if_absent(entry_path(entry.number), data)
            return True
        except (ObjectExists, OutcomeUnknown):
            found = snapshot.read_entry(self.store, entry.number)
            return found is not None and found[0].id == entry.id

    monkeypatch.setattr(Log, "_settle", hasty)
    assert any("says refused, but it is" in p for p in _found_by_some_schedule("late"))


def test_looking_first_and_then_writing_forks_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_then_write(self: Log, entry: Entry, data: bytes) -> bool:
        if snapshot.read_entry(self.store, entry.number) is not None:
            return False
        self.store.put(entry_path(entry.number), data)
        return True

    monkeypatch.setattr(Log, "_settle", look_then_write)
    assert any(verdict(schedule(seed)) for seed in range(50))
