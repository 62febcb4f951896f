"""What people and programs are told about indexes and history."""

from grebe.files import FileIds
from grebe.log.describe import describe_history, describe_indexes
from grebe.log.entry import IndexDeleted, Verb
from grebe.log.operation import begin
from grebe.log.snapshot import history
from tests.log.worlds import SPEC, create, new_log, register


def test_stale_files_are_those_not_covered_and_those_that_vanished() -> None:
    log = new_log()
    register(log, "a", "b", "c", "d")
    create(log, "i", FileIds.of([0, 1, 2]))
    (info,) = describe_indexes(log.state, FileIds.of([1, 2, 3]), unregistered=5)
    assert (info.files_covered, info.files_stale) == (2, 1 + 5 + 1)
    assert (info.name, info.kind, info.columns, info.state) == ("i", "covering", ("o_custkey",), "ACTIVE")
    assert (info.rows, info.bytes, info.source_version) == (10, 100, "v1")
    assert info.properties == {"buckets": 8}
    assert info.created_at.tzinfo is not None


def test_an_index_being_created_and_operations_under_way_are_shown() -> None:
    log = new_log()
    create(log, "b")
    begin(log, Verb.CREATE, ["a"], {"a": SPEC})
    begin(log, Verb.REFRESH, ["b"])
    infos = describe_indexes(log.state, FileIds.of([]), 0)
    assert [(i.name, i.state) for i in infos] == [("a", "CREATING"), ("b", "ACTIVE")]
    assert infos[1].operations == (f"refresh by ann@host since entry {log.newest.number}",)


def test_history_tells_what_happened_in_words() -> None:
    log = new_log()
    register(log, "a", "b")
    create(log, "i")
    log.commit("delete", lambda state: [IndexDeleted("i")])
    told = describe_history(history(log.store, log.newest.number))
    assert [e.number for e in told] == [0, 1, 2, 3, 4]
    assert [e.changes for e in told] == [
        ("log of memory://lake/orders made",),
        ("2 files registered from id 0",),
        ("create of i begun",),
        ("index i created: covering on o_custkey, covers 2 files", "done"),
        ("index i deleted",),
    ]
    assert {e.writer for e in told} == {"ann@host"}
    assert [e.number for e in describe_history(history(log.store, log.newest.number, limit=2))] == [3, 4]
