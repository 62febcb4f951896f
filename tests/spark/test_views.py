"""Views in Spark: which queries they answer, with the answers of the tables, while these change; and what no view can store."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from testbed.spark import configured
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
DAYS = ["2024-01-01", "2024-01-02", "2024-02-01", None]


def sales(start: int) -> dict[str, list[object]]:
    numbers = range(start, start + 60)
    return {
        "shop": [None if n % 13 == 0 else n % 5 for n in numbers],
        "day": [DAYS[n % 4] for n in numbers],
        "price": [None if n % 7 == 0 else n * 10 for n in numbers],
        "amount": [n % 3 for n in numbers],
    }


SHOPS = {"id": [0, 1, 2, 3, 9], "town": ["Ulm", "Bonn", "Ulm", None, "Kiel"], "land": [1, 1, 2, 2, 2]}
LANDS = {"nr": [1, 2], "label": ["north", "south"]}


@pytest.fixture
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as served:
        yield served


@pytest.fixture
def lake(served: Served, tmp_path: Path) -> Path:
    write(tmp_path / "sales", sales(0), sales(60), sales(120))
    write(tmp_path / "shops", SHOPS)
    write(tmp_path / "lands", LANDS)
    seen(served, tmp_path)
    return tmp_path


def seen(served: Served, lake: Path) -> None:
    """The tables as they are now."""
    for name in ("sales", "shops", "lands"):
        served.view(name, lake / name)


def create(served: Served, lake: Path, query: str, name: str = "v") -> grebe.IndexInfo:
    for table in ("sales", "shops", "lands"):
        query = query.replace(f" {table}", f" parquet.`{lake / table}`")
    (made,) = served.lake.table(str(lake / "sales")).create(grebe.View(name, query))
    return made


BY_SHOP_AND_DAY = (
    "SELECT shop, day, sum(price) AS taken, count(*) AS n, avg(price) AS mean, min(amount) AS low, count(price) AS priced "
    "FROM sales GROUP BY shop, day"
)
ANSWERED = (
    "SELECT shop, day, sum(price), count(*) FROM sales GROUP BY shop, day",
    "SELECT shop, sum(price), avg(price), count(price), min(amount) FROM sales GROUP BY shop",
    "SELECT sum(price), count(*) FROM sales",
    "SELECT count(*) FROM sales WHERE shop = 77",
    "SELECT shop + 1, sum(price) FROM sales WHERE day >= '2024-01-02' GROUP BY shop + 1",
    "SELECT day, sum(price) / count(*) FROM sales WHERE shop IN (1, 2) GROUP BY day HAVING count(*) > 3 ORDER BY day LIMIT 2",
    "SELECT DISTINCT shop FROM sales",
    "SELECT count(DISTINCT shop), approx_count_distinct(day) FROM sales",
    "SELECT max(shop) FROM sales WHERE day IS NOT NULL",
    "SELECT sum(price) FILTER (WHERE shop = 1), count(*) FILTER (WHERE day IS NULL) FROM sales",
    "SELECT substr(day, 1, 7) AS month, sum(price) FROM sales GROUP BY 1",
)


def test_coarser_groups_fewer_rows_and_what_stands_on_top_are_answered(served: Served, lake: Path) -> None:
    create(served, lake, BY_SHOP_AND_DAY)
    for query in ANSWERED:
        served.same(query, "v")
    write_more(served, lake)
    for query in ANSWERED:
        served.same(query, "v")


def write_more(served: Served, lake: Path) -> None:
    """A file more and one less."""
    write(lake / "sales", sales(500))
    (lake / "sales" / "part-001.parquet").unlink()
    seen(served, lake)


NOT_ANSWERED = {
    "SELECT shop, max(price) FROM sales GROUP BY shop": "max(price)",
    "SELECT sum(price) FROM sales WHERE amount = 1": "column amount",
    "SELECT shop, day, price FROM sales": "single rows",
    "SELECT sum(DISTINCT price) FROM sales": "sum(price)",
    "SELECT amount, count(*) FROM sales GROUP BY amount": "column amount",
}


def test_what_a_view_lacks_is_said(served: Served, lake: Path) -> None:
    create(served, lake, BY_SHOP_AND_DAY)
    for query, lacking in NOT_ANSWERED.items():
        served.same(query)
        (reason,) = served.lake.why_not(served.frame(query))
        assert (reason.code, lacking in reason.sentence) == ("NOT_ANSWERED", True), reason.sentence


def test_tables_are_joined_and_further_ones_joined_with_the_view(served: Served, lake: Path) -> None:
    create(
        served,
        lake,
        "SELECT town, land, day, sum(price) AS taken, count(*) AS n FROM shops, sales WHERE shop = id AND amount > 0 "
        "GROUP BY town, land, day",
    )
    queries = (
        "SELECT town, sum(price) FROM sales JOIN shops ON shop = id WHERE amount > 0 GROUP BY town",
        "SELECT label, day, sum(price) FROM sales, shops, lands WHERE shop = id AND land = nr AND amount > 0 "
        "AND town <> 'Bonn' GROUP BY label, day",
    )
    for query in queries:
        served.same(query, "v")
    served.same("SELECT town, sum(price) FROM sales JOIN shops ON shop = id GROUP BY town")
    served.same("SELECT sum(price) FROM sales LEFT JOIN shops ON shop = id WHERE amount > 0")
    write_more(served, lake)
    for query in queries:
        served.same(query, "v")

    write(lake / "shops", {"id": [4], "town": ["Jena"], "land": [1]})
    seen(served, lake)
    served.same(queries[0])
    assert served.reasons(queries[0]) == {"v": "BASE_CHANGED"}
    served.lake.table(str(lake / "sales")).refresh()
    for query in queries:
        served.same(query, "v")


def test_what_spark_adds_to_a_condition_does_not_stand_in_the_way(served: Served, lake: Path) -> None:
    """That a column is not NULL, or what holds of the column that it is joined with; and rows are counted in any case."""
    create(
        served,
        lake,
        "SELECT shop, substr(day, 1, 7) AS month, sum(price) AS taken FROM sales, shops WHERE shop = id "
        "GROUP BY shop, substr(day, 1, 7)",
    )
    queries = (
        "SELECT shop, sum(price) FROM sales, shops WHERE shop = id AND substr(day, 1, 7) = '2024-01' GROUP BY shop",
        "SELECT id, sum(price), count(*) FROM sales, shops WHERE shop = id AND id % 2 = 1 GROUP BY id",
        "SELECT substr(day, 1, 7), count(1) FROM sales, shops WHERE shop = id GROUP BY 1 HAVING count(*) > 20",
    )
    for query in queries:
        served.same(query, "v")
    served.same("SELECT count(price) FROM sales, shops WHERE shop = id")
    served.same("SELECT sum(price) FROM sales, shops WHERE shop = id AND day IS NOT NULL")
    write_more(served, lake)
    for query in queries:
        served.same(query, "v")


def test_rows_that_are_not_grouped_are_stored_too(served: Served, lake: Path) -> None:
    create(served, lake, "SELECT town, price, day FROM sales JOIN shops ON shop = id WHERE price > 100")
    served.same("SELECT day, price + 1 FROM sales JOIN shops ON shop = id WHERE price > 100 AND town = 'Ulm'", "v")
    served.same("SELECT day, max(price), count(*) FROM sales, shops WHERE shop = id AND price > 100 GROUP BY day", "v")
    served.same("SELECT day FROM sales JOIN shops ON shop = id WHERE price > 50")


def test_narrower_conditions_are_answered_too(served: Served, lake: Path) -> None:
    create(
        served,
        lake,
        "SELECT price, day, count(*) AS n FROM sales WHERE price > 100 AND day IS NOT NULL GROUP BY price, day",
    )
    served.same(
        "SELECT day, count(*) FROM sales WHERE price BETWEEN 200 AND 500 AND day = '2024-01-02' GROUP BY day", "v"
    )
    served.same("SELECT count(*) FROM sales WHERE (price = 300 OR price > 500) AND day > '2024'", "v")
    served.same("SELECT count(*) FROM sales WHERE price > 99 AND day IS NOT NULL")
    served.same("SELECT count(*) FROM sales WHERE price > 200")
    served.same("SELECT count(*) FROM sales WHERE (price = 300 OR day > '2024-01-01') AND day IS NOT NULL")


def test_a_refresh_adds_the_groups_of_new_files(served: Served, lake: Path) -> None:
    made = create(served, lake, BY_SHOP_AND_DAY)
    write_more(served, lake)
    table = served.lake.table(str(lake / "sales"))
    (after,) = table.refresh()
    assert (after.files_covered, after.files_stale) == (3, 0)
    assert after.rows > made.rows
    assert table.verify(deep=True).ok
    assert [index.name for index in table.optimize(mode="full")] == ["v"]
    for query in ANSWERED:
        served.same(query, "v")


def test_of_several_views_the_cheapest_answers(served: Served, lake: Path) -> None:
    create(served, lake, BY_SHOP_AND_DAY, "fine")
    create(served, lake, "SELECT shop, sum(price) AS taken FROM sales GROUP BY shop", "coarse")
    served.same("SELECT shop, sum(price) FROM sales GROUP BY shop", "coarse")
    served.same("SELECT day, sum(price) FROM sales GROUP BY day", "fine")


def test_a_view_is_made_of_a_frame_in_sql_and_used_by_parts_of_a_query(served: Served, lake: Path) -> None:
    frame = served.spark.read.parquet(str(lake / "sales")).groupBy("shop").sum("price")
    served.lake.table(str(lake / "sales")).create(grebe.View("frame", frame))
    path = lake / "sales"
    served.spark.sql(
        f"CREATE INDEX by_day ON parquet.`{path}` USING view AS SELECT day, count(*) AS n FROM parquet.`{path}` GROUP BY day"
    )
    seen = served.same(
        "SELECT * FROM (SELECT shop, sum(price) AS s FROM sales GROUP BY shop) "
        "JOIN (SELECT count(*) AS n FROM sales WHERE day IS NULL) ON s > n",
        "by_day",
        "frame",
    )
    assert "FileScan" in seen.text


REFUSED = {
    "SELECT shop, rand() AS r FROM sales": "INVALID_INDEX_VIEW_NOT_STABLE",
    "SELECT count(*) AS n FROM sales WHERE day < current_date()": "INVALID_INDEX_VIEW_NOT_STABLE",
    "SELECT shop FROM sales LIMIT 3": "INVALID_INDEX_VIEW_SHAPE",
    "SELECT shop FROM sales UNION ALL SELECT id FROM shops": "INVALID_INDEX_VIEW_SHAPE",
    "SELECT a.shop FROM sales a JOIN sales b ON a.shop = b.shop": "INVALID_INDEX_VIEW_SHAPE",
    "SELECT town FROM shops": "INVALID_INDEX_VIEW_OTHER_TABLE",
    "SELECT shop, collect_list(price) AS l FROM sales GROUP BY shop": "INVALID_INDEX_VIEW_AGGREGATE",
    "SELECT shop, sum(price) FILTER (WHERE amount = 1) AS s FROM sales GROUP BY shop": "INVALID_INDEX_VIEW_AGGREGATE",
    "SELECT CAST(price AS DOUBLE) AS d, count(*) AS n FROM sales GROUP BY 1": "INVALID_INDEX_VIEW_KEY_TYPE",
    "SELECT nothing FROM sales": "INVALID_INDEX_VIEW_QUERY",
}


def test_what_no_view_can_store_is_refused(served: Served, lake: Path) -> None:
    for query, code in REFUSED.items():
        with pytest.raises(grebe.InvalidIndex, match="view v") as refused:
            create(served, lake, query)
        assert refused.value.code == code, query
    assert not served.lake.table(str(lake / "sales")).indexes()


def test_a_table_that_no_index_reads_is_named(served: Served, lake: Path) -> None:
    query = f"SELECT shop, count(*) AS n FROM sales JOIN binaryFile.`{lake / 'lands'}` ON length > shop GROUP BY shop"
    with pytest.raises(grebe.InvalidIndex, match=r"lands cannot be read by an index \(UNSUPPORTED_FORMAT\)") as refused:
        create(served, lake, query)
    assert refused.value.code == "INVALID_INDEX_VIEW_TABLE"


def test_temporary_views_and_functions_of_users_are_refused(served: Served, lake: Path) -> None:
    table = served.lake.table(str(lake / "sales"))
    with pytest.raises(grebe.InvalidIndex, match="the temporary view sales") as refused:
        table.create(grebe.View("v", "SELECT shop FROM sales"))
    assert refused.value.code == "INVALID_INDEX_VIEW_NOT_STABLE"
    served.spark.udf.register("mine", lambda value: value, "int")
    with pytest.raises(grebe.InvalidIndex, match="mine"):
        table.create(grebe.View("v", f"SELECT mine(shop) AS s FROM parquet.`{lake / 'sales'}`"))
    for nothing in ("", None, 7):
        with pytest.raises(grebe.InvalidIndex, match="as SQL or as a DataFrame") as empty:
            grebe.View("v", nothing)
        assert empty.value.code == "INVALID_INDEX_QUERY"


def test_a_base_that_was_replaced_with_the_same_size_and_time_is_another_one(served: Served, lake: Path) -> None:
    """As `cp -p` and backups leave it."""
    query = "SELECT town, count(*) FROM sales JOIN shops ON shop = id GROUP BY town"
    create(served, lake, "SELECT town, count(*) AS n FROM sales JOIN shops ON shop = id GROUP BY town")
    served.same(query, "v")
    (path,) = (lake / "shops").glob("*.parquet")
    before, data = path.stat(), path.read_bytes()
    assert b"Bonn" in data
    path.write_bytes(data.replace(b"Bonn", b"Kiel"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    seen(served, lake)
    served.same(query)
    assert served.reasons(query) == {"v": "BASE_CHANGED"}
    served.lake.table(str(lake / "sales")).refresh()
    served.same(query, "v")


def test_a_base_that_is_gone_or_of_another_type_is_named(served: Served, lake: Path) -> None:
    create(served, lake, "SELECT town, count(*) AS n FROM sales JOIN shops ON shop = id GROUP BY town")
    table = served.lake.table(str(lake / "sales"))
    (lake / "shops" / "part-000.parquet").unlink()
    write(lake / "shops", {"id": [0, 1], "town": [1, 2], "land": [1, 1]})
    with pytest.raises(grebe.InvalidIndex, match=r"town of .*shops.*create the view anew") as retyped:
        table.refresh("v")
    assert retyped.value.code == "INVALID_INDEX_VIEW_BASE"
    seen(served, lake)
    served.same("SELECT town, count(*) FROM sales JOIN shops ON shop = id GROUP BY town")
    (lake / "shops" / "part-000.parquet").unlink()
    (lake / "shops").rmdir()
    with pytest.raises(grebe.TableNotFound, match=r"shops, which the view joins") as gone:
        table.refresh("v")
    assert gone.value.code == "TABLE_NOT_FOUND_VIEW_TABLE"


def test_a_session_in_which_the_words_mean_something_else_does_not_refresh_it(served: Served, lake: Path) -> None:
    create(served, lake, "SELECT CAST(CAST(day AS TIMESTAMP) AS DATE) AS d, count(*) AS n FROM sales GROUP BY 1")
    write(lake / "sales", sales(500))
    for setting, value in (("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "other")):
        now = served.spark.conf.get(setting)
        other = value if value != "other" else str(now != "true").lower()
        with configured(served.spark, {setting: other}), pytest.raises(grebe.Unsupported, match=setting) as refused:
            served.lake.table(str(lake / "sales")).refresh("v")
        assert refused.value.code == "UNSUPPORTED_VIEW_SESSION"


def test_a_sum_that_does_not_fit_is_not_stored(served: Served, lake: Path) -> None:
    huge = "CAST(concat(price, repeat('0', 34)) AS DECIMAL(38, 0))"
    query = f"SELECT shop, sum({huge}) AS s FROM sales GROUP BY shop"
    with configured(served.spark, {"spark.sql.ansi.enabled": "false"}):
        with pytest.raises(grebe.GrebeError, match="building index v failed in Spark"):
            create(served, lake, query)
        create(served, lake, query.replace("34", "20"))
        served.same(query.replace("34", "20"), "v")
