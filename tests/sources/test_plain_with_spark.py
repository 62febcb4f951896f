"""Tables of plain files are, without Spark, the tables that Spark sees: the same files, columns, types and rows."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import GrebeError, TableNotFound, Unsupported
from grebe.files import canonical_uri
from grebe.sources import open_source
from tests.sources.whole_table import paths_of, read_with_spark, read_without_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def make(root: Path, *files: str) -> None:
    """Text files that hold their own path as their only line."""
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{file}\n", encoding="utf-8")


def check(spark: "SparkSession", root: Path, paths: Sequence[str], options: dict[str, str] | None = None) -> None:
    """Both see the same, or both refuse. What is no table for us may be one without rows for Spark."""
    places = [str(root / path) if path else str(root) for path in paths]
    try:
        expected = read_with_spark(spark, "text", places, options)
    except Exception:  # noqa: BLE001 - py4j's error; what counts is that Spark refuses
        with pytest.raises(GrebeError):
            read_without_spark(open_source(places, format="text", options=options))
        return
    try:
        seen = read_without_spark(open_source(places, format="text", options=options))
    except TableNotFound:
        seen = (expected[0], [])
    assert seen == expected


VALUES: dict[str, list[str]] = {
    "int": ["1", "002", "-3", "+4"],
    "long": ["1", "3000000000"],
    "decimal": ["1", "30000000000000000000"],
    "decimals": ["1e5", "30000000000000000000", "12"],
    "double": ["1", "1.5", "1e-3", "Infinity", "NaN", " 5", "5 ", "1d", "2f", "0x1p3", ".5", "5."],
    "long and double": ["3000000000", "1.5"],
    "decimal and double": ["1.5", "30000000000000000000"],
    "date": ["2020-01-01", "2021-12-31"],
    "no date": ["2020-01-01", "2020-02-30"],
    "short date": ["2020-1-1"],
    "timestamp": [
        "2020-01-01 10%3A00%3A00",
        "2020-01-01 10%3A00%3A00.5",
        "2020-03-08 02%3A30%3A00",
        "2020-11-01 01%3A30%3A00",
    ],
    "date and timestamp": ["2020-01-01", "2020-01-01 10%3A00%3A00"],
    "no timestamp": ["2020-01-01 10%3A00%3A00.123456"],
    "only null": ["__HIVE_DEFAULT_PARTITION__"],
    "null and int": ["__HIVE_DEFAULT_PARTITION__", "5"],
    "null and text": ["__HIVE_DEFAULT_PARTITION__", "x"],
    "text": [
        "a%2Fb",
        "c d",
        "e%3Df",
        "g=h",
        "%",
        "%zz",
        "ü",
        "%C3%BC",
        "#",
        "a%2fb",
        "-",
        "true",
        "null",
        "0x10",
        "1_0",
        "🐟",
    ],
    "int and text": ["1", "a"],
    "int and date": ["2020-01-01", "5"],
    "digits of another script": ["１２"],
    "forty digits": ["1" * 40],
    "zeros": ["0", "-0", "00"],
    "zero with an exponent": ["0e5", "1"],
    **{f"zero with the exponent {power}": [f"0e{power}"] for power in (1, 36, 37, 38, 39, 99)},
    "a large power": ["1e37"],
    "too large a power": ["1e38"],
    "hexadecimal": ["0x1p99999", "-0x1p99999", "0x1.8p1", "0x1p-99999"],
    "far future": ["2050-07-01 00%3A00%3A00", "2050-01-01 00%3A00%3A00"],
}


@pytest.mark.core
@pytest.mark.parametrize("name", VALUES)
def test_partition_values_have_sparks_types_and_values(spark: "SparkSession", tmp_path: Path, name: str) -> None:
    make(tmp_path, *(f"k={value}/f{number}" for number, value in enumerate(VALUES[name])))
    check(spark, tmp_path, [""], {"timeZone": "America/New_York"})


LAYOUTS: dict[str, list[str]] = {
    "flat": ["a", "b"],
    "nested": ["a", "sub/b"],
    "only nested": ["sub/b"],
    "partitions": ["x=1/y=a/f", "x=2/y=b/f"],
    "file beside partitions": ["top", "x=1/f"],
    "folder within a partition": ["x=1/f", "x=2/sub/f"],
    "folder without partition beside": ["x=1/f", "sub/f"],
    "different columns": ["x=1/f", "x=1/y=2/f"],
    "other names": ["x=1/f", "y=1/f"],
    "hidden names": ["_a", ".b", "c._COPYING_", "_metadata", "_common_metadata", "d", "_hidden/e", ".hidden/f", "_x/g"],
    "hidden partition": ["_a=1/f", "_a=2/_g", "_a=2/h"],
    "metadata folder": ["_metadata_x/f", "g"],
    "temporary": ["x=1/f", "_temporary/0/x=2/g", "x=3/_temporary/h"],
    "escaped name": ["a%3Db=1/f", "a%3Db=2/f"],
    "no value": ["x=/f"],
    "no name": ["=1/f"],
    "strange names": ["a b", "50%", "a%20b", "a#b", "q?x", "ü", "a+b", "a&b;c", "[x]", "{y}", "x=y"],
    "indexes inside": ["a", "_grebe/log/00.json"],
}


@pytest.mark.core
@pytest.mark.parametrize("recursive", ["false", "true"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_files_of_a_folder_are_those_that_spark_reads(
    spark: "SparkSession", tmp_path: Path, name: str, recursive: str
) -> None:
    make(tmp_path, *LAYOUTS[name])
    (tmp_path / "empty").touch()
    check(spark, tmp_path, [""], {"recursiveFileLookup": recursive})


ROOTS: list[tuple[list[str], dict[str, str]]] = [
    (["x=1/f"], {}),
    (["x=1"], {}),
    (["x=1"], {"basePath": ""}),
    (["x=1", "x=2"], {}),
    (["x=1", "x=2"], {"basePath": ""}),
    (["x=*"], {}),
    (["x=*"], {"basePath": ""}),
    (["x={1,2}/f"], {}),
    (["x=[12]/?"], {}),
    (["x=[^1]/*"], {}),
    (["x=[!1]/*"], {}),
    (["{x=1/f,x=3/y=2}"], {}),
    (["x=3"], {}),
    (["*"], {}),
    (["x=1/f", "x=2/f"], {}),
    (["x=1/f", "x=2/f"], {"basePath": ""}),
    (["deep/*/*"], {}),
    (["deep/*"], {}),
    (["deep"], {"recursiveFileLookup": "true"}),
    (["deep", "deep/p"], {"recursiveFileLookup": "true"}),
    (["nowhere"], {}),
    (["x=1", "nowhere"], {}),
    (["z*"], {}),
    (["odd/\\[1\\]"], {}),
    (["odd/[1]"], {}),
    (["_hidden"], {}),
    (["_hid*"], {}),
    (["_hidden/f", "x=1/f"], {}),
    (["_f", "x=1/f"], {}),
    ([""], {"pathGlobFilter": "{g,h}*", "recursiveFileLookup": "true"}),
]


@pytest.mark.core
@pytest.mark.parametrize(("paths", "options"), ROOTS, ids=lambda value: str(value))
def test_roots_globs_and_base_paths_mean_what_they_mean_for_spark(
    spark: "SparkSession", tmp_path: Path, paths: list[str], options: dict[str, str]
) -> None:
    make(tmp_path, "x=1/f", "x=2/f", "x=2/g", "x=3/y=2/f", "deep/p/q/h", "odd/[1]/f", "odd/1/f", "_hidden/f", "_f")
    check(
        spark, tmp_path, paths, {key: str(tmp_path) if key == "basePath" else value for key, value in options.items()}
    )


@pytest.mark.core
def test_files_are_named_as_spark_names_them(spark: "SparkSession", tmp_path: Path) -> None:
    names = ["a b", "50%", "a%20b", "a#b", "q?x", "ü", "a+b", "a&b;c", "[x]", "{y}", "back\\slash"]
    make(tmp_path, *(f"k={name}/{name}" for name in names))
    frame = spark.read.text(str(tmp_path))
    ours = set(open_source(tmp_path, format="text").files().uris().to_pylist())
    assert {canonical_uri(uri, encoded=True) for uri in frame.inputFiles()} == ours
    seen = {row[0] for row in frame.selectExpr("_metadata.file_path").collect()}
    assert {canonical_uri(uri, encoded=True) for uri in seen} == ours


@pytest.mark.core
def test_identity_is_what_spark_sees_of_a_file(spark: "SparkSession", tmp_path: Path) -> None:
    make(tmp_path, "a", "b")
    os.utime(tmp_path / "a", ns=(0, 1_234_567_890_123_456_789))
    rows = spark.read.text(str(tmp_path)).selectExpr(
        "_metadata.file_name", "_metadata.file_size", "unix_millis(_metadata.file_modification_time)"
    )
    files = open_source(tmp_path, format="text").files()
    ours = zip(
        files.paths().to_pylist(), files.table["size"].to_pylist(), files.table["modified_ms"].to_pylist(), strict=True
    )
    assert sorted(map(tuple, rows.collect())) == sorted(ours)


@pytest.mark.parametrize("options", [{}, {"mergeSchema": "true"}])
def test_parquet_columns_come_from_one_file_or_from_all(
    spark: "SparkSession", tmp_path: Path, options: dict[str, str]
) -> None:
    for name, columns in {"1": {"a": [1], "x": ["p"]}, "2": {"y": [1.5], "a": [2]}, "3": {"a": [3]}}.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    expected = read_with_spark(spark, "parquet", [str(tmp_path)], options)
    assert read_without_spark(open_source(tmp_path, options=options)) == expected


def test_a_partition_column_that_is_also_in_the_files_takes_its_value_from_the_folder(
    spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "b=7").mkdir()
    pq.write_table(pa.table({"a": [1], "b": ["in the file"], "c": [2]}), tmp_path / "b=7" / "f.parquet")
    assert read_without_spark(open_source(tmp_path)) == read_with_spark(spark, "parquet", [str(tmp_path)])


def test_a_schema_that_is_given_decides_types_and_order(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "K=7").mkdir()
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "K=7" / "f.parquet")
    schema = pa.schema([("k", pa.string()), ("new", pa.date32()), ("a", pa.int64())])
    expected = read_with_spark(spark, "parquet", [str(tmp_path)], schema="k string, new date, a bigint")
    assert read_without_spark(open_source(tmp_path, schema=schema)) == expected


def test_the_header_of_csv_is_taken_and_skipped_in_every_file(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("a,b\n3,4\n5,6\n")
    options = {"header": "true"}
    assert read_without_spark(open_source(tmp_path, options=options)) == read_with_spark(
        spark, "csv", [str(tmp_path)], options
    )


def test_a_table_read_twice_is_refused_where_spark_doubles_its_rows(spark: "SparkSession", tmp_path: Path) -> None:
    make(tmp_path, "t/a")
    places = [str(tmp_path / "t"), str(tmp_path / "t" / "a")]
    assert len(read_with_spark(spark, "text", places)[1]) == 2
    with pytest.raises(Unsupported, match="twice"):
        open_source(places, format="text").files()
    assert paths_of(open_source([places[0], places[0]], format="text")) == ["a"]


def test_partition_columns_may_differ_in_case(spark: "SparkSession", tmp_path: Path) -> None:
    make(tmp_path, "X=1/f", "x=2/f")
    columns, rows = read_without_spark(open_source(tmp_path, format="text"))
    expected = read_with_spark(spark, "text", [str(tmp_path)])
    assert rows == expected[1]
    assert [(name.lower(), kind) for name, kind in columns] == [(name.lower(), kind) for name, kind in expected[0]]


def test_a_path_is_not_decoded(spark: "SparkSession", tmp_path: Path) -> None:
    make(tmp_path, "my table/f", "my%20table/g")
    for name in ("my table", "my%20table"):
        check(spark, tmp_path, [name])
        assert open_source(f"file://{tmp_path}/{name}", format="text").name == name
    with pytest.raises(TableNotFound, match="taken as written"):
        open_source(str(tmp_path / "my%2520table"), format="text")


@pytest.mark.parametrize("value", ["0000-01-01", "0000-02-29", "0000-06-01 10%3A00%3A00"])
def test_days_of_the_year_0_are_for_spark(tmp_path: Path, value: str) -> None:
    make(tmp_path, f"k={value}/f")
    with pytest.raises(Unsupported, match="year 0") as refused:
        open_source(str(tmp_path), format="text").files()
    assert refused.value.code == "UNSUPPORTED_PARTITION_VALUE"
