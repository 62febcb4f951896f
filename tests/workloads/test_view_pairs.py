"""Views and queries at random: whatever a view answers is what the tables say."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.planner.choose import choose
from grebe.planner.decision import Decision, FromView
from testbed.spark import configured
from tests.spark.served import EAGER, LENIENT
from tests.workloads.view_pairs import FACTS, LANDS, SHOPS, add_file, pairs, write_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
QUERIES = 50
AT_ONCE = 25
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

    def eagerly(*arguments: Any, **named: Any) -> Decision:
        made.append(choose(*arguments, **named, rates=EAGER))
        return made[-1]

    monkeypatch.setattr("grebe.spark.planning.choose", eagerly)
    return made


@pytest.mark.parametrize("seed", range(3))
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
        compare(spark, lake, made, drawn.queries, counted)
        add_file(folder, 4, chance)
        (folder / FACTS / f"{chance.randrange(4)}.parquet").unlink()
        spark.read.parquet(str(folder / FACTS)).createOrReplaceTempView(FACTS)
        compare(spark, lake, made, drawn.queries, counted)
    return counted


def compare(
    spark: "SparkSession", lake: grebe.Lake, made: list[Decision], queries: tuple[str, ...], counted: Counted
) -> None:
    for start in range(0, len(queries), AT_ONCE):
        some = queries[start : start + AT_ONCE]
        lake.enabled = False
        expected = answers(spark, some)
        lake.enabled = True
        made.clear()
        found = answers(spark, some)
        counted.rewritten += sum(isinstance(one, FromView) for one in made[-1].choices) if made else 0
        counted.pairs += len(some)
        counted.wrong += [query for place, query in enumerate(some) if found.get(place) != expected.get(place)]


def answers(spark: "SparkSession", queries: tuple[str, ...]) -> dict[int, list[str]]:
    """All in one go, each row as text."""
    parts = (f"SELECT {place} AS n, to_json(struct(*)) AS r FROM ({query})" for place, query in enumerate(queries))
    found: dict[int, list[str]] = {}
    for row in spark.sql(" UNION ALL ".join(parts)).collect():
        found.setdefault(row.n, []).append(row.r)
    return {place: sorted(rows) for place, rows in found.items()}
