"""Attaching, detaching, other sessions, and what a thread says to its own queries."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import grebe
from grebe.errors import Unsupported
from tests.spark.data import rows
from tests.spark.served import Served, multiset, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark sessions")]

QUERY = "SELECT k, sum(v) FROM told GROUP BY k"
FILTERED = "SELECT s FROM told WHERE k = 7"
"""Only the wide index has all of it."""


@pytest.fixture(scope="module")
def place(served: Served, folder: Path) -> str:
    made = write(folder / "told", rows(500, 1), rows(500, 2))
    served.view("told", made)
    served.lake.table(made).create(
        grebe.Covering("wide", on="k", include=["v", "w", "s"], buckets=4),
        grebe.Covering("small", on="k", include=["v"], buckets=4),
    )
    return made


def _rules(session: Any) -> list[str]:
    methods = session._jsparkSession.experimental()
    rules = [*_items(methods.extraOptimizations()), *_items(methods.extraStrategies())]
    return [rule.getClass().getSimpleName() for rule in rules]


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))


def test_attaching_again_changes_nothing_but_the_settings(served: Served, place: str) -> None:
    before = _rules(served.spark)
    again = grebe.attach(served.spark, grebe.Config(enabled=False))
    assert _rules(served.spark) == before
    assert not served.lake.enabled
    served.same(FILTERED)
    again.enabled = True
    assert served.lake.enabled
    assert before.count("Rewriting") == 1


def test_detached_is_as_before_and_attach_brings_it_back(served: Served, place: str) -> None:
    served.same(FILTERED, "wide")
    frame = served.spark.sql(QUERY)
    frame._jdf.queryExecution().executedPlan()
    served.lake.detach()
    assert "Rewriting" not in _rules(served.spark)
    assert served.spark._jsparkSession.sessionState().sqlParser().getClass().getName().startswith("org.apache.spark")
    plain = multiset(served.spark.sql(QUERY).collect())
    assert multiset(frame.collect()) == plain
    grebe.attach(served.spark, grebe.Config(hybrid_max_appended=1.0))
    served.same(FILTERED, "wide")


def test_a_new_session_is_served_from_its_first_query(served: Served, place: str) -> None:
    other = served.spark.newSession()
    before = served.counters()
    frame = other.read.parquet(place).where("k = 5")
    got = multiset(frame.collect())
    after = served.counters()
    assert after["rewritten"] > before["rewritten"], (before, after)
    assert got == served.plain(lambda spark: spark.read.parquet(place).where("k = 5")).rows
    before = served.counters()
    multiset(other.read.parquet(place).where("k = 6").collect())
    assert served.counters()["rewritten"] == before["rewritten"] + 1


def test_a_session_is_switched_off_by_itself(served: Served, place: str) -> None:
    other = served.spark.newSession()
    lake = grebe.attach(other, grebe.Config(hybrid_max_appended=1.0))
    lake.enabled = False
    assert (lake.enabled, served.lake.enabled) == (False, True)
    before = served.counters()["rewritten"]
    other.read.parquet(place).where("k = 5").collect()
    assert served.counters()["rewritten"] == before
    served.same(FILTERED, "wide")


def test_a_hint_in_the_query_is_for_that_query(served: Served, place: str) -> None:
    served.same(QUERY.replace("SELECT", "SELECT /*+ GREBE(only wide) */"), "wide")
    served.same(QUERY.replace("SELECT", "SELECT /*+ GREBE(without small, wide) */"))
    served.same(QUERY.replace("SELECT", "SELECT /*+ REPARTITION(3), GREBE(only wide) */"), "wide")
    served.same("SELECT a.k FROM (SELECT /*+ GREBE(only small) */ k, v FROM told WHERE k > 3) a WHERE a.k < 9", "small")
    served.same(QUERY.replace("SELECT", "SELECT /*+ GREBE(only small) */"), "small")


def test_blocks_narrow_each_other(served: Served, place: str) -> None:
    with served.lake.only("wide", "small"), served.lake.without("small"):
        served.same(QUERY, "wide")
    with served.lake.only("wide"), served.lake.only("small"):
        served.same(QUERY)
    with pytest.raises(ZeroDivisionError), served.lake.only("wide"):
        raise ZeroDivisionError
    with served.lake.only("small"):
        served.same(QUERY, "small")


def test_what_a_thread_says_holds_for_that_thread_only(served: Served, place: str) -> None:
    from pyspark import inheritable_thread_target

    both = threading.Barrier(2)
    used: dict[str, Any] = {}

    def ask(name: str) -> None:
        with served.lake.only(name):
            both.wait()
            used[name] = served.lake.explain(QUERY).to_dict()["used"]
            both.wait()

    threads = [threading.Thread(target=inheritable_thread_target(ask), args=(name,)) for name in ("wide", "small")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert used == {"wide": ["wide"], "small": ["small"]}


def test_tables_that_were_met_are_listed(served: Served, place: str) -> None:
    served.run(QUERY)
    assert f"file://{place}" in served.lake.tables()
    assert "enabled=True" in repr(served.lake)


def test_a_session_without_a_jvm_is_refused_with_the_reason() -> None:
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_NO_JVM\].*attach where that server runs"):
        grebe.attach(object())  # type: ignore[arg-type]


PROGRAM = """
import sys
from pathlib import Path
import pytest
import grebe
from grebe.planner import choose as choosing
from grebe.spark import planning
from grebe.spark.java import find_java
import os
os.environ["JAVA_HOME"] = str(find_java().home)
from pyspark.sql import SparkSession
from tests.spark.served import EAGER
planning.choose = lambda *a, **n: choosing.choose(*a, **n, rates=EAGER)
folder = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR").getOrCreate()
assert "connect" in type(spark).__module__, type(spark)
spark.range(1000).selectExpr("id % 50 AS k", "id AS v").write.parquet(folder + "/t")
query = f"SELECT k, sum(v) AS s FROM parquet.`{folder}/t` GROUP BY k ORDER BY k"
plain = spark.sql(query).collect()
lake = grebe.attach(spark)
lake.table(folder + "/t").create(grebe.Covering("by_k", on="k", include="v", buckets=4))
assert spark.sql(query).collect() == plain
bridge = lake._spark._shim.bridge
import json
assert json.loads(bridge.counters())["rewritten"] >= 1, bridge.counters()
assert lake.explain(query).to_dict()["used"] == ["by_k"], str(lake.explain(query))
lake.enabled = False
before = json.loads(bridge.counters())["rewritten"]
assert spark.sql(query).collect() == plain
assert json.loads(bridge.counters())["rewritten"] == before
print("served through Connect")
spark.stop()
"""


@pytest.mark.skipif(version("pyspark") < "4", reason="PySpark 3.5 brings no server of Connect")
def test_the_connect_server_in_this_process_is_served(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False, timeout=240
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert "served through Connect" in run.stdout
