"""The way that Hyperspace's guide leads, from the first index to the last: departments, their people, and products that come in."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grebe.compat.hyperspace import *  # noqa: F403 - as programs of Hyperspace write it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
DEPARTMENTS = "number int, title string, town string"
PEOPLE = "badge int, person string, number int"
STOCK = "product string, quantity int, day string"


def explained(hyperspace: "Hyperspace", query: "DataFrame") -> str:  # noqa: F405 - from the star above
    said: list[str] = []
    hyperspace.explain(query, True, said.append)
    (text,) = said
    return text.partition("Indexes not used")[0].partition("Estimates")[0]


def states(hyperspace: "Hyperspace") -> dict[str, str]:  # noqa: F405
    return {row.name: row.state for row in hyperspace.indexes().collect()}


def rows(query: "DataFrame") -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in query.collect())


def test_departments_and_their_people(session: "SparkSession", tmp_path: Path) -> None:
    session.conf.set("spark.hyperspace.system.path", str(tmp_path / "indexes"))
    at_departments, at_people = str(tmp_path / "departments"), str(tmp_path / "people")
    session.createDataFrame(
        [(1, "Kitchen", "Ulm"), (2, "Garden", "Bonn"), (3, "Cellar", "Trier"), (4, "Attic", "Kiel")], DEPARTMENTS
    ).write.parquet(at_departments)
    session.createDataFrame([(7, "Ada", 2), (8, "Bo", 3), (9, "Cy", 3)], PEOPLE).write.parquet(at_people)
    departments, people = session.read.parquet(at_departments), session.read.parquet(at_people)

    hyperspace = Hyperspace(session)  # noqa: F405
    hyperspace.createIndex(people, IndexConfig("people_1", ["number"], ["person"]))  # noqa: F405
    hyperspace.createIndex(departments, IndexConfig("departments_1", ["number"], ["title"]))  # noqa: F405
    hyperspace.createIndex(departments, IndexConfig("departments_2", ["town"], ["title"]))  # noqa: F405
    assert states(hyperspace) == dict.fromkeys(("people_1", "departments_1", "departments_2"), "ACTIVE")

    hyperspace.deleteIndex("departments_2")
    hyperspace.deleteIndex("departments_1")
    hyperspace.restoreIndex("departments_1")
    assert states(hyperspace) == {"people_1": "ACTIVE", "departments_1": "ACTIVE", "departments_2": "DELETED"}
    hyperspace.vacuumIndex("departments_2")
    assert states(hyperspace) == {"people_1": "ACTIVE", "departments_1": "ACTIVE"}

    Hyperspace.enable(session)  # noqa: F405
    one = departments.filter("number = 2").select("title")
    assert rows(one) == [("Garden",)]
    assert "departments_1" in explained(hyperspace, one)
    several = departments.filter("number > 2").select("title")
    assert rows(several) == [("Attic",), ("Cellar",)]
    assert "departments_1" in explained(hyperspace, several)
    people.createOrReplaceTempView("people")
    departments.createOrReplaceTempView("departments")
    for join in (
        people.join(departments, people.number == departments.number).select(people.person, departments.title),
        session.sql("SELECT person, title FROM people, departments WHERE people.number = departments.number"),
    ):
        assert rows(join) == [("Ada", "Garden"), ("Bo", "Cellar"), ("Cy", "Cellar")]
        text = explained(hyperspace, join)
        assert "departments_1" in text
        assert "people_1" in text

    session.createDataFrame([(5, "Roof", "Jena")], DEPARTMENTS).write.mode("append").parquet(at_departments)
    hyperspace.refreshIndex("departments_1")
    more = session.read.parquet(at_departments).filter("number > 3").select("title")
    assert rows(more) == [("Attic",), ("Roof",)]
    assert "departments_1" in explained(hyperspace, more)

    for name in ("people_1", "departments_1"):
        hyperspace.deleteIndex(name)
        hyperspace.vacuumIndex(name)
    assert hyperspace.indexes().count() == 0


def test_products_that_come_in(session: "SparkSession", hyperspace: "Hyperspace", tmp_path: Path) -> None:  # noqa: F405
    at = str(tmp_path / "stock")
    first = [
        ("pear", 3, "2024-01-01"),
        ("plum", 1, "2024-01-01"),
        ("plum", 11, "2024-01-03"),
        ("leek", 20, "2024-01-06"),
    ]
    session.createDataFrame(first, STOCK).write.parquet(at)
    hyperspace.createIndex(session.read.parquet(at), IndexConfig("products", ["product"], ["day", "quantity"]))  # noqa: F405
    Hyperspace.enable(session)  # noqa: F405

    def query() -> "DataFrame":
        stock = session.read.parquet(at)
        return stock.filter("product = 'plum'").join(stock.filter("quantity > 10"), "product")

    def append() -> None:
        session.createDataFrame([("plum", 5, "2024-02-01")], STOCK).coalesce(1).write.mode("append").parquet(at)

    assert "products" in explained(hyperspace, query())
    append()
    session.conf.set("spark.hyperspace.index.hybridscan.enabled", "false")
    assert "products" not in explained(hyperspace, query())
    three = rows(query())
    assert len(three) == 3
    session.conf.set("spark.hyperspace.index.hybridscan.enabled", "true")
    session.conf.set("spark.hyperspace.index.hybridscan.maxAppendedRatio", "0.9")
    text = explained(hyperspace, query())
    assert "products" in text
    assert "are not covered and read directly" in text
    assert rows(query()) == three

    hyperspace.refreshIndex("products", "incremental")
    text = explained(hyperspace, query())
    assert "products" in text
    assert "read directly" not in text
    assert rows(query()) == three
    append()
    hyperspace.refreshIndex("products", "incremental")
    hyperspace.optimizeIndex("products")
    hyperspace.optimizeIndex("products", "full")
    merged = hyperspace.index("products").first()
    assert merged is not None
    assert len(merged.indexContentPaths) == 1
    assert len(rows(query())) == 4
    assert "products" in explained(hyperspace, query())
