"""Indexes that are not there: the planner says what it would do with them, and afterwards, when they are, it does."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidIndex, Unsupported
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from grebe.indexes.kind import Kind

pytestmark = [pytest.mark.spark, pytest.mark.core]
FILES, ROWS = 8, 3_000


@pytest.fixture
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as served:
        yield served


@pytest.fixture
def sales(served: Served, tmp_path: Path) -> Path:
    folder = tmp_path / "sales"
    folder.mkdir()
    chance = random.Random(4)
    codes = chance.sample(range(FILES * ROWS), FILES * ROWS)
    for number in range(FILES):
        at = range(number * ROWS, (number + 1) * ROWS)
        table = {
            "id": pa.array(at, pa.int64()),
            "code": pa.array(codes[at.start : at.stop], pa.int64()),
            "shop": pa.array([chance.randrange(400) for _ in at], pa.int32()),
            "x": pa.array([round(chance.uniform(0, 100), 1) for _ in at]),
            "y": pa.array([round(chance.uniform(0, 100), 1) for _ in at]),
            "day": pa.array([19_000 + n // 400 for n in at], pa.int32()).cast(pa.date32()),
            "price": pa.array([chance.randrange(50) for _ in at], pa.int64()),
            "note": pa.array([f"note {n * 31 % 5000}" for n in at]),
        }
        pq.write_table(pa.table(table), folder / f"part-{number}.parquet")
    served.view("sales", folder)
    return folder


def kinds(folder: Path) -> "dict[str, tuple[Kind, str]]":
    """By name: a kind, and a query that it is made for."""
    made: list[tuple[Kind, str]] = [
        (grebe.Covering("by_shop", on="shop", include=["price"]), "SELECT sum(price) FROM sales WHERE shop = 17"),
        (
            grebe.Covering("by_day", on="day", include=["price"]),
            "SELECT sum(price) FROM sales WHERE day = DATE '2022-02-03'",
        ),
        (
            grebe.Covering("recent", on="shop", include=["price", "day"], where="day >= DATE '2022-02-20'"),
            "SELECT sum(price) FROM sales WHERE shop = 17 AND day >= DATE '2022-02-20'",
        ),
        (grebe.Lookup("by_code", on="code"), "SELECT * FROM sales WHERE code = 4711"),
        (grebe.Skipping("skip", grebe.MinMax("day")), "SELECT note FROM sales WHERE day < DATE '2022-01-10'"),
        (grebe.Sieve("sieve", on="id"), "SELECT note FROM sales WHERE id IN (5, 17000)"),
        (grebe.ZOrder("box", on=["x", "y"], include=["price"]), "SELECT sum(price) FROM sales WHERE x < 9 AND y < 9"),
        (
            grebe.Spatial("places", x="x", y="y"),
            "SELECT count(*) FROM sales WHERE x BETWEEN 3 AND 4 AND y BETWEEN 5 AND 6",
        ),
        (
            grebe.Layout("asked", [f"x > {n} AND y < {n / 2}" for n in range(90)], include="price"),
            "SELECT sum(price) FROM sales WHERE x > 80 AND y < 9",
        ),
        (
            grebe.View("board", f"SELECT shop, count(*) AS n, sum(price) AS p FROM parquet.`{folder}` GROUP BY shop"),
            "SELECT count(*) FROM sales WHERE shop < 100",
        ),
    ]
    return {kind.name: (kind, query) for kind, query in made}


def test_each_kind_would_be_used_and_then_is(served: Served, sales: Path) -> None:
    table = served.lake.table(str(sales))
    for name, (kind, query) in kinds(sales).items():
        told = served.lake.what_if(query, [kind])
        assert told.to_dict()["used"] == [name], (name, str(told))
        (expected,) = told.predicted
        (made,) = table.create(kind)
        assert (expected.index, expected.kind) == (made.name, made.kind)
        assert 0.4 < expected.bytes / made.bytes < 2.5, (name, expected.bytes, made.bytes)
        seen = served.same(query, name)
        assert seen.used == [name]
        table.delete(name)


def test_nothing_is_written(served: Served, sales: Path) -> None:
    before = sorted(path.relative_to(sales.parent) for path in sales.parent.rglob("*"))
    for kind, query in kinds(sales).values():
        served.lake.what_if(query, kind)
    assert sorted(path.relative_to(sales.parent) for path in sales.parent.rglob("*")) == before
    assert served.run("SELECT sum(price) FROM sales WHERE shop = 17").used == []


def test_it_is_weighed_against_the_indexes_that_are_there(served: Served, sales: Path) -> None:
    query = "SELECT sum(price) FROM sales WHERE shop = 17"
    alone = served.lake.what_if(query, grebe.Covering("first", on="shop", include=["price"]))
    assert alone.predicted[0].break_even.queries is not None
    assert alone.predicted[0].break_even.seconds_saved > 0
    served.lake.table(str(sales)).create(grebe.Covering("there", on="shop", include=["price"]))
    beside = served.lake.what_if(query, grebe.Covering("second", on="id", include=["price", "shop"]))
    assert beside.to_dict()["used"] == ["there"]
    assert beside.predicted[0].break_even.queries is None
    assert "never" in str(beside)


def test_files_that_no_index_covers_yet_are_covered_by_an_imagined_one(served: Served, sales: Path) -> None:
    served.lake.table(str(sales)).create(grebe.Covering("old", on="day"))
    pq.write_table(pq.read_table(sales / "part-0.parquet"), sales / "part-9.parquet")
    served.view("sales", sales)
    told = served.lake.what_if("SELECT sum(price) FROM sales WHERE shop = 3", grebe.Covering("c", "shop", "price"))
    (choice,) = told.to_dict()["choices"]
    assert (choice["index"], choice["appended"], choice["deleted"]) == ("c", 0.0, 0.0)


def test_both_sides_of_a_join_are_imagined(served: Served, sales: Path) -> None:
    query = "SELECT count(*) FROM sales a JOIN sales b ON a.shop = b.shop WHERE a.price = 3 AND b.price = 4"
    told = served.lake.what_if(query, [grebe.Covering("c", on="shop", include="price", buckets=8)])
    assert told.to_dict()["used"] == ["c"]
    assert told.decision.after.shuffles < told.decision.before.shuffles


class Silent(grebe.Lookup):
    """As a kind of another package may be."""

    supposed = None  # type: ignore[assignment]  # which a protocol takes for not there


def test_a_kind_that_does_not_say_what_it_would_be_like_is_refused(served: Served, sales: Path) -> None:
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_SUPPOSED\].*kind lookup"):
        served.lake.what_if("SELECT count(*) FROM sales WHERE id = 3", Silent("l", on="id"))


def test_what_fits_no_table_is_refused(served: Served, sales: Path) -> None:
    with pytest.raises(InvalidIndex, match="missing"):
        served.lake.what_if("SELECT count(*) FROM sales", grebe.Covering("c", on="missing"))
    with pytest.raises(InvalidIndex, match=r"\[INVALID_INDEX_SPEC\].*at least one kind"):
        served.lake.what_if("SELECT count(*) FROM sales", [])
    with pytest.raises(InvalidIndex, match="reads no table"):
        served.lake.what_if("SELECT 1", grebe.Covering("c", on="a"))
