"""`grebe explain`, `grebe why-not` and `grebe what-if`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import grebe
from grebe.cli.main import main
from grebe.session.lake_table import LakeTable
from tests.indexes.covering_lake import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.table({"id": range(20), "name": [str(n) for n in range(20)], "price": [n / 2 for n in range(20)]})
pytestmark = pytest.mark.spark


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def query(spark: "SparkSession", tmp_path: Path) -> str:
    path = write(tmp_path / "t", [TABLE, TABLE])
    LakeTable(spark, path).create(grebe.Covering("by_id", on="id", include=["price"]), grebe.Lookup("rows", on="id"))
    return f"SELECT price FROM parquet.`{path}` WHERE name = 'a'"


def test_a_query_is_explained_to_people_and_programs(query: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    told = ran("explain", query, "--plans", "--html", str(page))
    assert told.exit_code == 0, told.output
    assert "Indexes used\n  none" in told.stdout
    assert "Plan without indexes" in told.stdout
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    data = json.loads(ran("explain", query, "--json").stdout)
    assert data["used"] == []
    assert {reason["index"] for reason in data["not_used"]} == {"by_id", "rows"}


def test_why_an_index_is_not_used(query: str) -> None:
    (reason,) = json.loads(ran("why-not", query, "--index", "by_id", "--json").stdout)
    assert (reason["index"], reason["code"]) == ("by_id", "MISSING_REQUIRED_COL")
    assert "include that in the index" in reason["sentence"]
    told = ran("why-not", "SELECT 1")
    assert (told.exit_code, told.stdout.splitlines()[-1]) == (0, "Every index of its tables is used, or there is none.")


def test_what_an_index_would_do_is_told_to_people_and_programs(query: str) -> None:
    asked = ["what-if", query, "--kind", "covering", "--on", "name", "--include", "price"]
    data = json.loads(ran(*asked, "--json").stdout)
    (predicted,) = data["predicted"]
    assert (predicted["index"], predicted["kind"]) == ("covering", "covering")
    assert predicted["bytes"] > 0
    told = ran(*asked)
    assert (told.exit_code, told.stdout.splitlines()[0]) == (0, "Imagined")


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT * FROM no_such_table"])
def test_a_wrong_query_is_refused_in_one_line(spark: "SparkSession", query: str) -> None:
    told = ran("explain", query)
    assert told.exit_code == 1
    assert told.stderr.startswith("error: [INVALID_STATEMENT_QUERY] Spark cannot read the query (")
