"""Begin, commit, rollback: which operations may run side by side, and what the second to commit gets."""

import itertools
import threading

import pytest

from grebe.clock import SimulatedClock, SystemClock
from grebe.errors import Conflict, IndexExists, IndexNotFound, InvalidIndex, WrongState
from grebe.files import FileIds
from grebe.log import identity
from grebe.log.commit import Log
from grebe.log.entry import (
    ContentFile,
    IndexChanged,
    IndexCreated,
    IndexDeleted,
    IndexDropped,
    IndexRestored,
    IndexSpec,
    Verb,
    Writer,
)
from grebe.log.names import heartbeat_path
from grebe.log.operation import Running, begin, of_indexes_still_there, roll_back
from grebe.log.snapshot import history
from grebe.log.states import ACTIVE, DELETED, may_run_together
from grebe.store.memory import MemoryStore
from grebe.store.protocol import ObjectMissing
from tests.log.worlds import SPEC, create, new_log, register

MATRIX = """
          create delete optimize refresh repair restore vacuum
create    Y      N      N        N       N      N       N
delete    N      Y      Y        Y       Y      N       N
optimize  N      Y      Y        Y       Y      N       N
refresh   N      Y      Y        Y       Y      N       N
repair    N      Y      Y        Y       Y      N       N
restore   N      N      N        N       N      Y       N
vacuum    N      N      N        N       N      N       Y
"""


def _cells() -> list[tuple[Verb, Verb, bool]]:
    lines = [line.split() for line in MATRIX.strip().splitlines()]
    return [
        (Verb(row[0]), Verb(column), cell == "Y")
        for row in lines[1:]
        for column, cell in zip(lines[0], row[1:], strict=True)
    ]


def _log_for(verb: Verb) -> Log:
    """One in which the verb may begin on index `i`."""
    log = new_log()
    register(log, "a", "b")
    if verb is not Verb.CREATE:
        create(log, "i", FileIds.of([0]))
    if verb is Verb.RESTORE:
        log.commit("delete", lambda state: [IndexDeleted("i")])
    return log


def _begin(log: Log, verb: Verb, *names: str) -> Running:
    return begin(log, verb, names or ("i",), dict.fromkeys(names or ("i",), SPEC) if verb is Verb.CREATE else None)


def _another(log: Log, name: str = "bob@host") -> Log:
    assert isinstance(log.clock, SimulatedClock)
    writer = Writer("elsewhere too", 18, "43", name)
    return Log(log.store, log.clock, writer, patience=5.0).open()


@pytest.mark.parametrize(("first", "second", "both"), _cells())
def test_two_verbs_on_one_index_run_side_by_side_as_the_matrix_says(first: Verb, second: Verb, both: bool) -> None:
    assert may_run_together(first, second) is both
    log = _log_for(first)
    running = _begin(log, first)
    if both:
        assert _begin(_another(log), second).version == running.version + 1
    else:
        with pytest.raises(WrongState) as refused:
            _begin(_another(log), second)
        message = str(refused.value)
        assert refused.value.code == "WRONG_STATE_OPERATION_UNDER_WAY"
        assert f"{first} of i is under way" in message
        assert "ann@host" in message
        assert f"entry {running.version}" in message


@pytest.mark.parametrize(("first", "second"), [*itertools.product([Verb.CREATE, Verb.REFRESH, Verb.VACUUM], repeat=2)])
def test_verbs_on_different_indexes_always_run_side_by_side(first: Verb, second: Verb) -> None:
    log = new_log()
    for verb, name in ((first, "i"), (second, "j")):
        if verb is not Verb.CREATE:
            create(log, name, FileIds.of([]))
    one, two = _begin(log, first, "i"), _begin(_another(log), second, "j")
    one.commit(lambda state: [])
    two.commit(lambda state: [])
    assert not log.reload().state.operations


def test_of_two_creates_of_one_name_the_second_to_commit_gets_a_conflict_and_is_rolled_back() -> None:
    log, other = new_log(), None
    with _begin(log, Verb.CREATE) as mine:
        other = _another(log)
        with _begin(other, Verb.CREATE) as theirs:
            theirs.commit(lambda state: [IndexCreated("i", SPEC, theirs.version, (), FileIds.of([]))])
        with pytest.raises(Conflict, match="exists already"):
            mine.commit(lambda state: [IndexCreated("i", SPEC, mine.version, (), FileIds.of([]))])
    state = log.reload().state
    assert not state.operations
    assert state.indexes["i"].version == theirs.version


