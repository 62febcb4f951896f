"""Bytes go when nobody can still be reading them, by the store's own clock; what is in use, or owned by the living, stays."""

import os
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.clock import SimulatedClock
from grebe.errors import IndexNotFound, StoreRefused, WrongState
from grebe.indexes.classic import functions
from grebe.log.commit import Log
from grebe.log.entry import ContentFile, IndexChanged, Verb
from grebe.log.operation import begin
from grebe.maintenance.cancel import cancel
from grebe.maintenance.delete import delete, restore
from grebe.maintenance.garbage import Limits
from grebe.maintenance.vacuum import vacuum
from grebe.spark.jobs import jobs_of
from grebe.store.hadoop import hadoop_store
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from grebe.store.protocol import ObjectMissing
from tests.log.worlds import SPEC, create, new_log, register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400.0
AT_ONCE = Limits(0)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def log(clock: SimulatedClock) -> Log:
    made = new_log(MemoryStore("log", clock), clock)
    register(made, "a", "b")
    create(made)
    return made


def data(log: Log) -> list[str]:
    return [one.path for one in log.store.list("data")]


def rewrite(log: Log) -> None:
    """All content of the index is replaced."""
    with begin(log, Verb.OPTIMIZE, ["by_customer"]) as running:
        added = (ContentFile(f"{running.folder('by_customer')}/new.gix", 5, rows=10),)
        log.store.put(added[0].path, b"12345")
        old = tuple(file.path for file in log.state.indexes["by_customer"].content)
        running.commit(lambda state: [IndexChanged("by_customer", running.version, added, old)])


def test_a_deleted_index_goes_for_good(log: Log) -> None:
    delete(log, "by_customer")
    found = vacuum(log, limits=AT_ONCE)
    assert (found.indexes, found.objects, found.bytes, found.waiting) == (("by_customer",), 1, 100, 0)
    assert data(log) == []
    assert not log.state.indexes
    assert not log.state.retired


def test_an_index_in_use_stays(log: Log) -> None:
    before = data(log)
    assert vacuum(log, limits=AT_ONCE).objects == 0
    assert vacuum(log, "by_customer", AT_ONCE).objects == 0
    assert data(log) == before


def test_bytes_wait_until_no_reader_can_open_them(log: Log, clock: SimulatedClock) -> None:
    delete(log, "by_customer")
    found = vacuum(log)
    assert (found.indexes, found.objects, found.waiting) == (("by_customer",), 0, 1)
    clock.sleep(DAY - 60)
    assert vacuum(log).waiting == 1
    clock.sleep(120)
    assert vacuum(log).objects == 1
    assert data(log) == []


def test_time_counts_from_the_delete_not_from_the_vacuum(log: Log, clock: SimulatedClock) -> None:
    delete(log, "by_customer")
    clock.sleep(2 * DAY)
    assert vacuum(log).objects == 1


def test_what_was_replaced_goes_and_what_replaced_it_stays(log: Log) -> None:
    rewrite(log)
    assert len(data(log)) == 2
    assert vacuum(log, limits=AT_ONCE).objects == 1
    assert data(log) == [file.path for file in log.state.indexes["by_customer"].content]


def test_one_index_is_vacuumed_by_its_name(log: Log) -> None:
    create(log, "other")
    delete(log, "by_customer")
    delete(log, "other")
    assert vacuum(log, "other", AT_ONCE).indexes == ("other",)
    assert set(log.state.indexes) == {"by_customer"}
    restore(log, "by_customer")
    assert len(data(log)) == 1


def test_an_unknown_name_is_refused(log: Log) -> None:
    with pytest.raises(IndexNotFound, match="no index nobody"):
        vacuum(log, "nobody")


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(log: Log, clock: SimulatedClock) -> None:
    with begin(log, Verb.REFRESH, ["by_customer"]) as living:
        log.store.put(f"{living.folder('by_customer')}/half.gix", b"1")
        log.store.put("data/by_customer/77-deadbeefdeadbeefdeadbeefdeadbeef/half.gix", b"22")
        log.store.put("files/0000000009-1-deadbeefdeadbeefdeadbeefdeadbeef.files", b"333")
        clock.sleep(1.0)
        found = vacuum(log, limits=AT_ONCE)
        assert found.objects == 1
        assert any(path.startswith(living.folder("by_customer")) for path in data(log))
    clock.sleep(1.0)
    # The living gave up: what it wrote has no owner now, and nobody is registering files.
    assert vacuum(log, limits=AT_ONCE).objects == 2


def test_what_an_operation_left_that_is_known_to_have_failed_goes_at_once(log: Log) -> None:
    """No entry ever named it, so nobody can be reading it."""
    with begin(log, Verb.REFRESH, ["by_customer"]) as failed:
        log.store.put(f"{failed.folder('by_customer')}/half.gix", b"1")
        log.store.put(f"{failed.folder('by_customer')}/_temporary/0/half.parquet", b"1")
    before = data(log)
    assert vacuum(log).objects == 2
    assert len(data(log)) == len(before) - 2


def test_the_young_among_leftovers_stay(log: Log) -> None:
    log.store.put("data/by_customer/77-deadbeefdeadbeefdeadbeefdeadbeef/half.gix", b"22")
    assert vacuum(log).objects == 0


