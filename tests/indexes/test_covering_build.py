"""The rows of a covering index as they are handed to the writer: each partition a bucket of Spark's, or a range."""

import datetime
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import Unsupported
from grebe.files import FileIds
from grebe.formats import Reading
from grebe.formats.reading import columns_of
from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import FILE_COLUMN, Arranged, Facts, FileFold, LocatedRows
from grebe.indexes.view.definition import Base
from tests.indexes.key_types import KEYS, keys_table, ordered, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

BUCKETS = 4


class WideRows:
    """The rows of a frame, which pretend to be wide, so that they are laid out like many."""

    def __init__(self, frame: "DataFrame", megabytes: int = 100) -> None:
        self._frame = frame
        rows = frame.count()
        width = megabytes * 1024**2 / max(1, rows)
        self.facts = Facts(rows, {(field.name,): width for field in frame.schema.fields})

    def frame(self, again: bool = False) -> "DataFrame":
        from pyspark.sql import functions

        return self._frame.withColumn(FILE_COLUMN, functions.lit(3))

    def located(self, columns: Collection[str]) -> LocatedRows:
        return LocatedRows(self.frame(), (), file_level="a frame has no files")

    files, left_out = 1, FileIds.of([])

    def folded(self, fold: FileFold, columns: Collection[str]) -> "DataFrame":
        raise AssertionError("a copy folds nothing")

    def older(self, fields: Sequence[tuple[str, str]]) -> "DataFrame | None":
        return None

    existing = older

    def other(self, base: Base) -> "DataFrame":
        raise NotImplementedError("a covering index is of one table")

    def some(self) -> "DataFrame":
        return self._frame

    def counted(self, frame: "DataFrame", whole: bool) -> "DataFrame":
        return frame


def arranged(frame: "DataFrame", kind: Covering) -> Arranged:
    reading = Reading.of("parquet", {}, columns_of(frame.schema.jsonValue()), "UTC", local_times=False)
    return kind.arranged(kind.spec(reading, False), WideRows(frame))


def partitions(made: Arranged, *more: str) -> dict[int, list[Any]]:
    """The rows of each partition, in their order."""
    found: dict[int, list[Any]] = {}
    for row in made.frame.selectExpr("*", "spark_partition_id() AS at", *more).collect():
        found.setdefault(row["at"], []).append(row)
    return dict(sorted(found.items()))


