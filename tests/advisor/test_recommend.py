"""What is recommended for a workload: it is used, it fits the budget, and on small cases no other choice is much better."""

import itertools
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.advisor.budget import budget_bytes
from grebe.advisor.recommend import choosing, recommending
from grebe.advisor.recommend.choosing import Costs, Limits, Option
from grebe.advisor.recommend.events import queries_in_events
from grebe.advisor.recommend.recommending import texts_of
from grebe.advisor.recommend.texts import Weighed, of_each_shape, without_paths
from grebe.advisor.recommend.views import views_of
from grebe.advisor.what_if import sampling
from grebe.errors import InvalidConfig, InvalidIndex, InvalidStatement
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]
FILES, ROWS = 6, 4_000


@pytest.fixture(scope="module")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("advice")
    chance = random.Random(7)
    for number in range(FILES):
        some = range(ROWS)
        sales = {
            "id": pa.array([number * ROWS + n for n in some], pa.int64()),
            "shop": pa.array([chance.randrange(600) for _ in some], pa.int32()),
            "day": pa.array([19_000 + chance.randrange(365) for _ in some], pa.int32()).cast(pa.date32()),
            "price": pa.array([chance.randrange(5_000) for _ in some], pa.int64()),
            "note": pa.array([f"note {chance.random()}" for _ in some]),
        }
        (folder / "sales").mkdir(exist_ok=True)
        pq.write_table(pa.table(sales), folder / "sales" / f"{number}.parquet")
    (folder / "shops").mkdir()
    shops = {"nr": pa.array(range(600), pa.int32()), "town": [f"town {n % 40}" for n in range(600)]}
    pq.write_table(pa.table(shops), folder / "shops" / "0.parquet")
    return folder


@pytest.fixture
def served(spark: "SparkSession", lake_folder: Path) -> Iterator[Served]:
    with serving(spark, grebe.Config(record_workload=True)) as served:
        for name in ("sales", "shops"):
            served.view(name, lake_folder / name)
        yield served


POINTS = [f"SELECT * FROM sales WHERE id = {n * 97}" for n in range(10)]
SHOPS = [f"SELECT sum(price) FROM sales WHERE shop = {n}" for n in range(10)]
BOARD = [("SELECT town, sum(price), count(*) FROM sales JOIN shops ON shop = nr GROUP BY town", 20.0)]


