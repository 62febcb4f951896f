"""Lookups are recorded in the background, whatever the store does, and values only where that is wanted."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.advisor.workload import blocks, record
from grebe.advisor.workload.observed import from_table
from grebe.advisor.workload.reading import predicates_of
from grebe.advisor.workload.record import RECORDER, Recorder
from grebe.clock import SimulatedClock
from grebe.config import Config
from grebe.errors import StoreRefused
from grebe.log.location import beside
from grebe.planner.observing import LookedUp, Ran, Read
from grebe.predicate.codec import from_json
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Column, Compare, In, Literal, opaque_terms
from grebe.predicate.types import STRING
from grebe.session.table import Table
from grebe.session.table import open as open_table
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore, Moment

RECORDS = Config(record_workload=True)
LATER_MS = 4_000_000_000_000
SECRET = "Rumpelstiltskin"


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "people"
    folder.mkdir()
    for number in range(4):
        ids = range(number * 10, number * 10 + 10)
        table = pa.table({"id": list(ids), "name": [f"n{n}" for n in ids], "in": [{"b": n} for n in ids]})
        pq.write_table(table, folder / f"{number}.parquet")
    return str(folder)


def opened(path: str, **settings: object) -> Table:
    return open_table(path, config=Config(record_workload=True, **settings))  # type: ignore[arg-type]  # by name


PLACE = beside("memory://t")


def looked_up(value: object = SECRET, table: str = "memory://t") -> LookedUp:
    predicate = Compare("=", Column(("name",), STRING), Literal(str(value), STRING))
    return LookedUp("scan", table, predicate, ("id",), Read(1, 4, 10, 40, None, 1), (), LATER_MS, 0.5)


def test_every_call_is_one_query_with_what_it_asked_and_read(path: str) -> None:
    table = opened(path)
    table.get("id", 7)
    table.get_many("id", [1, 2, 3], columns=["name"])
    table.scan("name LIKE 'n1%' AND id > 12", columns=["id"])
    table.files("id = 3")
    table.count("`in`.b < 5")
    table.exists("id IS NULL")
    table.rows("id = 39")
    found = table.workload()
    assert found["call"].to_pylist() == ["scan", "scan", "scan", "files", "count", "exists", "rows"]
    assert found["shape"].to_pylist() == [
        "SELECT id, name, in FROM people WHERE id = ?",
        "SELECT name FROM people WHERE id IN (?)",
        "SELECT id FROM people WHERE id > ? AND (startswith(name, ?))",
        "SELECT 1 FROM people WHERE id = ?",
        "SELECT 1 FROM people WHERE `in`.b < ?",
        "SELECT 1 FROM people WHERE id IS NULL",
        "SELECT 1 FROM people WHERE id = ?",
    ]
    assert found["columns"].to_pylist()[:3] == [["id", "name", "`in`"], ["name", "id"], ["id", "name"]]
    assert found["rows"].to_pylist()[:3] == [1, 3, 7]
    assert found["files_of"].to_pylist() == [4] * 7
    assert set(found["tables"].to_pylist()[0]) == {table.uri}
    assert found["digest"].to_pylist()[0] != found["digest"].to_pylist()[3]


def test_predicates_come_back_exactly(path: str) -> None:
    table = opened(path)
    texts = ["id = 7", "name IN ('a', 'b') OR id <=> NULL", "id < 1.5", "upper(name) = 'X' AND `in`.b >= 3"]
    for text in texts:
        table.files(text)
    stored = [scan["tree"] for scans in table.workload()["scans"].to_pylist() for scan in scans]
    assert [from_json(tree) for tree in stored] == [table._bound(text) for text in texts]


def test_predicates_are_counted_for_whoever_learns_from_them(path: str) -> None:
    table = opened(path)
    for text in ("id = 7", "id = 7", "id < 3", "TRUE"):
        table.files(text)
    known = predicates_of(table.workload(), table.uri)
    assert sorted((to_sql(predicate), count) for predicate, count in known) == [("id < 3L", 1), ("id = 7L", 2)]
    assert predicates_of(table.workload(), "file:///other") == []
    broken = table.workload().slice(0, 1)
    scans = broken["scans"].to_pylist()
    scans[0][0]["tree"] = '["Compare","=",["LaterTerm"],["Literal","wrong"]]'
    at = broken.schema.get_field_index("scans")
    assert (
        predicates_of(
            broken.set_column(at, broken.schema.field("scans"), pa.array(scans, broken.schema.field("scans").type))
        )
        == []
    )


def test_very_many_values_are_only_counted(path: str) -> None:
    table = opened(path)
    table.get_many("id", range(1001))
    table.get_many("id", range(1000))
    many, all_of_them = table.workload().to_pylist()
    assert many["predicates"] == ["id IN ((1001 values))"]
    assert many["shape"] == all_of_them["shape"] == "SELECT id, name, in FROM people WHERE id IN (?)"
    whole = from_json(all_of_them["scans"][0]["tree"])
    assert isinstance(whole, In)
    assert len(whole.values) == 1000


def test_the_nearest_are_one_query(path: str) -> None:
    table = opened(path)
    table.nearest(1, 2, 3, on=["id", "in.b"])
    assert table.workload().num_rows == 1


def test_nothing_is_recorded_unless_asked_for(path: str, tmp_path: Path) -> None:
    table = open_table(path)
    table.get("id", 7)
    assert table.workload().num_rows == 0
    assert not (tmp_path / "_grebe").exists()


def test_a_lookup_that_fails_is_none(path: str) -> None:
    table = opened(path)
    for file in Path(path).iterdir():
        file.write_bytes(b"PAR1")
    with pytest.raises(Exception):  # noqa: B017, PT011 - whichever way a file is unreadable
        table.get("id", 7)
    assert table.workload().num_rows == 0


def test_it_is_written_where_the_log_lies_or_would(path: str, tmp_path: Path) -> None:
    opened(path).get("id", 7)
    opened(path, location=str(tmp_path / "all")).get("id", 8)
    open_table(path, location=str(tmp_path / "mine"), config=RECORDS).get("id", 9)
    RECORDER.flush()
    written = {str(file.parent.relative_to(tmp_path)) for file in tmp_path.rglob("*.gix")}
    below = next((tmp_path / "all").iterdir()).name
    assert written == {"_grebe/people/workload", f"all/{below}/workload", "mine/workload"}
    elsewhere = open_table(path, location=str(tmp_path / "mine"))
    assert [one["predicates"] for one in elsewhere.workload().to_pylist()] == [["id = 7L"], ["id = 9L"]]


def test_another_process_reads_it(path: str) -> None:
    """One that ends writes what it still holds."""
    program = f"import grebe; grebe.open({path!r}).get('id', 7)"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "GREBE_RECORD_WORKLOAD": "true"})
    found = open_table(path).workload().to_pylist()
    assert [one["predicates"] for one in found] == [["id = 7L"]]
    assert not found[0]["client"].startswith(record._client())


def test_hashed_no_value_is_stored(path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = opened(path, workload_literals="hashed")
    with caplog.at_level(logging.DEBUG, "grebe.advisor"):
        for text in (
            f"name = '{SECRET}'",
            f"name IN ('a', '{SECRET}')",
            f"name LIKE '%{SECRET}%'",
            f"name LIKE '{SECRET}%'",
            f"name LIKE '%{SECRET}_x'",
            f"upper(name) = '{SECRET}'",
            f"CASE WHEN name = '{SECRET}' THEN true ELSE false END",
            f"concat(name, '{SECRET}') = 'x'",
            f"substring(name, 1, 3) = '{SECRET}'",
            "id = 987654321",
        ):
            table.files(text)
        found = table.workload()
    for file in tmp_path.rglob("_grebe/**/*"):
        if file.is_file():
            assert not any(word in _plain(file) for word in (SECRET.encode(), SECRET.upper().encode(), b"987654321"))
    assert SECRET not in caplog.text
    assert SECRET not in str(found.to_pylist())
    assert "987654321" not in str(found.to_pylist())
    assert found["hashed"].to_pylist() == [True] * 10
    first = from_json(found["scans"].to_pylist()[0][0]["tree"])
    assert len(opaque_terms(first)) == 1


def _plain(file: Path) -> bytes:
    """Uncompressed as well."""
    if file.suffix != ".gix":
        return file.read_bytes()
    table = pq.read_table(pa.BufferReader(file.read_bytes()[8:]))
    return file.read_bytes() + str(table.to_pylist()).encode()


def test_equal_values_have_equal_digests_for_all_clients_of_a_table_only(path: str, tmp_path: Path) -> None:
    for folder in ("one", "other"):
        for _ in range(2):
            table = open_table(
                path, location=str(tmp_path / folder), config=Config(record_workload=True, workload_literals="hashed")
            )
            table.files(f"name = '{SECRET}'")
            RECORDER._keys.clear()  # as another process
            RECORDER.flush()
    texts = {
        folder: {
            scan.predicate
            for one in from_table(blocks.read(LocalStore(tmp_path / folder)).queries)
            for scan in one.scans
        }
        for folder in ("one", "other")
    }
    assert len(texts["one"]) == len(texts["other"]) == 1
    assert texts["one"] != texts["other"]


def test_a_store_that_refuses_is_complained_about_once(caplog: pytest.LogCaptureFixture) -> None:
    def refusing(moment: Moment, call: str, path: str) -> None:
        raise StoreRefused("no permission")

    recorder, store = Recorder(), MemoryStore(script=refusing)
    hears = recorder.lookups(PLACE, lambda place: store, RECORDS)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            hears(looked_up())
            recorder.flush()
    assert caplog.text.count("event=workload_not_written") == 1
    assert SECRET not in caplog.text


def test_nothing_is_recorded_in_a_folder_that_holds_other_things(caplog: pytest.LogCaptureFixture) -> None:
    recorder, store = Recorder(), MemoryStore()
    store.put("letter.txt", b"mine")
    hears = recorder.lookups(PLACE, lambda place: store, RECORDS)
    with caplog.at_level(logging.WARNING):
        hears(looked_up())
        recorder.flush()
    assert [one.path for one in store.list()] == ["letter.txt"]
    assert "STORE_REFUSED_LOCATION_NOT_EMPTY" in caplog.text


def test_queries_on_a_part_of_a_table_leave_nothing_in_that_table(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    part = tmp_path / "t" / "day=1"
    part.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), part / "x.parquet")
    with caplog.at_level(logging.WARNING):
        for table in (part, part / "x.parquet"):
            open_table(str(table), config=RECORDS).files("id = 1")
            RECORDER.flush()
    assert caplog.text.count("STORE_REFUSED_LOCATION_IN_TABLE") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["day=1", "t", "x.parquet"]


def test_a_query_that_cannot_be_written_down_does_not_keep_the_others_from_it(caplog: pytest.LogCaptureFixture) -> None:
    recorder, store = Recorder(), MemoryStore()
    hears = recorder.lookups(PLACE, lambda place: store, RECORDS)
    hears(Ran(None, (), (), (), 0, 0.0))  # type: ignore[arg-type]  # wrong on purpose
    hears(looked_up())
    with caplog.at_level(logging.WARNING):
        recorder.flush()
    assert blocks.read(store).queries.num_rows == 1
    assert caplog.text.count("event=workload_query_not_recorded") == 1


def test_many_queries_are_written_without_waiting_for_the_time() -> None:
    written = threading.Event()

    def seen(moment: Moment, call: str, path: str) -> None:
        if call == "put_if_absent" and moment == "after":
            written.set()

    recorder, store = Recorder(seconds=3600), MemoryStore(script=seen)
    hears = recorder.lookups(PLACE, lambda place: store, RECORDS)
    for number in range(1100):
        hears(looked_up(number))
    assert written.wait(60)
    recorder.flush()
    assert blocks.read(store).queries.num_rows == 1100


def test_threads_lose_nothing() -> None:
    recorder, store = Recorder(seconds=0.01), MemoryStore()
    hears = recorder.lookups(PLACE, lambda place: store, RECORDS)
    threads = [threading.Thread(target=lambda: [hears(looked_up(n)) for n in range(300)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    assert blocks.read(store).queries.num_rows == 1200


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_ROOM", 10)
    recorder, store = Recorder(seconds=3600), MemoryStore()
    hears = recorder.lookups(PLACE, lambda place: store, RECORDS)
    for number in range(50):
        hears(looked_up(number))
    recorder.flush()
    assert blocks.read(store).queries.num_rows == 10


def test_blocks_of_writers_are_merged_now_and_then() -> None:
    clock = SimulatedClock(3)
    recorder, store = Recorder(clock, seconds=3600), MemoryStore(clock=clock)
    hears = recorder.lookups(PLACE, lambda place: store, Config(record_workload=True, vacuum_retention_seconds=0))
    for number in range(200):
        hears(looked_up(number))
        recorder.flush()
    assert blocks.read(store).queries.num_rows == 200
    assert len(blocks.listed(store)) < 190


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_does_not_write_what_its_parent_holds(path: str) -> None:
    program = f"""
import os, grebe
table = grebe.open({path!r})
table.get("id", 7)
child = os.fork()
if not child:
    table.get("id", 8)
    from grebe.advisor.workload.record import RECORDER
    RECORDER.flush()
    os._exit(0)
os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "GREBE_RECORD_WORKLOAD": "true"})
    found = open_table(path).workload().to_pylist()
    assert sorted(one["predicates"][0] for one in found) == ["id = 7L", "id = 8L"]
    assert len({one["client"] for one in found}) == 2


def test_what_was_recorded_can_be_forgotten(path: str) -> None:
    table = opened(path)
    table.get("id", 7)
    assert table.workload().num_rows == 1
    assert table.forget_workload() == 1
    assert table.workload().num_rows == 0
