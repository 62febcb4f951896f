"""Geometries in WKB and the functions of Apache Sedona, without Spark: an index by envelopes, and shapely's word on each row."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely  # type: ignore[import-untyped]  # it has no types

import grebe
from grebe.errors import InvalidPredicate
from grebe.indexes.spatial.spec import Spatial
from grebe.session.lake_table import LakeTable
from grebe.session.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = 6_000
TRIANGLE = "POLYGON((10 10, 40 10, 25 30, 10 10))"
FUNCTIONS: dict[str, Any] = {
    "ST_Intersects": shapely.intersects,
    "ST_Contains": shapely.contains,
    "ST_Within": shapely.within,
    "ST_Covers": shapely.covers,
    "ST_CoveredBy": shapely.covered_by,
}


def shapes() -> list[Any]:
    random = np.random.default_rng(2)
    x, y, size = random.uniform(-60, 60, ROWS), random.uniform(-60, 60, ROWS), random.exponential(2, ROWS)
    points, discs = shapely.points(x, y), shapely.buffer(shapely.points(x, y), size, quad_segs=3)
    lines = shapely.linestrings(np.stack([np.stack([x, y], 1), np.stack([x + size, y - size], 1)], 1))
    made = np.choose(np.arange(ROWS) % 3, [points, discs, lines]).tolist()
    large = [shapely.box(-50, -50, 50, 50), shapely.box(9, 9, 41, 31), shapely.from_wkt(TRIANGLE)]
    odd = [None, shapely.from_wkt("POINT EMPTY"), shapely.from_wkt("POLYGON EMPTY"), shapely.Point(10, 10)]
    return [*made, *large, *odd]


@pytest.fixture(scope="module")
def geometries() -> Any:
    return np.array(shapes(), dtype=object)


@pytest.fixture(scope="module")
def table(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, geometries: Any) -> Table:
    folder = tmp_path_factory.mktemp("geometries") / "t"
    folder.mkdir()
    bounds = shapely.bounds(geometries)
    corners = {name: pa.array(bounds[:, at]) for at, name in enumerate(["west", "south", "east", "north"])}
    columns = {"id": np.arange(len(geometries)), "geom": shapely.to_wkb(geometries), **corners}
    whole = pa.table({**columns, "lon": pa.array(bounds[:, 0]), "lat": pa.array(bounds[:, 1])})
    half = len(whole) // 2
    pq.write_table(whole.slice(0, half), folder / "0.parquet", row_group_size=500)
    boxes = Spatial("by_box", x="west", y="south", x_max="east", y_max="north")
    LakeTable(spark, str(folder)).create(Spatial("by_shape", on="geom"), boxes, Spatial("by_point", on=["lon", "lat"]))
    pq.write_table(whole.slice(half), folder / "1.parquet")
    return grebe.open(str(folder))


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("constant", [TRIANGLE, "POINT(10 10)", "LINESTRING(-5 0, 5 0)", "POLYGON EMPTY"])
@pytest.mark.parametrize("turned", [False, True])
def test_relations_are_those_of_shapely(table: Table, geometries: Any, name: str, constant: str, turned: bool) -> None:
    other = f"ST_GeomFromText('{constant}')"
    asked = f"{name}({other}, geom)" if turned else f"{name}(geom, {other})"
    sides = (shapely.from_wkt(constant), geometries)
    expected = np.flatnonzero(FUNCTIONS[name](*(sides if turned else sides[::-1]))).tolist()
    assert ids(table.scan(asked)) == expected
    if constant != "POLYGON EMPTY":
        answer = table.files(asked)
        assert answer.index == "by_shape"
        assert (
            any(file.rows is not None and len(file.rows) < ROWS / 4 for file in answer.files) or len(answer.files) < 2
        )


@pytest.mark.parametrize("distance", [0.0, 1.5, 30.0])
def test_distances_are_those_of_shapely(table: Table, geometries: Any, distance: float) -> None:
    expected = np.flatnonzero(shapely.dwithin(geometries, shapely.Point(20.5, 20), distance)).tolist()
    assert ids(table.scan(f"ST_DWithin(geom, ST_Point(20.5, 20), {distance})")) == expected
    assert ids(table.scan(f"st_dwithin(ST_Point(20.5, 20), ST_GeomFromWKB(geom), {distance})")) == expected


def test_points_of_two_columns_are_asked_as_geometries(table: Table, geometries: Any) -> None:
    bounds = shapely.bounds(geometries)
    points = shapely.points(bounds[:, 0], bounds[:, 1])
    inside = shapely.within(points, shapely.from_wkt(TRIANGLE)) & np.isfinite(bounds[:, 0])
    asked = f"ST_Within(ST_Point(lon, lat), ST_GeomFromWKT('{TRIANGLE}'))"
    assert ids(table.scan(asked)) == np.flatnonzero(inside).tolist()
    assert table.files(asked).index == "by_point"
    assert ids(table.scan(f"{asked} AND id < 3000")) == [one for one in np.flatnonzero(inside).tolist() if one < 3000]
    assert ids(table.scan(f"NOT {asked} AND id < 50")) == [
        one for one in range(50) if not inside[one] and np.isfinite(bounds[one, 0])
    ]
    envelope = "ST_Intersects(ST_Point(lon, lat), ST_PolygonFromEnvelope(-5.0, -5, 5, 5))"
    assert ids(table.scan(envelope)) == ids(table.within((-5, -5, 5, 5), on=["lon", "lat"]))


BOXES = [
    (-20.0, -20.0, 20.0, 20.0),
    (10.0, 10.0, 10.0, 10.0),
    (50.0, -90.0, -50.0, 90.0),
    (-math.inf, 0, math.inf, math.inf),
]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("on", ["geom", ["west", "south", "east", "north"]])
def test_within_takes_what_lies_wholly_in_the_box(
    table: Table, geometries: Any, box: tuple[float, float, float, float], on: str | list[str]
) -> None:
    west, south, east, north = shapely.bounds(geometries).T
    up = (south >= box[1]) & (north <= box[3])
    across = (west >= box[0]) & (east <= box[2])
    if box[0] > box[2]:
        across = (west >= box[0]) | (east <= box[2])
    assert ids(table.within(box, on=on)) == np.flatnonzero(up & across).tolist()


@pytest.mark.parametrize("point", [(0.0, 0.0), (70.0, -70.0), (10.0, 10.0)])
@pytest.mark.parametrize("k", [1, 40])
def test_nearest_are_the_shapes_nearest_to_the_point(
    table: Table, geometries: Any, point: tuple[float, float], k: int
) -> None:
    away = shapely.distance(geometries, shapely.Point(point))
    found = table.nearest(*point, k, on="geom")["id"].to_numpy()
    np.testing.assert_allclose(away[found], np.sort(away[~np.isnan(away)])[:k])
    boxes = shapely.distance(shapely.box(*shapely.bounds(geometries).T), shapely.Point(point))
    of_boxes = table.nearest(*point, k, on=["west", "south", "east", "north"])["id"].to_numpy()
    np.testing.assert_allclose(boxes[of_boxes], np.sort(boxes[~np.isnan(boxes)])[:k], atol=1e-12)


def test_several_indexes_of_places_have_to_be_told_apart(table: Table) -> None:
    with pytest.raises(InvalidPredicate, match="several Spatial indexes"):
        table.within((0, 0, 1, 1))


@pytest.mark.parametrize("on", ["id", ["id", "geom"], ["lon"], "nothing", ["lon", "lat", "id"]])
def test_what_holds_no_places_is_refused(table: Table, on: object) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        table.within((0, 0, 1, 1), on=on)  # type: ignore[arg-type]  # wrong on purpose
    assert refused.value.code == "INVALID_PREDICATE_NO_PLACES"


def test_a_constant_that_is_no_geometry_is_refused(table: Table) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        table.scan("ST_Within(geom, ST_GeomFromText('POLYGON((1 2'))")
    assert refused.value.code == "INVALID_PREDICATE_GEOMETRY"


def test_bytes_that_are_no_geometry_stay_findable(spark: "SparkSession", tmp_path: Path) -> None:
    """Asked of them, a lookup says so, with an index or without; they are in no box."""
    values = [shapely.to_wkb(shapely.Point(1, 1)), b"no geometry", None, shapely.to_wkb(shapely.Point(9, 9))]
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"id": range(4), "geom": values}), tmp_path / "t" / "0.parquet")
    LakeTable(spark, str(tmp_path / "t")).create(Spatial("by_shape", on="geom"))
    table = grebe.open(str(tmp_path / "t"))
    assert table.files("ST_Within(geom, ST_PolygonFromEnvelope(0, 0, 2, 2))").files[0].rows == (0, 1)
    with pytest.raises(InvalidPredicate):
        table.scan("ST_Within(geom, ST_PolygonFromEnvelope(0, 0, 2, 2))")
    assert table.scan("id <> 1 AND ST_Within(geom, ST_PolygonFromEnvelope(0, 0, 2, 2))")["id"].to_pylist() == [0]
