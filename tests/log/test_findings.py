"""What once went wrong, or would have: each of these broke the log before it was mended."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grebe.clock import SimulatedClock, start_id_of
from grebe.errors import Conflict, GrebeError, InvalidConfig, InvalidIndex, WrongState
from grebe.files import FileIds
from grebe.log import codec, identity, names, snapshot
from grebe.log.commit import Log
from grebe.log.entry import ContentFile, IndexChanged, IndexCreated, IndexSpec, Verb, Writer
from grebe.log.operation import begin
from grebe.log.snapshot import LONGEST_WALK
from grebe.store.local import LocalStore
from grebe.store.local_folders import Folder
from grebe.store.memory import MemoryStore
from grebe.store.protocol import OutcomeUnknown
from tests.log.worlds import SPEC, TABLE, create, new_log, register, writer


@pytest.mark.parametrize("error", [SystemExit(3), SystemExit(None), KeyboardInterrupt(), OSError(5, "x")])
def test_whatever_ends_an_operation_the_log_can_be_read_afterwards(error: BaseException) -> None:
    log = new_log()
    with pytest.raises(type(error)), begin(log, Verb.CREATE, ["i"], {"i": SPEC}):
        raise error
    assert not snapshot.newest(log.store).state.operations


@pytest.mark.parametrize("wrong", [{"table_version": 5}, {"version": "1"}, {"add": (ContentFile("data/i/x", 1.5),)}])  # type: ignore[arg-type] # wrong on purpose
def test_what_nobody_could_read_is_not_written(wrong: dict[str, object]) -> None:
    log = new_log()
    create(log, "i")
    number = log.newest.number
    with pytest.raises(InvalidIndex, match=r"\[INVALID_INDEX_FIELDS\].*nobody could read it"):
        log.commit("refresh", lambda state: [IndexChanged(**{"name": "i", "version": 1, **wrong})])  # type: ignore[arg-type] # as above
    assert log.reload().number == number


def test_a_writer_holds_the_state_that_others_read() -> None:
    log = new_log()
    properties: dict[str, tuple[int, ...]] = {"list": (1, 2)}
    spec = IndexSpec("k", ("a",), properties)
    log.commit("create", lambda state: [IndexCreated("i", spec, 1, (), FileIds.of([]))])
    properties["list"] = (3,)
    assert log.state == snapshot.newest(log.store).state
    assert log.state.indexes["i"].spec.properties == {"list": [1, 2]}


def test_a_writer_whose_log_was_removed_and_made_anew_goes_on_in_the_new_one(tmp_path: Path) -> None:
    old = new_log(LocalStore(tmp_path / "x"))
    for number in range(3):
        create(old, f"old{number}")
    shutil.rmtree(tmp_path / "x")
    new = new_log(LocalStore(tmp_path / "x"), SimulatedClock(5))
    create(new, "fresh")
    register(old, "late")
    create(new, "more")
    found = Log(LocalStore(tmp_path / "x")).open()
    assert sorted(found.state.indexes) == ["fresh", "more"]
    assert old.reload() == found.newest


def test_an_operation_of_a_removed_log_does_not_land_in_the_new_one(tmp_path: Path) -> None:
    old = new_log(LocalStore(tmp_path / "x"))
    running = begin(old, Verb.CREATE, ["i"], {"i": SPEC})
    shutil.rmtree(tmp_path / "x")
    new_log(LocalStore(tmp_path / "x"), SimulatedClock(5))
    with pytest.raises(WrongState) as ended, running:
        running.commit(lambda state: [IndexCreated("i", SPEC, running.version, (), FileIds.of([]))])
    assert ended.value.code == "WRONG_STATE_OPERATION_ENDED"


def _refreshed(log: Log, **change: FileIds) -> None:
    part = ContentFile(f"data/i/x/{log.newest.number}", 1)
    log.commit("refresh", lambda state: [IndexChanged("i", 9, add=(part,), table_version="v2", **change)])  # type: ignore[arg-type] # only sets of ids


def test_rows_of_a_file_are_never_in_two_objects_of_an_index() -> None:
    """A file vanishes, so that its rows stay in the old object; then it comes back unchanged, with its old id."""
    log = new_log()
    register(log, "a", "b")
    create(log, "i", FileIds.of([0, 1]))
    _refreshed(log, uncover=FileIds.of([0]))
    with pytest.raises(Conflict, match="holds rows of some of these files already"):
        _refreshed(log, cover=FileIds.of([0]))
    _refreshed(log, revive=FileIds.of([0]))
    assert log.state.indexes["i"].covered == FileIds.of([0, 1])
    _refreshed(log, uncover=FileIds.of([0]))
    _refreshed(log, purge=FileIds.of([0]))
    _refreshed(log, cover=FileIds.of([0]))
    index = log.state.indexes["i"]
    assert (index.covered, index.dormant) == (FileIds.of([0, 1]), FileIds.of([]))


def test_replacing_all_content_leaves_nothing_dormant() -> None:
    log = new_log()
    register(log, "a", "b")
    create(log, "i", FileIds.of([0, 1]))
    _refreshed(log, uncover=FileIds.of([0]))
    everything = tuple(c.path for c in log.state.indexes["i"].content)
    merged = ContentFile("data/i/y", 1)
    log.commit("full", lambda state: [IndexChanged("i", 9, (merged,), everything, cover=FileIds.of([0]))])
    assert log.state.indexes["i"].covered == FileIds.of([0, 1])


@pytest.mark.parametrize("stranger", [".bak", "~", "x"])
def test_foreign_names_in_the_folder_do_not_hide_a_gap(stranger: str) -> None:
    store = MemoryStore("log", SimulatedClock())
    log = new_log(store)
    register(log, "a")
    register(log, "b")
    hint = snapshot.Snapshot()
    for number in (0,):
        hint = hint.after(*(snapshot.read_entry(store, number) or pytest.fail("gap")), where="here")
    store.delete(names.entry_path(1))
    store.put(f"{names.entry_path(1)}{stranger}", b"somebody's copy")
    snapshot.write_hint(store, hint)
    with pytest.raises(GrebeError) as found:
        register(Log(store, SimulatedClock(9), writer()).open(), "c")
    assert found.value.code == "CORRUPT_LOG_GAP"


@pytest.mark.parametrize("errno", [28, 13, 30, 122])
def test_what_is_stored_is_not_called_refused(tmp_path: Path, errno: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: Folder) -> None:
        raise OSError(errno, os.strerror(errno))

    store = LocalStore(tmp_path)
    store.put("there", b"")
    monkeypatch.setattr("grebe.store.local_folders.Folder.flush", failing)
    with pytest.raises(OutcomeUnknown):
        store.put_if_absent("x", b"1")
    assert store.get("x") == b"1"


def test_a_process_of_another_user_is_alive_and_a_zombie_is_not() -> None:
    assert start_id_of(1) is not None
    assert start_id_of(os.getpid()) not in (None, "")
    assert start_id_of(2**40) is None
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert start_id_of(child.pid) is not None
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_id_of(child.pid) is None
    child.wait()


def test_the_heartbeat_stops_even_if_the_rollback_fails() -> None:
    store = MemoryStore("log", SimulatedClock())
    log = Log(store, SimulatedClock(), writer(), patience=0.1).create(TABLE)
    running = begin(log, Verb.CREATE, ["i"], {"i": SPEC})

    def broken(moment: str, call: str, path: str) -> None:
        if call == "put_if_absent":
            raise OutcomeUnknown("no answer")

    store.script = broken
    with pytest.raises(GrebeError), running:
        pass
    assert not list(store.list("alive"))


def test_a_forked_child_leaves_the_operation_of_its_parent_alone() -> None:
    log = new_log()
    running = begin(log, Verb.CREATE, ["i"], {"i": SPEC})
    running._pid += 1  # as the child of a fork sees it
    with running:
        pass
    assert running.id in log.reload().state.operations


def test_a_forked_child_writes_in_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(MemoryStore("log"))
    parent = log.writer
    monkeypatch.setattr(os, "getpid", lambda: parent.pid + 1)
    assert log.writer.pid == parent.pid + 1
    assert identity.this_writer().pid == parent.pid + 1


def test_a_hint_far_behind_does_not_cost_a_request_for_each_entry() -> None:
    store = MemoryStore("log", SimulatedClock())
    log = new_log(store)
    early = log.newest
    for number in range(150):
        create(log, f"i{number}")
    snapshot.write_hint(store, early)
    seen: list[str] = []
    store.script = lambda moment, call, path: seen.append(path) if moment == "before" else None
    assert Log(store).open().newest == log.newest
    assert len(seen) < LONGEST_WALK + 64 + 6


def test_of_two_racing_creates_whose_names_differ_in_case_one_is_refused() -> None:
    log = new_log()
    other = Log(log.store, log.clock, Writer("elsewhere", 1, "1", "bob")).open()
    begin(log, Verb.CREATE, ["idx"], {"idx": SPEC})
    with pytest.raises(InvalidIndex, match="in case only"):
        begin(other, Verb.CREATE, ["IDX"], {"IDX": SPEC})


@pytest.mark.parametrize("line", [b"\xff", b"[" * 100_000, b'{"grebe":1e999}', b"null", b'{"grebe":1,"number":1e999}'])
def test_sealed_nonsense_is_a_damaged_log(line: bytes) -> None:
    data = line + b'\n{"sha256":"%b"}\n' % hashlib.sha256(line).hexdigest().encode()
    with pytest.raises(GrebeError) as found:
        codec.decode_entry(data, "here")
    assert found.value.code.startswith("CORRUPT_LOG")


def test_begin_refuses_what_makes_no_sense() -> None:
    log = new_log()
    create(log, "i")
    for no_list_of_names in ("ab", ""):
        with pytest.raises(InvalidIndex):
            begin(log, Verb.REFRESH, no_list_of_names)
    with pytest.raises(InvalidIndex):
        begin(log, Verb.REFRESH, [])
    with pytest.raises(InvalidIndex, match="what it makes"):
        begin(log, Verb.CREATE, ["j"])
    for seconds in (0, -1, float("inf")):
        with pytest.raises(InvalidConfig):
            begin(log, Verb.REFRESH, ["i"], heartbeat_seconds=seconds)


def test_an_operation_changes_only_the_indexes_it_announced() -> None:
    log = new_log()
    create(log, "i")
    create(log, "j")
    with pytest.raises(WrongState) as refused, begin(log, Verb.REFRESH, ["i"]) as operation:
        operation.commit(lambda state: [IndexChanged("j", operation.version)])
    assert refused.value.code == "WRONG_STATE_NOT_ANNOUNCED"


def test_a_hint_that_cannot_be_written_does_not_hold_up_the_commit() -> None:
    clock = SimulatedClock()
    store = MemoryStore("log", clock)
    log = new_log(store, clock)

    def broken(moment: str, call: str, path: str) -> None:
        if path == names.HINT:
            raise OutcomeUnknown("no answer")

    store.script = broken
    started = clock.monotonic()
    register(log, "a")
    assert clock.monotonic() - started < 2