def _added(operation: Running, name: str, cover: FileIds) -> IndexChanged:
    part = ContentFile(f"{operation.folder(name)}/new.gix", 1)
    return IndexChanged(name, operation.version, add=(part,), cover=cover, table_version="v2")


def test_of_two_refreshes_that_cover_the_same_new_file_the_second_gets_a_conflict() -> None:
    log = _log_for(Verb.REFRESH)
    mine, theirs = _begin(log, Verb.REFRESH), _begin(_another(log), Verb.REFRESH)
    theirs.commit(lambda state: [_added(theirs, "i", FileIds.of([1]))])
    with pytest.raises(Conflict, match="covers some of these files already"), mine:
        mine.commit(lambda state: [_added(mine, "i", FileIds.of([1]))])
    assert log.reload().state.indexes["i"].version == theirs.version


def test_an_optimize_and_a_refresh_of_one_index_both_land() -> None:
    log = _log_for(Verb.REFRESH)
    optimize, refresh = _begin(log, Verb.OPTIMIZE), _begin(_another(log), Verb.REFRESH)
    refresh.commit(lambda state: [_added(refresh, "i", FileIds.of([1]))])
    old = log.state.indexes["i"].content[0].path
    merged = ContentFile(f"{optimize.folder('i')}/merged.gix", 1)
    optimize.commit(lambda state: [IndexChanged("i", optimize.version, add=(merged,), remove=(old,))])
    index = log.state.indexes["i"]
    assert {c.path.rsplit("/", 1)[1] for c in index.content} == {"merged.gix", "new.gix"}
    assert index.covered == FileIds.of([0, 1])
    assert index.table_version == "v2"
    assert log.state.retired == {old: log.newest.number}


def test_two_optimizes_that_replace_the_same_content_do_not_both_land() -> None:
    log = _log_for(Verb.OPTIMIZE)
    old = log.state.indexes["i"].content[0].path
    one, two = _begin(log, Verb.OPTIMIZE), _begin(_another(log), Verb.OPTIMIZE)
    one.commit(lambda state: [IndexChanged("i", one.version, remove=(old,))])
    with pytest.raises(Conflict, match="replaced meanwhile"):
        two.commit(lambda state: [IndexChanged("i", two.version, remove=(old,))])


def test_a_full_refresh_conflicts_with_an_incremental_one_that_was_first() -> None:
    log = _log_for(Verb.REFRESH)
    full, quick = _begin(log, Verb.REFRESH), _begin(_another(log), Verb.REFRESH)
    quick.commit(lambda state: [_added(quick, "i", FileIds.of([1]))])
    old = log.state.indexes["i"]
    everything = IndexChanged(
        "i", full.version, remove=(old.content[0].path,), uncover=old.covered, cover=FileIds.of([0, 1])
    )
    with pytest.raises(Conflict, match="covers some of these files already"):
        full.commit(lambda state: [everything])


def test_a_refresh_of_all_indexes_goes_on_with_the_rest_when_one_is_deleted() -> None:
    log = new_log()
    register(log, "a")
    for name in ("i", "j"):
        create(log, name, FileIds.of([]))
    refresh = _begin(log, Verb.REFRESH, "i", "j")
    changes = [_added(refresh, name, FileIds.of([0])) for name in ("i", "j")]
    with _begin(_another(log), Verb.DELETE, "i") as delete:
        delete.commit(lambda state: [IndexDeleted("i")])
    refresh.commit(lambda state: of_indexes_still_there(state, changes))
    assert {n: (i.state, len(i.covered)) for n, i in log.state.indexes.items()} == {"i": (DELETED, 0), "j": (ACTIVE, 1)}


def test_a_refresh_of_one_index_that_is_deleted_meanwhile_gets_a_conflict() -> None:
    log = _log_for(Verb.REFRESH)
    refresh = _begin(log, Verb.REFRESH)
    with _begin(_another(log), Verb.DELETE) as delete:
        delete.commit(lambda state: [IndexDeleted("i")])
    with pytest.raises(Conflict) as lost, refresh:
        refresh.commit(lambda state: of_indexes_still_there(state, [_added(refresh, "i", FileIds.of([1]))]))
    assert lost.value.code == "CONFLICT_DELETED_MEANWHILE"
    assert not log.state.operations


