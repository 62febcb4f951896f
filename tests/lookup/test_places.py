"""What lies in a box or near a point, without Spark: the rows are those of a full scan, whatever the coordinates are."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidPredicate
from grebe.indexes.spatial.spec import Spatial
from grebe.session.lake_table import LakeTable
from grebe.session.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS, FILES = 24_000, 3
ODD = (math.nan, math.inf, -math.inf, -0.0, 0.0)
Numbers = npt.NDArray[np.float64]


def crowded() -> pa.Table:
    """Points all over, a crowd, a third of all in one place, and the odd ones."""
    random = np.random.default_rng(9)
    x, y = random.uniform(-180, 180, ROWS), random.normal(0, 30, ROWS)
    x[: ROWS // 3], y[: ROWS // 3] = 13.4, 52.5
    x[ROWS // 3 : ROWS // 2] = random.normal(2.35, 0.01, ROWS // 2 - ROWS // 3)
    for number, odd in enumerate(ODD):
        x[number::701], y[100 + number :: 701] = odd, odd
    order = random.permutation(ROWS)
    nowhere = np.arange(ROWS) % 97 == 5
    columns = {"lon": pa.array(x[order], mask=nowhere), "lat": pa.array(y[order], mask=np.arange(ROWS) % 89 == 3)}
    return pa.table({"id": np.arange(ROWS), **columns, "name": [f"place {number}" for number in range(ROWS)]})


@pytest.fixture(scope="module")
def places() -> pa.Table:
    return crowded()


@pytest.fixture(scope="module")
def folder(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, places: pa.Table) -> Path:
    """An index covers all files but the last."""
    folder = tmp_path_factory.mktemp("places") / "t"
    folder.mkdir()
    part = ROWS // FILES
    for number in range(FILES):
        if number == FILES - 1:
            LakeTable(spark, str(folder)).create(Spatial("by_place", x="lon", y="lat"))
        pq.write_table(places.slice(number * part, part), folder / f"{number}.parquet", row_group_size=2_000)
    return folder


@pytest.fixture(scope="module")
def table(folder: Path) -> Table:
    return grebe.open(str(folder))


def coordinates(places: pa.Table) -> tuple[Numbers, Numbers]:
    return tuple(places[name].fill_null(math.nan).to_numpy() for name in ("lon", "lat"))


def inside(places: pa.Table, box: tuple[float, float, float, float]) -> list[int]:
    x, y = coordinates(places)
    across = (x >= box[0]) & (x <= box[2]) if box[0] <= box[2] else (x >= box[0]) | (x <= box[2])
    return np.flatnonzero(across & (y >= box[1]) & (y <= box[3])).tolist()


BOXES = [
    (-10.0, -10.0, 10.0, 10.0),
    (13.4, 52.5, 13.4, 52.5),
    (2.34, -5.0, 2.36, 5.0),
    (0.0, -90.0, 0.0, 90.0),
    (-math.inf, -math.inf, math.inf, math.inf),
    (170.0, -20.0, -170.0, 20.0),
    (math.inf, -math.inf, math.inf, math.inf),
    (500.0, 0.0, 600.0, 1.0),
]


@pytest.mark.parametrize("box", BOXES)
def test_within_gives_just_the_points_of_the_box(
    table: Table, places: pa.Table, box: tuple[float, float, float, float]
) -> None:
    assert sorted(table.within(box)["id"].to_pylist()) == inside(places, box)
    assert table.within(box).schema == table.schema


def test_generated_boxes_lose_no_point(table: Table, places: pa.Table) -> None:
    random = np.random.default_rng(4)
    x, y = coordinates(places)
    known = np.concatenate((x[np.isfinite(x)], y[np.isfinite(y)], ODD[1:]))
    for _ in range(60):
        ends = random.choice(known, 4) + random.choice([0.0, 0.0, 1e-9, -3.0], 4)
        box = (ends[0], min(ends[1], ends[3]), ends[2], max(ends[1], ends[3]))
        assert sorted(table.within(box, columns=["id"])["id"].to_pylist()) == inside(places, box), box


PREDICATES = [
    "lon >= 100 AND lat < -20",
    "lon > 170",
    "lat = 52.5 AND lon BETWEEN 13 AND 14",
    "lon = 0.0",
    "lon IN (13.4, 0.0) OR lat > 95",
    "lat >= DOUBLE('NaN')",
    "lon < CAST('-Infinity' AS DOUBLE) OR lon <= CAST('-Infinity' AS DOUBLE)",
    "lon IS NULL AND lat > 80",
    "NOT (lon < 179)",
    "lon <=> 13.4 AND lat <> 52.5",
    "CAST(lon AS INT) = 170 AND lat BETWEEN -1 AND 1",
]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_plain_predicates_find_what_a_scan_finds(
    table: Table, places: pa.Table, tmp_path: Path, predicate: str
) -> None:
    pq.write_table(places, tmp_path / "all.parquet")
    whole = grebe.open(str(tmp_path))
    if "CAST(lon" in predicate:
        predicate = predicate.replace("CAST(", "TRY_CAST(")
    expected = sorted(whole.scan(predicate)["id"].to_pylist())
    assert sorted(table.scan(predicate)["id"].to_pylist()) == expected
    assert table.rows(predicate).num_rows == len(expected)


@pytest.mark.parametrize("point", [(13.4, 52.5), (2.35, 0.0), (-179.0, 80.0), (1e6, -1e6), (0.0, 0.0)])
@pytest.mark.parametrize("k", [1, 7, 600])
def test_nearest_gives_the_nearest_finite_points(
    table: Table, places: pa.Table, point: tuple[float, float], k: int
) -> None:
    x, y = coordinates(places)
    distance = np.where(np.isfinite(x) & np.isfinite(y), np.hypot(x - point[0], y - point[1]), np.inf)
    found = table.nearest(*point, k)["id"].to_numpy()
    assert len(set(found.tolist())) == k
    np.testing.assert_array_equal(distance[found], np.sort(distance)[:k])


def test_nearest_takes_all_finite_points_where_more_are_asked_for(table: Table, places: pa.Table) -> None:
    x, y = coordinates(places)
    assert table.nearest(0, 0, 10**6, ["id"]).num_rows == int((np.isfinite(x) & np.isfinite(y)).sum())
    assert table.nearest(0, 0, 0).num_rows == 0
    assert table.nearest(0, 0, 3, ["name"]).column_names == ["name"]


def test_a_box_reads_the_index_and_few_rows(table: Table) -> None:
    answer = table.files("lon BETWEEN 2.35 AND 2.36 AND lat BETWEEN 0 AND 1")
    assert answer.index == "by_place"
    assert answer.uncovered == 1
    assert all(file.rows is not None and len(file.rows) < 200 for file in answer.files[:-1])


def test_without_an_index_the_columns_are_named(folder: Path, places: pa.Table, tmp_path: Path) -> None:
    pq.write_table(places, tmp_path / "all.parquet")
    plain = grebe.open(str(tmp_path))
    with pytest.raises(InvalidPredicate, match="on=") as refused:
        plain.within((0, 0, 1, 1))
    assert refused.value.code == "INVALID_PREDICATE_NO_PLACES"
    box = (-10.0, -10.0, 10.0, 10.0)
    assert sorted(plain.within(box, on=["LON", "lat"])["id"].to_pylist()) == inside(places, box)
    x, y = coordinates(places)
    distance = np.where(np.isfinite(x) & np.isfinite(y), np.hypot(x - 1, y - 2), np.inf)
    found = plain.nearest(1, 2, 9, on=["lon", "lat"])["id"].to_numpy()
    np.testing.assert_array_equal(distance[found], np.sort(distance)[:9])


@pytest.mark.parametrize("box", [(0, 1, 2), (0, 5, 1, 4), (0, 0, math.nan, 1), "0,0,1,1", None, ("a", 0, 1, 1)])
def test_what_is_no_box_is_refused(table: Table, box: object) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        table.within(box)  # type: ignore[arg-type]  # wrong on purpose
    assert refused.value.code == "INVALID_PREDICATE_BOX"


@pytest.mark.parametrize(("x", "y", "k"), [(math.nan, 0, 1), (0, math.inf, 1), ("a", 0, 1), (0, 0, -1), (0, 0, 1.5)])
def test_what_is_no_point_is_refused(table: Table, x: float, y: float, k: int) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        table.nearest(x, y, k)
    assert refused.value.code == "INVALID_PREDICATE_POINT"
