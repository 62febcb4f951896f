"""Many threads query while indexes come and go: always the right answer, no error, and nothing is left behind in the JVM."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import grebe
from tests.spark.data import rows
from tests.spark.served import Served, multiset, write

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark threads")]

QUERIES = [
    "SELECT k, sum(v) FROM busy GROUP BY k",
    "SELECT v FROM busy WHERE k = 17",
    "SELECT a.v, b.v AS bv FROM busy a JOIN busy b ON a.k = b.k WHERE a.w = 1 AND b.w = 2",
    "SELECT count(*), max(k) FROM busy",
]
KINDS = [
    grebe.Covering("busy_k", on="k", include=["v", "w"], buckets=4),
    grebe.Covering("busy_sorted", on="k", include=["v", "w"], buckets=0),
]


def _change(served: Served, place: str, over: threading.Event, rounds: int) -> None:
    try:
        for _ in range(rounds):
            table = served.lake.table(place)
            table.create(*KINDS, replace=True)
            table.refresh("busy_k", mode="full")
            table.delete("busy_sorted")
            table.restore("busy_sorted")
            table.delete("busy_k")
    finally:
        over.set()


def _ask(served: Served, query: str, expected: Any, over: threading.Event) -> int:
    asked = 0
    while not over.is_set() or asked == 0:
        assert multiset(served.spark.sql(query).collect()) == expected
        asked += 1
    return asked


def _busy(served: Served, folder: Path, rounds: int) -> int:
    place = write(folder / "busy", rows(800, 1), rows(700, 2))
    served.view("busy", place)
    expected = {query: served.plain(query).rows for query in QUERIES}
    before = served.counters()
    over = threading.Event()
    with ThreadPoolExecutor(9) as pool:
        changing = pool.submit(_change, served, place, over, rounds)
        asking = [pool.submit(_ask, served, query, expected[query], over) for query in QUERIES * 2]
        changing.result()
        asked = sum(one.result() for one in asking)
    after = served.counters()
    assert after["failed"] == before["failed"], after["last_failure"]
    assert after["rewritten"] > before["rewritten"]
    return asked


def test_eight_threads_query_while_indexes_come_and_go(served: Served, tmp_path: Path) -> None:
    assert _busy(served, tmp_path, 1) >= 8


@pytest.mark.soak
def test_eight_threads_query_for_long_while_indexes_come_and_go(served: Served, tmp_path: Path) -> None:
    assert _busy(served, tmp_path, 30) >= 200


def _held(served: Served) -> int:
    """Python objects that the JVM holds on to: each question of the rule must let go of what it used."""
    gc.collect()
    return len(served.lake._spark._shim.gateway.gateway_property.pool)


def _java_objects() -> int:
    """Objects of the JVM that Python holds on to."""
    gc.collect()
    return sum(type(one).__name__ == "JavaObject" for one in gc.get_objects())


def _asked_often(served: Served, folder: Path, times: int) -> None:
    place = write(folder / "often", rows(300, 1))
    served.view("often", place)
    served.lake.table(place).create(grebe.Covering("often_k", on="k", include=["v"], buckets=4))

    def ask(number: int) -> None:
        served.spark.sql(f"SELECT sum(v) FROM often WHERE k = {number % 400}")._jdf.queryExecution().optimizedPlan()

    for number in range(20):
        ask(number)
    held, objects, asked = _held(served), _java_objects(), served.counters()["asked"]
    for number in range(times):
        ask(number)
    assert served.counters()["asked"] == asked + times
    assert _held(served) == held
    assert _java_objects() <= objects + 20


def test_questions_leave_nothing_behind(served: Served, tmp_path: Path) -> None:
    _asked_often(served, tmp_path, 200)


@pytest.mark.soak
def test_ten_thousand_questions_leave_nothing_behind(served: Served, tmp_path: Path) -> None:
    _asked_often(served, tmp_path, 10_000)
