"""The ways to name a table: catalog, views, paths, parts of it. Whichever a query takes, the table's index serves it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import grebe
from testbed.spark import configured
from tests.spark.data import rows
from tests.spark.served import Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark tables")]

GROUPED = "SELECT k, count(*), sum(v) FROM {0} GROUP BY k"


@pytest.fixture(scope="module")
def catalog(served: Served, folder: Path) -> Iterator[Served]:
    spark = served.spark
    spark.sql("CREATE DATABASE nest")
    frame = spark.read.parquet(write(folder / "source", rows(900, 1), rows(600, 2)))
    frame.write.saveAsTable("nest.managed")
    frame.write.option("path", str(folder / "external")).saveAsTable("nest.external")
    frame.repartition(2).write.partitionBy("w").saveAsTable("nest.parts")
    spark.range(7).selectExpr("CAST(id AS int) AS w", "id % 3 AS g").write.saveAsTable("nest.dim")
    for name in ("managed", "external"):
        kind = grebe.Covering(f"{name}_k", on="k", include=["v", "w", "s"], buckets=4)
        served.lake.table(f"nest.{name}").create(kind)
    served.lake.table("nest.parts").create(grebe.Covering("parts_k", on="k", include=["v", "w", "s"], buckets=4))
    served.lake.table("nest.dim").create(grebe.Covering("dim_g", on="g", include="w", buckets=4))
    yield served
    spark.sql("DROP DATABASE nest CASCADE")


@pytest.mark.parametrize("name", ["managed", "external", "parts"])
def test_tables_of_the_catalog_are_served(catalog: Served, name: str) -> None:
    seen = catalog.same(GROUPED.format(f"nest.{name}"), f"{name}_k")
    assert seen.exchanges == 0


def test_a_path_is_the_table_that_the_catalog_has_there(catalog: Served, folder: Path) -> None:
    catalog.same(GROUPED.format(f"parquet.`{folder / 'external'}`"), "external_k")
    catalog.same(lambda spark: spark.read.parquet(str(folder / "external")).where("k = 5"), "external_k")


def test_views_of_any_kind_are_seen_through(catalog: Served) -> None:
    spark = catalog.spark
    spark.sql("CREATE VIEW nest.inner_view AS SELECT k, v, w + 1 AS w1 FROM nest.managed WHERE w < 6")
    spark.sql("CREATE VIEW nest.outer_view AS SELECT k AS key, v FROM nest.inner_view WHERE w1 > 1")
    spark.sql("CREATE OR REPLACE TEMP VIEW passing AS SELECT key, v FROM nest.outer_view WHERE v % 2 = 0")
    seen = catalog.same("SELECT key, sum(v) FROM passing GROUP BY key", "managed_k")
    assert seen.exchanges == 0
    catalog.same("SELECT a.v, b.w1 FROM passing a JOIN nest.inner_view b ON a.key = b.k", "managed_k")


@pytest.mark.parametrize("condition", ["w = 3", "w IN (1, 5) AND k > 50", "w > 4 OR v < 100", "w = 99"])
def test_filters_on_partitions_choose_among_the_rows_of_the_index(catalog: Served, condition: str) -> None:
    query = f"SELECT k, w, v FROM nest.parts WHERE {condition}"
    catalog.same(query, *([] if condition == "w = 99" else ["parts_k"]))


@pytest.mark.parametrize("broadcast", ["10m", "-1"])
def test_partitions_that_are_pruned_while_the_query_runs(catalog: Served, broadcast: str) -> None:
    settings = {
        "spark.sql.autoBroadcastJoinThreshold": broadcast,
        "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": str(broadcast == "10m").lower(),
    }
    query = "SELECT p.k, p.v FROM nest.parts p JOIN nest.dim d ON p.w = d.w WHERE d.g = 1"
    with configured(catalog.spark, settings):
        assert "dynamicpruning" in catalog.plain(query).text
        catalog.same(query, "parts_k", "dim_g")
        with catalog.lake.only("parts_k"):
            seen = catalog.same(query, "parts_k")
    assert "dynamicpruning" in seen.text


def test_a_part_of_a_table_is_served_by_the_index_of_the_whole(catalog: Served) -> None:
    place = str(catalog.spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:") + "/nest.db/parts"
    catalog.same(lambda spark: spark.read.parquet(f"{place}/w=3").groupBy("k").sum("v"), "parts_k")
    catalog.same(
        lambda spark: spark.read.option("basePath", place).parquet(f"{place}/w=3", f"{place}/w=5").where("k < 90"),
        "parts_k",
    )
    catalog.same(lambda spark: spark.read.parquet(f"{place}/w=[12]").groupBy("k").sum("v"), "parts_k")
    files = sorted(map(str, Path(place).glob("w=[0-4]/*.parquet")))
    catalog.same(lambda spark: spark.read.parquet(*files).groupBy("k").sum("v"), "parts_k")
    catalog.same(lambda spark: spark.read.parquet(files[0], *files).groupBy("k").sum("v"))
    twice = catalog.reasons(lambda spark: spark.read.parquet(files[0], *files).groupBy("k").sum("v"))
    assert twice == {"parts_k": "UNSUPPORTED_RELATION"}


def test_partitions_come_and_go(served: Served) -> None:
    spark = served.spark
    spark.sql("CREATE TABLE coming (k bigint, v bigint, p int) USING parquet PARTITIONED BY (p)")
    try:
        spark.sql("INSERT INTO coming SELECT id % 90, id, id % 5 FROM range(900)")
        served.lake.table("coming").create(grebe.Covering("coming_k", on="k", include=["v", "p"], buckets=4))
        spark.sql("INSERT INTO coming SELECT id % 90, id, 5 FROM range(50)")
        spark.sql("ALTER TABLE coming DROP PARTITION (p = 2)")
        assert served.same(GROUPED.format("coming"), "coming_k").exchanges == 1
        assert served.same("SELECT k, sum(v) FROM coming WHERE p < 5 GROUP BY k", "coming_k").exchanges == 0
        served.same("SELECT k, sum(v) FROM coming WHERE p = 5 GROUP BY k")
        spark.sql("INSERT OVERWRITE coming PARTITION (p = 3) SELECT id % 90, -id FROM range(70)")
        served.same("SELECT p, k, sum(v) FROM coming GROUP BY p, k", "coming_k")
    finally:
        spark.sql("DROP TABLE coming")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v FROM nest.managed WHERE k = (SELECT max(k) FROM nest.external)",
        "SELECT v, (SELECT sum(e.v) FROM nest.external e WHERE e.k = m.k) FROM nest.managed m WHERE m.w = 2",
        "SELECT v FROM nest.managed m WHERE v > (SELECT avg(e.v) FROM nest.external e WHERE e.k = m.k)",
        "SELECT v FROM nest.managed WHERE k IN (SELECT k FROM nest.external WHERE w = 1 AND v % 7 = 0)",
        "SELECT v FROM nest.managed m WHERE EXISTS (SELECT 1 FROM nest.external e WHERE e.k = m.k AND e.v < m.v)",
        "SELECT v FROM nest.managed m WHERE NOT EXISTS (SELECT 1 FROM nest.external e WHERE e.k = m.k AND e.w = 1)",
        "SELECT v FROM nest.managed WHERE k NOT IN (SELECT k FROM nest.external WHERE v < 50)",
        "SELECT v FROM nest.managed WHERE k NOT IN (SELECT k FROM nest.external WHERE v < 50 AND k IS NOT NULL)",
        "SELECT v, k IN (SELECT k FROM nest.external WHERE w = 1) FROM nest.managed WHERE w = 2",
        "SELECT (SELECT count(*) FROM nest.managed), (SELECT sum(k) FROM nest.managed), (SELECT max(k) FROM nest.external)",
        "SELECT m.v, l.n FROM nest.managed m, LATERAL (SELECT count(*) n FROM nest.external e WHERE e.k = m.k) l WHERE m.w = 1",
        "SELECT k FROM nest.managed INTERSECT SELECT k FROM nest.external WHERE v % 3 = 0",
        "SELECT k FROM nest.managed EXCEPT SELECT k FROM nest.external WHERE v % 3 = 0",
        "SELECT k, w, sum(v) FROM nest.managed WHERE v < (SELECT max(v) FROM nest.external) GROUP BY ROLLUP (k, w)",
        "WITH c AS (SELECT k, sum(v) s FROM nest.managed GROUP BY k) "
        "SELECT a.k, a.s FROM c a JOIN c b ON a.k = b.k WHERE a.s >= (SELECT avg(s) FROM c)",
    ],
)  # fmt: skip
def test_subqueries_are_served_too(catalog: Served, query: str) -> None:
    used = [name for name in ("managed_k", "external_k") if f"nest.{name[:-2]}" in query]
    catalog.same(query, *used)


def test_one_frame_used_several_times_in_a_plan(catalog: Served) -> None:
    from pyspark.sql import functions

    frame = catalog.spark.table("nest.managed")
    catalog.same(lambda spark: frame.where("k = 1").union(frame.where("k = 2")), "managed_k")
    catalog.same(lambda spark: frame.agg(functions.count("*")).union(frame.agg(functions.sum("k"))), "managed_k")
    catalog.same(lambda spark: frame.agg(functions.max("k")).union(frame.agg(functions.min("k"))), "managed_k")
    left, right = frame.alias("l"), frame.alias("r")
    catalog.same(
        lambda spark: left.join(right, functions.expr("l.k = r.k AND l.w = 1")).select("l.v", "r.w"), "managed_k"
    )


def test_count_min_and_max_of_a_whole_table_read_nothing(catalog: Served) -> None:
    seen = catalog.same("SELECT count(*), min(k), max(k) FROM nest.managed", "managed_k")
    assert not any(node.startswith("FileScan") for node in seen.nodes)
    catalog.same("SELECT count(*) + 1, max(k) FROM nest.managed HAVING count(*) > 3", "managed_k")
    catalog.same("SELECT count(*) FROM nest.managed WHERE k > 5", "managed_k")


def test_a_log_that_is_removed_and_made_anew_gives_files_other_ids(served: Served, folder: Path) -> None:
    """What a session knew of the ids of files is forgotten with the log."""
    place = folder / "again"
    write(place, *({"k": range(start, start + 300), "v": [f"v{start}"] * 300} for start in (0, 300)))
    first, _ = sorted(place.glob("*.parquet"))
    away = folder / first.name
    first.rename(away)
    kinds = grebe.Lookup("by_k", on="k"), grebe.Covering("by_v", on="v", include=["k"], buckets=2)

    def same() -> None:
        served.view("again", place)
        for key in (5, 305):
            served.same_rows(f"SELECT * FROM again WHERE k = {key}")
            served.same_rows(f"SELECT k, v FROM again WHERE v = 'v{key - 5}'")

    served.lake.table(str(place)).create(*kinds)
    same()
    away.rename(first)
    served.lake.table(str(place)).refresh()
    same()
    served.same("SELECT * FROM again WHERE k = 5", "by_k")
    shutil.rmtree(folder / "_grebe" / "again")
    served.lake.table(str(place)).create(*kinds)
    same()
    served.same("SELECT * FROM again WHERE k = 5", "by_k")
    first.unlink()
    same()
