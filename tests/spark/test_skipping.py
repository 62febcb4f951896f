"""Files that summaries rule out are not read by Spark; several indexes rule out together, and what none covers is read."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import grebe
from tests.spark.served import LENIENT, Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark skipping")]
FILES, ROWS = 12, 400


def part(number: int) -> pa.Table:
    """k: random in every file; m: one value a file; t: the file's own hour and, late, some of others; c: few values."""
    random = np.random.default_rng(number)
    late = random.random(ROWS) < 0.05
    hour = np.where(late, random.integers(0, FILES, ROWS), number)
    return pa.table(
        {
            "k": pa.array(random.integers(0, 10**9, ROWS)),
            "m": pa.array(np.full(ROWS, number % 4), pa.int32()),
            "t": pa.array(hour * 3_600_000_000 + random.integers(0, 3_600_000_000, ROWS), pa.timestamp("us", "UTC")),
            "c": pa.array([f"c{number // 3}"] * (ROWS - 1) + [None]),
            "s": pa.array([f"user {n} of {number} liked" for n in range(ROWS)]),
            "v": pa.array(np.arange(ROWS) + number * 1000),
        }
    )


@pytest.fixture(scope="module")
def served(spark: "SparkSession", folder: Path) -> Iterator[Served]:
    write(folder / "t", *(part(number) for number in range(FILES)))
    with serving(spark, LENIENT) as made:
        table = made.lake.table(str(folder / "t"))
        table.create(
            grebe.Skipping("sk", grebe.MinMax("v"), grebe.ValueList("c"), grebe.Bloom("k"), grebe.Ngram("s")),
            grebe.Skipping("mm", grebe.MinMax("m"), grebe.NullCount("c")),
            grebe.Sieve("sv", on="t", budget=0.05),
        )
        made.view("t", folder / "t")
        yield made


CASES = {
    "v BETWEEN 3100 AND 3200": (("sk",), 1),
    "c = 'c1'": (("sk",), 3),
    "c LIKE '%2' AND m = 3": (("sk", "mm"), 1),
    "s LIKE '%user 7 of 5 %'": (("sk",), 1),
    "c IS NULL": ((), FILES),
    "c IS NOT NULL AND v < 0": (("sk",), 0),
    "m = 1 AND v > 5000": (("sk", "mm"), 2),
}


@pytest.mark.parametrize("predicate", CASES)
def test_files_that_summaries_rule_out_are_not_read(served: Served, predicate: str) -> None:
    used, files = CASES[predicate]
    served.same(f"SELECT * FROM t WHERE {predicate}", *used)
    assert served.read()["files"] == files


def test_a_key_is_found_in_the_files_that_may_hold_it(served: Served) -> None:
    key = part(4)["k"][17].as_py()
    served.same(f"SELECT * FROM t WHERE k = {key}", "sk")
    assert served.read()["files"] <= 2


def test_a_sieve_finds_the_files_of_a_range(served: Served) -> None:
    query = "SELECT * FROM t WHERE t BETWEEN TIMESTAMP'1970-01-01 05:10:00Z' AND TIMESTAMP'1970-01-01 05:10:30Z'"
    served.same(query, "sv")
    assert served.read()["files"] < FILES


def test_an_explanation_counts_what_each_index_rules_out(served: Served) -> None:
    query = served.spark.sql("SELECT * FROM t WHERE m = 1 AND v > 5000")
    (choice,) = served.lake.explain(query).to_dict()["choices"]
    assert choice["left_out"] == {"mm": 9, "sk": 5}
    assert "mm rules out 9" in str(served.lake.explain(query))


ANSWERED = {
    "SELECT count(*) FROM t": True,
    "SELECT count(*), min(v), max(v) FROM t WHERE v >= 0": True,
    "SELECT min(v), max(v) FROM t WHERE m = 2": False,  # no index knows both
    "SELECT count(*) FROM t WHERE v < 3000": True,
    "SELECT count(*), max(v) FROM t WHERE v < -5": True,
    "SELECT count(*) FROM t WHERE v < 3001": False,
    "SELECT count(*) FROM t WHERE c IN ('c0', 'c1', 'c2', 'c3')": False,  # the NULLs are in every file
    "SELECT min(m), max(m) FROM t": True,
    "SELECT count(v), count(m) FROM t": False,  # no index knows both
    "SELECT count(v), max(v) FROM t": True,
    "SELECT min(t), max(t), count(t) FROM t": True,
    "SELECT sum(v) FROM t": False,
    "SELECT m, count(*) FROM t GROUP BY m": False,
}


@pytest.mark.parametrize("query", ANSWERED)
def test_what_summaries_know_for_sure_is_not_read(served: Served, query: str) -> None:
    choices = served.lake.explain(served.spark.sql(query)).to_dict()["choices"]
    assert [choice["how"] for choice in choices if choice["how"] == "metadata"] == ["metadata"] * ANSWERED[query]
    assert served.run(query).rows == served.plain(query).rows


def test_files_that_no_index_covers_are_read(served: Served, folder: Path) -> None:
    write(folder / "grown", *(part(number) for number in range(6)))
    table = served.lake.table(str(folder / "grown"))
    table.create(grebe.Skipping("sk", grebe.MinMax("v")), grebe.Sieve("sv", on="v"))
    write(folder / "grown", *(part(number) for number in range(6, 9)))
    served.view("grown", folder / "grown")
    served.same("SELECT * FROM grown WHERE v = 2100", "sk")
    assert served.read()["files"] == 4
    assert served.run("SELECT count(*) FROM grown").rows == served.plain("SELECT count(*) FROM grown").rows
    table.refresh()
    served.same("SELECT * FROM grown WHERE v = 7100", "sk")
    assert served.read()["files"] == 1


def test_a_join_asks_summaries_for_its_keys(served: Served, folder: Path) -> None:
    write(folder / "keys", pa.table({"v": part(7)["v"].slice(3, 2)}))
    served.view("keys", folder / "keys")
    query = "SELECT t.* FROM t JOIN keys ON t.v = keys.v"
    served.same(query, "sk")
    # One file of the table; the keys are read for the join, and before it to be looked up.
    assert served.read()["files"] == 3
