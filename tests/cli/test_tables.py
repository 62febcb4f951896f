"""`grebe list` and `grebe history`: tables for people, arrays for programs, one line for what goes wrong."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from grebe.cli.main import main
from grebe.files import canonical_uri
from grebe.log.location import beside
from tests.test_open import index, write


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "my orders"
    write(table, "a.parquet", "b.parquet")
    return table


def test_list_shows_the_indexes_of_a_table(table: Path) -> None:
    index(table, beside(canonical_uri(str(table))))
    shown = CliRunner().invoke(main, ["list", str(table)])
    assert shown.exit_code == 0
    assert "by_id" in shown.output
    (row,) = json.loads(CliRunner().invoke(main, ["list", str(table), "--json"]).output)
    assert row["name"] == "by_id"
    assert row["columns"] == ["id"]
    assert (row["state"], row["files_covered"], row["rows"], row["bytes"]) == ("ACTIVE", 2, 3, 7)


def test_a_table_without_indexes_has_an_empty_list_and_history(table: Path) -> None:
    for verb in ("list", "history"):
        assert json.loads(CliRunner().invoke(main, [verb, str(table), "--json"]).output) == []
        assert CliRunner().invoke(main, [verb, str(table)]).exit_code == 0


def test_history_is_one_line_a_commit_newest_last(table: Path) -> None:
    index(table, beside(canonical_uri(str(table))))
    told = json.loads(CliRunner().invoke(main, ["history", str(table), "--json"]).output)
    assert [entry["number"] for entry in told] == [0, 1, 2, 3]
    assert told[-1]["changes"] == ["index by_id created: lookup on id, covers 2 files", "done"]
    newest = json.loads(CliRunner().invoke(main, ["history", str(table), "--json", "--limit", "1"]).output)
    assert newest == told[-1:]
    assert "2 files registered" in CliRunner().invoke(main, ["history", str(table)]).output


def test_indexes_elsewhere_are_found_by_location(table: Path, tmp_path: Path) -> None:
    index(table, str(tmp_path / "elsewhere"))
    found = CliRunner().invoke(main, ["list", str(table), "--location", str(tmp_path / "elsewhere"), "--json"])
    assert [row["name"] for row in json.loads(found.output)] == ["by_id"]


def test_a_folder_that_is_no_table_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    failed = CliRunner().invoke(main, ["list", str(tmp_path / "nowhere")])
    assert failed.exit_code == 1
    assert "[TABLE_NOT_FOUND" in failed.stderr
    assert "Traceback" not in failed.output + failed.stderr


@pytest.mark.parametrize(
    "wrong", [["list"], ["history", "t", "--limit", "0"], ["list", "t", "-o", "secret"], ["lisst"]]
)
def test_wrong_use_is_exit_code_2_and_shows_no_secret(wrong: list[str]) -> None:
    failed = CliRunner().invoke(main, wrong)
    assert failed.exit_code == 2
    assert "secret" not in failed.output + failed.stderr
