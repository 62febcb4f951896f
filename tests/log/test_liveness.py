"""Whether an operation still runs: never unknown of this process's own, and never for good of anybody's."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import GrebeError, StoreRefused, WrongState
from grebe.log import names
from grebe.log.commit import Log
from grebe.log.entry import IndexDeleted, Verb
from grebe.log.liveness import LONGEST_LAPSE
from grebe.log.operation import begin
from grebe.maintenance.verify import leftovers
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore, Moment
from tests.log.worlds import TABLE, create, new_log, register


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


@pytest.mark.parametrize("promised", [float("inf"), float("nan"), -1.0, 0.0, 1e300, -float("inf")])
def test_no_number_in_a_log_makes_an_operation_immortal(promised: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimulatedClock()
    log = new_log(MemoryStore("log", clock), clock)
    create(log, "i")
    with monkeypatch.context() as forged:
        # As somebody else's program might write it.
        forged.setattr("grebe.log.operation._require_sensible", lambda *asked: None)
        dumps = json.dumps
        forged.setattr(json, "dumps", lambda body, **how: dumps(body, **{**how, "allow_nan": True}))
        try:
            begin(log, Verb.REFRESH, ["i"], heartbeat_seconds=promised)
        except GrebeError:
            pytest.skip("such a number is refused when it is decoded")
    clock.advance(LONGEST_LAPSE + 2)
    with begin(new_log(log.store, clock, "bob"), Verb.VACUUM, ["i"]) as mine:
        assert list(mine._log.state.operations) == [mine.id]


def test_a_heartbeat_from_the_future_is_no_sign_of_life(tmp_path: Path) -> None:
    log = Log(LocalStore(tmp_path), writer=new_log().writer).create(TABLE)
    create(log, "i")
    dead = begin(log, Verb.REFRESH, ["i"])
    dead._heartbeat._stop()  # type: ignore[misc]  # it was started
    os.utime(tmp_path / names.heartbeat_path(dead.id), (2**33, 2**33))
    with begin(log, Verb.VACUUM, ["i"]) as mine:
        assert list(log.state.operations) == [mine.id]


def test_a_fifo_in_the_place_of_an_entry_keeps_nobody_waiting(tmp_path: Path) -> None:
    log = Log(LocalStore(tmp_path)).create(TABLE)
    os.mkfifo(tmp_path / names.entry_path(log.newest.number + 1))
    for act in (lambda: Log(LocalStore(tmp_path)).open(), lambda: register(log, "a")):
        with pytest.raises(StoreRefused) as refused:
            act()
        assert refused.value.code == "STORE_REFUSED_NOT_A_FILE"