@pytest.fixture(scope="module")
def keys(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "DataFrame":
    path = tmp_path_factory.mktemp("keys") / "keys.parquet"
    pq.write_table(keys_table(), path)
    return spark.read.format("parquet").load(str(path)).cache()


@pytest.mark.parametrize("name", KEYS)
def test_a_partition_is_the_bucket_that_spark_would_put_its_rows_in(keys: "DataFrame", name: str) -> None:
    made = arranged(keys, Covering("i", on=name, include="number", buckets=BUCKETS))
    found = partitions(made, f"pmod(hash({name}), {BUCKETS}) AS bucket")
    assert all(row["bucket"] == at for at, rows in found.items() for row in rows)
    assert Counter(row["number"] for rows in found.values() for row in rows) == Counter(range(400))
    for rows in found.values():
        values = [row[name] for row in rows]
        assert texts(ordered(values)) == texts(values)


@pytest.mark.parametrize("name", KEYS)
def test_a_partition_is_a_range_of_the_whole_order(keys: "DataFrame", name: str) -> None:
    made = arranged(keys, Covering("i", on=name, include="number", buckets=0))
    found = partitions(made)
    assert len(found) > 1
    assert Counter(row["number"] for rows in found.values() for row in rows) == Counter(range(400))
    whole = [row[name] for rows in found.values() for row in rows]
    assert texts(ordered(whole)) == texts(whole)


def test_ranges_share_at_most_a_value_that_fills_several_of_them(spark: "SparkSession") -> None:
    """Half of the rows have one value, and a tenth has none: these are spread, and the order of the key holds all the same."""
    frame = spark.range(20_000).selectExpr(
        "CASE WHEN id % 10 = 0 THEN NULL WHEN id % 2 = 1 THEN 500 ELSE id % 1000 END AS k", "uuid() AS v", "id"
    )
    made = arranged(frame, Covering("i", on=["k", "v"], include="id", buckets=0))
    found = partitions(made)
    assert Counter(row["id"] for rows in found.values() for row in rows) == Counter(range(20_000))
    values = [[row["k"] for row in rows if row["k"] is not None] for rows in found.values()]
    known = [part for part in values if part]
    assert all(one[-1] <= other[0] for one, other in pairwise(known))
    assert max(map(len, found.values())) < 20_000 / 4
    assert made.properties["layout"]["sort_by"] == ["k"], "v is in order within each partition only"


def test_a_sorted_whole_without_a_frequent_value_is_in_order_of_all_keys(spark: "SparkSession") -> None:
    frame = spark.range(5_000).selectExpr("id % 2500 AS k", "-id AS v")
    made = arranged(frame, Covering("i", on=["k", "v"], buckets=0))
    whole = [(row["k"], row["v"]) for rows in partitions(made).values() for row in rows]
    assert whole == sorted(whole)
    assert made.properties["layout"]["sort_by"] == ["k", "v"]


def test_many_ranges_are_one_expression_that_spark_can_run(spark: "SparkSession") -> None:
    frame = spark.range(10_000).selectExpr("CAST(id * 7919 % 10000 AS string) AS k")
    rows = WideRows(frame, megabytes=20_000)
    kind = Covering("i", on="k", buckets=0, lineage=False)
    reading = Reading.of("parquet", {}, columns_of(frame.schema.jsonValue()), "UTC", local_times=False)
    found = partitions(kind.arranged(kind.spec(reading, False), rows))
    assert len(found) > 200
    whole = [row["k"] for part in found.values() for row in part]
    assert whole == sorted(whole)
    assert len(whole) == 10_000


def test_no_rows_are_no_trouble(spark: "SparkSession") -> None:
    nothing = spark.range(0).selectExpr("id AS k")
    for buckets in (None, 0, 4):
        assert partitions(arranged(nothing, Covering("i", on="k", buckets=buckets))) == {}


def test_fields_are_flattened_and_a_struct_that_is_null_has_null_fields(spark: "SparkSession") -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (1, named_struct('v', 5, 'y z', named_struct('w', 'a'))), (2, NULL) AS t(id, `s.t`)"
    )
    made = arranged(frame, Covering("i", on="`s.t`.v", include=["`s.t`.`y z`.w", "id"], buckets=1))
    (rows,) = partitions(made).values()
    assert made.frame.columns[:3] == ["`s.t`.v", "`s.t`.`y z`.w", "id"]
    assert [tuple(row)[:4] for row in rows] == [(None, None, 2, 3), (5, "a", 1, 3)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_condition_keeps_the_same_rows_in_every_session(spark: "SparkSession", tmp_path: Path, zone: str) -> None:
    moments = [datetime.datetime(2024, 1, 1, hour, tzinfo=datetime.UTC) for hour in range(24)]
    pq.write_table(pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))}), tmp_path / "t.parquet")
    frame = spark.read.format("parquet").load(str(tmp_path / "t.parquet"))
    kind = Covering("i", on="at", where="at < '2024-01-01 06:00:00' OR at IS NULL")
    reading = Reading.of("parquet", {}, columns_of(frame.schema.jsonValue()), "UTC", local_times=False)
    spec = kind.spec(reading, False, "Europe/Berlin")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert kind.arranged(spec, WideRows(frame)).frame.count() == 5
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_setting_that_would_change_the_condition_is_refused(spark: "SparkSession") -> None:
    frame = spark.sql(r"SELECT * FROM VALUES ('a\\b'), ('c') AS t(k)")
    kind = Covering("i", on="k", where="k = 'a\\\\b'")
    assert arranged(frame, kind).frame.count() == 1
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_ESCAPED_LITERALS\].*escapedStringLiterals"):
            arranged(frame, kind)
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
