"""What a view stores of constants and of the tables beside its first: exactly what was meant, or nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import grebe
from grebe.indexes.view.definition import Definition
from grebe.spark.views import definition_of, frame_of_base
from testbed.spark import configured
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
SHOPS = {"id": [0, 1, 2, 3, 9], "town": ["Ulm", "Bonn", "Ulm", None, "Kiel"], "land": [1, 1, 2, 2, 2]}


@pytest.fixture
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as served:
        yield served


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    sales = {"shop": [n % 5 for n in range(60)], "price": [n * 10 for n in range(60)]}
    write(tmp_path / "sales", sales)
    write(tmp_path / "shops", SHOPS)
    return tmp_path


NOON = "2024-01-01 12:00:00"


def moments(hours: range) -> pa.Table:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    return pa.table(
        {
            "shop": [hour % 3 for hour in hours],
            "at": pa.array([noon + timedelta(hours=hour) for hour in hours], pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.parametrize("count", [1, 15])
def test_a_timestamp_of_a_view_is_the_same_in_a_session_of_another_zone(
    served: Served, tmp_path: Path, count: int
) -> None:
    """Also among so many that Spark makes a set of them."""
    at = write(tmp_path / "events", moments(range(-30, 30)))
    zone = "spark.sql.session.timeZone"
    texts = [f"TIMESTAMP '{NOON}'", *(f"TIMESTAMP '2024-01-01 {hour:02}:00:00'" for hour in range(1, count))]
    where = f"at >= {texts[0]}" if count == 1 else f"at IN ({', '.join(texts)})"
    query = f"SELECT shop, count(*) AS n FROM parquet.`{at}` WHERE {where} GROUP BY shop"
    with configured(served.spark, {zone: "UTC"}):
        served.lake.table(at).create(grebe.View("v", query))
        served.same(query, "v")
    write(tmp_path / "events", moments(range(-30, 30)))
    with configured(served.spark, {zone: "America/New_York"}):
        served.lake.table(at).refresh()
    with configured(served.spark, {zone: "UTC"}):
        served.same(query, "v")
        assert served.run(f"SELECT sum(n) FROM ({query})").rows == Counter(
            {f"Row(sum(n)={60 if count == 1 else 28})": 1}
        )
    with configured(served.spark, {zone: "America/New_York"}):
        served.same_rows(query)


def test_a_view_that_was_stored_with_local_times_is_refreshed_in_their_zone_only(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As release 0.1.0 stored them."""
    at = write(tmp_path / "events", moments(range(-30, 30)))
    zone = "spark.sql.session.timeZone"
    query = f"SELECT shop, count(*) AS n FROM parquet.`{at}` WHERE at >= TIMESTAMP '{NOON}' GROUP BY shop"

    def as_before(*arguments: Any) -> Definition:
        found = definition_of(*arguments)
        where = tuple(
            replace(one, sql=one.sql.replace("timestamp_micros(1704110400000000L)", f"TIMESTAMP '{NOON}'"))
            for one in found.where
        )
        assert where != found.where
        return replace(found, where=where)

    with configured(served.spark, {zone: "UTC"}):
        with monkeypatch.context() as patched:
            patched.setattr("grebe.maintenance.create.definition_of", as_before)
            served.lake.table(at).create(grebe.View("v", query))
        write(tmp_path / "events", moments(range(-30, 30)))
        with (
            configured(served.spark, {zone: "America/New_York"}),
            pytest.raises(grebe.Unsupported, match=r"VIEW_SESSION.*timeZone = UTC"),
        ):
            served.lake.table(at).refresh("v")
        served.lake.table(at).refresh("v")
        served.same(query, "v")


