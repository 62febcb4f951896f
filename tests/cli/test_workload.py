"""`grebe workload`: what was recorded, for people and for programs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from grebe.cli.main import main
from grebe.config import Config
from grebe.session.table import open as open_table
from tests.session.people_lake import write_people


@pytest.fixture
def asked(tmp_path: Path) -> str:
    """A table that was asked three times for an id, and once for a name."""
    path = write_people(tmp_path / "people")
    table = open_table(path, config=Config(record_workload=True))
    for number in range(3):
        table.get("id", number, columns=["email"])
    table.scan("email = 'p8@example.org'", columns=["id"])
    assert table.workload().num_rows == 4
    return path


def run(*words: str) -> str:
    ran = CliRunner().invoke(main, ["workload", *words])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_shapes_are_counted_those_that_took_longest_first(asked: str) -> None:
    shapes = json.loads(run(asked, "--json"))
    assert {one["shape"]: one["queries"] for one in shapes} == {
        "SELECT email FROM people WHERE id = ?": 3,
        "SELECT id FROM people WHERE email = ?": 1,
    }
    assert [one["milliseconds"] for one in shapes] == sorted((one["milliseconds"] for one in shapes), reverse=True)
    assert sum(one["percent"] for one in shapes) == pytest.approx(100, abs=0.2)
    assert all(one["bytes"] > 0 for one in shapes)
    assert len(json.loads(run(asked, "--json", "--limit", "1"))) == 1


def test_single_queries_are_shown_with_their_values(asked: str) -> None:
    queries = json.loads(run(asked, "--queries", "--json", "--limit", "2"))
    assert [one["predicates"] for one in queries] == [["id = 2L"], ["email = 'p8@example.org'"]]
    assert queries[1]["rows"] == 1


def test_people_see_a_table(asked: str) -> None:
    shown = run(asked)
    assert "SELECT email FROM people WHERE id = ?" in shown
    assert "p8@example.org" not in shown
    assert "p8@example.org" in run(asked, "--queries")


def test_it_can_be_forgotten(asked: str) -> None:
    assert json.loads(run(asked, "--clear", "--json")) == {"removed": 1}
    assert json.loads(run(asked, "--json")) == []
    assert "record_workload" in run(asked)
