"""Vacuum removes nothing but objects of ours: of exactly the shapes that are written, below a marker, never a file of the table."""

import os
from pathlib import Path

import pytest

from grebe.clock import SimulatedClock
from grebe.config import Config
from grebe.errors import Conflict, InvalidConfig
from grebe.files import FileList
from grebe.log import codec, names, ownership
from grebe.log.commit import Log
from grebe.log.entry import TableInfo, Verb
from grebe.log.operation import begin
from grebe.log.registration import Registry
from grebe.maintenance.delete import delete
from grebe.maintenance.garbage import Limits
from grebe.maintenance.vacuum import retention_of, vacuum
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from tests.log.worlds import create, new_log, register

DAY = 86_400.0
AT_ONCE = Limits(0)
_ID = "deadbeef" * 4


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def log(clock: SimulatedClock) -> Log:
    made = new_log(MemoryStore("log", clock), clock)
    register(made, "a", "b")
    create(made)
    return made


def everything(log: Log) -> dict[str, bytes]:
    return {one.path: log.store.get(one.path) for one in log.store.list()}


@pytest.mark.parametrize(
    "path",
    [
        "data/part-00000.parquet",
        "data/day=1/part-00000.parquet",
        "data/by_customer/notes.txt",
        "data/by_customer/3-of-7/part.gix",
        f"data/by_customer/77-{_ID}/report.parquet",
        f"data/by_customer/77-{_ID}/deeper/part.gix",
        f"data/by_customer/\u0663-{_ID}/part.gix",
        f"files/0000000000-\u0663-{_ID}.files",
        "files/invoice.pdf",
        "files/0000000009-1-dead.files",
        "alive/me",
        "probe-results.csv",
        f"mine/probe-{_ID}",
        "log/notes.txt",
        "log/1.json",
        "_temporary/0/part.parquet",
    ],
)
def test_only_names_of_the_shapes_that_are_written_are_removed(log: Log, clock: SimulatedClock, path: str) -> None:
    log.store.put(path, b"somebody's")
    clock.sleep(90 * DAY)
    vacuum(log, limits=AT_ONCE)
    assert log.store.get(path) == b"somebody's"


def test_what_a_process_left_that_died_before_it_began_goes_after_a_while(log: Log, clock: SimulatedClock) -> None:
    left = [f"probe-{_ID}", f"alive/{_ID}", f"alive/judge-{_ID}"]
    for path in left:
        log.store.put(path, b"")
    assert vacuum(log).objects == 0
    clock.sleep(900)
    assert vacuum(log).objects == len(left)
    assert not set(left) & set(everything(log))


def test_the_heartbeat_of_a_running_operation_stays_however_old(log: Log, clock: SimulatedClock) -> None:
    with begin(log, Verb.REFRESH, ["by_customer"], heartbeat_seconds=7200) as running:
        clock.sleep(3600)
        vacuum(log, limits=AT_ONCE)
        assert names.heartbeat_path(running.id) in everything(log)


def test_a_dry_run_lists_just_what_would_go_and_changes_nothing(log: Log, clock: SimulatedClock) -> None:
    delete(log, "by_customer")
    log.store.put(f"probe-{_ID}", b"")
    log.store.put("files/letter.txt", b"mine")
    running = begin(log, Verb.CREATE, ["other"], {"other": log.state.indexes["by_customer"].spec}, heartbeat_seconds=5)
    log.store.put(f"{running.folder('other')}/half.gix", b"22")
    clock.sleep(900)
    before = everything(log)
    told = vacuum(log, limits=AT_ONCE, dry_run=True)
    assert everything(log) == before
    assert told.dry_run
    assert told.indexes == ("by_customer",)
    done = vacuum(log, limits=AT_ONCE)
    assert (done.indexes, done.objects, done.bytes, done.waiting) == (
        told.indexes,
        told.objects,
        told.bytes,
        told.waiting,
    )
    gone = {f"{log.store.uri}/{path}" for path in before.keys() - everything(log).keys()}
    assert set(told.paths) == gone
    assert len(told.paths) == told.objects > 2


