"""Boxes, maps and dashboards over rides, flights and TPC-H: curves, places and views change no answer, fresh or stale.

DuckDB is the witness for what Spark answers, numpy and shapely for places that are looked up without it.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely  # type: ignore[import-untyped]  # it has no types

import grebe
from bench._dashboards import DATA_SETS, DataSet
from testbed import tpch
from tests.workloads.eager import eager_lake
from tests.workloads.workload import NO_BROADCAST, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from grebe.indexes.kind import Kind

# One worker has the tables and runs these tests in their order: what has aged does not become young again.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("shapes")]
FILES, ROWS, ASKED = 5, 600, 6
AXES = ["lon", "lat"]

INDEXES: Mapping[str, Sequence["Kind"]] = {
    "flights": (
        grebe.ZOrder("routes", on=["origin", "day", "goal"], include=["carrier", "minutes", "distance"]),
        grebe.ZOrder("delays", on=["day", "arrives_late", "carrier"], include=["minutes", "distance"], curve="z"),
    ),
    "rides": (
        grebe.ZOrder("starts", on=["at", "lon", "lat"], include=["tip", "miles"]),
        grebe.Spatial("places", x="lon", y="lat", include=["tip", "miles"]),
        grebe.Spatial("goals", x="to_lon", y="to_lat"),
    ),
    "lineitem": (
        grebe.ZOrder(
            "offers", on=["l_shipdate", "l_discount", "l_quantity"], include=["l_extendedprice", "l_returnflag"]
        ),
    ),
}
DASHBOARDS: Mapping[str, tuple[str, Sequence[str]]] = {
    "flights": (
        "SELECT carrier, year(day) AS y, month(day) AS m, count(*) AS n, sum(minutes) AS t, max(late) AS worst, avg(distance) AS d "
        "FROM {0} GROUP BY carrier, year(day), month(day)",
        (
            "SELECT carrier, count(*) AS n, max(late) AS worst FROM {0} GROUP BY carrier",
            "SELECT month(day) AS m, sum(minutes) AS t, avg(distance) AS d FROM {0} WHERE year(day) = 2022 GROUP BY month(day)",
            "SELECT count(*) AS n FROM {0} WHERE carrier IN ('DL', 'AA')",
        ),
    ),
    "rides": (
        "SELECT paid, people, CAST(at AS DATE) AS day, count(*) AS n, sum(fare) AS taken, avg(fare) AS mean, min(miles) AS least "
        "FROM {0} GROUP BY paid, people, CAST(at AS DATE)",
        (
            "SELECT paid, sum(fare) AS taken, avg(fare) AS mean FROM {0} WHERE people > 2 GROUP BY paid",
            "SELECT CAST(at AS DATE) AS day, count(*) AS n FROM {0} GROUP BY CAST(at AS DATE) HAVING count(*) > 9",
            "SELECT min(miles) AS least FROM {0} WHERE day(CAST(at AS DATE)) < 9 AND paid = 'card'",
        ),
    ),
    "lineitem": (
        "SELECT l_returnflag, l_linestatus, l_shipdate, sum(l_quantity) AS q, sum(l_extendedprice) AS p, count(*) AS n "
        "FROM {0} GROUP BY l_returnflag, l_linestatus, l_shipdate",
        (
            "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS q, sum(l_extendedprice) AS p, count(*) AS n FROM {0} "
            "WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
            "SELECT year(l_shipdate) AS y, sum(l_extendedprice) AS p FROM {0} GROUP BY year(l_shipdate)",
        ),
    ),
}


@dataclass(frozen=True)
class Shaped:
    """A table with indexes of all shapes, and what is asked of it."""

    name: str
    folder: Path
    workload: Workload
    boxes: tuple[str, ...]
    dashboards: tuple[str, ...]
    more: pa.Table
    """Rows that come later."""

    def look(self) -> None:
        """Both engines list the files anew."""
        self.workload.spark.read.parquet(str(self.folder)).createOrReplaceTempView(self.name)
        self.workload.duckdb.execute(
            f"CREATE OR REPLACE VIEW {self.name} AS FROM read_parquet('{self.folder}/*.parquet')"
        )

    def age(self) -> None:
        pq.write_table(self.more, self.folder / "more.parquet")
        (self.folder / "1.parquet").unlink()
        self.look()


def measured(data: DataSet, condition: str) -> str:
    one, other = data.measures
    return f"SELECT count(*) AS n, max({one}) AS a, min({other}) AS b FROM {data.name} WHERE {condition}"


def of_duckdb(query: str) -> str:
    """There `at` is a word of the language."""
    return re.sub(r"\bat\b", '"at"', query)


def rows_of(name: str) -> pa.Table:
    if name == "lineitem":
        return pq.read_table(tpch.generate_tested("parquet") / name).slice(0, FILES * ROWS)
    return DATA_SETS[name].rows(FILES * ROWS, 3)


def boxes_of(name: str) -> list[str]:
    if name != "lineitem":
        return [measured(DATA_SETS[name], condition) for condition in DATA_SETS[name].queries(ASKED, 5)]
    chance = random.Random(9)
    discounts = [chance.randrange(2, 9) for _ in range(ASKED)]
    return [
        "SELECT sum(l_extendedprice * l_discount) AS revenue, count(l_returnflag) AS n FROM lineitem WHERE l_shipdate >= "
        f"DATE '{1992 + place}-0{1 + place}-15' AND l_discount BETWEEN 0.0{low - 1} AND 0.0{low + 1} AND l_quantity < {10 * low}"
        for place, low in enumerate(discounts)
    ]


@pytest.fixture(scope="module", params=sorted(INDEXES))
def young(
    request: pytest.FixtureRequest, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shaped]:
    name: str = request.param
    folder = tmp_path_factory.mktemp("shapes") / name
    folder.mkdir()
    rows = rows_of(name)
    for number in range(FILES):
        pq.write_table(rows.slice(number * ROWS, ROWS), folder / f"{number}.parquet")
    view, dashboards = DASHBOARDS[name]
    session = spark.newSession()
    with eager_lake(session) as lake, duckdb.connect() as witness:
        witness.execute("SET TimeZone = 'UTC'")
        lake.table(str(folder)).create(*INDEXES[name], grebe.View("board", view.format(f"parquet.`{folder}`")))
        asked = tuple(query.format(name) for query in dashboards)
        workload = Workload(session, lake, witness, lambda sql: sql.replace('"', ""))
        boxes, boards = (tuple(map(of_duckdb, some)) for some in (boxes_of(name), asked))
        made = Shaped(name, folder, workload, boxes, boards, rows.slice(40, 2 * ROWS))
        made.look()
        yield made


@pytest.fixture(scope="module")
def old(young: Shaped) -> Shaped:
    young.age()
    return young


def same(shaped: Shaped, plain: bool) -> None:
    for query in (*shaped.boxes, *shaped.dashboards):
        shaped.workload.same_answers(query, [NO_BROADCAST], plain)


def test_fresh_shapes_change_no_answer(young: Shaped) -> None:
    same(young, plain=True)
    assert all("board" in young.workload.used(query, NO_BROADCAST) for query in young.dashboards)
    used = {name for query in young.boxes for name in young.workload.used(query, NO_BROADCAST)}
    assert used & {kind.name for kind in INDEXES[young.name]}


def test_stale_shapes_change_no_answer(old: Shaped) -> None:
    same(old, plain=False)
    assert all("board" in old.workload.used(query, NO_BROADCAST) for query in old.dashboards)


def test_places_of_a_map_are_found_without_spark(old: Shaped) -> None:
    if old.name != "rides":
        return
    table, rows = grebe.open(str(old.folder)), pq.read_table(old.folder)
    lon, lat, chance = rows["lon"].to_numpy(), rows["lat"].to_numpy(), random.Random(4)
    points = shapely.points(lon, lat)
    for _ in range(12):
        at, side = chance.randrange(len(lon)), chance.choice([0.0005, 0.004, 0.05])
        box = (lon[at] - side, lat[at] - side, lon[at] + side, lat[at] + side)
        inside = (lon >= box[0]) & (lon <= box[2]) & (lat >= box[1]) & (lat <= box[3])
        assert sorted(table.within(box, on=AXES)["tip"].to_pylist()) == sorted(rows["tip"].to_numpy()[inside])
        away = np.sort(np.hypot(lon - lon[at], lat - lat[at]))[:7]
        near = table.nearest(lon[at], lat[at], 7, on=AXES)
        assert np.allclose(np.sort(np.hypot(near["lon"].to_numpy() - lon[at], near["lat"].to_numpy() - lat[at])), away)
        corner = shapely.Polygon([(lon[at], lat[at]), (lon[at] + side, lat[at]), (lon[at], lat[at] + 2 * side)])
        found = table.scan(f"ST_Intersects(ST_Point(lon, lat), ST_GeomFromText('{corner.wkt}'))", columns=["tip"])
        assert found.num_rows == int(shapely.intersects(points, corner).sum())
