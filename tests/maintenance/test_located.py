"""Lookup indexes of ORC, CSV, JSON lines and text: records are found in place, or the index is at file level and says why."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.formats import Column, Reading, format_named
from grebe.indexes.lookup.spec import Lookup
from grebe.maintenance import located
from grebe.maintenance.record_reader import RecordReader, in_tasks
from grebe.session.lake_table import LakeTable
from grebe.store.opening import open_store
from testbed.s3 import S3Server
from testbed.spark import use_s3
from tests.formats.reading_back import plain, spark_rows
from tests.maintenance.located_tables import (
    CSV_SCHEMA,
    create,
    require_found,
    write_csv,
    write_json,
    write_text,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("located")]

CSV_OPTIONS: dict[str, dict[str, str]] = {
    "default": {},
    "several lines": {"multiLine": "true", "escape": '"', "header": "true"},
    "other characters": {"sep": ";", "quote": "'", "escape": "^", "nullValue": "7", "header": "true"},
}
MORE_CSV_OPTIONS: dict[str, dict[str, str]] = {
    "several lines, escapes": {"multiLine": "true"},
    "separator": {"lineSep": "\n", "sep": "\\t", "emptyValue": "e"},
    "long separator": {"lineSep": "=%"},
    "doubled quotes": {"escape": '"'},
    "Latin": {"encoding": "ISO-8859-1", "header": "true"},
}


@pytest.mark.parametrize("name", CSV_OPTIONS)
def test_records_of_csv_are_found_in_place(spark: "SparkSession", tmp_path: Path, name: str) -> None:
    _csv(spark, tmp_path / "t", CSV_OPTIONS[name], name)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [*CSV_OPTIONS, *MORE_CSV_OPTIONS])
def test_records_of_any_csv_are_found_in_place(spark: "SparkSession", tmp_path: Path, name: str, seed: int) -> None:
    _csv(spark, tmp_path / "t", (CSV_OPTIONS | MORE_CSV_OPTIONS)[name], f"{name} {seed}")


def _csv(spark: "SparkSession", folder: Path, options: dict[str, str], seed: str) -> None:
    write_csv(folder, options | {"sep": options.get("sep", ",").replace("\\t", "\t")}, seed)
    frame = spark.read.options(**options).schema(CSV_SCHEMA).csv(str(folder))
    made = create(spark, frame, "k", "p")
    assert (made.properties["locators"], made.properties["file_level"]) == (["_grebe_offset", "_grebe_length"], None)
    require_found(folder, frame, "k", "csv")


def test_records_of_compressed_csv_are_found_in_the_whole_file(spark: "SparkSession", tmp_path: Path) -> None:
    write_csv(tmp_path / "t", {"compressed": "yes"}, "gz", rows=20)
    frame = spark.read.schema(CSV_SCHEMA).csv(str(tmp_path / "t"))
    assert create(spark, frame, "p").properties["file_level"] is None
    table = grebe.open(str(tmp_path / "t"))
    expected = spark_rows(frame.where("p = 1"))
    assert sorted(map(repr, plain(table.get("p", 1)))) == sorted(map(repr, expected))


@pytest.mark.core
def test_records_of_json_lines_are_found_in_place(spark: "SparkSession", tmp_path: Path) -> None:
    write_json(tmp_path / "t", "json")
    frame = spark.read.schema("k struct<id:bigint,z:array<string>>, s string, d double").json(str(tmp_path / "t"))
    assert create(spark, frame, "k.id").properties["file_level"] is None
    require_found(tmp_path / "t", frame, "k.id", "json")


def test_lines_of_text_are_found_in_place(spark: "SparkSession", tmp_path: Path) -> None:
    write_text(tmp_path / "t", "text")
    frame = spark.read.text(str(tmp_path / "t"))
    assert create(spark, frame, "value").properties["file_level"] is None
    require_found(tmp_path / "t", frame, "value", "text")


@pytest.mark.core
def test_rows_of_orc_are_found_in_place(spark: "SparkSession", tmp_path: Path) -> None:
    query = """SELECT id % 50 k, CAST(id % 7 AS string) s, timestamp_seconds(id * 1e6) t, CAST(id AS decimal(20, 3)) m,
        DATE '2020-01-01' + CAST(id % 3 AS int) p FROM range(2000)"""
    frame = spark.sql(query)
    frame.coalesce(1).write.partitionBy("p").option("orc.stripe.row.count", 200).orc(str(tmp_path / "t"))
    frame = spark.read.schema(frame.schema).orc(str(tmp_path / "t"))
    made = create(spark, frame, "k", "p", "t")
    assert (made.properties["locators"], made.properties["file_level"]) == (["_grebe_row"], None)
    require_found(tmp_path / "t", frame, "k", "orc")


@pytest.mark.parametrize("format", ["orc", "csv", "json"])
def test_timestamps_are_those_of_spark_whatever_the_zone_of_the_session(
    spark: "SparkSession", tmp_path: Path, format: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.sql("SELECT id k, timestamp_seconds(id * 86400 * 30) t FROM range(12)")
        frame.coalesce(1).write.format(format).save(str(tmp_path / "t"))
        frame = spark.read.schema(frame.schema).format(format).load(str(tmp_path / "t"))
        assert create(spark, frame, "k", "t").properties["file_level"] is None
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    days = grebe.open(str(tmp_path / "t"), format=format).get("k", 3)["t"]
    assert days.cast("int64").to_pylist() == [90 * 86_400_000_000]


def test_workers_read_tables_on_s3_with_the_credentials_of_the_session(
    spark: "SparkSession", s3_server: S3Server
) -> None:
    use_s3(spark, s3_server)
    uri = f"{s3_server.uri(SYSTEM.new_id())}/log lines"
    open_store(uri, s3_server.storage_options).put("a.csv", b"1,x\n2,y\n")
    frame = spark.read.schema("k int, s string").csv(uri.replace("s3://", "s3a://"))
    assert create(spark, frame, "k").properties["file_level"] is None
    table = grebe.open(uri, storage_options=s3_server.storage_options)
    assert plain(table.get("k", 2)) == [(2, "y")]


def test_a_table_without_rows_has_an_index_without_entries(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("k,s\n")
    frame = spark.read.schema("k int, s string").option("header", True).csv(str(tmp_path / "t"))
    made = create(spark, frame, "k")
    assert (made.properties["file_level"], made.rows) == (None, 0)
    assert grebe.open(str(tmp_path / "t")).get("k", 1).num_rows == 0


def test_what_only_spark_can_read_is_indexed_at_file_level(spark: "SparkSession", tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "a.csv").write_text('1,x\n2,"secret"value\n')
    (folder / "b.csv").write_text("3,y\n")
    frame = spark.read.schema("k int, s string").csv(str(folder))
    table = LakeTable(spark, frame)
    by_k, by_s = table.create(Lookup("by_k", on="k"), Lookup("by_s", on="s"))
    assert (by_k.properties["locators"], by_s.properties["locators"]) == ([], [])
    assert "the record at byte 4 of" in by_k.properties["file_level"]
    assert "secret" not in str(by_k.properties)
    assert (by_k.rows, by_s.rows) == (3, 3)
    answer = grebe.open(str(folder)).files("k = 3")
    assert [(one.path.rpartition("/")[2], one.rows) for one in answer.files] == [("b.csv", None)]


def test_a_new_file_that_only_spark_can_read_takes_the_whole_index_to_file_level(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "a.csv").write_text("1,x\n2,y\n")
    table = LakeTable(spark, spark.read.schema("k int, s string").csv(str(folder)))
    assert table.create(Lookup("by_k", on="k"))[0].properties["file_level"] is None
    (folder / "b.csv").write_text('2,5" wide\n')
    (made,) = LakeTable(spark, str(folder)).refresh("by_k")
    assert (made.rows, made.files_covered, made.properties["locators"]) == (3, 2, [])
    assert "b.csv has quotes" in made.properties["file_level"]


def test_a_column_that_cannot_be_read_does_not_spoil_the_index_of_another(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "a.csv").write_text("1,2020-1\n2,2020-02-02\n")
    frame = spark.read.schema("k int, day date").csv(str(folder))
    by_k, by_day = LakeTable(spark, frame).create(Lookup("by_k", on="k"), Lookup("by_day", on="day"))
    assert (by_k.properties["file_level"], by_k.rows) == (None, 2)
    assert "column day of" in by_day.properties["file_level"]


def _other_options(reader: RecordReader) -> RecordReader:
    options = tuple(sorted({**dict(reader.reading.options), "header": "true"}.items()))
    return replace(reader, reading=replace(reader.reading, options=options))


def _other_types(reader: RecordReader) -> RecordReader:
    columns = reader.reading.columns
    return replace(reader, reading=replace(reader.reading, columns=(columns[1], columns[0])))


def _elsewhere(reader: RecordReader) -> RecordReader:
    return replace(reader, uri=f"{reader.uri}/nowhere")


def _unknown_format(reader: RecordReader) -> RecordReader:
    return replace(reader, reading=replace(reader.reading, format="of a package that workers lack"))


@pytest.mark.core
@pytest.mark.parametrize(
    ("disturb", "reason"),
    [
        (_other_options, r"sees 2 records for 3 in file://.*a\.csv"),
        (_other_types, r"sees other values than Spark in file://.*a\.csv"),
        (_elsewhere, "is gone"),
        (_unknown_format, "must be installed for them as well"),
    ],
)
def test_where_both_readers_differ_the_index_is_at_file_level(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturb: Any, reason: str
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "a.csv").write_text("1,1\n2,2\n3,4\n")
    honest = located.record_reader
    monkeypatch.setattr(located, "record_reader", lambda *given: disturb(honest(*given)))
    frame = spark.read.schema("k int, v int").csv(str(folder))
    made = create(spark, frame, "k")
    assert (made.properties["locators"], made.rows) == ([], 3)
    assert re.search(reason, made.properties["file_level"])
    assert plain(grebe.open(str(folder)).get("k", 3)) == [(3, 4)]


def _reading(format: str, options: dict[str, str]) -> Reading:
    given = format_named(format).options.of_reading(options)
    return Reading.of(format, given, (Column("k", "integer"),), "UTC", local_times=True)


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("csv", {"encoding": "UTF-16"}),
        ("csv", {"mode": "FAILFAST"}),
        ("csv", {"comment": "#"}),
        ("csv", {"ignoreLeadingWhiteSpace": "true"}),
        ("csv", {"ignoreTrailingWhiteSpace": "true"}),
        ("csv", {"unescapedQuoteHandling": "RAISE_ERROR"}),
        ("csv", {"maxCharsPerColumn": "5"}),
        ("csv", {"ignoreCorruptFiles": "true"}),
        ("json", {"multiLine": "true"}),
        ("json", {"encoding": "UTF-16LE"}),
        ("json", {"mode": "FAILFAST"}),
        ("text", {"wholetext": "true"}),
        ("text", {"encoding": "ISO-8859-1"}),
        ("orc", {"someOptionOfTheFuture": "1"}),
    ],
)
def test_options_that_only_spark_honours_leave_an_index_at_file_level(format: str, options: dict[str, str]) -> None:
    spec = Lookup("i", on="k").spec(_reading(format, options), False)
    assert spec.properties["locators"] == []
    (name,) = options
    assert f"the option {name.lower()}" in spec.properties["file_level"]


@pytest.mark.parametrize("format", ["csv", "json", "text", "orc", "parquet"])
def test_without_such_options_an_index_is_to_have_locators(format: str) -> None:
    spec = Lookup("i", on="k").spec(_reading(format, {"compression": "gzip", "inferSchema": "true"}), False)
    assert spec.properties["file_level"] is None
    assert spec.properties["locators"]


def test_tasks_are_neighbours_of_about_as_many_bytes() -> None:
    sizes = np.array([100 << 20, 1, 1, 40 << 20, *[1 << 20] * 40])
    tasks = in_tasks(sizes)
    assert (np.diff(tasks) >= 0).all()
    assert (np.diff(tasks) <= 1).all()
    assert max(int(sizes[tasks == task].sum()) for task in range(1, tasks.max() + 1)) <= 72 << 20
    assert len(in_tasks(np.empty(0, np.int64))) == 0