def test_a_dry_run_counts_what_has_to_wait(log: Log) -> None:
    delete(log, "by_customer")
    told = vacuum(log, dry_run=True)
    assert (told.indexes, told.paths, told.waiting) == (("by_customer",), (), 1)
    assert "by_customer" in log.state.indexes


def test_a_location_that_is_marked_for_another_table_is_left_alone(log: Log, clock: SimulatedClock) -> None:
    delete(log, "by_customer")
    log.store.put(names.MARKER, codec.encode_marker("memory://lake/other"))
    before = everything(log)
    fresh = Log(log.store, clock, log.writer).open()
    with pytest.raises(Conflict, match="another table"):
        vacuum(fresh, limits=AT_ONCE, dry_run=True)
    with pytest.raises(Conflict, match="another table"):
        vacuum(fresh, limits=AT_ONCE)
    assert everything(log) == before


@pytest.mark.parametrize("seconds", [0.5, 60, 3599])
def test_a_retention_of_less_than_an_hour_needs_an_explicit_override(seconds: float) -> None:
    with pytest.raises(InvalidConfig, match=r"INVALID_CONFIG_RETENTION.*less than an hour.*vacuum_retention_check"):
        retention_of(Config(vacuum_retention_seconds=seconds))
    assert retention_of(Config(vacuum_retention_seconds=seconds, vacuum_retention_check=False)).seconds == seconds


@pytest.mark.parametrize("seconds", [0, 3600, 86_400])
def test_no_retention_at_all_is_an_override_by_itself(seconds: float) -> None:
    assert retention_of(Config(vacuum_retention_seconds=seconds)).seconds == seconds


def _old_log(monkeypatch: pytest.MonkeyPatch, location: Path, table: Path) -> Log:
    """As release 0.1.0 made one: without a marker, wherever it was told to."""
    with monkeypatch.context() as patch:
        patch.setattr(ownership, "require_nothing_foreign", lambda store: None)
        patch.setattr(ownership, "require_apart", lambda location, table: None)
        made = Log(LocalStore(location)).create(TableInfo(table.as_uri(), "plain"))
    (location / names.MARKER).unlink()
    return made


def test_a_table_in_the_folder_of_a_log_of_release_0_1_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders are called as ours are; one file of it even has the exact name of one of ours."""
    table = tmp_path / "data"
    named_as_ours = table / "cov" / f"3-{_ID}" / "part.gix"
    files = [
        table / "part-0.parquet",
        table / "day=1" / "part-1.parquet",
        named_as_ours,
        tmp_path / "files" / "letter.txt",
    ]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"rows")
        os.utime(file, (1, 1))
    log = Log(_old_log(monkeypatch, tmp_path, table).store).open()
    assert vacuum(log, limits=AT_ONCE).objects == 0
    assert all(file.exists() for file in files)
    assert ownership.owner_of(log.store) == table.as_uri()


def test_a_file_of_the_table_around_a_log_of_release_0_1_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "index"
    of_table = location / "data" / "cov" / f"3-{_ID}" / "part.gix"
    left = location / "data" / "cov" / f"4-{_ID}" / "part.gix"
    for file in (of_table, left):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"rows")
        os.utime(file, (1, 1))
    log = _old_log(monkeypatch, location, tmp_path)
    path = of_table.relative_to(tmp_path).as_posix()
    Registry(log).register(FileList.build(tmp_path.as_uri(), [path], [4], [1000]))
    vacuum(log, limits=AT_ONCE)
    assert of_table.exists()
    assert not left.exists()


def test_what_lies_behind_a_link_is_not_removed(tmp_path: Path) -> None:
    home = tmp_path / "home" / f"3-{_ID}"
    home.mkdir(parents=True)
    (home / "letter.gix").write_bytes(b"private")
    os.utime(home / "letter.gix", (1, 1))
    log = Log(LocalStore(tmp_path / "log")).create(TableInfo("file:///t", "plain"))
    (tmp_path / "log" / "data").mkdir()
    (tmp_path / "log" / "data" / "cov").symlink_to(home.parent)
    told = vacuum(log, limits=AT_ONCE, dry_run=True)
    assert vacuum(log, limits=AT_ONCE).objects == told.objects == 0
    assert (home / "letter.gix").exists()
