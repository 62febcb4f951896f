"""Entries, checkpoints and hints that were forged, and sealed as real ones are: what they name is never touched.

Whoever can write to a table's `_grebe` folder can write all of it, so that nothing here is found by a checksum.
"""

import dataclasses
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import CorruptLog
from grebe.files import FileIds
from grebe.log import codec, names, snapshot
from grebe.log.commit import Log
from grebe.log.entry import (
    Change,
    ContentFile,
    ContentForgotten,
    Entry,
    FilesRegistered,
    IndexChanged,
    IndexCreated,
    IndexSpec,
    OperationBegun,
    Segment,
    TableCreated,
    TableInfo,
    TableSeen,
    Verb,
)
from grebe.log.snapshot import Snapshot
from grebe.store.memory import MemoryStore
from tests.log.worlds import SPEC, create, new_log, register, writer

SOMEWHERE_ELSE = [
    "data/i/../../../../hr/part-0.parquet",
    "data/i/..",
    "data/i/./x",
    "data/i//x",
    "data/i/%2e%2e/%2e%2e/x",
    "data/i/..%2f..%2fx",
    "data/i/..\\..\\x",
    "data/i/*",
    "data/i/{a,b}",
    "data/i/[ab]?",
    "data/i/.hidden",
    "data/i/a:b",
    "data/i/file:/etc/passwd",
    "data/i",
    "data",
    "/etc/passwd",
    "file:///etc/passwd",
    "http://169.254.169.254/latest",
    "s3://another/x",
    "log/00000000000000000000.json",
    "../hr/x",
    "data/i/a\nb",
    "data/i/a\0b",
    "",
    "data/i/" + "x" * 5_000,
    "data/i" + "/x" * 5_000,
]
THREES = "\u0663" * 20
"""A number of twenty digits, in those of Arabic."""
A_LIST = names.segment_path(2, 1, "0" * 32)


@pytest.fixture
def log() -> Log:
    log = new_log()
    register(log, "a", "b")
    create(log, "i")
    return log


def forge(log: Log, *changes: Change) -> str:
    """Put an entry behind the newest one, chained and sealed as a real one. Returns its path."""
    before = log.newest
    entry = Entry(before.number + 1, "f" * 32, before.digest, "refresh", 1_600_000_000_000, writer(), changes)
    log.store.put(names.entry_path(entry.number), codec.encode_entry(entry)[0])
    return names.entry_path(entry.number)


def is_refused(log: Log) -> CorruptLog:
    objects = {one.path: one.size for one in log.store.list()}
    with pytest.raises(CorruptLog) as refused:
        Log(log.store, SimulatedClock(), writer()).open()
    with pytest.raises(CorruptLog):
        log.reload()
    assert {one.path: one.size for one in log.store.list()} == objects
    assert "remove the table's folder under _grebe and create the indexes anew" in str(refused.value)
    return refused.value


@pytest.mark.parametrize("path", SOMEWHERE_ELSE)
def test_content_outside_the_folder_of_its_index_is_a_damaged_log(log: Log, path: str) -> None:
    forge(log, IndexChanged("i", 9, add=(ContentFile(path, 1, rows=1),)))
    assert is_refused(log).code == "CORRUPT_LOG_VALUE"


@pytest.mark.parametrize(
    "path",
    [
        f"data/lookup/\u0663-{'a' * 32}/a.gix",
        f"data/lookup/3\u0663-{'a' * 32}/a.gix",
        f"files/\u0660000000000-3-{'a' * 32}.files",
        f"files/0000000000-\u0663-{'a' * 32}.files",
        f"workload/{THREES[:15]}-{'1' * 15}-{'a' * 32}.gix",
        f"log/{THREES}.json",
        f"log/checkpoint-{THREES}.json.gz",
    ],
)
def test_a_number_in_digits_of_another_script_is_in_no_name_of_ours(path: str) -> None:
    assert not names.is_ours(path)
    assert not names.is_of_log(path)
    assert not names.is_segment(path)
    assert names.operation_of(path) is None
    assert names.owner_of_folder(path.rpartition("/")[0]) is None


