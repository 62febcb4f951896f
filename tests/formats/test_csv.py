"""CSV without Spark: what Spark reads, or a refusal, never anything else."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from grebe.errors import Unsupported
from grebe.formats import Reading, text_records
from grebe.formats.csv import CSV
from tests.formats.reading_back import Row, all_rows, comparable, data_file, reading_of, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
THREE = "a string, b string, c string"
OPTIONS: dict[str, dict[str, str | bool]] = {
    "default": {},
    "header": {"header": True},
    "doubled quotes": {"escape": '"'},
    "other characters": {"delimiter": ";", "quote": "'", "nullValue": "a"},
    "no quotes": {"quote": "", "emptyValue": "E"},
    "separator": {"lineSep": "\n", "sep": "\\t"},
    "other separator": {"lineSep": ";"},
    "other escape": {"escape": "^", "quote": "'"},
    "Latin": {"encoding": "ISO-8859-1", "header": "true"},
    "Latin separator": {"charset": "iso-8859-1", "lineSep": "ü"},
    "ASCII": {"encoding": "US-ASCII"},
    "several lines": {"multiLine": "true"},
    "several lines, doubled quotes, header": {"multiLine": "true", "escape": '"', "header": "true"},
}


def rows_or_refusal(path: Path, reading: Reading) -> list[Row] | None:
    try:
        return all_rows(CSV, data_file(path), reading)
    except Unsupported:
        return None


@pytest.mark.parametrize("name", OPTIONS)
def test_generated_files_are_read_as_spark_reads_them_or_refused(
    spark: "SparkSession", tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(name)
    options = OPTIONS[name]
    field = ["a", "b c", "", " ", '"x"', '"x,y"', '""', '"p""q"', "ü", "'s'", "\\", "\t", ";", '"t\nu"', 'w"', "# z"]
    field += [r'"p\"q"', r'"p\\"', r'"\\\",\x"', r"\"", "'^''", "'^^,^x'", '"a\\', "^"]
    weights = [9, 5, 5, 2, 6, 4, 3, 1, 3, 2, 1, 2, 2, 1, 0.3, 2, 3, 2, 2, 0.2, 2, 1, 0.2, 1]
    for number in range(150):
        separator = chance.choice([",", ",", ";", "\t"])
        end = chance.choice(["\n", "\n", "\r\n", "\r"])
        widths = chance.choices([3, 3, 1, 2, 4], k=chance.randrange(1, 5))
        lines = [separator.join(chance.choices(field, weights, k=width)) for width in widths]
        text = end.join(lines) + chance.choice(["", end, end + end])
        data = text.encode(chance.choice(["utf-8", "utf-8", "latin-1"])) or b"\n"
        (tmp_path / f"{number:03}.csv").write_bytes(data)
    frame = spark.read.options(**options).schema(THREE).csv(str(tmp_path))
    expected: dict[str, list[Row]] = {}
    for row in frame.selectExpr("_metadata.file_name", "*").collect():
        expected.setdefault(row[0], []).append(tuple(comparable(value) for value in row[1:]))
    reading = reading_of(CSV, frame.schema.jsonValue(), options)
    monkeypatch.setattr(text_records, "_CHUNK_BYTES", 16)
    read = {path.name: rows_or_refusal(path, reading) for path in sorted(tmp_path.glob("*.csv"))}
    understood = {file: rows for file, rows in read.items() if rows is not None}
    assert understood == {file: expected.get(file, []) for file in understood}
    assert len(understood) > 25


VALUES: dict[str, list[str]] = {
    "int": [
        "1",
        "+1",
        "-1",
        "01",
        " 1",
        "1 ",
        "1.0",
        "1e1",
        "",
        "abc",
        "2147483647",
        "2147483648",
        "1_0",
        "-",
        "-0",
        "9" * 30,
    ],
    "bigint": ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "1", "000000000000000000000005"],
    "smallint": ["32767", "32768", "-32769"],
    "tinyint": ["127", "-128", "128"],
    "double": [
        *[
            "1",
            "+1",
            "1.",
            ".5",
            "1e5",
            "1E+5",
            "1d",
            "2F",
            "0x1p3",
            "NaN",
            "nan",
            "Inf",
            "-Inf",
            "Infinity",
            "-Infinity",
            "+Infinity",
            "inf",
            "1e400",
            "-0",
            "1_0",
            "1,5",
        ],
        *("abc", "5L", "-NaN", "  1.5 ", "", " ", "1 2", "１"),
        *(
            "0x1p99999",
            "-0x1p99999",
            "0x1p-99999",
            "0xp1",
            "0x.p1",
            "0x1.p1",
            "0x.8p1d",
            "0x1p1f",
            "-0x0p5",
            "0x1p" + "9" * 30,
        ),
        *(
            "0x1.00000000000008p0",
            "0x1.000000000000080000001p0",
            "0x1.fffffffffffff8p1023",
            "0x0." + "0" * 400 + "1p1700",
        ),
    ],
    "float": [
        *("1.1", "16777217", "1e40", "0.1", "x", "NaN", "1.00000005960464477539062500001", "3.4028235677973366e38"),
        *(
            "0x1.0000010000000001p0",
            "0x1.000001p0",
            "0x1.000003p0",
            "0x1.ffffffp127",
            "0x1.fffffeffffffffffp127",
            "0x1p-150",
        ),
        *("0x1.00000000000001p-150", "0x1p99999", "0x1p128", "-0x1.8p1"),
    ],
    "boolean": ["true", "TRUE", "True", "false", "t", "1", "0", "yes", " true", ""],
    "decimal(5,2)": [
        *["1", "1.5", "1.555", "1.565", "-1.565", "12345", "999.994", "999.999", "+1", "1e2", "1,5", "abc", "1e99"],
        *(
            " 1",
            "",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "0e9999999",
            "-0e-9999999",
            "1e-9999999",
            "1e2147483648",
        ),
        *(
            "0e-2147483648",
            "1" * 1_200,
            "0." + "4" * 1_200,
            "0.00" + "4" * 1_200 + "e2",
            "9.99" + "4" * 2_000,
            "1e+0002",
            "1e-0002",
        ),
    ],
    "decimal(38,18)": ["1" * 20, "0." + "1" * 18, "0." + "1" * 19, "1e-30"],
    "date": ["2020-01-01", "2020-02-30", "0001-01-01", "9999-12-31", "abc", "", "1582-10-10"],
    "timestamp": [
        "2020-01-01 10:00:00",
        "2020-01-01T10:00:00.5",
        "2020-01-01",
        "2020-01-01 10:00:00.123456",
        "2020-01-01T10:00:00Z",
        "2020-01-01 10:00:00+02:00",
        "2020-03-08 02:30:00",
        "2020-11-01 01:30:00",
        "2020-02-30 10:00:00",
        "2020-01-01 25:00:00",
        "abc",
        "",
        "1850-01-01 00:00:00",
        *(
            "2037-07-01 00:00:00",
            "2038-06-01 00:00:00",
            "2050-01-01 00:00:00",
            "2050-07-01 00:00:00",
            "2119-07-01 12:00:00",
        ),
        *("2050-03-13 02:30:00", "2050-11-06 01:30:00", "9998-07-01 00:00:00"),
        *(
            f"2020-01-01 10:00:00{zone}"
            for zone in ("+18:00", "-18:00", "+18:01", "+18:59", "+19:00", "-23:59", "+30:00")
        ),
    ],
    "timestamp_ntz": [
        "2020-01-01 10:00:00",
        "2020-01-01T10:00:00.5",
        "2020-01-01",
        "2020-03-08 02:30:00",
        "2020-01-01T10:00:00Z",
        "2020-01-01 10:00:00+19:00",
        "2050-07-01 00:00:00",
    ],
    "binary": ["abc", "ü"],
    "string": [" x ", "é", ""],
}


@pytest.mark.parametrize("kind", VALUES)
def test_texts_become_the_values_that_spark_makes_of_them(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    path = tmp_path / "values.csv"
    path.write_text("".join(f"{number}|{text}\n" for number, text in enumerate(VALUES[kind])), encoding="utf-8")
    options = {"sep": "|", "timeZone": "America/New_York"}
    frame = spark.read.options(**options).schema(f"i int, v {kind}").csv(str(path))
    reading = reading_of(CSV, frame.schema.jsonValue(), options, "America/New_York")
    assert all_rows(CSV, data_file(path), reading) == spark_rows(frame)


@pytest.mark.parametrize(
    ("kind", "as_number"),
    [("date", "unix_date(v)"), ("timestamp", "unix_micros(v)"), ("timestamp_ntz", "CAST(v AS STRING)")],
)
def test_days_that_python_does_not_have_are_read_as_spark_reads_them(
    spark: "SparkSession", tmp_path: Path, kind: str, as_number: str
) -> None:
    """Beside a day that no calendar has, and a time that the clock skipped."""
    path = tmp_path / "values.csv"
    times = () if kind == "date" else ("9999-12-31 23:00:00", "2020-03-08 02:30:00", "0000-06-01 00:00:00")
    path.write_text("".join(f"{text}\n" for text in ("0000-01-01", "2020-02-30", "0000-12-31", "0000-02-30", *times)))
    options = {"timeZone": "America/New_York"}
    frame = spark.read.options(**options).schema(f"v {kind}").csv(str(path))
    reading = reading_of(CSV, frame.schema.jsonValue(), options, "America/New_York")
    (found,) = (part.records.column("v") for part in CSV.read(data_file(path), reading))
    seen = found.cast(pa.int32() if kind == "date" else pa.int64()).to_pylist()
    expected = [row[0] for row in frame.selectExpr(as_number).collect()]
    if kind == "timestamp_ntz":
        at = spark.createDataFrame([(text,) for text in expected], "v string").selectExpr(
            "unix_micros(CAST(v || ' UTC' AS TIMESTAMP))"
        )
        expected = [row[0] for row in at.collect()]
    assert seen == expected


def test_a_header_of_very_many_fields_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("a" + "," * 200_000 + "\n")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_SCHEMA\].*200,001 fields"):
        reading_of(CSV, data_file(path), {"header": "true"})
    path.write_text(",".join(f"c{n}" for n in range(20_480)) + "\n")
    assert len(reading_of(CSV, data_file(path), {"header": "true"}).columns) == 20_480


@pytest.mark.parametrize(
    ("kind", "text"), [("int", "１"), ("date", "2020-1"), ("timestamp", "10:00"), ("decimal(5,2)", "１")]
)
def test_a_text_that_only_spark_can_judge_is_refused(tmp_path: Path, kind: str, text: str) -> None:
    path = tmp_path / "values.csv"
    path.write_text(f"{text}\n", encoding="utf-8")
    kind_json = {"int": "integer"}.get(kind, kind)
    reading = reading_of(CSV, {"type": "struct", "fields": [{"name": "v", "type": kind_json}]})
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_TEXT_VALUE\].*column v of file://"):
        all_rows(CSV, data_file(path), reading)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("x,y\n1,2\n", {}),
        ("x,y\n1,2\n", {"header": "true"}),
        ("\n \nx,x,X,,y\n1,2\n", {"header": "true"}),
        ('"x","a b", c\n1,2\n', {"HEADER": "TRUE"}),
        ("x;y", {"header": "true", "sep": ";"}),
    ],
)
def test_columns_are_named_as_spark_names_them(
    spark: "SparkSession", tmp_path: Path, text: str, options: dict[str, str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    frame = spark.read.options(**options).csv(str(path))
    reading = reading_of(CSV, data_file(path), options)
    assert reading == reading_of(CSV, frame.schema.jsonValue(), options)
    assert all_rows(CSV, data_file(path), reading) == spark_rows(frame)


def test_columns_can_be_chosen_and_ordered(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,2,3\n4,5\n")
    reading = reading_of(CSV, data_file(path), {"header": "true"})
    assert all_rows(CSV, data_file(path), reading, ["c", "a"]) == [("3", "1"), (None, "4")]
    assert all_rows(CSV, data_file(path), reading, []) == [(), ()]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "FAILFAST"},
        {"comment": "#"},
        {"encoding": "UTF-16"},
        {"encoding": "ISO-8859-1", "multiLine": "true"},
        {"sep": "||"},
        {"ignoreLeadingWhiteSpace": "true"},
        {"dateFormat": "dd/MM/yyyy"},
        {"someOptionOfTheFuture": "1"},
        {"multiLine": "true", "lineSep": ";"},
    ],
)
def test_options_that_only_spark_honours_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    schema = {"type": "struct", "fields": [{"name": "v", "type": "string"}]}
    with pytest.raises(Unsupported) as raised:
        all_rows(CSV, data_file(path), reading_of(CSV, schema, options))
    assert raised.value.code == "UNSUPPORTED_READER_OPTION"


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,\xff\n")
    schema = {"type": "struct", "fields": [{"name": "v", "type": "string"}]}
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_ENCODING\].*UTF-8"):
        all_rows(CSV, data_file(path), reading_of(CSV, schema))


def test_a_refusal_names_no_value_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('fine,1\n"secret"value,2\n')
    schema = {"type": "struct", "fields": [{"name": "v", "type": "string"}]}
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_QUOTES\].*record at byte 7 of") as raised:
        all_rows(CSV, data_file(path), reading_of(CSV, schema))
    assert "secret" not in str(raised.value)
