"""What the readers without Spark refuse, by its code. None of it needs Spark."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidConfig, UnreadableFile, Unsupported
from grebe.formats import Column, Reading, parquet
from grebe.formats.csv import CSV
from grebe.formats.json_lines import JSON_LINES
from grebe.formats.parquet import PARQUET
from tests.formats.reading_back import all_rows, data_file, reading_of

TEXT_COLUMN = {"type": "struct", "fields": [{"name": "v", "type": "string"}]}


def written(folder: Path, table: dict[str, Any], metadata: dict[str, str] | None = None) -> Path:
    path = folder / "t.parquet"
    pq.write_table(pa.table(table).replace_schema_metadata(metadata), path)
    return path


def as_columns(*columns: Column) -> Reading:
    return Reading.of("parquet", PARQUET.options.of_reading({}), columns, "UTC", local_times=False)


def test_lines_that_end_in_two_ways_are_left_to_spark_where_records_span_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\nb\r\n")
    with pytest.raises(Unsupported, match=r"t\.csv mixes kinds of line breaks; with multiLine only Spark") as refused:
        all_rows(CSV, data_file(path), reading_of(CSV, TEXT_COLUMN, {"multiLine": "true"}))
    assert refused.value.code == "UNSUPPORTED_LINE_BREAKS"


def test_types_that_spark_would_infer_ask_for_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1,2\n")
    with pytest.raises(Unsupported, match="inferSchema needs Spark; give a schema") as refused:
        reading_of(CSV, data_file(path), {"inferSchema": "true"})
    assert refused.value.code == "UNSUPPORTED_SCHEMA"


def test_a_table_of_json_lines_says_when_it_is_asked_for_its_columns_that_spark_must_find_them(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"a":1}\n')
    table = grebe.open(str(tmp_path))
    with pytest.raises(Unsupported, match="create an index with Spark, which records it") as refused:
        table.get("a", 1)
    assert refused.value.code == "UNSUPPORTED_SCHEMA"


@pytest.mark.parametrize("line", ['{"a":1} {"a":2}', '{"a":3000000000}', '{"a":"x"}'])
def test_json_that_is_not_of_the_tables_types_is_left_to_spark(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(f"{line}\n")
    schema = {"type": "struct", "fields": [{"name": "a", "type": "integer"}]}
    with pytest.raises(Unsupported, match=r"t\.json.*; only Spark knows what it makes of them") as refused:
        all_rows(JSON_LINES, data_file(path), reading_of(JSON_LINES, schema))
    assert refused.value.code == "UNSUPPORTED_JSON_VALUE"


def test_bytes_that_mean_nothing_in_the_encoding_are_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\n")
    with pytest.raises(Unsupported, match=r"t\.csv is not US-ASCII throughout; read it through Spark") as refused:
        all_rows(CSV, data_file(path), reading_of(CSV, TEXT_COLUMN, {"encoding": "US-ASCII"}))
    assert refused.value.code == "UNSUPPORTED_ENCODING"


def test_two_columns_that_differ_in_case_only_are_not_guessed_between(tmp_path: Path) -> None:
    path = written(tmp_path, {"ab": [1], "AB": [2]})
    with pytest.raises(Unsupported, match="2 columns called Ab in different case: ab, AB; only Spark with") as refused:
        all_rows(PARQUET, data_file(path), as_columns(Column("Ab", "long")))
    assert refused.value.code == "UNSUPPORTED_NAMES"


def test_a_file_without_ids_is_not_searched_by_them(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": [1]})
    with pytest.raises(Unsupported, match=r"t\.parquet does not tell the ids.* column a .* reader in Spark") as refused:
        all_rows(PARQUET, data_file(path), as_columns(Column("a", "long", ids=(1,))))
    assert refused.value.code == "UNSUPPORTED_FIELD_IDS"


def test_a_column_that_only_the_tables_own_reader_knows_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": [1]})
    with pytest.raises(Unsupported, match=r"column a of .*t\.parquet: renamed within; .* in Spark") as refused:
        all_rows(PARQUET, data_file(path), as_columns(Column("a", "long", foreign="renamed within")))
    assert refused.value.code == "UNSUPPORTED_FOREIGN_COLUMN"


def test_dates_of_the_old_calendar_are_left_to_spark(tmp_path: Path) -> None:
    days = pa.array([-200_000], pa.date32())
    path = written(tmp_path, {"d": days}, {"org.apache.spark.legacyDateTime": ""})
    with pytest.raises(Unsupported, match=r"t\.parquet holds dates or times of long ago.* only Spark") as refused:
        grebe.open(str(path)).scan("d IS NOT NULL")
    assert refused.value.code == "UNSUPPORTED_OLD_CALENDAR"
    assert grebe.open(str(written(tmp_path, {"d": days}))).scan("d IS NOT NULL").num_rows == 1


def test_a_file_of_another_type_than_the_table_is_unreadable_with_both_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    wrong = r"column a of .*b\.parquet has type string and the table has long; give the table a schema that holds both"
    with pytest.raises(UnreadableFile, match=wrong) as unreadable:
        grebe.open(str(tmp_path)).scan("a IS NOT NULL")
    assert unreadable.value.code == "UNREADABLE_FILE_TYPE"


def test_a_file_that_holds_fewer_rows_than_its_footer_says_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, {"a": [1, 2, 3]})
    whole = parquet._batches

    def short(*given: Any) -> Any:
        return (batch.slice(0, 2) for batch in whole(*given))

    monkeypatch.setattr(parquet, "_batches", short)
    with pytest.raises(UnreadableFile, match=r"t\.parquet has 2 rows and says it has 3") as unreadable:
        list(PARQUET.read(data_file(path), reading_of(PARQUET, data_file(path))))
    assert unreadable.value.code == "UNREADABLE_FILE_ROWS"


def test_local_times_of_a_zone_that_is_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("2020-01-01 10:00:00\n")
    schema = {"type": "struct", "fields": [{"name": "v", "type": "timestamp"}]}
    reading = replace(reading_of(CSV, schema), time_zone="Mars/Olympus")
    with pytest.raises(
        InvalidConfig, match=r"no time zone 'Mars/Olympus'; use a name such as Europe/Berlin"
    ) as refused:
        all_rows(CSV, data_file(path), reading)
    assert refused.value.code == "INVALID_CONFIG_TIME_ZONE"


def test_a_default_of_a_column_is_refused_where_a_file_lacks_the_column(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": [1]})
    assert all_rows(PARQUET, data_file(path), as_columns(Column("a", "long", default="5")))
    with pytest.raises(Unsupported, match=r"column b of .*t\.parquet has a default") as refused:
        all_rows(PARQUET, data_file(path), as_columns(Column("b", "long", default="5")))
    assert refused.value.code == "UNSUPPORTED_COLUMN_DEFAULT"