def test_the_name_of_an_index_has_letters_and_digits_of_any_script() -> None:
    folder = names.version_folder("Überblick\u0663", 3, "a" * 32)
    assert names.operation_of(f"{folder}/part-00000_00000.gix") == (3, "a" * 32)
    assert names.is_content(f"{folder}/part-00000_00000.gix")
    assert names.is_removable(f"{folder}/part-00000_00000.gix")


@pytest.mark.parametrize("path", SOMEWHERE_ELSE)
def test_a_file_list_outside_of_its_folder_is_a_damaged_log(log: Log, path: str) -> None:
    forge(log, FilesRegistered(Segment(path, 2, 1, 100)))
    is_refused(log)


@pytest.mark.parametrize("name", ["..", "", ".", "a/b", "../../hr", "%2e%2e", "a\\b", "x" * 101, "a*", "-x", ".x"])
def test_a_name_that_is_no_folder_is_no_name_of_an_index(log: Log, name: str) -> None:
    forge(log, IndexCreated(name, SPEC, 9, (), FileIds.of([])))
    is_refused(log)


@pytest.mark.parametrize("id", ["../../hr/x", "", "a/b", "..", "judge-" + "0" * 32, "a" * 65])
def test_an_operation_without_an_id_of_ours_is_a_damaged_log(log: Log, id: str) -> None:
    forge(log, OperationBegun(id, Verb.REFRESH, ("i",), writer(), 60.0))
    is_refused(log)


@pytest.mark.parametrize(
    "change",
    [
        IndexChanged("i", 9, add=(ContentFile("data/another/3-x/a.gix", 1),)),
        IndexChanged("i", 9, add=(ContentFile("data/i/a", -1),)),
        IndexChanged("i", 9, add=(ContentFile("data/i/a", 1, rows=2**70),)),
        IndexChanged("i", 9, add=(ContentFile("data/i/a", 10, footer=11),)),
        IndexChanged("i", -1),
        IndexChanged("i", 9, remove=("data/i/../../x",)),
        IndexChanged("i", 9, cover=FileIds.of([2])),
        IndexCreated("j", SPEC, 9, (), FileIds.of([2**32 - 1])),
        TableSeen(FileIds.of([2**31])),
        FilesRegistered(Segment(A_LIST, 2, 2, 1)),
        FilesRegistered(Segment(A_LIST, 2, 1, -1)),
        ContentForgotten(("data/i/../../../hr",)),
        OperationBegun("0" * 32, Verb.CREATE, ("j",), writer(), 60.0),
        OperationBegun("0" * 32, Verb.CREATE, ("../j",), writer(), 60.0, {"../j": SPEC}),
    ],
    ids=str,
)
def test_what_no_writer_writes_is_a_damaged_log(log: Log, change: Change) -> None:
    forge(log, change)
    is_refused(log)


@pytest.mark.parametrize("uri", ["s3://lake/a/../b", "orders", "", "file:///lake//t", "S3://lake/t", "s3a://lake/t"])
def test_a_table_is_named_by_its_canonical_uri(uri: str) -> None:
    store = MemoryStore("log", SimulatedClock())
    entry = Entry(0, "x", "", "create table", 0, writer(), (TableCreated(TableInfo(uri, "plain")),))
    store.put(names.entry_path(0), codec.encode_entry(entry)[0])
    with pytest.raises(CorruptLog):
        Log(store, SimulatedClock(), writer()).open()


def _mutated(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, list):
        return [_mutated(one, path[1:], new) if at == path[0] else one for at, one in enumerate(value)]
    return {**value, path[0]: _mutated(value.get(path[0]), path[1:], new)}


