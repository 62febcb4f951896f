"""Opening a log: three requests at any length, and the right state whatever became of hint and checkpoints."""

from collections.abc import Callable

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import Conflict, CorruptLog, TableNotFound, Unsupported
from grebe.files import FileIds
from grebe.log import codec, names, snapshot
from grebe.log.commit import Log
from grebe.log.entry import ContentFile, Entry, IndexCreated, IndexDeleted, TableInfo
from grebe.log.snapshot import Snapshot
from grebe.store.memory import MemoryStore
from tests.log.worlds import SPEC, TABLE, create, new_log, register, writer


@pytest.fixture
def store() -> MemoryStore:
    """With a log of 40 entries and three checkpoints."""
    clock = SimulatedClock()
    memory = MemoryStore("log", clock)
    log = Log(memory, clock, writer(), checkpoint_every=10).create(TABLE)
    register(log, "a", "b")
    for number in range(12):
        create(log, f"i{number}")
        if log.newest.number >= 38:
            break
        _delete(log, f"i{number}")
    return memory


def _delete(log: Log, name: str) -> None:
    log.commit("delete", lambda state: [IndexDeleted(name)])


def _folded(store: MemoryStore) -> Snapshot:
    state = Snapshot()
    while (found := snapshot.read_entry(store, state.number + 1)) is not None:
        state = state.after(*found, where="here")
    return state


def _requests(store: MemoryStore, call: Callable[[], object]) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    store.script = lambda moment, what, path: seen.append((what, path)) if moment == "before" else None
    call()
    return seen


def test_opening_takes_three_requests_however_long_the_log(store: MemoryStore) -> None:
    newest = _folded(store).number
    assert newest > 35
    seen = _requests(store, lambda: snapshot.newest(store))
    assert seen == [("get", names.HINT), ("get", names.entry_path(newest + 1)), ("get", names.entry_path(newest))]


def test_a_hint_that_lags_costs_a_request_for_each_later_entry(store: MemoryStore) -> None:
    whole = _folded(store)
    early = Snapshot()
    for number in range(whole.number - 4):
        found = snapshot.read_entry(store, number) or pytest.fail("gap")
        early = early.after(*found, where="here")
    snapshot.write_hint(store, early)
    seen = _requests(store, lambda: snapshot.newest(store))
    assert len(seen) == 2 + whole.number - early.number
    assert snapshot.newest(store) == whole


