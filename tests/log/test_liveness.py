"""Whether an operation still runs: never unknown of this process's own, and never for good of anybody's."""

import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import CorruptLog, StoreRefused, WrongState
from grebe.log import codec, names
from grebe.log.commit import Log
from grebe.log.entry import Entry, IndexDeleted, OperationBegun, Verb
from grebe.log.liveness import LONGEST_LAPSE
from grebe.log.operation import begin
from grebe.maintenance.verify import leftovers
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore, Moment
from tests.log.worlds import TABLE, create, new_log, register, writer


def own_log(store: MemoryStore, clock: SimulatedClock) -> Log:
    """Written by this very process, under its own number."""
    log = Log(store, clock, patience=1.0).create(TABLE)
    register(log, "a")
    create(log, "i")
    return log


def no_room(wanted: Callable[[str, str], bool]) -> Callable[[Moment, str, str], None]:
    def script(moment: Moment, call: str, path: str) -> None:
        if moment == "before" and call in ("put", "put_if_absent") and wanted(call, path):
            raise StoreRefused("no room", detail="NO_ROOM")

    return script


def test_an_operation_that_ended_here_is_in_nobodys_way_though_the_log_could_not_be_told() -> None:
    clock = SimulatedClock()
    store = MemoryStore("log", clock)
    log = own_log(store, clock)
    script = store.script
    failed = begin(log, Verb.REFRESH, ["i"])
    store.put(f"{failed.folder('i')}/half.gix", b"half")
    store.script = no_room(lambda call, path: True)
    with pytest.raises(ZeroDivisionError), failed:
        raise ZeroDivisionError
    store.script = script
    assert failed.id in log.reload().state.operations
    assert leftovers(log.state, store) == [f"{failed.folder('i')}/half.gix"]
    with begin(log, Verb.VACUUM, ["i"]) as vacuum:  # may not run beside a refresh
        assert set(log.state.operations) == {vacuum.id}


def test_an_operation_whose_begin_was_stored_and_then_failed_is_in_nobodys_way() -> None:
    clock = SimulatedClock()
    store = MemoryStore("log", clock)
    log = own_log(store, clock)
    before = log.newest.number

    class Interrupted(BaseException):
        pass

    def script(moment: Moment, call: str, path: str) -> None:
        if (moment, path) == ("after", names.entry_path(before + 1)):
            store.script = lambda *call: None
            raise Interrupted

    store.script = script
    with pytest.raises(Interrupted):
        begin(log, Verb.REFRESH, ["i"])
    assert len(log.reload().state.operations) == 1
    with begin(log, Verb.DELETE, ["i"]) as delete:
        delete.commit(lambda state: [IndexDeleted("i")])
    assert not log.state.operations


def test_an_operation_whose_thread_is_gone_is_dead_and_one_of_a_living_thread_is_not() -> None:
    clock = SimulatedClock()
    store = MemoryStore("log", clock)
    log = own_log(store, clock)
    thread = threading.Thread(target=lambda: begin(log, Verb.REFRESH, ["i"]))
    thread.start()
    thread.join()
    living = begin(log, Verb.REFRESH, ["i"])
    with pytest.raises(WrongState) as refused:
        begin(log, Verb.VACUUM, ["i"])
    assert refused.value.code == "WRONG_STATE_OPERATION_UNDER_WAY"
    living.rollback("over")
    begin(log, Verb.VACUUM, ["i"]).rollback("over")
    assert not log.state.operations


def forge_begin(log: Log, promised: str) -> None:
    """Put the begin of a refresh behind the newest entry, with any number for its heartbeat, as somebody else's program might."""
    before = log.newest
    begun = OperationBegun("f" * 32, Verb.REFRESH, ("i",), writer("eve"), 4711.5)
    entry = Entry(
        before.number + 1, "e" * 32, before.digest, "refresh begin", log.clock.now_ms(), writer("eve"), (begun,)
    )
    line = codec.encode_entry(entry)[0].partition(b"\n")[0].replace(b"4711.5", promised.encode())
    seal = hashlib.sha256(line).hexdigest().encode()
    log.store.put(names.entry_path(entry.number), b'%b\n{"sha256":"%b"}\n' % (line, seal))
    log.store.put(names.heartbeat_path(begun.id), b"")


@pytest.mark.parametrize(
    "promised",
    ["Infinity", "-Infinity", "NaN", "1e999", "1e300", "-1.0", "0", "0.0", "1" + "0" * 400, "60"],
    ids=lambda text: text[:9],
)
def test_no_number_in_a_log_makes_an_operation_immortal(promised: str) -> None:
    clock = SimulatedClock()
    store = MemoryStore("log", clock)
    log = new_log(store, clock)
    create(log, "i")
    forge_begin(log, promised)
    other = Log(store, clock, writer("bob"), patience=5.0, checkpoint_every=1).open()
    register(other, "a")
    for path in (names.HINT, names.checkpoint_path(other.newest.number)):
        assert codec.decode_state(store.get(path), path)[2] == other.state
    clock.advance(LONGEST_LAPSE + 2)
    with begin(other, Verb.VACUUM, ["i"]) as mine:
        assert list(other.state.operations) == [mine.id]
    assert codec.decode_state(store.get(names.HINT), "the hint")[2] == other.state
    assert not other.state.operations


