"""Files get their ids once, whoever registers them, in whatever order and however often."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import CorruptLog, SourceChanged
from grebe.files import FileIds
from grebe.log.commit import Log
from grebe.log.registration import MOST_SEGMENTS, Registry
from grebe.store.memory import MemoryStore
from tests.log.worlds import files, new_log, writer


def _other(log: Log) -> Log:
    return Log(log.store, log.clock, writer("bob@host")).open()


def test_registering_again_gives_the_same_ids_and_writes_nothing() -> None:
    log = new_log()
    first = Registry(log).register(files("a", "b")).to_pylist()
    number = log.newest.number
    assert Registry(_other(log)).register(files("a", "b")).to_pylist() == first == [0, 1]
    assert log.reload().number == number


def test_only_what_is_missing_gets_an_id_and_a_rewritten_file_is_another_file() -> None:
    log = new_log()
    registry = Registry(log)
    registry.register(files("a", "b"))
    assert registry.register(files("b", "c")).to_pylist() == [1, 2]
    assert registry.register(files("b", modified_ms=2000)).to_pylist() == [3]
    assert registry.register(files("b")).to_pylist() == [1]
    assert log.state.next_file_id == 4


def test_the_loser_of_a_race_registers_only_what_is_still_missing() -> None:
    log = new_log()
    other = _other(log)
    mine, theirs = Registry(log), Registry(other)
    raced: list[str] = []

    def race_before_the_entry(moment: str, call: str, path: str) -> None:
        if call == "put_if_absent" and moment == "before" and path.startswith("log/") and not raced:
            raced.append(path)
            theirs.register(files("b", "c"))

    store = log.store._store
    assert isinstance(store, MemoryStore)
    store.script = race_before_the_entry
    assert mine.register(files("a", "b")).to_pylist() == [2, 0]
    assert raced
    assert log.state.next_file_id == 3
    segments = {s.path for s in log.state.segments}
    assert {o.path for o in store.list("files")} == segments, "what lost the race is removed"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 9), min_size=1), st.integers(1, 2)), max_size=40))
def test_an_id_never_changes_and_is_never_given_twice(steps: list[tuple[int, set[int], int]]) -> None:
    first = new_log()
    registries = [Registry(first), Registry(_other(first)), Registry(_other(first))]
    given_ids: dict[tuple[int, int], int] = {}
    for who, paths, modified in steps:
        listing = files(*(f"p{n}" for n in paths), modified_ms=modified)
        got = registries[who].register(listing).to_pylist()
        for path, file_id in zip(listing.paths().to_pylist(), got, strict=True):
            assert given_ids.setdefault((int(path[1:]), modified), file_id) == file_id
    assert sorted(given_ids.values()) == list(range(len(given_ids)))
    state = first.reload().state
    assert state.next_file_id == len(given_ids)
    assert Registry(first).files(state).file_ids == FileIds.of(range(len(given_ids)))


def test_the_list_never_takes_many_requests_to_read() -> None:
    log = new_log()
    registry = Registry(log)
    registry.register(files(*(f"base{n}" for n in range(1000))))
    for n in range(60):
        registry.register(files(f"f{n}"))
        assert len(log.state.segments) <= MOST_SEGMENTS
    assert log.state.segments[0].count == 1000, "a large base is not written again for a few small files"
    assert len(Registry(log).files(log.state)) == 1060
    retired = [p for p in log.state.retired if p.startswith("files/")]
    assert retired
    assert all(log.store.stat(p).size for p in retired), "readers of an older state can still read its segments"


def test_a_segment_that_is_gone_or_damaged_says_so() -> None:
    log = new_log()
    Registry(log).register(files("a"))
    path = log.state.segments[0].path
    data = log.store.get(path)
    log.store.put(path, data[:-3])
    with pytest.raises(CorruptLog):
        Registry(log).files(log.state)
    log.store.delete(path)
    with pytest.raises(CorruptLog, match="is missing"):
        Registry(log).files(log.state)


def test_a_segment_that_was_merged_and_vacuumed_asks_for_a_reload() -> None:
    log = new_log()
    registry = Registry(log)
    registry.register(files("a"))
    old = log.state
    for n in range(MOST_SEGMENTS + 1):
        registry.register(files(f"f{n}"))
    for path in log.state.retired:
        log.store.delete(path)
    with pytest.raises(SourceChanged, match=r"\[SOURCE_CHANGED_FILE_LIST\].*Reload"):
        Registry(log).files(old)
    assert len(Registry(log).files(log.state)) == MOST_SEGMENTS + 2
