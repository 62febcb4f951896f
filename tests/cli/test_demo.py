"""`grebe demo` does what it says: two processes, one history, each file one id."""

import json
from pathlib import Path

from click.testing import CliRunner

from grebe.cli.demo import FILES
from grebe.cli.main import main


def test_two_processes_give_each_file_one_id() -> None:
    result = CliRunner().invoke(main, ["demo", "--json"])
    assert result.exit_code == 0, result.output
    entries = json.loads(result.stdout)
    assert [entry["number"] for entry in entries] == list(range(len(entries)))
    assert [id for entry in entries for id in entry["ids"]] == list(range(FILES))
    # The one that made the table, and the two that raced.
    assert len({entry["process"] for entry in entries}) == 3


def test_people_are_told_what_happened_and_find_the_table_where_they_asked_for_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert f"{FILES} files have {FILES} different ids" in result.stdout
    assert len(list((tmp_path / "orders").glob("*.parquet"))) == FILES
    assert (tmp_path / "_grebe" / "orders" / "log").is_dir()
