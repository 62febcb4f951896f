"""`grebe within` and `grebe nearest`, and a spatial index from the command line."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from grebe.cli.main import main
from tests.indexes.covering_lake import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.table({"id": range(9), "lon": [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, None], "lat": [-1.5] * 9})


def grebe(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def told(*arguments: str) -> Any:
    result = grebe(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write(tmp_path / "t", [TABLE])


@pytest.mark.spark
@pytest.mark.parametrize("columns", [("--on", "lon,lat"), ("--x", "lon", "--y", "lat")])
def test_an_index_of_places_is_made_and_asked(spark: "SparkSession", table: str, columns: tuple[str, ...]) -> None:
    (made,) = told("create", table, "by_place", "--kind", "spatial", *columns)
    assert (made["columns"], made["kind"], made["rows"]) == (["lon", "lat"], "spatial", 9)
    assert [row["id"] for row in told("within", table, "-3", "-2", "-1", "-1")] == [1, 2, 3]
    assert told("nearest", table, "-2.1", "-1.5", "-k", "2", "--columns", "id") == [{"id": 2}, {"id": 1}]


def test_without_an_index_the_columns_are_named(table: str) -> None:
    assert [row["id"] for row in told("within", table, "1", "-2", "9", "0", "--on", "lon,lat")] == [5, 6, 7]
    assert told("nearest", table, "9", "9", "-k", "1", "--on", "lon,lat", "--columns", "id") == [{"id": 7}]
    refused = grebe("within", table, "1", "-2", "9", "0")
    assert refused.exit_code == 1
    assert "INVALID_PREDICATE_NO_PLACES" in refused.stderr
    assert "3 rows" in grebe("within", table, "1", "-2", "9", "0", "--on", "lon,lat").output


@pytest.mark.parametrize("words", [("within", "1", "2", "3"), ("nearest", "a", "2"), ("nearest", "1", "2", "-k", "-1")])
def test_wrong_use_ends_with_2(table: str, words: tuple[str, ...]) -> None:
    assert grebe(words[0], table, *words[1:]).exit_code == 2


def test_a_spatial_index_needs_its_columns(table: str) -> None:
    assert grebe("create", table, "n", "--kind", "spatial").exit_code == 2