@pytest.mark.parametrize(
    "condition",
    [
        "s = CAST(X'FF' AS STRING)",
        "s IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', CAST(X'FF' AS STRING))",
        "array(s) = array(CAST(X'FF' AS STRING))",
        "array(at) = array(TIMESTAMP '2024-01-01 12:00:00')",
        "named_struct('a', at, 'b', map('x', at)) IS NULL OR named_struct('a', at) = named_struct('a', TIMESTAMP '2024-01-01')",
    ],
)
def test_a_constant_that_no_text_holds_exactly_is_refused(served: Served, tmp_path: Path, condition: str) -> None:
    texts = pa.table({"s": ["x", "y"], "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    at = write(tmp_path / "texts", texts)
    with pytest.raises(grebe.InvalidIndex, match="INVALID_INDEX_VIEW_CONSTANT"):
        served.lake.table(at).create(grebe.View("v", f"SELECT s FROM parquet.`{at}` WHERE {condition}"))


@pytest.mark.parametrize("many", [False, True])
def test_a_constant_that_is_no_utf8_is_not_taken_for_the_sign_that_shows_it(
    served: Served, tmp_path: Path, many: bool
) -> None:
    folder = str(tmp_path / "texts")
    served.spark.sql(
        "SELECT CASE id % 3 WHEN 0 THEN CAST(X'FF' AS STRING) WHEN 1 THEN '\ufffd' ELSE 'x' END AS s, id FROM range(50)"
    ).coalesce(1).write.parquet(folder)

    def query(constant: str) -> str:
        condition = f"s IN ({', '.join(map(repr, 'abcdefghijk'))}, {constant})" if many else f"s = {constant}"
        return f"SELECT count(*) AS n, max(id) AS m FROM parquet.`{folder}` WHERE {condition}"

    served.lake.table(folder).create(grebe.View("v", query("'\ufffd'")))
    served.same(query("'\ufffd'"), "v")
    served.same_rows(query("CAST(X'FF' AS STRING)"))


def test_the_folder_of_a_joined_table_is_no_pattern(served: Served, lake: Path) -> None:
    from pyspark.sql.functions import col

    write(lake / "odd[s]", SHOPS)
    write(lake / "odds", SHOPS)

    reading = served.spark.read.option("__globPaths__", "false").parquet(str(lake / "odd[s]"))
    joined = served.spark.read.parquet(str(lake / "sales")).join(reading, on=col("shop") == col("id"))
    with pytest.raises(grebe.Unsupported, match=r"OUTSIDE_ROOTS.*pattern of other paths"):
        served.lake.table(str(lake / "sales")).create(grebe.View("v", joined.groupBy("town").count()))


def test_the_files_of_a_base_are_read_from_its_very_folder(served: Served, lake: Path) -> None:
    write(lake / "odd[s]", SHOPS)
    write(lake / "odds", SHOPS, SHOPS)
    table = served.lake.table(str(lake / "sales"))
    definition = definition_of(
        served.spark,
        f"SELECT town FROM parquet.`{lake / 'sales'}` JOIN parquet.`{lake / 'shops'}` ON shop = id",
        table.uri,
        "v",
    )
    odd = replace(definition.bases[1], uri=definition.bases[1].uri.replace("shops", "odd[s]"))
    assert frame_of_base(served.spark, odd).count() == 5


def test_a_joined_table_with_defaults_for_what_its_files_lack_is_refused(served: Served, lake: Path) -> None:
    served.spark.sql(f"CREATE TABLE with_default (id BIGINT) USING parquet LOCATION '{lake / 'defaults'}'")
    try:
        served.spark.sql("INSERT INTO with_default VALUES (1)")
        served.spark.sql("ALTER TABLE with_default ADD COLUMN town STRING DEFAULT 'Ulm'")
        query = (
            f"SELECT town, count(*) AS n FROM parquet.`{lake / 'sales'}` JOIN with_default ON shop = id GROUP BY town"
        )
        with pytest.raises(grebe.Unsupported, match="UNSUPPORTED_VIEW_DEFAULTS"):
            served.lake.table(str(lake / "sales")).create(grebe.View("v", query))
    finally:
        served.spark.sql("DROP TABLE with_default")