def test_a_heartbeat_from_the_future_is_no_sign_of_life(tmp_path: Path) -> None:
    log = Log(LocalStore(tmp_path), writer=new_log().writer).create(TABLE)
    create(log, "i")
    dead = begin(log, Verb.REFRESH, ["i"])
    dead._heartbeat._stop()  # type: ignore[misc]  # it was started
    os.utime(tmp_path / names.heartbeat_path(dead.id), (2**33, 2**33))
    with begin(log, Verb.VACUUM, ["i"]) as mine:
        assert list(log.state.operations) == [mine.id]


def fifo(place: Path) -> None:
    os.mkfifo(place)


def folder(place: Path) -> None:
    place.mkdir()
    (place / "inner").touch()


def socket_file(place: Path) -> None:
    os.mknod(place, stat.S_IFSOCK | 0o600)


def foreign(place: Path) -> None:
    place.write_bytes(b"foreign")


NO_HINTS = (fifo, folder, socket_file, foreign, Path.mkdir)


@pytest.mark.parametrize("make", NO_HINTS, ids=lambda make: make.__name__)
def test_what_lies_in_the_place_of_the_hint_is_in_nobodys_way(tmp_path: Path, make: Callable[[Path], None]) -> None:
    log = Log(LocalStore(tmp_path)).create(TABLE)
    register(log, "a")
    hint = tmp_path / names.HINT
    hint.unlink()
    make(hint)
    other = Log(LocalStore(tmp_path)).open()
    assert other.newest == log.newest
    register(other, "b")
    assert Log(LocalStore(tmp_path)).open().newest == log.reload() == other.newest
    assert hint.is_dir() or codec.decode_state(hint.read_bytes(), "the hint")[2] == other.state


def log_without_first_entries(place: Path) -> tuple[Log, Path]:
    """A log whose entries below its one checkpoint were removed, as vacuum does it, and that checkpoint; there is no hint."""
    log = Log(LocalStore(place), checkpoint_every=5).create(TABLE)
    while log.newest.number < 6:
        register(log, f"file {log.newest.number}")
    for number in range(4):
        (place / names.entry_path(number)).unlink()
    (place / names.HINT).unlink()
    return log, place / names.checkpoint_path(4)


@pytest.mark.parametrize("make", [*NO_HINTS, Path.touch], ids=lambda make: make.__name__)
def test_what_lies_in_the_place_of_a_checkpoint_counts_only_if_entries_are_missing(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    log, checkpoint = log_without_first_entries(tmp_path)
    whole = checkpoint.read_bytes()
    assert Log(LocalStore(tmp_path)).open().newest == log.newest
    checkpoint.unlink()
    make(checkpoint)
    for act in (lambda: Log(LocalStore(tmp_path)).open(), lambda: register(Log(LocalStore(tmp_path)), "a")):
        with pytest.raises(CorruptLog, match=f"{names.entry_path(0)} is missing") as broken:
            act()
        assert broken.value.code == "CORRUPT_LOG_GAP"
        assert ("checkpoint" in str(broken.value)) == checkpoint.is_file()
    shutil.rmtree(checkpoint) if checkpoint.is_dir() else checkpoint.unlink()
    checkpoint.write_bytes(whole)
    assert Log(LocalStore(tmp_path)).open().newest == log.newest


def test_a_hint_or_a_checkpoint_that_is_refused_counts_only_if_entries_are_missing() -> None:
    clock = SimulatedClock()
    store = MemoryStore("log", clock)
    log = Log(store, clock, writer("ann"), checkpoint_every=5).create(TABLE)
    while log.newest.number < 6:
        register(log, f"file {log.newest.number}")

    def script(moment: Moment, call: str, path: str) -> None:
        if call == "get" and path in (names.HINT, names.checkpoint_path(4)):
            raise StoreRefused(f"no permission for {path}", detail="NO_PERMISSION")

    store.script = script
    assert Log(store, clock).open().newest == log.newest
    store.delete(names.entry_path(0))
    with pytest.raises(StoreRefused, match=names.checkpoint_path(4)):
        Log(store, clock).open()


def test_a_fifo_in_the_place_of_an_entry_keeps_nobody_waiting(tmp_path: Path) -> None:
    log = Log(LocalStore(tmp_path)).create(TABLE)
    os.mkfifo(tmp_path / names.entry_path(log.newest.number + 1))
    for act in (lambda: Log(LocalStore(tmp_path)).open(), lambda: register(log, "a")):
        with pytest.raises(StoreRefused) as refused:
            act()
        assert refused.value.code == "STORE_REFUSED_NOT_A_FILE"
