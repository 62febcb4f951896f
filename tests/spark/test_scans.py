"""What people see in plans and in Spark's UI of the scans that Grebe changed."""

import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest

import grebe
from testbed.spark import configured
from tests.spark.served import NOT_ADAPTIVE, Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark scans")]
FILES = 5
ROWS = 400


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path) -> Served:
    def rows(number: int) -> pa.Table:
        first = number * ROWS
        ids = range(first, first + ROWS)
        return pa.table({"id": list(ids), "k": [i % 40 for i in ids], "v": [number] * ROWS, "w": [i * 7 for i in ids]})

    path = write(folder / "seen", *(rows(number) for number in range(FILES)))
    served.view("seen", path)
    served.lake.table(path).create(
        grebe.Covering("by_k", on="k", include=["v"], buckets=8),
        grebe.Covering("by_v", on="v", include=["k"], buckets=0),
        grebe.Lookup("by_id", on="id"),
        grebe.Skipping("sk", sketches=[grebe.MinMax("v"), grebe.MinMax("w")]),
    )
    served.view("few", write(folder / "few", pa.table({"id": [3, 4]})))
    write(folder / "later", rows(0))
    served.view("later", folder / "later")
    served.lake.table(str(folder / "later")).create(grebe.Covering("later_k", on="k", include=["v"], buckets=4))
    write(folder / "later", rows(1))
    served.view("later", folder / "later")
    return served


BUCKETED = ("SELECT k, sum(v) FROM seen GROUP BY k", ["by_k"], "parquet grebe: by_k, 8 of 8 buckets")


@pytest.mark.parametrize("settings", [{}, NOT_ADAPTIVE], ids=["adaptive", "not adaptive"])
@pytest.mark.parametrize(
    ("query", "used", "name"),
    [
        BUCKETED,
        ("SELECT v FROM seen WHERE k = 3", ["by_k"], "parquet grebe: by_k, 1 of 8 buckets"),
        ("SELECT k FROM seen WHERE v = 3", ["by_v"], "parquet grebe: by_v, 1 of "),
        ("SELECT * FROM seen WHERE id = 801", ["by_id"], "parquet grebe: by_id, 1 of 5 files"),
        ("SELECT * FROM seen WHERE v = 2", ["sk"], "parquet grebe: sk, 1 of 5 files"),
        ("SELECT max(v), count(*) FROM seen", ["sk"], "grebe: sk, 0 of 5 files"),
    ],
    ids=["stand-in with buckets", "one bucket", "stand-in sorted", "records", "narrowed", "answer"],
)
def test_a_scan_says_which_index_and_how_much_of_it_is_read(
    lake: Served, query: str, used: list[str], name: str, settings: dict[str, str]
) -> None:
    with configured(lake.spark, settings), lake.lake.only(*used):
        seen = lake.same(query, *used)
    assert name in seen.text


def test_several_indexes_are_named_together(lake: Served) -> None:
    with lake.lake.only("by_id", "sk"):
        seen = lake.same("SELECT * FROM seen WHERE id IN (3, 801, 1601) AND w < 7000", "by_id", "sk")
    assert "grebe: by_id and sk, " in seen.text or "grebe: sk and by_id, " in seen.text
    assert " of 5 files" in seen.text


def test_a_scan_that_waits_for_keys_says_so(lake: Served) -> None:
    with lake.lake.only("by_id"), configured(lake.spark, {"spark.sql.autoBroadcastJoinThreshold": "10MB"}):
        seen = lake.same("SELECT s.* FROM seen s JOIN few f ON s.id = f.id", "by_id")
    assert "parquet grebe: by_id, those with keys of the join" in seen.text


def test_files_beside_an_index_say_how_many_they_are(lake: Served) -> None:
    with lake.lake.only("later_k"):
        seen = lake.same("SELECT k, sum(v) FROM later GROUP BY k", "later_k")
    assert "parquet grebe: later_k, 4 of 4 buckets" in seen.text
    assert "parquet grebe: 1 file beside later_k" in seen.text


def test_the_name_is_there_before_the_query_runs(lake: Served) -> None:
    query, used, name = BUCKETED
    with lake.lake.only(*used):
        assert name in lake.frame(query)._jdf.queryExecution().toString()


def test_equal_scans_are_still_done_once(lake: Served) -> None:
    query = "SELECT max(k) FROM seen WHERE v = 2 UNION ALL SELECT max(k) FROM seen WHERE v = 2"
    with lake.lake.only("sk"):
        seen = lake.same(query, "sk")
    assert seen.text.count("FileScan") == 1, seen.text


def test_a_plan_that_was_left_alone_names_nothing_of_ours(lake: Served) -> None:
    with lake.lake.only():
        seen = lake.run("SELECT * FROM seen WHERE id = 801")
    assert "grebe" not in seen.text


def test_the_planning_of_a_query_is_told(lake: Served, caplog: pytest.LogCaptureFixture) -> None:
    with lake.lake.only("by_k"), caplog.at_level(logging.DEBUG, "grebe.spark"):
        lake.same("SELECT v FROM seen WHERE k = 3", "by_k")
    told = [line for line in caplog.messages if line.startswith("event=planning_done ")]
    assert told
    assert all(
        re.fullmatch(r"event=planning_done tables=file:\S+/seen used=by_k seconds=[\d.]+", line) for line in told
    )
