"""What Spark reads otherwise than it is stored is indexed as Spark reads it: old calendars, text that is no UTF-8."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from testbed.spark import configured
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("skipping")]

LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}
OLD = """SELECT id, date_add(DATE '1500-02-20', cast(id * 10 AS int)) d,
    TIMESTAMP '1500-02-20 00:00:00' + make_dt_interval(cast(id * 10 AS int)) ts FROM range(12)"""


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    settings = {"spark.sql.parquet.filterPushdown": "false", "spark.sql.orc.filterPushdown": "false"}
    with configured(spark, settings), serving(spark) as made:
        yield made


def require_same(served: Served, view: str, *predicates: str) -> None:
    for text in predicates:
        query = f"SELECT id FROM {view} WHERE {text}"
        assert served.run(query).rows == served.plain(query).rows, text


@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_dates_of_the_old_calendar_in_parquet(served: Served, tmp_path: Path, stored: str) -> None:
    with configured(served.spark, {**LEGACY, "spark.sql.parquet.outputTimestampType": stored}):
        served.spark.sql(OLD).repartitionByRange(4, "id").write.parquet(str(tmp_path / "t"))
    both = [
        kind(name) for name in ("d", "ts") for kind in (grebe.MinMax, grebe.Bloom, grebe.ValueList, grebe.Intervals)
    ]
    served.lake.table(str(tmp_path / "t")).create(
        grebe.Skipping("all", *both), grebe.Skipping("bounds", grebe.MinMax("d"))
    )
    served.view("old", tmp_path / "t")
    asked = [
        "d = DATE '1500-02-20'",
        "d = DATE '1500-03-02'",
        "ts = TIMESTAMP '1500-02-20 00:00:00'",
        "d > DATE '1500-05-20'",
    ]
    require_same(served, "old", *asked)


def test_dates_of_the_old_calendar_in_orc(served: Served, tmp_path: Path) -> None:
    """Spark writes them so by default."""
    served.spark.sql(OLD).drop("ts").repartitionByRange(4, "id").write.orc(str(tmp_path / "t"))
    kinds = [kind("d") for kind in (grebe.MinMax, grebe.Bloom, grebe.ValueList, grebe.Intervals)]
    frame = served.spark.read.orc(str(tmp_path / "t"))
    served.lake.table(frame).create(grebe.Skipping("all", *kinds))
    frame.createOrReplaceTempView("old_orc")
    require_same(served, "old_orc", "d = DATE '1500-02-20'", "d = DATE '1500-03-02'", "d < DATE '1500-03-01'")


def test_text_that_is_no_utf_8_can_be_asked_for(served: Served, tmp_path: Path) -> None:
    first, second = (f"cast(unhex('{code}') AS string)" for code in ("ff61", "61c3"))
    odd = f"CASE WHEN id % 3 = 0 THEN {first} WHEN id % 3 = 1 THEN {second} ELSE 'abc' END"
    served.spark.sql(f"SELECT id, {odd} t FROM range(30)").repartitionByRange(3, "id").write.parquet(
        str(tmp_path / "t")
    )
    kinds = [kind("t") for kind in (grebe.MinMax, grebe.Bloom, grebe.ValueList, grebe.Ngram)]
    served.lake.table(str(tmp_path / "t")).create(grebe.Skipping("all", *kinds))
    served.view("odd_text", tmp_path / "t")
    literal = "cast(unhex('ff61') AS string)"
    require_same(
        served, "odd_text", f"t = {literal}", f"t IN ({literal}, 'x')", f"startswith(t, {literal})", "t = 'abc'"
    )
