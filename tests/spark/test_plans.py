"""What indexes do to plans: no shuffle and no sort where rows lie right already, and always the same rows."""

from pathlib import Path

import pytest

import grebe
from grebe.indexes.content import parts
from testbed.spark import configured
from tests.spark.data import rows
from tests.spark.served import NOT_ADAPTIVE, Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark plans")]


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path) -> Served:
    for name, tables in {
        "facts": [rows(1500, 1), rows(1500, 2)],
        "others": [rows(800, 3), rows(700, 4)],
        "plain": [rows(600, 5)],
    }.items():
        served.view(name, write(folder / name, *tables))
    facts, others = (served.lake.table(str(folder / name)) for name in ("facts", "others"))
    facts.create(
        grebe.Covering("facts_k", on="k", include=["w", "v", "s"], buckets=8),
        grebe.Covering("facts_kw", on=["k", "w"], include=["v"], buckets=8),
        grebe.Covering("facts_3", on="k", include=["v", "s"], buckets=3),
    )
    others.create(
        grebe.Covering("others_k", on="k", include=["w", "v"], buckets=8),
        grebe.Covering("others_4", on="k", include=["v"], buckets=4),
    )
    return served


JOIN = "SELECT f.v, o.v AS ov FROM facts f JOIN others o ON f.k = o.k"


@pytest.mark.parametrize("settings", [{}, NOT_ADAPTIVE], ids=["adaptive", "not adaptive"])
def test_two_indexed_sides_are_joined_without_a_shuffle_or_a_sort(lake: Served, settings: dict[str, str]) -> None:
    with configured(lake.spark, settings), lake.lake.only("facts_k", "others_k"):
        seen = lake.same(JOIN, "facts_k", "others_k")
    assert (seen.exchanges, seen.sorts) == (0, 0), seen.text


@pytest.mark.parametrize("settings", [{}, NOT_ADAPTIVE], ids=["adaptive", "not adaptive"])
def test_one_indexed_side_lets_only_the_other_be_shuffled(lake: Served, settings: dict[str, str]) -> None:
    with configured(lake.spark, settings), lake.lake.only("facts_k"):
        seen = lake.same("SELECT f.v, p.v AS pv FROM plain p JOIN facts f ON f.k = p.k", "facts_k")
    assert (seen.exchanges, seen.sorts) == (1, 1), seen.text


@pytest.mark.parametrize("condition", ["f.k = o.k AND f.w = o.w", "f.w = o.w AND f.k = o.k"])
def test_a_join_on_more_columns_than_the_buckets_needs_no_shuffle(lake: Served, condition: str) -> None:
    with lake.lake.only("facts_k", "others_k"):
        seen = lake.same(f"SELECT f.v, o.v AS ov FROM facts f JOIN others o ON {condition}", "facts_k", "others_k")
    assert seen.exchanges == 0, seen.text


def test_an_index_that_is_sorted_by_both_keys_needs_no_sort_on_its_side(lake: Served) -> None:
    query = "SELECT f.v, o.v AS ov FROM facts f JOIN others o ON f.w = o.w AND f.k = o.k"
    with lake.lake.only("facts_kw", "others_k"):
        seen = lake.same(query, "facts_kw", "others_k")
    assert (seen.exchanges, seen.sorts) == (0, 1), seen.text


def test_a_superset_of_the_keys_with_one_indexed_side_is_one_shuffle(lake: Served) -> None:
    with lake.lake.only("facts_k"):
        seen = lake.same("SELECT f.v FROM plain p JOIN facts f ON f.w = p.w AND f.k = p.k AND f.s = p.s", "facts_k")
    assert seen.exchanges == 1, seen.text


def test_bucket_counts_with_a_common_divisor_meet_without_a_shuffle(lake: Served) -> None:
    with lake.lake.only("facts_k", "others_4"):
        seen = lake.same(JOIN, "facts_k", "others_4")
    assert (seen.exchanges, seen.sorts) == (0, 0), seen.text