def _flip(store: MemoryStore, path: str) -> None:
    data = bytearray(store.get(path))
    data[len(data) // 2] ^= 1
    store.put(path, bytes(data))


@pytest.mark.parametrize(
    "damage", [_flip, MemoryStore.delete, lambda s, p: s.put(p, b""), lambda s, p: s.put(p, b"junk")]
)
def test_a_lost_or_damaged_hint_or_checkpoint_changes_nothing(
    store: MemoryStore, damage: Callable[[MemoryStore, str], None]
) -> None:
    whole = _folded(store)
    damage(store, names.HINT)
    assert snapshot.newest(store) == whole
    for info in list(store.list("log")):
        if names.checkpoint_number(info.path) is not None:
            damage(store, info.path)
    assert snapshot.newest(store) == whole


def test_without_a_hint_reading_starts_at_the_newest_checkpoint(store: MemoryStore) -> None:
    newest = _folded(store).number
    checkpoint = max(n for o in store.list("log") if (n := names.checkpoint_number(o.path)) is not None)
    store.delete(names.HINT)
    entries = [p for what, p in _requests(store, lambda: snapshot.newest(store)) if names.entry_number(p) is not None]
    assert len(entries) == newest - checkpoint + 2  # the checkpoint's own, those after it, and the absent one


def test_a_hint_of_another_log_is_not_believed(store: MemoryStore) -> None:
    whole = _folded(store)
    foreign = new_log(MemoryStore("other"))
    for _ in range(60):
        create(foreign, f"x{foreign.newest.number}")
    for number in (foreign.newest.number, whole.number, whole.number - 1, 0):
        store.put(names.HINT, codec.encode_state(number, foreign.newest.digest, foreign.state))
        assert snapshot.newest(store) == whole


def test_a_hint_whose_entry_is_gone_is_not_believed(store: MemoryStore) -> None:
    """Somebody put back an older copy of the log, but the hint survived."""
    newest = _folded(store).number
    store.delete(names.entry_path(newest))
    assert snapshot.newest(store) == _folded(store)


def test_a_folder_without_a_log_is_no_table() -> None:
    with pytest.raises(TableNotFound, match="memory://nothing"):
        Log(MemoryStore("nothing")).open()


@pytest.mark.parametrize("reopened", [True, False])
def test_an_entry_cut_short_or_with_a_flipped_bit_is_named(store: MemoryStore, reopened: bool) -> None:
    log = Log(store, SimulatedClock(), writer()).open()
    path = names.entry_path(log.newest.number + 1)
    other = Log(store, SimulatedClock(), writer("bob@host")).open()
    register(other, "c")
    if reopened:
        store.delete(names.HINT)
    whole = store.get(path)
    for damaged in (whole[: len(whole) // 2], whole.replace(b"register", b"renister"), b""):
        store.put(path, damaged)
        with pytest.raises(CorruptLog, match=path) as error:
            _ = log.open() if reopened else log.reload()
        assert error.value.code == "CORRUPT_LOG_CHECKSUM"
    store.put(path, whole)
    assert log.reload() == other.newest


def test_a_gap_is_found_before_anything_is_written_into_it(store: MemoryStore) -> None:
    log = Log(store, SimulatedClock(), writer()).open()
    lost = names.entry_path(log.newest.number + 1)
    hint = store.get(names.HINT)
    other = Log(store, SimulatedClock(), writer("bob@host")).open()
    register(other, "c")
    register(other, "d")
    whole = store.get(lost)
    store.delete(lost)
    store.put(names.HINT, hint)
    before = {o.path for o in store.list()}
    with pytest.raises(CorruptLog, match=lost) as error:
        register(log, "e")
    assert error.value.code == "CORRUPT_LOG_GAP"
    assert {o.path for o in store.list("log")} == {p for p in before if p.startswith("log/")}
    store.delete(names.HINT)
    for info in list(store.list("log")):
        if names.checkpoint_number(info.path) is not None:
            store.delete(info.path)
    with pytest.raises(CorruptLog, match=lost):
        Log(store).open()
    store.put(lost, whole)
    assert Log(store).open().newest == other.newest


def test_an_exchanged_entry_breaks_the_chain(store: MemoryStore) -> None:
    whole = _folded(store)
    entry, _ = snapshot.read_entry(store, whole.number - 3) or pytest.fail("gap")
    data, _ = codec.encode_entry(
        entry.__class__(entry.number, "forged", entry.previous, "x", 0, entry.writer, entry.changes)
    )
    store.put(names.entry_path(entry.number), data)
    store.delete(names.HINT)
    with pytest.raises(CorruptLog) as error:
        Log(store).open()
    assert error.value.code == "CORRUPT_LOG_CHAIN"


def test_an_entry_that_cannot_follow_those_before_it_is_a_damaged_log(store: MemoryStore) -> None:
    whole = _folded(store)
    entry = Entry(whole.number + 1, "x", whole.digest, "delete", 0, writer(), (IndexDeleted("never_made"),))
    store.put(names.entry_path(entry.number), codec.encode_entry(entry)[0])
    with pytest.raises(CorruptLog, match=f"cannot follow entry {whole.number}: .*never_made") as damaged:
        Log(store, SimulatedClock(), writer()).open()
    assert damaged.value.code == "CORRUPT_LOG_HISTORY"


def test_what_would_break_the_log_is_not_written(store: MemoryStore) -> None:
    log = Log(store, SimulatedClock(), writer()).open()
    content = (ContentFile("data/another/x", 1),)
    with pytest.raises(CorruptLog, match=r"create was not written.*outside the folder of index new") as refused:
        log.commit("create", lambda state: [IndexCreated("new", SPEC, 99, content, FileIds.of([]))])
    assert refused.value.code == "CORRUPT_LOG_INVARIANT"
    assert "new" not in log.reload().state.indexes


def test_a_log_is_not_made_where_that_of_another_table_is(store: MemoryStore) -> None:
    with pytest.raises(
        Conflict, match=f"another table \\({TABLE.uri}\\), not of s3://b/t. Name another location="
    ) as taken:
        Log(store, SimulatedClock(), writer()).create(TableInfo("s3://b/t", "plain"))
    assert taken.value.code == "CONFLICT_OTHER_TABLE"


def test_a_newer_format_says_so_and_nothing_is_written(store: MemoryStore) -> None:
    log = Log(store, SimulatedClock(), writer()).open()
    body = {"grebe": 99, "anything": "else"}
    store.put(names.entry_path(log.newest.number + 1), codec._seal(body)[0])
    before = {o.path: o.size for o in store.list()}
    for attempt in (log.reload, lambda: register(log, "c"), Log(store).open):
        with pytest.raises(Unsupported, match="Upgrade Grebe"):
            attempt()
    assert {o.path: o.size for o in store.list()} == before
