"""`grebe demo` does what it says: two processes, one history, each file one id; queries that indexes make no different; and lookups
that read less than a scan."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from grebe.cli.demos import needle, queries
from grebe.cli.demos.racing import FILES
from grebe.cli.main import main
from tests.cli.small_demo import make_small

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make_small(monkeypatch)
    monkeypatch.chdir(tmp_path)


def test_programs_are_told_of_the_race_the_queries_and_the_lookups(spark: "SparkSession") -> None:
    result = CliRunner().invoke(main, ["demo", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    entries = told["log"]
    assert [entry["number"] for entry in entries] == list(range(len(entries)))
    assert [id for entry in entries for id in entry["ids"]] == list(range(FILES))
    # The one that made the table, and the two that raced.
    assert len({entry["process"] for entry in entries}) == 3
    assert [row["query"] for row in told["queries"]][: len(queries.QUERIES)] == list(queries.QUERIES)
    assert len(told["queries"]) == len(queries.QUERIES) + 1
    scan, first, more = told["lookups"]
    assert scan["requests"] >= needle.FILES
    assert first["bytes"] < scan["bytes"]
    assert more["bytes"] < scan["bytes"]
    assert more["requests"] <= first["requests"]
    assert {"by_customer", "by_day", "skip", "customers"} >= {name for row in told["queries"] for name in row["used"]}
    page = Path(told["report"]).read_text(encoding="utf-8")
    assert all(f"{row['query']}: {row['times_faster']} times as fast" in page for row in told["queries"])
    assert page.count("<svg") >= len(told["queries"]) + 2


def test_people_are_told_what_happened_and_find_the_tables_where_they_asked_for_them(
    spark: "SparkSession", tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["demo", "--folder", str(tmp_path), "--report", str(page)])
    assert result.exit_code == 0, result.output
    assert page.exists()
    assert f"{FILES} files have {FILES} different ids" in result.stdout
    assert "times faster" in result.stdout
    assert "times fewer bytes" in result.stdout
    assert len(list((tmp_path / "orders").glob("*.parquet"))) == FILES
    assert (tmp_path / "_grebe" / "orders" / "log").is_dir()
    assert (tmp_path / "_grebe" / "events" / "data" / "by_id").is_dir()
    assert sorted(path.name for path in (tmp_path / "_grebe" / "sales" / "data").iterdir()) == [
        "by_customer",
        "by_day",
        "skip",
    ]
    assert "The same with pictures: " in result.stdout


def test_without_spark_the_rest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grebe.cli.demo.find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 0, result.output
    assert "pip install 'grebe[spark,java]'" in result.stdout
