"""Objects of a log that are larger, or say more, than any that Grebe writes: they are refused before they take memory or time."""

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import Conflict, CorruptLog, InvalidIndex
from grebe.files.untrusted import gunzip
from grebe.log import codec, invariants, names, snapshot
from grebe.log.commit import Log
from grebe.log.entry import Entry, IndexDropped
from grebe.log.registration import Registry
from grebe.log.snapshot import Snapshot
from grebe.log.states import TableState
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from grebe.store.protocol import ObjectInfo, ObjectTooLarge
from tests.log.worlds import create, new_log, register, writer

SPARSE = 1 << 40
"""Bytes of a file that takes none of the disk."""


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = new_log(LocalStore(tmp_path / "log"))
    register(made, "a", "b")
    create(made, "i")
    return made


def _lengthen(log: Log, path: str, tmp_path: Path) -> None:
    os.truncate(tmp_path / "log" / path, SPARSE)


def _opened(log: Log) -> Log:
    return Log(log.store, SimulatedClock(), writer()).open()


def test_an_entry_larger_than_any_is_not_read(log: Log, tmp_path: Path) -> None:
    _lengthen(log, names.entry_path(log.newest.number), tmp_path)
    with pytest.raises(CorruptLog, match="are the most") as refused:
        _opened(log)
    assert refused.value.code == "CORRUPT_LOG_SIZE"


def test_a_hint_larger_than_any_is_not_read_and_the_entries_are(log: Log, tmp_path: Path) -> None:
    (tmp_path / "log" / names.HINT).touch()
    _lengthen(log, names.HINT, tmp_path)
    assert _opened(log).newest == log.newest


def test_a_list_of_files_larger_than_the_log_says_is_not_read(log: Log, tmp_path: Path) -> None:
    _lengthen(log, log.state.segments[0].path, tmp_path)
    with pytest.raises(CorruptLog, match="are the most") as refused:
        Registry(_opened(log)).files(log.state)
    assert refused.value.code == "CORRUPT_LOG_FILE_LIST"


def test_a_marker_larger_than_any_is_not_read(log: Log, tmp_path: Path) -> None:
    _lengthen(log, names.MARKER, tmp_path)
    with pytest.raises(CorruptLog, match="are the most"):
        register(_opened(log), "c")


def test_a_store_hands_out_no_more_than_it_is_asked_for(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path / "s"), MemoryStore("s")):
        store.put("a", b"12345")
        assert store.get("a", 5) == b"12345"
        with pytest.raises(ObjectTooLarge):
            store.get("a", 4)


def _body(log: Log, **more: Any) -> dict[str, Any]:
    entry = Entry(log.newest.number + 1, "f" * 32, log.newest.digest, "refresh", 1_600_000_000_000, writer(), ())
    return {"grebe": 1, **codec._plain(entry), **more}


def _begun(number: int) -> dict[str, Any]:
    begun = {"change": "OperationBegun", "id": f"{number:032x}", "verb": "refresh", "indexes": ["i"]}
    return {**begun, "writer": codec._plain(writer()), "heartbeat_seconds": 1.0}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ([{"change": "IndexDropped", "name": "i"}] * 20_000, "20,000 changes"),
        ([_begun(number) for number in range(100)], "100 operations that begin"),
        ([{"change": "IndexChanged", "name": "i", "version": 1}] * 50, "50 changes of one index"),
    ],
    ids=["changes", "operations", "one index"],
)
def test_an_entry_of_more_changes_than_any_writer_makes_is_refused(
    log: Log, changes: list[dict[str, Any]], what: str
) -> None:
    log.store.put(names.entry_path(log.newest.number + 1), codec._seal(_body(log, changes=changes))[0])
    with pytest.raises(CorruptLog, match=what) as refused:
        _opened(log)
    assert refused.value.code == "CORRUPT_LOG_VALUE"


@pytest.mark.parametrize("part", ["operations", "indexes"])
def test_a_hint_of_more_operations_or_indexes_than_any_table_has_is_passed_over(log: Log, part: str) -> None:
    sealed = gzip.decompress(codec.encode_state(log.newest.number, log.newest.digest, log.state))
    state = json.loads(sealed.partition(b"\n")[0])
    if part == "operations":
        made = [{**_begun(number), "number": 0, "at_ms": 0} for number in range(3_000)]
        state["state"]["operations"] = {one["id"]: one for one in made}
    else:
        index = state["state"]["indexes"]["i"]
        empty = {**index, "content": []}
        state["state"]["indexes"] |= {f"i{number}": {**empty, "name": f"i{number}"} for number in range(3_000)}
    log.store.put(names.HINT, gzip.compress(codec._seal(state)[0]))
    with pytest.raises(CorruptLog, match="are the most"):
        codec.decode_state(log.store.get(names.HINT), "the hint")
    assert _opened(log).newest == log.newest


def test_many_operations_on_one_index_are_compared_by_what_they_do(log: Log) -> None:
    """Once each pair was compared."""
    made = {f"{number:032x}": _begun(number) for number in range(1_000)}
    body = {"operations": {id: {**one, "number": 0, "at_ms": 0} for id, one in made.items()}}
    assert not list(invariants.running_operations_may_run_together(codec._build(TableState, body, "a state")))
    body["operations"]["0" * 32]["verb"] = "create"
    (problem,) = invariants.running_operations_may_run_together(codec._build(TableState, body, "a state"))
    assert problem == "create and refresh run side by side on index i"


def test_an_entry_of_empty_objects_is_refused_before_it_is_parsed(log: Log) -> None:
    line = b'{"grebe":1,"changes":[%b{}]}' % (b"{}," * 2_000_000)
    sealed = b'%b\n{"sha256":"%b"}\n' % (line, hashlib.sha256(line).hexdigest().encode())
    with pytest.raises(CorruptLog, match="arrays and objects"):
        codec.decode_entry(sealed, "an entry")


def test_gzip_of_very_many_members_is_refused() -> None:
    with pytest.raises(ValueError, match="members"):
        gunzip(gzip.compress(b"") * 400_000, 1 << 20)
    assert gunzip(gzip.compress(b"a" * 100_000) * 20, 2_000_000) == b"a" * 2_000_000


def test_what_no_reader_would_take_is_not_written(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = tuple(IndexDropped(f"i{number}") for number in range(3_000))
    with pytest.raises(InvalidIndex, match=r"\[INVALID_INDEX_ENTRY\].*3,000 changes"):
        codec.encode_entry(Entry(1, "f" * 32, "", "delete", 1, writer(), changes))
    before = log.store.get(names.HINT)
    monkeypatch.setattr(codec, "_MOST_PARTS", 2)
    with pytest.raises(InvalidIndex, match="create fewer indexes at once"):
        codec.encode_entry(Entry(1, "f" * 32, "", "delete", 1, writer(), changes[:100]))
    snapshot.write_hint(log.store, Snapshot(log.newest.number, log.newest.digest, log.state))
    assert log.store.get(names.HINT) == before, "readers go on with the older hint and the entries"


def test_a_log_that_is_always_another_one_than_was_listed_is_a_conflict(tmp_path: Path) -> None:
    class Restless(LocalStore):
        """Lists an entry that is never there."""

        def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
            yield ObjectInfo(names.entry_path(5), 1, 0)

    with pytest.raises(Conflict, match="try again") as refused:
        snapshot.newest_or_empty(Restless(tmp_path))
    assert refused.value.code == "CONFLICT_LOG_CHANGES"