_FORGED_STATES: list[tuple[tuple[Any, ...], Any]] = [
    (("indexes", "i", "content", 0, "path"), "data/i/../../../hr/x"),
    (("indexes", "i", "content", 0, "path"), "data/j/3-x/a.gix"),
    (("indexes", "i", "content", 0, "size"), -5),
    (("indexes", "i", "name"), "j"),
    (("indexes", "i", "state"), "GONE"),
    (("indexes", "i", "covered"), [[0, 2**32]]),
    (("indexes", "i", "covered"), [[-1, 1]]),
    (("indexes", "i", "covered"), "all"),
    (("indexes", "i", "refreshed_ms"), 10**30),
    (("segments", 0, "path"), "files/../../hr/x"),
    (("segments", 0, "count"), 7),
    (("next_file_id",), 2**40),
    (("retired",), {"../../hr": 1}),
    (("retired",), {"data/i/3-x/a.gix": -1}),
    (("operations",), {"../../x": {}}),
    (("table", "uri"), "orders"),
    (("seen",), {"files": [[0, 99]], "version": "", "at_ms": 0}),
]


@pytest.mark.parametrize("where", ["hint", "checkpoint"])
@pytest.mark.parametrize(("path", "new"), _FORGED_STATES, ids=str)
def test_a_forged_state_is_passed_over_and_the_entries_are_read(
    log: Log, where: str, path: tuple[Any, ...], new: Any
) -> None:
    whole = log.newest
    body = json.loads(gzip.decompress(log.store.get(names.HINT)).partition(b"\n")[0])
    forged = {**body, "state": _mutated(body["state"], path, new)}
    log.store.delete(names.HINT)
    target = names.HINT if where == "hint" else names.checkpoint_path(whole.number)
    log.store.put(target, gzip.compress(codec._seal(forged)[0]))
    assert Log(log.store, SimulatedClock(), writer()).open().newest == whole


@pytest.mark.parametrize("number", [-1, 2**63, 10**40, 1.5, "1", None])
def test_a_hint_with_a_number_of_no_entry_is_passed_over(log: Log, number: Any) -> None:
    whole = log.newest
    body = json.loads(gzip.decompress(log.store.get(names.HINT)).partition(b"\n")[0])
    log.store.put(names.HINT, gzip.compress(codec._seal({**body, "number": number})[0]))
    assert Log(log.store, SimulatedClock(), writer()).open().newest == whole


def test_a_state_that_was_read_entry_by_entry_breaks_no_invariant(log: Log) -> None:
    """What `broken_by` leaves out holds by the way in which changes are applied."""
    from grebe.log import invariants

    for number in range(20):
        register(log, f"more-{number}")
    reached = Snapshot()
    for number in range(log.newest.number + 1):
        found = snapshot.read_entry(log.store, number)
        assert found is not None
        reached = reached.after(*found, where="here")
        assert invariants.broken(reached.state) == []


def _dataclasses(kind: Any, seen: set[Any]) -> Iterator[Any]:
    if kind in seen or not dataclasses.is_dataclass(kind):
        return
    seen.add(kind)
    yield kind
    shape: Any = codec._shape(kind)  # type: ignore[arg-type] # a class can be hashed
    for _, hint, _ in shape:
        for inner in _inside(hint):
            yield from _dataclasses(inner, seen)


def _inside(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in getattr(hint, "__args__", ()):
        yield from _inside(argument)


def test_every_object_of_the_log_that_holds_more_than_ids_has_a_check() -> None:
    """A field that is added without a thought about who may have written it fails here."""
    from grebe.log import checks
    from grebe.log.states import TableState

    seen: set[Any] = set()
    found = [*_dataclasses(Entry, seen), *_dataclasses(TableState, seen)]
    for change in Change.__subclasses__():
        found += _dataclasses(change, seen)
    unchecked = {kind.__name__ for kind in found} - {kind.__name__ for kind in checks._CHECKS}
    assert unchecked == {"TableCreated", "FilesRegistered", "TableSeen"}, (
        "these hold nothing but objects that are checked"
    )


def test_a_spec_of_a_later_version_is_still_read(log: Log) -> None:
    spec = IndexSpec("of tomorrow", ("a",), {"anything": [1, {"deep": None}]})
    forge(log, IndexCreated("j", spec, 9, (), FileIds.of([])))
    assert log.reload().state.indexes["j"].spec == spec
