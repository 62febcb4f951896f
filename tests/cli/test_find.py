"""`grebe find`: where a value occurs, and what had to be read to know."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from grebe.cli.main import main


def grebe(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["find", *arguments])


def places(*arguments: str) -> list[tuple[str, str, int]]:
    result = grebe(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return sorted((one["column"], one["file"].rpartition("/")[2], one["row"]) for one in found)


def test_a_text_is_looked_for_in_all_columns_of_text(people: str) -> None:
    assert places("p5@example.org", "--table", people) == [("email", "part-0.parquet", 5)]


def test_a_number_is_looked_for_as_text_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [41, 42], "note": ["42", "a"], "price": [42.0, 0.5]}), tmp_path / "a.parquet")
    assert places("42", "--table", str(tmp_path)) == [
        ("id", "a.parquet", 1),
        ("note", "a.parquet", 0),
        ("price", "a.parquet", 0),
    ]


@pytest.mark.parametrize(
    ("value", "column", "row"),
    [
        ("-1", "id", 0),
        ("2.25", "amount", 9),
        ("1970-01-05", "born", 4),
        ("2024-01-01T03:00:00Z", "seen", 3),
        ("0x05FF", "raw", 5),
        ("city 3", "address.city", 3),
    ],
)
def test_a_text_is_looked_for_as_whatever_it_spells(people: str, value: str, column: str, row: int) -> None:
    assert (column, "part-0.parquet", row) in places(value, "--table", people)


@pytest.mark.spark
def test_several_values_in_several_tables_and_it_is_said_which_columns_were_scanned(indexed: str, people: str) -> None:
    tables = ["--table", indexed, "--table", people]
    found = json.loads(grebe("p5@example.org", "p250@example.org", *tables, "--json").stdout)
    assert {(one["table"], one["row"], one["indexed"]) for one in found} == {
        (indexed, 5, True),
        (indexed, 50, True),
        (people, 5, False),
        (people, 50, False),
    }
    shown = grebe("p5@example.org", *tables).stdout
    assert "Found 2 times." in shown
    assert f"Scanned, for want of an index: email, address.city of {people}." in shown
    assert [line for line in shown.splitlines() if line.startswith("Scanned") and indexed in line] == []
    assert f"Not searched, since it lies in arrays or maps: tags of {people}." in shown


def test_columns_can_be_named(people: str) -> None:
    assert places("city 3", "--table", people, "--columns", "email,amount") == []
    assert len(places("city 3", "--table", people, "--columns", "address")) == 6


@pytest.mark.parametrize("value", ["2024-13-45", "0xabc", "1e", "nothing at all"])
def test_what_only_looks_like_a_date_or_a_number_is_text(people: str, value: str) -> None:
    assert places(value, "--table", people) == []


def test_what_fails_is_one_line_with_a_code(people: str, tmp_path: Path) -> None:
    missing = grebe("x", "--table", people, "--table", str(tmp_path / "nowhere"))
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert missing.stderr.startswith("error: [TABLE_NOT_FOUND")
    unknown = grebe("x", "--table", people, "--columns", "emial")
    assert unknown.exit_code == 1
    assert unknown.stderr.startswith("error: [INVALID_PREDICATE_UNKNOWN_COLUMN]")


@pytest.mark.parametrize("arguments", [[], ["x"], ["--table", "t"], ["x", "--table", "t", "--option", "secret"]])
def test_wrong_use_ends_with_2(arguments: list[str]) -> None:
    assert grebe(*arguments).exit_code == 2
