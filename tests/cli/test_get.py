"""`grebe get`: rows by the value of a column, typed as text, with an index and without."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from grebe.cli.main import main


def grebe(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def told(*arguments: str) -> Any:
    result = grebe(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def ids(*arguments: str) -> list[int]:
    return sorted(row["id"] for row in told("get", *arguments))


@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("id", ["-1"], [-1]),
        ("id", ["12", "-1", "12", "99999999999999999999"], [-1, 12]),
        ("ID", ["12"], [12]),
        ("email", ["p8@example.org"], [7]),
        ("email", ["nobody"], []),
        ("amount", ["2.5"], [9]),
        ("amount", ["2.504"], []),
        ("born", ["1970-01-05"], [3]),
        ("seen", ["2024-01-01T03:00:00Z"], [2]),
        ("seen", ["2024-01-01 03:00:00"], [2]),
        ("seen", ["2024-01-01 05:00:00+02:00"], [2]),
        ("score", ["0.25"], [0]),
        ("score", ["NaN"], [n - 1 for n in range(0, 300, 10)]),
        ("raw", ["0x05FF"], [4, 260]),
        ("address.zip", ["250"], [249]),
        ("address.city", ["city 3"], [2, 52, 102, 152, 202, 252]),
    ],
)
def test_values_are_read_by_the_type_of_the_column(
    people: str, column: str, values: list[str], found: list[int]
) -> None:
    assert ids(people, column, *values) == found


@pytest.mark.spark
@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("id", ["-1"], [-1]),
        ("id", ["12", "298"], [12, 298]),
        ("email", ["p8@example.org"], [7]),
        ("address.city", ["city 3"], [2, 52, 102, 152, 202, 252]),
    ],
)
def test_an_index_gives_the_same_rows(indexed: str, column: str, values: list[str], found: list[int]) -> None:
    assert ids(indexed, column, *values) == found


@pytest.mark.spark
def test_people_are_told_which_index_was_used_and_what_was_read(indexed: str) -> None:
    last = grebe("get", indexed, "id", "5").stdout.splitlines()[-1]
    assert last.startswith("1 row; index by_id; ")
    assert last.endswith(" bytes.")


def test_without_an_index_it_is_said_that_all_files_were_read(people: str) -> None:
    assert "1 row; no index on id: all files were read; " in grebe("get", people, "id", "5").stdout


def test_rows_without_a_value_are_asked_for_by_name(people: str) -> None:
    assert ids(people, "email", "--null") == [6]
    assert ids(people, "email", "p8@example.org", "--null") == [6, 7]
    assert ids(people, "email", "NULL") == []


def test_just_some_columns_can_be_shown(people: str) -> None:
    assert told("get", people, "id", "5", "--columns", "amount,`id`") == [{"amount": 1.5, "id": 5}]


def test_every_type_has_its_form_in_json(people: str) -> None:
    line = grebe("get", people, "id", "-1", "--json").stdout.splitlines()[1]
    assert '"amount": 0.00,' in line
    assert json.loads(line) == {
        "id": -1,
        "email": "p0@example.org",
        "amount": 0,
        "born": "1970-01-01",
        "seen": "2024-01-01T00:00:00+00:00",
        "score": "NaN",
        "raw": "0x00FF",
        "address": {"city": "city 0", "zip": 0},
        "tags": ["p0@example.org"],
    }


def test_values_beyond_pythons_calendar_and_maps_have_a_form_too(tmp_path: Path) -> None:
    columns = {
        "id": [1],
        "day": pa.array([3_000_000], pa.int32()).view(pa.date32()),
        "infinite": [float("-inf")],
        "of": pa.array([[(b"\x01", None)]], pa.map_(pa.binary(), pa.int64())),
        "none": pa.array([[]], pa.map_(pa.string(), pa.int64())),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (row,) = told("get", str(tmp_path), "id", "1")
    assert row == {"id": 1, "day": "10183-09-21", "infinite": "-Infinity", "of": {"0x01": None}, "none": {}}


def test_people_see_null_and_no_control_characters(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "text": ["\x1b[31mred\n"], "gone": [None]}), tmp_path / "a.parquet")
    shown = grebe("get", str(tmp_path), "id", "1").stdout
    assert r"\x1b[31mred\n" in shown
    assert "\x1b" not in shown
    assert "NULL" in shown


def test_a_row_too_wide_for_the_terminal_is_shown_one_value_a_line(
    people: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grebe.cli.output._is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    lines = grebe("get", people, "id", "-1", "5").stdout.splitlines()
    assert lines[0] == "-- row 1"
    assert "amount   0.00" in lines
    assert "-- row 2" in lines


def test_a_terminal_is_not_flooded(people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grebe.cli.output._MOST_SHOWN", 2)
    arguments = ["get", people, "address.city", "city 3", "--columns", "id"]
    assert "152" in grebe(*arguments).stdout
    monkeypatch.setattr("grebe.cli.output._is_terminal", lambda: True)
    shown = grebe(*arguments).stdout
    assert "… and 4 more, which a file, a pipe and --json get as well.\n6 rows; " in shown
    assert "152" not in shown


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["id", "five"], "INVALID_PREDICATE_VALUE"),
        (["id", "5.0"], "INVALID_PREDICATE_VALUE"),
        (["id", "1", ""], "INVALID_PREDICATE_VALUE"),
        (["born", "tomorrow"], "INVALID_PREDICATE_VALUE"),
        (["raw", "abc"], "INVALID_PREDICATE_VALUE"),
        (["emial", "x"], "INVALID_PREDICATE_UNKNOWN_COLUMN"),
        (["tags", "x"], "INVALID_PREDICATE_TYPE_MISMATCH"),
        (["address", "x"], "INVALID_PREDICATE_TYPE_MISMATCH"),
        (["id", "1", "--columns", "nope"], "INVALID_PREDICATE_NO_COLUMN"),
    ],
)
def test_what_cannot_be_asked_is_one_line_with_a_code_and_without_the_value(
    people: str, arguments: list[str], code: str
) -> None:
    result = grebe("get", people, *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: [{code}]")
    assert len(result.stderr.splitlines()) == 1
    assert "five" not in result.stderr


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    result = grebe("get", str(tmp_path / "nowhere"), "id", "1")
    assert result.exit_code == 1
    assert "[TABLE_NOT_FOUND" in result.stderr


@pytest.mark.parametrize("arguments", [["t"], ["t", "id"], ["t", "id", "1", "--colums", "a"], []])
def test_wrong_use_ends_with_2(arguments: list[str]) -> None:
    assert grebe("get", *arguments).exit_code == 2


@pytest.mark.spark
def test_lookups_load_no_spark(indexed: str) -> None:
    code = f"""
import sys
from click.testing import CliRunner
from grebe.cli.main import main
for arguments in (["get", {indexed!r}, "id", "5"], ["files", {indexed!r}, "id = 5"], ["find", "5", "--table", {indexed!r}]):
    assert CliRunner().invoke(main, arguments).exit_code == 0
print(sorted({{"pyspark", "py4j"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"