def test_leaving_without_a_commit_rolls_back_and_says_why() -> None:
    log = _log_for(Verb.REFRESH)
    with pytest.raises(ZeroDivisionError), _begin(log, Verb.REFRESH):
        raise ZeroDivisionError
    assert not log.reload().state.operations
    data = log.store.get(f"log/{log.newest.number:020d}.json")
    assert b'"reason":"ZeroDivisionError"' in data


def test_a_writer_that_wakes_up_after_it_was_rolled_back_finds_its_operation_ended() -> None:
    log = _log_for(Verb.REFRESH)
    sleeper = _begin(log, Verb.REFRESH)
    assert isinstance(log.clock, SimulatedClock)
    log.clock.advance(200)
    other = _another(log)
    with _begin(other, Verb.VACUUM) as vacuum:
        vacuum.commit(lambda state: [])
    with pytest.raises(WrongState) as ended, sleeper:
        sleeper.commit(lambda state: [_added(sleeper, "i", FileIds.of([1]))])
    assert ended.value.code == "WRONG_STATE_OPERATION_ENDED"
    assert log.reload().state == other.reload().state
    assert log.state.indexes["i"].covered == FileIds.of([0])


def test_a_living_operation_is_not_rolled_back() -> None:
    log = _log_for(Verb.REFRESH)
    _begin(log, Verb.REFRESH)
    assert isinstance(log.clock, SimulatedClock)
    log.clock.advance(55)
    with pytest.raises(WrongState):
        _begin(_another(log), Verb.VACUUM)


def test_a_process_of_this_machine_that_is_gone_is_dead_at_once() -> None:
    clock = SimulatedClock()
    store = MemoryStore("log", clock)
    gone = Writer(identity.process_table(), 2**22 + 1, "1", "gone@host")
    reused = Writer(identity.process_table(), identity.this_writer().pid, "not my start", "gone@host")
    for dead in (gone, reused):
        log = Log(store, clock, dead).create(new_log(store, clock).state.table or pytest.fail("no table"))
        begin(log, Verb.CREATE, ["i"], {"i": SPEC})
        with begin(Log(store, clock).open(), Verb.CREATE, ["i"], {"i": SPEC}) as mine:
            assert list(mine._log.state.operations) == [mine.id]


def test_this_very_process_is_never_taken_for_dead() -> None:
    clock = SimulatedClock()
    log = Log(MemoryStore("log", clock), clock).create(new_log().state.table or pytest.fail("no table"))
    begin(log, Verb.CREATE, ["i"], {"i": SPEC})
    begin(log, Verb.CREATE, ["i"], {"i": SPEC})
    assert len(log.state.operations) == 2


def test_the_heartbeat_beats_while_the_operation_runs_and_is_removed_after_it() -> None:
    clock = SystemClock()
    store = MemoryStore("log", clock)
    beats = threading.Event()
    seen = []

    def script(moment: str, call: str, path: str) -> None:
        if call == "put" and path.startswith("alive/") and moment == "after":
            seen.append(path)
            if len(seen) >= 4:
                beats.set()

    store.script = script
    log = Log(store, clock).create(new_log().state.table or pytest.fail("no table"))
    with begin(log, Verb.CREATE, ["i"], {"i": SPEC}, heartbeat_seconds=0.02) as operation:
        assert beats.wait(30)
        assert set(seen) == {heartbeat_path(operation.id)}
    with pytest.raises(ObjectMissing):
        store.stat(heartbeat_path(operation.id))


def test_cancelling_ends_an_operation_and_cancelling_again_does_nothing() -> None:
    log = _log_for(Verb.REFRESH)
    running = _begin(log, Verb.REFRESH)
    other = _another(log)
    number = roll_back(other, running.id, "cancelled").number
    assert roll_back(other, running.id, "cancelled").number == number
    with pytest.raises(WrongState):
        running.commit(lambda state: [])


def _beating(log: Log) -> Log:
    """The same log on a clock that runs."""
    return Log(log.store, SystemClock()).open()


