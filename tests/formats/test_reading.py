"""Readings: equal if they read the same values, different if they may not."""

import json

import pyarrow as pa
import pytest

from grebe.errors import CorruptLog, Unsupported
from grebe.formats import Column, Reading, format_named, format_of_file
from grebe.formats.csv import CSV
from grebe.formats.parquet import PARQUET
from grebe.formats.reading import columns_of
from grebe.formats.spark_types import arrow_type, spark_type, type_json, type_text
from grebe.formats.unite import merged_columns

STRUCT = '{"type":"struct","fields":[{"name":"x","type":"integer"}]}'
COLUMNS = (Column("a", "integer"), Column("b", STRUCT, ids=(7, 9)), Column("p", "date", partition=True))


def csv_reading(options: dict[str, object], columns: tuple[Column, ...] = COLUMNS, time_zone: str = "UTC") -> Reading:
    return Reading.of("csv", CSV.options.of_reading(options), columns, time_zone, local_times=True, by_position=True)


@pytest.mark.parametrize(
    "options",
    [
        {"sep": ","},
        {"DELIMITER": ","},
        {"header": False},
        {"Header": "FALSE"},
        {"nullValue": None},
        {"path": "/elsewhere", "basePath": "/", "inferSchema": "true", "samplingRatio": 0.1, "mergeSchema": "true"},
    ],
)
def test_what_changes_no_value_is_no_part_of_a_reading(options: dict[str, object]) -> None:
    assert csv_reading(options) == csv_reading({})
    assert csv_reading(options).digest() == csv_reading({}).digest()


@pytest.mark.parametrize(
    "options", [{"sep": ";"}, {"header": True}, {"nullValue": "-"}, {"mode": "FAILFAST"}, {"notYetKnown": "1"}]
)
def test_what_may_change_a_value_makes_another_reading(options: dict[str, object]) -> None:
    assert csv_reading(options) != csv_reading({})
    assert csv_reading(options).digest() != csv_reading({}).digest()


def test_the_time_zone_counts_where_local_times_are_read() -> None:
    times = (Column("t", "timestamp"),)
    assert csv_reading({}, times, "Asia/Tokyo") != csv_reading({}, times)
    assert csv_reading({}, (Column("t", "timestamp_ntz"),), "Asia/Tokyo") == csv_reading(
        {}, (Column("t", "timestamp_ntz"),)
    )
    instants = [Reading.of("parquet", {}, times, zone, local_times=False) for zone in ("UTC", "Asia/Tokyo")]
    assert instants[0] == instants[1]
    folders = (Column("t", "timestamp", partition=True),)
    written = [Reading.of("parquet", {}, folders, zone, local_times=False) for zone in ("UTC", "Asia/Tokyo")]
    assert written[0] != written[1]


def test_a_reading_comes_back_from_json() -> None:
    reading = csv_reading({"header": "true"}, time_zone="Europe/Berlin")
    again = Reading.from_dict(json.loads(json.dumps(reading.to_dict())))
    assert again == reading
    assert again.digest() == reading.digest()


@pytest.mark.parametrize("broken", [{}, {"format": "csv"}, {"columns": [{}]}, {"columns": None, "options": {}}])
def test_a_damaged_reading_is_found_out(broken: dict[str, object]) -> None:
    with pytest.raises(CorruptLog, match=r"\[CORRUPT_LOG_READING\].*reading"):
        Reading.from_dict(broken)


def test_a_default_of_a_column_is_part_of_its_reading() -> None:
    field = {"name": "c", "type": "integer", "nullable": True}
    plain, defaulted = (
        Reading.of("parquet", {}, columns_of({"type": "struct", "fields": [one]}), "UTC", local_times=False)
        for one in ({**field, "metadata": {}}, {**field, "metadata": {"CURRENT_DEFAULT": "6", "EXISTS_DEFAULT": "5"}})
    )
    assert defaulted.columns == (Column("c", "integer", default="5"),)
    assert not plain.agrees_on(defaulted, ["c"])
    assert Reading.from_dict(json.loads(json.dumps(defaulted.to_dict()))) == defaulted
    assert "default" not in json.dumps(plain.to_dict())
    assert merged_columns([defaulted.columns, plain.columns]) == defaulted.columns
    forged = {**defaulted.to_dict(), "columns": [{"name": "c", "type": "integer", "default": 5}]}
    with pytest.raises(CorruptLog):
        Reading.from_dict(forged)


def test_readings_agree_column_by_column_where_columns_have_names() -> None:
    whole = Reading.of("parquet", {}, COLUMNS, "UTC", local_times=False)
    fewer = Reading.of("parquet", {}, COLUMNS[:2], "UTC", local_times=False)
    other_id = Reading.of("parquet", {}, (COLUMNS[0], Column("b", STRUCT, ids=(8, 9))), "UTC", local_times=False)
    assert whole.agrees_on(fewer, ["a", "b"])
    assert not whole.agrees_on(fewer, ["p"])
    assert not whole.agrees_on(other_id, ["b"])
    assert whole.agrees_on(other_id, ["a"])
    in_file = Reading.of("parquet", {}, (Column("p", "date"),), "UTC", local_times=False)
    assert not whole.agrees_on(in_file, ["p"])


def test_readings_by_position_agree_only_on_all_columns_of_the_file() -> None:
    one, two = (csv_reading({}, (Column("a", "integer"), Column(name, "integer"))) for name in "bc")
    assert not one.agrees_on(two, ["a"])
    assert one.agrees_on(csv_reading({}, (*one.columns, Column("p", "date", partition=True))), ["a"])


TYPES = [
    *(
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    ),
    *("void", "decimal(10,2)", "decimal(38,0)", STRUCT, '{"type":"array","elementType":"date"}'),
    f'{{"type":"map","keyType":"string","valueType":{STRUCT}}}',
]


@pytest.mark.parametrize("text", TYPES)
def test_a_type_survives_the_way_to_arrow_and_back(text: str) -> None:
    assert type_text(type_json(text)) == text
    assert type_text(spark_type(arrow_type(type_json(text)))) == text


def test_sparks_json_is_reduced_to_what_counts() -> None:
    field = {
        "name": "s",
        "type": {"type": "array", "elementType": "varchar(3)", "containsNull": False},
        "nullable": False,
        "metadata": {},
    }
    assert columns_of({"type": "struct", "fields": [field]}) == (
        Column("s", '{"type":"array","elementType":"string"}'),
    )
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_TYPE\].*interval"):
        arrow_type("interval day to second")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_TYPE\].*month_day_nano"):
        spark_type(pa.month_day_nano_interval())


def test_formats_are_found_by_name_and_suffix() -> None:
    assert format_named("PARQUET") is PARQUET
    assert format_of_file("a/b.csv.gz") is CSV
    assert format_of_file("a.parquet/b") is None
    assert format_of_file(".parquet") is PARQUET
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_FORMAT\].*no format 'excel'"):
        format_named("excel")
