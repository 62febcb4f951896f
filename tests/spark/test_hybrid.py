"""Stale indexes: files that were added, deleted or rewritten since. Only the rows that an index does not cover are shuffled."""

import os
from pathlib import Path

import pytest

import grebe
from testbed.spark import configured
from tests.spark.data import rows
from tests.spark.served import NOT_ADAPTIVE, Seen, Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark hybrid")]

SHUFFLES = {"appended": 1, "deleted": 0, "rewritten": 1, "everything": 1}
QUERIES = {
    "group": "SELECT k, count(*), sum(v), max(s) FROM {0} GROUP BY k",
    "window": "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) FROM {0} WHERE w < 5",
    "join": "SELECT a.v, b.v AS bv FROM {0} a JOIN fresh b ON a.k = b.k",
    "renamed": "SELECT a.x, a.v, b.v AS bv FROM (SELECT k AS x, v FROM {0}) a JOIN fresh b ON a.x = b.k",
    "outer": "SELECT a.v, b.v AS bv FROM {0} a FULL JOIN fresh b ON a.k = b.k AND a.w = b.w",
}


def _changed(place: Path, state: str) -> None:
    if state in ("deleted", "everything"):
        (place / "part-000.parquet").unlink()
    if state in ("rewritten", "everything"):
        (place / "part-001.parquet").unlink()
        write(place, rows(350, 11))
        written = max(place.iterdir(), key=os.path.getmtime)
        written.rename(place / "part-001.parquet")
    if state in ("appended", "everything"):
        write(place / "more", rows(300, 12))
        (place / "more" / "part-000.parquet").rename(place / "part-100.parquet")
        (place / "more").rmdir()


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path) -> Served:
    for name in ("fresh", *SHUFFLES):
        place = folder / name
        write(place, *(rows(300, seed) for seed in range(1, 5)))
        served.lake.table(str(place)).create(grebe.Covering(f"{name}_k", on="k", include=["w", "v", "s"], buckets=4))
        _changed(place, name)
        served.view(name, place)
    return served


def _only_what_is_not_covered(seen: Seen) -> bool:
    """Whether each shuffle is right above a scan of files that no index covers."""
    shuffles = [place for place, node in enumerate(seen.nodes) if node.startswith("Exchange ")]
    scans = [next(node for node in seen.nodes[place:] if node.startswith("FileScan")) for place in shuffles]
    return all("Location: Kept(" in scan for scan in scans)


CASES = [(state, query) for state in SHUFFLES for query in ("group", "join")]


@pytest.mark.parametrize(
    ("state", "query"), [*CASES, *(("everything", query) for query in ("window", "renamed", "outer"))]
)
def test_only_the_rows_that_are_not_covered_are_shuffled(lake: Served, state: str, query: str) -> None:
    used = [f"{state}_k", *(["fresh_k"] if "fresh" in QUERIES[query] else [])]
    seen = lake.same(QUERIES[query].format(state), *used)
    assert seen.exchanges == SHUFFLES[state], seen.text
    assert _only_what_is_not_covered(seen), seen.text


@pytest.mark.parametrize("query", ["group", "join"])
def test_the_same_without_adaptive_execution(lake: Served, query: str) -> None:
    state = "everything"
    with configured(lake.spark, NOT_ADAPTIVE):
        seen = lake.same(QUERIES[query].format(state), f"{state}_k", *(["fresh_k"] if query == "join" else []))
    assert seen.exchanges == SHUFFLES[state], seen.text
    assert _only_what_is_not_covered(seen), seen.text