def test_a_heartbeat_finds_its_operation_ended_by_another_and_stops_what_it_does() -> None:
    log = _beating(_log_for(Verb.REFRESH))
    stopped, calls = threading.Event(), list[str]()

    def stop() -> None:
        calls.append(threading.current_thread().name)
        if len(calls) >= 2:
            stopped.set()

    with begin(log, Verb.REFRESH, ["i"], heartbeat_seconds=0.04) as running:
        running.require_under_way()
        with running.stopped_by(stop):
            roll_back(Log(log.store).open(), running.id, "cancelled")
            assert stopped.wait(30), "jobs that begin later are stopped as well"
        assert threading.current_thread().name not in calls
        assert running.id in log.state.operations, "what the work itself has read stays as it is"
        with pytest.raises(WrongState) as ended:
            running.require_under_way()
    assert ended.value.code == "WRONG_STATE_OPERATION_ENDED"
    told = len(calls)
    assert [entry.action for entry in history(log.store, log.reload().number)].count("rollback") == 1
    assert len(calls) == told


def test_a_heartbeat_does_not_take_the_operations_own_commit_for_an_end() -> None:
    log = _beating(_log_for(Verb.REFRESH))
    calls: list[int] = []
    with (
        begin(log, Verb.REFRESH, ["i"], heartbeat_seconds=0.04) as running,
        running.stopped_by(lambda: calls.append(1)),
    ):
        running.commit(lambda state: [])
        running._heartbeat.beat()
        running.require_under_way()
    assert calls == []


@pytest.mark.parametrize("verb", [Verb.DELETE, Verb.OPTIMIZE, Verb.REFRESH, Verb.RESTORE, Verb.VACUUM])
def test_a_verb_on_an_index_that_is_not_there_names_those_that_are(verb: Verb) -> None:
    log = _log_for(Verb.REFRESH)
    with pytest.raises(IndexNotFound, match="there are: i"):
        _begin(log, verb, "nope")


@pytest.mark.parametrize("verb", [Verb.DELETE, Verb.OPTIMIZE, Verb.REFRESH])
def test_a_deleted_index_takes_no_verb_but_restore_and_vacuum(verb: Verb) -> None:
    log = _log_for(Verb.RESTORE)
    with pytest.raises(WrongState) as refused:
        _begin(log, verb)
    assert refused.value.code == "WRONG_STATE_IS_DELETED"
    _begin(log, Verb.RESTORE).commit(lambda state: [IndexRestored("i")])
    assert log.state.indexes["i"].state == ACTIVE


def test_an_index_that_was_not_deleted_cannot_be_restored() -> None:
    with pytest.raises(WrongState, match="restore of index i: it is ACTIVE, not DELETED; there is nothing") as refused:
        _begin(_log_for(Verb.REFRESH), Verb.RESTORE)
    assert refused.value.code == "WRONG_STATE_IS_ACTIVE"


def test_a_create_over_an_existing_index_is_refused_unless_it_replaces() -> None:
    log = _log_for(Verb.REFRESH)
    with pytest.raises(IndexExists, match="replace=True"):
        _begin(log, Verb.CREATE)
    old = log.state.indexes["i"].content[0].path
    with begin(log, Verb.CREATE, ["i"], {"i": SPEC}, replace=True) as create_again:
        made = IndexCreated("i", SPEC, create_again.version, (), FileIds.of([1]))
        create_again.commit(lambda state: [IndexDropped("i"), made])
    assert log.state.indexes["i"].covered == FileIds.of([1])
    assert old in log.state.retired


def test_names_that_differ_in_case_only_are_refused() -> None:
    log = _log_for(Verb.REFRESH)
    with pytest.raises(InvalidIndex, match="in case only"):
        _begin(log, Verb.CREATE, "I")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "-x", "a b", "a\nb", "x" * 101])
def test_a_name_that_could_not_be_a_folder_is_refused(name: str) -> None:
    log = new_log()
    with pytest.raises(InvalidIndex, match="name of a folder"):
        _begin(log, Verb.CREATE, name)
    assert not log.state.operations


def test_an_index_named_twice_is_refused() -> None:
    with pytest.raises(InvalidIndex, match="twice"):
        begin(new_log(), Verb.CREATE, ["i", "I"], {"i": SPEC, "I": SPEC})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1, 2}, object(), {1: 2}])
def test_what_is_no_json_is_refused_and_nothing_is_written(value: object) -> None:
    log = new_log()
    before = [o.path for o in log.store.list()]
    with pytest.raises(InvalidIndex, match=r"\[INVALID_INDEX_PROPERTIES\].*plain JSON data"):
        begin(log, Verb.CREATE, ["i"], {"i": IndexSpec("k", ("a",), {"p": value})})
    assert [o.path for o in log.store.list()] == before