def test_bucket_counts_without_a_common_divisor_are_one_shuffle(lake: Served) -> None:
    with lake.lake.only("facts_3", "others_4"):
        seen = lake.same(JOIN, "facts_3", "others_4")
    assert seen.exchanges == 1, seen.text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, sum(v), count(*), max(s) FROM facts GROUP BY k",
        "SELECT w, k, sum(v) FROM facts GROUP BY w, k",
        "SELECT DISTINCT k FROM facts",
        "SELECT k, count(DISTINCT s) FROM facts GROUP BY k",
        "SELECT v, rank() OVER (PARTITION BY k ORDER BY v) FROM facts",
        "SELECT v, sum(v) OVER (PARTITION BY k, w) FROM facts WHERE v % 3 = 0",
        "SELECT f.k, count(*), sum(o.v) FROM facts f JOIN others o ON f.k = o.k GROUP BY f.k",
        "SELECT a.v, b.v AS bv FROM facts a JOIN facts b ON a.k = b.k WHERE a.w = 1 AND b.w = 2",
        "SELECT f.v, o.v AS ov, g.v AS gv FROM facts f JOIN others o ON f.k = o.k JOIN facts g ON o.k = g.k"
        " WHERE f.w = 1 AND g.w = 2",
        "SELECT x, sum(v) FROM (SELECT k AS x, v FROM facts) GROUP BY x",
        "SELECT a.x, a.v, b.v AS bv FROM (SELECT k AS x, v FROM facts) a JOIN (SELECT k AS y, v FROM others) b ON x = y",
    ],
)
def test_grouping_and_windows_by_the_key_need_no_shuffle(lake: Served, query: str) -> None:
    used = ["facts_k", *(["others_k"] if "others" in query else [])]
    with lake.lake.only("facts_k", "others_k"):
        seen = lake.same(query, *used)
    assert seen.exchanges == 0, seen.text


def test_rows_that_lie_together_are_aggregated_once(lake: Served) -> None:
    queries = {
        "SELECT k, sum(v), count(*) FILTER (WHERE w = 2), avg(w) FROM facts GROUP BY k": 1,
        "SELECT x, w, max(v) + 1 FROM (SELECT k AS x, w, v FROM facts WHERE v % 2 = 0) GROUP BY w, x": 1,
        "SELECT k, w FROM facts GROUP BY k, w": 1,
        "SELECT w, sum(v) FROM facts GROUP BY w": 2,
        "SELECT k + 1, sum(v) FROM facts GROUP BY k + 1": 2,
    }
    for query, times in queries.items():
        with lake.lake.only("facts_k"):
            seen, expected = lake.run(query), lake.plain(query)
        assert seen.rows == expected.rows
        assert sum(node.startswith("HashAggregate") for node in seen.nodes) == times, seen.text


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
def test_every_kind_of_join_is_served(lake: Served, kind: str) -> None:
    columns = "f.v" if kind in ("LEFT SEMI", "LEFT ANTI") else "f.v, o.v AS ov"
    query = f"SELECT {columns} FROM facts f {kind} JOIN others o ON f.k = o.k AND o.v % 5 = 0"
    with lake.lake.only("facts_k", "others_k"):
        seen = lake.same(query, "facts_k", "others_k")
    assert (seen.exchanges, seen.sorts) == (0, 0), seen.text


def test_an_existence_join_is_served(lake: Served) -> None:
    query = "SELECT v FROM facts f WHERE w = 3 OR EXISTS (SELECT 1 FROM others o WHERE o.k = f.k AND o.w = 2)"
    with lake.lake.only("facts_k", "others_k"):
        seen = lake.same(query, "facts_k", "others_k")
    assert (seen.exchanges, seen.sorts) == (0, 0), seen.text


def test_nothing_of_a_plan_without_an_index_changes(lake: Served) -> None:
    query = "SELECT p.v, o.v AS ov FROM plain p JOIN others o ON p.k = o.k"
    with lake.lake.only():
        seen, expected = lake.run(query), lake.plain(query)
    assert seen.used == []
    assert [node.partition(" ")[0] for node in seen.nodes] == [node.partition(" ")[0] for node in expected.nodes]


def test_buckets_of_several_files_are_still_in_order(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_FEWEST_ROWS_PER_FILE", 40)
    monkeypatch.setattr(parts, "_FILE_BYTES", 1)
    place = write(tmp_path / "split", rows(900, 1), rows(900, 2))
    (made,) = served.lake.table(place).create(grebe.Covering("split_k", on="k", include="v", buckets=4))
    assert made.rows == 1800
    files = list((tmp_path / "_grebe" / "split" / "data" / "split_k").rglob("*.gix"))
    assert len(files) > 12
    served.view("split", place)
    seen = served.same("SELECT a.v, b.v AS bv FROM split a JOIN split b ON a.k = b.k", "split_k")
    assert (seen.exchanges, seen.sorts) == (0, 0), seen.text
