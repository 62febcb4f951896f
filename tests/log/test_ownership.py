"""A location is one table's alone: marked before anything else is written, and refused where it holds other things."""

from pathlib import Path

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import Conflict, CorruptLog, StoreRefused
from grebe.log import codec, names
from grebe.log.commit import Log
from grebe.log.entry import TableInfo
from grebe.log.ownership import owner_of, require_apart
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore, Moment
from tests.log.worlds import TABLE, create, new_log, register, writer

OTHER = TableInfo("memory://lake/other", "plain")


def test_the_marker_is_written_before_any_other_object() -> None:
    written: list[str] = []

    def script(moment: Moment, call: str, path: str) -> None:
        if moment == "after" and call in ("put", "put_if_absent"):
            written.append(path)

    log = new_log(MemoryStore("marked first", SimulatedClock(), script))
    assert written[0] == names.MARKER
    assert owner_of(log.store) == TABLE.uri


@pytest.mark.parametrize("path", ["letter.txt", "data/part-0.parquet", "files/a", "log/notes.txt", "deep/er/x"])
def test_a_folder_that_holds_other_things_is_refused_and_nothing_is_written(path: str) -> None:
    store = MemoryStore("taken", SimulatedClock())
    store.put(path, b"mine")
    with pytest.raises(StoreRefused, match="not empty and not marked") as refused:
        new_log(store)
    assert refused.value.code == "STORE_REFUSED_LOCATION_NOT_EMPTY"
    assert [one.path for one in store.list()] == [path]


def test_what_a_process_left_that_died_while_it_took_a_folder_is_in_nobodys_way() -> None:
    store = MemoryStore("half", SimulatedClock())
    store.put(f"probe-{'0' * 32}", b"")
    store.put(f"workload/{'0' * 15}-{'0' * 15}-{'a' * 32}.gix", b"")
    assert new_log(store).state.table == TABLE


def test_a_folder_that_is_marked_for_another_table_is_refused() -> None:
    store = MemoryStore("marked", SimulatedClock())
    store.put(names.MARKER, codec.encode_marker(OTHER.uri))
    with pytest.raises(Conflict, match=r"another table \(memory://lake/other\), not of memory://lake/orders"):
        new_log(store)
    assert [one.path for one in store.list()] == [names.MARKER]


def test_a_marker_that_is_damaged_is_said_to_be_so() -> None:
    store = MemoryStore("damaged", SimulatedClock())
    store.put(names.MARKER, b"{}")
    with pytest.raises(CorruptLog, match=r"grebe\.json"):
        new_log(store)
    store.put(names.MARKER, codec._seal({"grebe": 1, "table": 7})[0])
    with pytest.raises(CorruptLog) as damaged:
        new_log(store)
    assert damaged.value.code == "CORRUPT_LOG_MARKER"


def test_a_log_without_a_marker_is_opened_and_marked_with_the_next_write() -> None:
    clock = SimulatedClock()
    store = MemoryStore("of release 0.1.0", clock)
    new_log(store, clock)
    store.delete(names.MARKER)
    opened = Log(store, clock, writer()).open()
    assert owner_of(opened.store) is None
    register(opened, "a")
    assert owner_of(opened.store) == TABLE.uri


def test_a_log_that_was_removed_and_made_anew_is_marked_anew() -> None:
    clock = SimulatedClock()
    store = MemoryStore("anew", clock)
    log = new_log(store, clock)
    for one in list(store.list()):
        store.delete(one.path)
    log.create(TABLE)
    assert owner_of(log.store) == TABLE.uri
    register(log, "a")
    create(log)


@pytest.mark.parametrize(
    ("location", "table"),
    [
        ("s3://lake/orders", "s3://lake/orders"),
        ("s3://lake/orders/index", "s3://lake/orders"),
        ("s3://lake/orders/_index", "s3://lake/orders"),
        ("s3://lake/project", "s3://lake/project/data"),
        ("s3://lake", "s3://lake/project/data"),
        ("s3://lake/index", "s3://lake"),
        ("file:///", "file:///lake/t"),
    ],
)
def test_a_location_in_the_table_or_around_it_is_refused(location: str, table: str) -> None:
    with pytest.raises(StoreRefused, match="location=") as refused:
        require_apart(location, table)
    assert refused.value.code == "STORE_REFUSED_LOCATION_OVERLAPS"


@pytest.mark.parametrize(
    ("location", "table"),
    [
        ("s3://lake/orders-index", "s3://lake/orders"),
        ("s3://lake/_grebe/orders", "s3://lake/orders"),
        ("s3://lake/_grebe/_grebe", "s3://lake"),
        ("s3://lake/orders", "s3://lake/orders-index"),
        ("s3://other/orders", "s3://lake/orders"),
    ],
)
def test_a_location_beside_the_table_is_taken(location: str, table: str) -> None:
    require_apart(location, table)


def test_a_location_that_leads_into_the_table_by_a_link_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    (table / "empty").mkdir(parents=True)
    (tmp_path / "link").symlink_to(table / "empty")
    with pytest.raises(StoreRefused, match="lies in"):
        Log(LocalStore(tmp_path / "link")).create(TableInfo(table.as_uri(), "plain"))
    assert not any((table / "empty").iterdir())
