"""Boxes in Spark: a spatial index leaves out files and row groups, or is read itself where its columns are all that is asked for;
answers are those without it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from tests.spark.served import LENIENT, Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark spatial")]
FILES, ROWS = 8, 1_500
ODD = (np.nan, np.inf, -np.inf, -0.0, 0.0)


def part(number: int) -> pa.Table:
    """A region of its own, some points all over, and the odd ones."""
    random = np.random.default_rng(number)
    x, y = random.normal(number * 20 - 80, 3, ROWS), random.normal(0, 10, ROWS)
    anywhere = random.random(ROWS) < 0.01
    x[anywhere] = random.uniform(-100, 100, int(anywhere.sum()))
    for at, odd in enumerate(ODD):
        x[at::400], y[200 + at :: 400] = odd, odd
    nulls = np.arange(ROWS) % 101 == 7
    columns = {"lon": pa.array(x, mask=nulls), "lat": pa.array(y, mask=np.arange(ROWS) % 103 == 9)}
    return pa.table({"id": np.arange(ROWS) + number * ROWS, **columns, "name": [f"n{one % 50}" for one in range(ROWS)]})


@pytest.fixture(scope="module")
def served(spark: "SparkSession", folder: Path) -> Iterator[Served]:
    write(folder / "t", *(part(number) for number in range(FILES)))
    with serving(spark, LENIENT) as made:
        made.lake.table(str(folder / "t")).create(grebe.Spatial("place", x="lon", y="lat"))
        made.view("t", folder / "t")
        yield made


def test_files_without_points_in_the_box_are_not_read(served: Served) -> None:
    served.same("SELECT * FROM t WHERE lon BETWEEN 25 AND 30 AND lat BETWEEN 90 AND 99", "place")
    assert served.read()["files"] < FILES
    served.same("SELECT id, name FROM t WHERE lon BETWEEN 300 AND 400", "place")


def test_a_query_of_coordinates_reads_the_index_alone(served: Served, folder: Path) -> None:
    seen = served.same(
        "SELECT count(*), min(lat), max(lon) FROM t WHERE lon BETWEEN 0 AND 3 AND lat BETWEEN -5 AND 5", "place"
    )
    assert str(folder / "t") not in seen.text


PREDICATES = [
    "lon BETWEEN -5 AND 5 AND lat >= 20",
    "lon >= CAST('Infinity' AS DOUBLE) AND lat > 0",
    "lon < -60 AND lat = 0.0",
    "lon <= CAST('-Infinity' AS DOUBLE)",
    "lon IS NULL AND lat BETWEEN 0 AND 1",
    "lat IS NULL AND lon BETWEEN 0 AND 1",
    "(lon BETWEEN 18 AND 19 AND lat > 0) OR (lon BETWEEN 58 AND 59 AND lat < 0)",
    "lon IN (0.0, -0.0) AND lat < 100",
    "NOT (lon < 55) AND name = 'n7'",
    "lon > 58 AND lon < 58.5 AND id % 2 = 1",
]


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("columns", ["*", "lon, lat"])
def test_no_row_is_lost(served: Served, predicate: str, columns: str) -> None:
    assert served.same_rows(f"SELECT {columns} FROM t WHERE {predicate}").used in (["place"], [])


def test_appended_files_are_read_and_dropped_ones_are_not(spark: "SparkSession", tmp_path: Path) -> None:
    write(tmp_path / "t", *(part(number) for number in range(4)))
    with serving(spark, LENIENT) as made:
        table = made.lake.table(str(tmp_path / "t"))
        table.create(grebe.Spatial("place", x="lon", y="lat", include="id"))
        pq.write_table(part(5), tmp_path / "t" / "later.parquet")
        next(path for path in sorted((tmp_path / "t").iterdir()) if path.name != "later.parquet").unlink()
        made.view("t", tmp_path / "t")
        for columns in ("*", "id, lon"):
            made.same(f"SELECT {columns} FROM t WHERE lon BETWEEN 10 AND 22 AND lat BETWEEN -2 AND 2", "place")


def test_sql_makes_one(spark: "SparkSession", tmp_path: Path) -> None:
    write(tmp_path / "t", part(0))
    with serving(spark) as made:
        named = f"parquet.`{tmp_path / 't'}`"
        spark.sql(f"CREATE INDEX place ON {named} USING spatial (lon, lat) INCLUDE (id)")
        assert [(row.name, row.kind) for row in spark.sql(f"SHOW INDEXES ON {named}").collect()] == [
            ("place", "spatial")
        ]
        made.view("t", tmp_path / "t")
        made.same("SELECT id FROM t WHERE lon BETWEEN -90 AND -85", "place")
