"""Queries of a real Spark session are recorded once they have run: each once, with what it did and read."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.predicate.codec import from_json
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Compare, walk
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
RECORDS = grebe.Config(record_workload=True, hybrid_max_appended=1.0, hybrid_max_deleted=1.0)


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, RECORDS) as made:
        yield made


@pytest.fixture
def orders(served: Served, tmp_path: Path) -> str:
    """Four files of ten orders each, and a view of that name."""
    parts = [range(first, first + 10) for first in range(0, 40, 10)]
    files = [{"id": list(part), "day": [n % 7 for n in part], "price": [n / 4 for n in part]} for part in parts]
    path = write(tmp_path / "orders", *files)
    served.view("orders", path)
    return path


@pytest.fixture
def items(served: Served, tmp_path: Path) -> str:
    path = write(tmp_path / "items", {"oid": [n % 40 for n in range(120)], "item": list(range(120))})
    served.view("items", path)
    return path


def recorded(served: Served, table: str) -> "list[Row]":
    return served.lake.workload(table).collect()


def test_a_filter_is_recorded_with_its_values_and_what_it_read(served: Served, orders: str) -> None:
    served.frame("SELECT price FROM orders WHERE id = 7 AND day < 9").collect()
    (one,) = recorded(served, orders)
    assert one.origin == "spark"
    assert one.shape == "SELECT orders.day, orders.id, orders.price FROM orders WHERE day < ? AND id = ?"
    (scan,) = one.scans
    assert scan.columns == ["day", "id", "price"]
    assert {to_sql(node) for node in walk(from_json(scan.tree)) if isinstance(node, Compare)} == {"id = 7L", "day < 9L"}
    assert (one.files_of, one.bytes_of) == (4, sum(file.stat().st_size for file in Path(orders).iterdir()))
    assert 0 < one.files <= 4
    assert one.rows == 1
    assert one.milliseconds > 0
    assert one.indexes == []


def test_joins_groupings_and_orders_are_recorded_with_each_table(served: Served, orders: str, items: str) -> None:
    served.frame(
        "SELECT day, sum(item) AS total, count(*) FROM orders JOIN items ON id = oid WHERE price < 5 "
        "GROUP BY day ORDER BY day LIMIT 3"
    ).collect()
    both = [one for one in served.lake.workload().collect() if len(one.tables) == 2 and orders in one.tables[0]]
    (one,) = both
    assert one.limit == 3
    by_table = {Path(scan.table).name: scan for scan in one.scans}
    assert by_table.keys() == {"orders", "items"}
    ours, theirs = by_table["orders"], by_table["items"]
    assert [(join.column, Path(join.table).name, join.other) for join in ours.joins] == [("id", "items", "oid")]
    assert [(join.column, Path(join.table).name, join.other) for join in theirs.joins] == [("oid", "orders", "id")]
    assert (ours.groups, ours.orders, theirs.groups) == (["day"], ["day"], [])
    assert set(theirs.aggregates) == {"sum(item)", "count(1)"}
    assert "price" in ours.predicate
    # What is known of the one table is not stored with the other.
    assert [Path(scan.table).name for scan in recorded(served, items)[0].scans] == ["items"]


def test_a_query_counts_once_each_time_it_runs(served: Served, orders: str) -> None:
    frame = served.frame("SELECT * FROM orders WHERE id = 1")
    served.lake.explain(frame)
    assert recorded(served, orders) == []
    frame.collect()
    frame.collect()
    assert len(recorded(served, orders)) == 2
    assert len({one.query for one in recorded(served, orders)}) == 2


def test_a_table_joined_with_itself_is_one_query(served: Served, orders: str) -> None:
    served.frame("SELECT count(*) FROM orders a JOIN orders b ON a.day = b.id").collect()
    (one,) = recorded(served, orders)
    assert {(scan.joins[0].column, scan.joins[0].other) for scan in one.scans} == {("day", "id"), ("id", "day")}


def test_a_subquery_is_part_of_its_query(served: Served, orders: str, items: str) -> None:
    served.frame("SELECT * FROM orders WHERE id > (SELECT max(oid) FROM items WHERE item < 38)").collect()
    (one,) = recorded(served, orders)
    assert len(one.tables) == 2
    assert recorded(served, items)[0].scans[0].aggregates == ["max(oid)"]


def test_what_an_index_answers_is_recorded_as_it_was_asked(served: Served, orders: str) -> None:
    table = served.lake.table(orders)
    table.create(grebe.Covering("by_day", on="day", include=["price"]), grebe.Skipping("ranges", grebe.MinMax("id")))
    assert recorded(served, orders) == []  # what reads the table to make an index is nobody's query
    query = "SELECT price FROM orders WHERE day = 3"
    assert served.run(query).used == ["by_day"]
    assert served.run("SELECT * FROM orders WHERE id = 33").used == ["ranges"]
    covered, narrowed = recorded(served, orders)
    assert covered.indexes == ["by_day"]
    assert covered.scans[0].predicate == "day = 3L AND day IS NOT NULL"
    assert covered.scans[0].columns == ["day", "price"]
    assert (narrowed.indexes, narrowed.files, narrowed.files_of) == (["ranges"], 1, 4)
    table.verify(deep=True)
    assert len(recorded(served, orders)) == 2


def test_it_is_recorded_while_indexes_are_not_used(served: Served, orders: str) -> None:
    served.plain("SELECT * FROM orders WHERE id = 2")
    assert len(recorded(served, orders)) == 1


def test_writes_that_read_are_recorded_and_what_reads_no_table_is_not(
    served: Served, orders: str, tmp_path: Path
) -> None:
    served.frame("SELECT * FROM orders WHERE day = 1").write.parquet(str(tmp_path / "copy"))
    served.frame("SELECT 1").collect()
    (one,) = recorded(served, orders)
    assert one.scans[0].predicate == "day = 1L AND day IS NOT NULL"
    assert recorded(served, str(tmp_path / "copy")) == []


def test_spark_and_lookups_are_one_workload(served: Served, orders: str) -> None:
    served.frame("SELECT * FROM orders WHERE id = 2").collect()
    handle = grebe.open(orders, config=RECORDS)
    handle.get("id", 2)
    assert [one.origin for one in recorded(served, orders)] == ["spark", "lookup"]
    assert handle.workload()["origin"].to_pylist() == ["spark", "lookup"]
    shapes = handle.workload()["shape"].to_pylist()
    assert [shape.partition("WHERE")[2] for shape in shapes] == [" id = ?", " id = ?"]


def test_places_of_their_own_are_found_again(served: Served, orders: str, tmp_path: Path) -> None:
    table = served.lake.table(orders, location=str(tmp_path / "mine"))
    served.frame("SELECT * FROM orders WHERE id = 2").collect()
    assert table.workload().count() == 1
    assert list((tmp_path / "mine" / "workload").glob("*.gix"))
    assert table.forget_workload() == 1
    assert table.workload().count() == 0


def test_a_lake_that_does_not_record_leaves_nothing_behind(
    spark: "SparkSession", orders: str, tmp_path: Path, served: Served
) -> None:
    try:
        lake = grebe.attach(spark, grebe.Config())
        spark.read.parquet(orders).where("id = 3").collect()
        assert lake.workload(orders).count() == 0
        assert not (tmp_path / "_grebe").exists()
    finally:
        grebe.attach(spark, RECORDS)