@pytest.mark.parametrize(
    ("query", "shuffles"),
    [
        ("SELECT k, sum(v) FROM (SELECT * FROM appended UNION ALL SELECT * FROM everything) GROUP BY k", None),
        ("SELECT k, n FROM (SELECT k, count(*) n FROM appended GROUP BY k) UNION ALL "
         "SELECT k, sum(v) FROM everything GROUP BY k", 2),
        ("SELECT a.v, b.v AS bv FROM appended a JOIN everything b ON a.k = b.k", 2),
        ("SELECT a.v, b.v AS bv FROM everything a JOIN everything b ON a.k = b.k WHERE a.w = 1", 2),
        ("WITH c AS (SELECT k, v, w FROM appended WHERE w > 2) SELECT a.v, b.v AS bv FROM c a LEFT JOIN c b ON a.k = b.k", 2),
    ],
    ids=["union", "union of groups", "two stale sides", "self-join", "CTE used twice"],
)  # fmt: skip
def test_several_stale_scans_of_a_query_do_not_mix(lake: Served, query: str, shuffles: int | None) -> None:
    used = {f"{name}_k" for name in ("appended", "everything") if name in query}
    seen = lake.same(query, *used)
    assert shuffles is None or (seen.exchanges <= shuffles and _only_what_is_not_covered(seen)), seen.text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v FROM everything WHERE k = 7",
        "SELECT v, s FROM everything WHERE k IN (1, 2, 3) AND w <> 4",
        "SELECT v FROM everything WHERE k IS NULL",
        "SELECT k, count(*) FROM everything WHERE v < 0 GROUP BY k",
        "SELECT count(*), min(k), max(v) FROM everything",
        "SELECT v FROM everything WHERE k = (SELECT max(k) FROM appended)",
        "SELECT * FROM everything ORDER BY v, k LIMIT 20",
    ],
)
def test_filters_and_answers_count_every_row_once(lake: Served, query: str) -> None:
    lake.same(query, *(f"{name}_k" for name in ("appended", "everything") if name in query))


def test_appended_files_without_a_row_are_no_harm(served: Served, tmp_path: Path) -> None:
    place = write(tmp_path / "t", rows(300, 1), rows(300, 2))
    served.lake.table(place).create(grebe.Covering("with_empty", on="k", include="v", buckets=4))
    write(Path(place), rows(0, 3))
    served.view("with_empty", place)
    for settings in ({}, NOT_ADAPTIVE):
        with configured(served.spark, settings):
            served.same("SELECT a.v, b.v AS bv FROM with_empty a JOIN with_empty b ON a.k = b.k", "with_empty")


def test_a_frame_sees_the_files_that_were_there_when_it_was_made(served: Served, tmp_path: Path) -> None:
    place = write(tmp_path / "t", rows(300, 1), rows(300, 2))
    before = served.spark.read.parquet(place)
    served.lake.table(place).create(grebe.Covering("then_and_now", on="k", include="v", buckets=4))
    write(Path(place), rows(200, 3))
    grouped = served.same(lambda spark: before.groupBy("k").sum("v"), "then_and_now")
    assert grouped.exchanges == 0
    now = served.same(lambda spark: spark.read.parquet(place).groupBy("k").sum("v"), "then_and_now")
    assert now.exchanges == 1
    served.lake.table(place).refresh()
    fresh = served.same(lambda spark: spark.read.parquet(place).groupBy("k").sum("v"), "then_and_now")
    assert (fresh.exchanges, fresh.rows) == (0, now.rows)
    served.same(lambda spark: before.groupBy("k").sum("v"), "then_and_now")


def test_an_index_without_lineage_serves_only_while_its_files_are_there(served: Served, tmp_path: Path) -> None:
    place = write(tmp_path / "t", rows(300, 1), rows(300, 2))
    served.lake.table(place).create(grebe.Covering("no_lineage", on="k", include="v", buckets=4, lineage=False))
    query = f"SELECT k, sum(v) FROM parquet.`{place}` GROUP BY k"
    write(Path(place), rows(100, 3))
    served.same(query, "no_lineage")
    (tmp_path / "t" / "part-000.parquet").unlink()
    served.same(query)
    assert served.reasons(query) == {"no_lineage": "NO_LINEAGE"}


def test_a_partial_index_serves_what_implies_its_condition(served: Served, tmp_path: Path) -> None:
    place = write(tmp_path / "t", rows(300, 1), rows(300, 2))
    served.lake.table(place).create(grebe.Covering("some", on="k", include=["v", "w"], buckets=4, where="w > 3"))
    write(Path(place), rows(100, 3))
    served.view("partly", place)
    served.same("SELECT k, sum(v) FROM partly WHERE w > 3 GROUP BY k", "some")
    served.same("SELECT k, sum(v) FROM partly WHERE w = 5 AND v > 7 GROUP BY k", "some")
    served.same("SELECT k, sum(v) FROM partly WHERE w >= 3 GROUP BY k")
    served.same("SELECT count(*) FROM partly")
    assert served.reasons("SELECT k, sum(v) FROM partly GROUP BY k") == {"some": "PARTIAL_NOT_IMPLIED"}
