"""`grebe files`: which files, and which rows of them, can match a predicate."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grebe.cli.main import main
from tests.session.people_lake import FILES


def grebe(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def told(*arguments: str) -> Any:
    result = grebe("files", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def names(answer: Any) -> list[tuple[str, Any]]:
    return [(file["path"].rpartition("/")[2], file["rows"]) for file in answer["files"]]


@pytest.mark.spark
def test_an_index_names_the_rows(indexed: str) -> None:
    answer = told(indexed, "id = 150")
    assert names(answer) == [("part-1.parquet", [51])]
    assert (answer["covered"], answer["uncovered"], answer["pruned"], answer["index"]) == (FILES, 0, FILES - 1, "by_id")
    assert answer["bytes"] >= 0
    assert answer["requests"] >= 0
    assert answer["table_version"] is None
    assert isinstance(answer["log_version"], int)


@pytest.mark.spark
def test_a_value_that_is_nowhere_leaves_no_file(indexed: str) -> None:
    answer = told(indexed, "id = 12345")
    assert (answer["files"], answer["pruned"]) == ([], FILES)


@pytest.mark.spark
def test_people_get_the_rows_and_a_line_that_sums_up(indexed: str) -> None:
    shown = grebe("files", indexed, "address.city = 'city 3'").stdout
    assert "part-0.parquet" in shown
    assert "3, 53" in shown
    assert f"{FILES} of {FILES} files can hold such rows: index by_city, 0 ruled out; " in shown
    many = grebe("files", indexed, "id < 30").stdout
    assert "8, 9, … (31)" in many


def test_without_an_index_all_files_are_named_and_it_is_said_why(people: str) -> None:
    answer = told(people, "id = 150")
    assert names(answer) == [(f"part-{number}.parquet", None) for number in range(FILES)]
    assert (answer["covered"], answer["uncovered"], answer["pruned"], answer["index"]) == (0, FILES, 0, None)
    shown = grebe("files", people, "id = 150").stdout
    assert f"{FILES} of {FILES} files can hold such rows; no index helps with this." in shown


@pytest.mark.parametrize(
    ("predicate", "code"),
    [
        ("id = ", "INVALID_PREDICATE"),
        ("emial = 'x'", "INVALID_PREDICATE_UNKNOWN_COLUMN"),
        ("id = DATE '2024-01-01'", "INVALID_PREDICATE_TYPE_MISMATCH"),
    ],
)
def test_a_bad_predicate_is_one_line_with_a_code(people: str, predicate: str, code: str) -> None:
    result = grebe("files", people, predicate)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: [{code}")
    assert "Traceback" not in result.stderr


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    result = grebe("files", str(tmp_path / "nowhere"), "id = 1")
    assert result.exit_code == 1
    assert "[TABLE_NOT_FOUND" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["t"], ["t", "a = 1", "b = 2"]])
def test_wrong_use_ends_with_2(arguments: list[str]) -> None:
    assert grebe("files", *arguments).exit_code == 2
