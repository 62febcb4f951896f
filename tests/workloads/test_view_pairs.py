"""Views and queries at random: whatever a view answers is what the tables say, which DuckDB is asked for."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import grebe
from grebe.planner.choose import choose
from grebe.planner.decision import Decision, FromView
from grebe.planner.query import Query
from testbed.spark import configured
from tests.spark.served import EAGER, LENIENT
from tests.workloads.view_pairs import FACTS, LANDS, SHOPS, add_file, pairs, write_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
pytestmark = pytest.mark.spark
QUERIES = 50
AT_ONCE = 10
# Compiling plans of a few rows, and starting tasks for them, takes longer than running them.
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": "0",
}


@dataclass
class Counted:
    rewritten: int = 0
    pairs: int = 0
    wrong: list[str] = field(default_factory=list)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[Decision]:
    """Whatever a view can answer it does; the decisions, as they are made."""
    made: list[Decision] = []

    def eagerly(query: Query, *arguments: Any, **named: Any) -> Decision:
        made.append(choose(query, *arguments, **named, rates=EAGER))
        return made[-1]

    monkeypatch.setattr("grebe.spark.planning.choose", eagerly)
    return made


@pytest.mark.parametrize("seed", range(20))
def test_a_view_answers_as_its_tables_do(
    spark: "SparkSession", eager: list[Decision], tmp_path: Path, seed: int
) -> None:
    counted = run(spark, eager, tmp_path, seed, QUERIES)
    assert counted.wrong == []
    assert counted.pairs == 2 * QUERIES


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1250))
def test_many_more_do(spark: "SparkSession", eager: list[Decision], tmp_path: Path, seed: int) -> None:
    assert run(spark, eager, tmp_path, seed, 2 * QUERIES).wrong == []


def run(spark: "SparkSession", made: list[Decision], folder: Path, seed: int, queries: int) -> Counted:
    """The queries over the tables as the view knows them, and then with a file more and one less."""
    counted = Counted()
    chance = random.Random(seed)
    write_tables(folder, seed)
    lake = grebe.attach(spark, LENIENT)
    with configured(spark, SMALL):
        for name in (FACTS, SHOPS, LANDS):
            spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
        drawn = pairs(seed, queries)
        text = drawn.view
        for name in (FACTS, SHOPS):
            text = text.replace(f" {name}", f" parquet.`{folder / name}`")
        lake.table(str(folder / FACTS)).create(grebe.View("v", text))
        compare(spark, made, folder, drawn.queries, counted)
        add_file(folder, 4, chance)
        (folder / FACTS / f"{chance.randrange(4)}.parquet").unlink()
        spark.read.parquet(str(folder / FACTS)).createOrReplaceTempView(FACTS)
        compare(spark, made, folder, drawn.queries, counted)
    return counted


def compare(
    spark: "SparkSession", made: list[Decision], folder: Path, queries: tuple[str, ...], counted: Counted
) -> None:
    """A query that no view answers has Spark's own plan, and need not be run."""
    answered = [query for query in queries if is_answered(spark, made, query)]
    counted.pairs += len(queries)
    counted.rewritten += len(answered)
    expected = asked_of_duckdb(folder, answered)
    for start in range(0, len(answered), AT_ONCE):
        some = answered[start : start + AT_ONCE]
        found = asked_of_spark(spark, some)
        right = expected[start : start + AT_ONCE]
        counted.wrong += [query for place, query in enumerate(some) if found[place] != right[place]]


def is_answered(spark: "SparkSession", made: list[Decision], query: str) -> bool:
    made.clear()
    spark.sql(query)._jdf.queryExecution().optimizedPlan()
    return any(isinstance(choice, FromView) for decision in made for choice in decision.choices)


def together(queries: Iterable[str]) -> str:
    """Rows as text, each with the number of its query."""
    parts = (f"SELECT {place} AS n, to_json(struct(*)) AS r FROM ({query})" for place, query in enumerate(queries))
    return " UNION ALL ".join(parts)


def asked_of_spark(spark: "SparkSession", queries: list[str]) -> list[list[Row]]:
    """All in one go, each row as text."""
    found: list[list[Row]] = [[] for _ in queries]
    for row in spark.sql(together(queries)).collect():
        found[row.n].append(json.loads(row.r))
    return [in_order(rows) for rows in found]


def asked_of_duckdb(folder: Path, queries: list[str]) -> list[list[Row]]:
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first'; SET threads = 1")
        for name in (FACTS, SHOPS, LANDS):
            connection.execute(f"CREATE TABLE {name} AS FROM read_parquet('{folder / name}/*.parquet')")
        return [_rows(connection.execute(query.replace("<=>", "IS NOT DISTINCT FROM"))) for query in queries]


def _rows(found: duckdb.DuckDBPyConnection) -> list[Row]:
    names = [column[0] for column in found.description or ()]
    return in_order([dict(zip(names, row, strict=True)) for row in found.fetchall()])


def in_order(rows: list[Row]) -> list[Row]:
    plain = [{name: value_of(value) for name, value in row.items() if value is not None} for row in rows]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True))


def value_of(value: Any) -> Any:
    """Spark rounds the average of decimals to six digits."""
    if isinstance(value, date):
        return value.isoformat()
    return round(float(value), 4) if isinstance(value, Decimal | float) else value