def test_a_vacuumed_name_can_be_taken_again(log: Log) -> None:
    delete(log, "by_customer")
    vacuum(log, limits=AT_ONCE)
    create(log)
    assert log.state.indexes["by_customer"].state == "ACTIVE"


def test_two_vacuums_at_once_do_no_harm(log: Log, clock: SimulatedClock) -> None:
    rewrite(log)
    other = Log(log.store, clock, log.writer, patience=5.0).open()
    assert vacuum(log, limits=AT_ONCE).objects + vacuum(other, limits=AT_ONCE).objects == 1
    assert not other.reload().state.retired


def test_a_cancelled_operation_is_over_at_once(log: Log) -> None:
    with begin(log, Verb.REFRESH, ["by_customer"]) as running:
        assert [operation.verb for operation in cancel(log, "by_customer")] == [Verb.REFRESH]
        assert not log.state.operations
        with pytest.raises(WrongState, match="was ended by another process"):
            running.commit(lambda state: [IndexChanged("by_customer", running.version)])
    delete(log, "by_customer")
    assert log.state.indexes["by_customer"].state == "DELETED"


def test_a_creation_is_cancelled_by_the_name_that_it_would_have(log: Log) -> None:
    running = begin(log, Verb.CREATE, ["coming"], {"coming": SPEC})
    assert len(cancel(log, "coming")) == 1
    running.rollback("over")
    create(log, "coming")


def test_nothing_to_cancel_is_no_error_but_an_unknown_name_is(log: Log) -> None:
    assert cancel(log, "by_customer") == []
    with pytest.raises(IndexNotFound, match="no index nobody"):
        cancel(log, "nobody")


@pytest.mark.spark
@pytest.mark.core
def test_jobs_of_a_cancelled_operation_stop(spark: "SparkSession", tmp_path: Path) -> None:
    spark.range(2_000).write.parquet(str(tmp_path / "t"))
    table = grebe.attach(spark).table(str(tmp_path / "t"))
    table.create(grebe.Lookup("by_id", on="id"))
    spark.range(50).write.mode("append").parquet(str(tmp_path / "t"))
    slowly = spark.read.parquet(str(tmp_path / "t"))
    begun, failures = threading.Event(), list[BaseException]()

    def refresh() -> None:
        with begin(opened, Verb.REFRESH, ["by_id"]) as running, jobs_of(spark, running.id):
            begun.set()
            try:
                slowly.select(functions.expr("java_method('java.lang.Thread', 'sleep', 20L)")).collect()
            except Exception as problem:  # noqa: BLE001 - Spark and py4j have no common class for a job that was stopped
                failures.append(problem)

    opened = Log(LocalStore(tmp_path / "_grebe" / "t")).open()
    thread = threading.Thread(target=refresh)
    thread.start()
    assert begun.wait(60)
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.05)
    assert table.cancel("by_id") == ["refresh"]
    thread.join(60)
    assert "cancel" in str(failures[0]).lower()
    assert table.refresh()[0].files_stale == 0
    table.delete("by_id")
    assert table.vacuum().indexes == ("by_id",)


@pytest.mark.spark
def test_a_vacuum_through_spark_removes_nothing_behind_a_link(spark: "SparkSession", tmp_path: Path) -> None:
    """A link in the folder of the content leads to somebody's home, where names have the shapes of ours."""
    home = tmp_path / "home"
    letters = [
        home / "letter.txt",
        home / "cov" / f"3-{'0' * 32}" / "letter.gix",
        home / f"3-{'0' * 32}" / "letter.gix",
    ]
    for letter in letters:
        letter.parent.mkdir(parents=True, exist_ok=True)
        letter.write_bytes(b"private")
        os.utime(letter, (1, 1))
    spark.range(10).write.parquet(str(tmp_path / "t"))
    at_once = grebe.attach(spark, grebe.Config(vacuum_retention_seconds=0)).table(str(tmp_path / "t"))
    at_once.create(grebe.Lookup("by_id", on="id"))
    folder = tmp_path / "_grebe" / "t" / "data"
    (folder / "cov").symlink_to(home)
    (folder / "by_id" / f"9-{'1' * 32}").symlink_to(home)
    at_once.delete("by_id")
    assert not [path for path in at_once.vacuum(dry_run=True).paths if "letter" in path]
    assert at_once.vacuum().indexes == ("by_id",)
    assert all(letter.read_bytes() == b"private" for letter in letters)
    shutil.move(folder, tmp_path / "data")
    folder.symlink_to(home)
    at_once.vacuum()
    assert all(letter.read_bytes() == b"private" for letter in letters)


@pytest.mark.spark
def test_hadoops_local_paths_are_not_followed_either(spark: "SparkSession", tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_bytes(b"private")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "data").symlink_to(home)
    store = hadoop_store(spark, f"file:{tmp_path}/log")
    assert list(store.list()) == list(store.list("data")) == []
    for read in (store.get, store.stat):
        with pytest.raises(ObjectMissing):
            read("data/letter")
    store.delete("data/letter")
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StoreRefused):
            write("data/other", b"x")
    assert [one.name for one in home.iterdir()] == ["letter"]
