"""JSON lines and plain text without Spark: what Spark reads, or a refusal."""

import contextlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grebe.errors import Unsupported
from grebe.formats import text_records
from grebe.formats.json_lines import JSON_LINES
from grebe.formats.text import TEXT
from tests.formats.reading_back import Row, all_rows, comparable, data_file, reading_of, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEMA = "a int, b string, c double, s struct<x:bigint,y:array<float>>, d date, t timestamp, n timestamp_ntz, f boolean"


def test_generated_files_are_read_as_spark_reads_them_or_refused(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(3)
    values: dict[str, list[object]] = {
        "a": [1, -5, None, 2**31, 1.0, "1"],
        "b": ["x", "", "é\n", None, '"', 5, True],
        "c": [1, 1.5, -0.0, 1e300, None, "NaN"],
        "s": [{"x": 1, "y": [0.1, None]}, {}, None, {"y": []}, {"x": "q"}],
        "d": ["2020-01-01", None, "2020-02-30", "2020-1-1"],
        "t": ["2020-01-01T10:00:00Z", "2020-03-08 02:30:00", None, 5],
        "n": ["2020-01-01 10:00:00", None],
        "f": [True, False, None, "true"],
        "other": [1, [], {"a": 1}],
    }
    odd = [
        "",
        "  ",
        "null",
        "[]",
        '{"a":1} {"a":2}',
        '{"a":1},"x":2',
        '{"a":',
        "{'a':1}",
        '{"a":1,"a":2}',
        "{}",
        "5",
        '{"A":1}',
    ]
    for number in range(200):
        lines = []
        for _ in range(chance.randrange(1, 5)):
            # The first values of each list are plain, the last ones odd: mostly plain ones, so that many files are
            # read.
            record = {
                name: chance.choice(of[: chance.choice([3, 3, 3, 3, 9])])
                for name, of in values.items()
                if chance.random() < 0.6
            }
            lines.append(json.dumps(record) if chance.random() < 0.9 else chance.choice(odd))
        end = chance.choice(["\n", "\r\n", "\r"])
        (tmp_path / f"{number:03}.json").write_bytes((end.join(lines) + chance.choice(["", end])).encode() or b"\n")
    frame = spark.read.schema(SCHEMA).option("timeZone", "America/New_York").json(str(tmp_path))
    expected: dict[str, list[Row]] = {}
    for row in frame.selectExpr("_metadata.file_name", "*").collect():
        expected.setdefault(row[0], []).append(tuple(comparable(value) for value in row[1:]))
    reading = reading_of(JSON_LINES, frame.schema.jsonValue(), time_zone="America/New_York")
    monkeypatch.setattr(text_records, "_CHUNK_BYTES", 64)
    understood = {}
    for path in sorted(tmp_path.glob("*.json")):
        with contextlib.suppress(Unsupported):
            understood[path.name] = all_rows(JSON_LINES, data_file(path), reading)
    assert understood == {file: expected.get(file, []) for file in understood}
    assert len(understood) > 40


NUMBERS = (
    *("1", "1.5", "-1.5", "0", "0.0", "-0.0", "-0", "16777217", "16777219", "-16777217", "1e40", "-1e-60", "1e-46"),
    *(
        "1.00000005960464477539062500001",
        "1.000000059604644775390625",
        "3.4028235677973366e38",
        "3.4028235677973362e38",
    ),
    *("7.0064923216240853546186479164495807e-46", "7.0064923216240853546186479164495806e-46", "7.006492321624085e-46"),
    *("1e400", "1E5", "null", '"NaN"'),
)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_rounded_as_spark_rounds_them_or_refused(
    spark: "SparkSession", tmp_path: Path, number: str
) -> None:
    schema = "f float, d double, s struct<f:float,l:array<double>>"
    (tmp_path / "t.json").write_text(
        f'{{"f":{number},"d":{number},"s":{{"f": {number} ,"l":[{number},1,{number}]}}}}\n{{"f":0.25}}\n'
    )
    frame = spark.read.schema(schema).json(str(tmp_path))
    reading = reading_of(JSON_LINES, frame.schema.jsonValue())
    for names in (["f"], ["d"], ["s"]):
        with contextlib.suppress(Unsupported):
            read = all_rows(JSON_LINES, data_file(tmp_path / "t.json"), reading, names)
            assert repr(read) == repr(spark_rows(frame.select(*names))), names


def test_integers_and_zeros_of_numbers_with_fractions_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"f":16777217}\n{"f":-0}\n{"f":3}\n')
    schema = {"type": "struct", "fields": [{"name": "f", "type": "float"}]}
    read = all_rows(JSON_LINES, data_file(tmp_path / "t.json"), reading_of(JSON_LINES, schema))
    assert repr(read) == "[(16777216.0,), (0.0,), (3.0,)]"


def test_a_file_without_line_end_or_with_a_mark_is_read_from_its_first_byte(
    spark: "SparkSession", tmp_path: Path
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\n\n{"a":2}')
    frame = spark.read.schema("a int").json(str(path))
    file, reading = data_file(path), reading_of(JSON_LINES, frame.schema.jsonValue())
    assert all_rows(JSON_LINES, file, reading) == spark_rows(frame)
    offsets = [span for part in JSON_LINES.read(file, reading) for span in part.locators.to_pylist()]
    assert offsets == [{"offset": 3, "length": 7}, {"offset": 12, "length": 7}]


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"a":1,"b":"x"}\n{"b":"y"}\n')
    schema = {"type": "struct", "fields": [{"name": "a", "type": "integer"}, {"name": "b", "type": "string"}]}
    reading = reading_of(JSON_LINES, schema)
    assert all_rows(JSON_LINES, data_file(path), reading, ["b"]) == [("x",), ("y",)]
    assert all_rows(JSON_LINES, data_file(path), reading, []) == [(), ()]


@pytest.mark.parametrize("options", [{"multiLine": "true"}, {"mode": "DROPMALFORMED"}, {"timestampFormat": "yyyy"}])
def test_options_that_only_spark_honours_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    path = tmp_path / "t.json"
    path.write_text("{}\n")
    schema = {"type": "struct", "fields": [{"name": "a", "type": "integer"}]}
    with pytest.raises(Unsupported, match="cannot be read without Spark"):
        all_rows(JSON_LINES, data_file(path), reading_of(JSON_LINES, schema, options))


def test_the_schema_must_be_known(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("{}\n")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_SCHEMA\].*give `schema`"):
        reading_of(JSON_LINES, data_file(path))


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"a\nb\r\n\r\rc", {}),
        (b"\n\n\n", {}),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", {}),
        (b"a||b||", {"lineSep": "||"}),
        (b"a\r\nb", {"lineSep": "\n"}),
        ("Grüße 🐟\u2028\x85x\n".encode(), {}),
    ],
)
def test_text_is_cut_as_spark_cuts_it(
    spark: "SparkSession", tmp_path: Path, data: bytes, options: dict[str, str]
) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(data)
    frame = spark.read.options(**options).text(str(path))
    assert all_rows(TEXT, data_file(path), reading_of(TEXT, data_file(path), options)) == spark_rows(frame)


def test_whole_files_as_one_record_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("a\n")
    with pytest.raises(Unsupported, match="wholetext"):
        all_rows(TEXT, data_file(path), reading_of(TEXT, data_file(path), {"wholetext": True}))