def test_what_is_recommended_serves_and_is_used_once_it_is_there(
    served: Served, lake_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(lake_folder / "sales", tmp_path / "sales")
    served.view("sales", tmp_path / "sales")
    found = served.lake.recommend([*POINTS, *SHOPS])
    assert found
    assert [one.predicted_gain for one in found] == sorted((one.predicted_gain for one in found), reverse=True)
    assert not (tmp_path / "_grebe" / "sales" / "log").exists(), "nothing is written"
    assert "serves" in str(found)
    table = served.lake.table(str(tmp_path / "sales"), location=str(tmp_path / "elsewhere"))
    table.create(*(one.kind for one in found if one.table == table.uri))
    for query in (POINTS[3], SHOPS[4]):
        assert served.same_rows(query).used
    for one in found:
        made = table.index(one.kind.name)
        assert 0.5 < one.predicted_bytes / made.bytes < 2, (one.kind.name, one.predicted_bytes, made.bytes)
    again = served.lake.recommend([*POINTS, *SHOPS])
    assert sum(one.predicted_gain for one in again) < 0.5 * sum(one.predicted_gain for one in found)


def test_the_budget_is_kept(served: Served) -> None:
    whole = served.lake.recommend([*POINTS, *SHOPS, *BOARD])
    size = sum(one.predicted_bytes for one in whole)
    less = served.lake.recommend([*POINTS, *SHOPS, *BOARD], budget=size // 3)
    assert sum(one.predicted_bytes for one in less) <= size // 3
    assert len(served.lake.recommend([*POINTS, *SHOPS], most=1)) == 1
    assert list(served.lake.recommend([*POINTS, *SHOPS], budget=0)) == []
    assert str(served.lake.recommend(POINTS, budget=10)) == "Nothing that would save more than it costs."
    small = served.lake.recommend([*POINTS, *SHOPS, *BOARD], objective="space")
    assert sum(one.predicted_bytes for one in small) <= size


def test_a_small_budget_has_a_part_of_the_rows_laid_out(served: Served, lake_folder: Path, tmp_path: Path) -> None:
    """That all or most queries stay within."""
    shutil.copytree(lake_folder / "sales", tmp_path / "sales")
    served.view("sales", tmp_path / "sales")
    days = [f"day >= DATE '2022-02-{n % 9 + 12}'" for n in range(40)]
    asked = [f"SELECT sum(price) FROM sales WHERE {day} AND shop < {n * 3 + 20}" for n, day in enumerate(days)]
    whole = served.lake.recommend(asked, most=1)[0].predicted_bytes
    (part,) = served.lake.recommend(asked, budget=whole // 2)
    assert isinstance(part.kind, grebe.Layout)
    assert part.kind.where == "shop < 137"
    (made,) = served.lake.table(str(tmp_path / "sales")).create(part.kind)
    assert 0.5 < part.predicted_bytes / made.bytes < 2, (part.predicted_bytes, made.bytes)
    served.same(asked[7], made.name)


def test_it_is_near_the_best_of_all_choices(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight candidates: each of their sets is tried."""
    tried: list[tuple[float, float]] = []

    def exhaustive(options: list[Option], costs: Costs, limits: Limits) -> list[Option]:
        some = options[:8]
        for part in (0.3, 0.6, 1.0):
            tight = Limits(part * sum(one.bytes for one in some), 3, float("inf"))
            sets = (chosen for count in range(4) for chosen in itertools.combinations(some, count))
            right = min(costs.total(chosen) for chosen in sets if tight.allow(chosen))
            tried.append((costs.total(choosing.best(some, costs, tight)), right))
        return []

    monkeypatch.setattr(recommending, "best", exhaustive)
    served.lake.recommend([*POINTS, *SHOPS, "SELECT count(*) FROM sales WHERE day < DATE '2022-02-01'"])
    assert len(tried) == 3
    assert all(found <= 1.05 * right for found, right in tried), tried


def test_recorded_queries_are_advised_on_like_their_texts(served: Served, lake_folder: Path) -> None:
    for query in (*POINTS[:3], *SHOPS[:3], "SELECT town, count(*) FROM sales JOIN shops ON shop = nr GROUP BY town"):
        served.run(query)
    found = served.lake.recommend()
    assert {one.table.rpartition("/")[2] for one in found} <= {"sales", "shops"}
    assert found
    fresh = grebe.attach(served.spark, grebe.Config(record_workload=True))
    fresh.met(str(lake_folder / "sales"))
    assert fresh.recommend()


def test_scans_of_an_event_log_are_advised_on(served: Served, lake_folder: Path, tmp_path: Path) -> None:
    filters = "[isnotnull(shop#3), (shop#3 = 17), (note#7 = two words), (day#4 < 2022-03-01)]"
    facts = {
        "Location": f"InMemoryFileIndex(1 paths)[file:{lake_folder}/sales]",
        "ReadSchema": "struct<shop:int,price:bigint>",
        "DataFilters": filters,
    }
    plan = {"nodeName": "HashAggregate", "children": [{"nodeName": "Scan parquet ", "metadata": facts, "children": []}]}
    event = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "sparkPlanInfo": plan}
    log = tmp_path / "events"
    log.write_text("\n".join([json.dumps(event), json.dumps(event), '{"Event": "cut sho']), encoding="utf-8")
    (query,) = queries_in_events(str(log))
    assert query.weight == 2.0
    assert query.sql == (
        f"SELECT `shop`, `price` FROM parquet.`file:{lake_folder}/sales` WHERE (shop = 17) AND (day < DATE '2022-03-01')"
    )
    assert served.lake.recommend(str(log))


def test_views_are_made_of_queries_that_group() -> None:
    day = "SELECT town, sum(price) AS s FROM sales JOIN shops ON shop = nr WHERE day = DATE '2022-01-01' GROUP BY town"
    texts = [
        day,
        "SELECT town, count(*) FROM sales JOIN shops ON shop = nr GROUP BY 1 ORDER BY 2 LIMIT 3",
        "SELECT price FROM sales",
        "SELECT count(DISTINCT price) FROM sales",
        "SELECT sum(price) FROM sales LEFT JOIN shops ON shop = nr",
        "SELECT sum(x) FROM (SELECT price AS x FROM sales)",
        "not SQL at all (",
    ]
    stored = views_of([(text, 1.5) for text in texts])
    assert [(one.sql, one.weight, one.example) for one in stored] == [
        (
            "SELECT town AS k0, day AS k1, SUM(price) AS m0, COUNT(*) AS m1 FROM sales JOIN shops ON shop = nr GROUP BY town, day",
            3.0,
            day,
        )
    ]


def test_tables_may_be_named_by_their_paths(served: Served, lake_folder: Path) -> None:
    path = f"parquet.`{lake_folder / 'sales'}`"
    board = f"SELECT day, sum(price), count(*) FROM {path} GROUP BY day"
    found = served.lake.recommend(
        [(board, 30.0), f"SELECT * FROM {path} WHERE id = 7", "SELECT 1 FROM parquet.`no/such`"]
    )
    (view,) = (one.kind for one in found if isinstance(one.kind, grebe.View))
    assert path in repr(view), "as the workload names it"
    assert not [one for one in served.spark.sql("SHOW VIEWS").collect() if one.viewName.startswith("grebe_advice")]


def test_parquet_is_sampled_without_spark(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("Spark was asked")

    monkeypatch.setattr(sampling, "_from_spark", asked)
    assert served.lake.recommend(POINTS)


def test_of_queries_that_differ_only_in_their_values_some_stand_for_all() -> None:
    points = [Weighed(f"SELECT * FROM sales WHERE id = {n}", 1.0) for n in range(90)]
    named = [Weighed(f"SELECT id FROM sales WHERE note = 'note; {n}'", 2.0) for n in range(5)]
    often = Weighed("SELECT * FROM sales WHERE id = 1000", 100.0)
    every = [*points, often, *named]
    assert of_each_shape(every, 96) == every
    found = of_each_shape(every, 16)
    assert sum(one.weight for one in found) == pytest.approx(sum(one.weight for one in every))
    assert {one.sql for one in found} >= {often.sql, *(one.sql for one in named)}
    assert len(found) <= 16
    assert sum(one.weight for one in found if one.sql == often.sql) == pytest.approx(100.0, rel=0.2)
    assert [one.sql for one in of_each_shape(every, 1)] == [often.sql], (
        "of shapes that are too many, those that weigh most"
    )


def test_paths_in_texts_are_named() -> None:
    text = "SELECT 'parquet.`a/b`', t.`x` FROM parquet.`a/b` t JOIN PARQUET . `c/d` ON true -- parquet.`a/b`\nJOIN orc.`e/f`"
    assert without_paths(text, lambda format, path: None if path == "c/d" else f"{format}_{path[0]}") == (
        "SELECT 'parquet.`a/b`', t.`x` FROM parquet_a t JOIN PARQUET . `c/d` ON true -- parquet.`a/b`\nJOIN orc_e"
    )
    assert without_paths("SELECT 'open", lambda format, path: "x") == "SELECT 'open"


def test_bad_workloads_are_refused(served: Served, tmp_path: Path) -> None:
    with pytest.raises(InvalidStatement, match=r"\[INVALID_STATEMENT_WORKLOAD\].*no query in it"):
        served.lake.recommend([])
    with pytest.raises(InvalidStatement, match="none of its 1 queries can be planned"):
        served.lake.recommend(["SELECT no_such_column FROM sales"])
    assert served.lake.recommend(["SELECT no_such_column FROM sales", *SHOPS]), "others count all the same"
    with pytest.raises(InvalidIndex, match=r"\[INVALID_INDEX_WORKLOAD\]"):
        texts_of([("SELECT 1", -1.0)])
    with pytest.raises(InvalidStatement, match=r"\[INVALID_STATEMENT_OBJECTIVE\]"):
        served.lake.recommend(SHOPS, objective="fun")
    (tmp_path / "none").write_text("nothing", encoding="utf-8")
    for path in (tmp_path / "none", tmp_path / "missing"):
        with pytest.raises(InvalidStatement, match=r"\[INVALID_STATEMENT_EVENT_LOG\]"):
            queries_in_events(str(path))


def test_budgets_are_bytes_texts_and_shares() -> None:
    assert budget_bytes(None, 100) == float("inf")
    assert (budget_bytes(7, 100), budget_bytes("1kB", 100), budget_bytes("20%", 100)) == (7, 1024, 20)
    for wrong in ("lots", -1, "20 percent", 1.5):
        with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_BUDGET\]"):
            budget_bytes(wrong, 100)
