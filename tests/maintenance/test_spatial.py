"""The life of a spatial index: refreshed, verified, damaged, deleted, on tables of other formats and versions, always with the
answers of a full scan."""

import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.indexes.spatial import probe
from grebe.indexes.spatial.spec import Spatial
from grebe.maintenance.runs import runs_of
from grebe.session.lake_table import LakeTable
from tests.indexes.covering_lake import log_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BOX = (-20.0, -20.0, 15.0, 25.0)
POINT = (1.0, 2.0)


def points(start: int, stop: int) -> pa.Table:
    random = np.random.default_rng(start)
    count = stop - start
    x, y = random.uniform(-90, 90, count), random.uniform(-90, 90, count)
    x[::37] = math.nan
    return pa.table({"id": np.arange(start, stop), "x": pa.array(x, mask=np.arange(count) % 41 == 1), "y": y})


def check(table: "grebe.Table", rows: pa.Table, names: tuple[str, str] = ("x", "y")) -> None:
    """Box and neighbours are those of these rows."""
    x, y = (np.array([math.nan if one is None else float(one) for one in rows[name].to_pylist()]) for name in names)
    ids = rows["id"].to_numpy()
    inside = (x >= BOX[0]) & (x <= BOX[2]) & (y >= BOX[1]) & (y <= BOX[3])
    assert sorted(table.within(BOX)["id"].to_pylist()) == sorted(ids[inside].tolist())
    away = np.where(np.isfinite(x) & np.isfinite(y), np.hypot(x - POINT[0], y - POINT[1]), np.inf)
    by_id = dict(zip(ids.tolist(), away.tolist(), strict=True))
    found = [by_id[one] for one in table.nearest(*POINT, 8)["id"].to_pylist()]
    assert found == sorted(away.tolist())[:8]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    for number in range(2):
        pq.write_table(points(number * 2000, number * 2000 + 2000), tmp_path / "t" / f"{number}.parquet")
    return tmp_path / "t"


@pytest.mark.core
def test_refreshes_add_runs_that_are_merged(spark: "SparkSession", folder: Path) -> None:
    table = LakeTable(spark, str(folder))
    table.create(Spatial("place", x="x", y="y"))
    runs, rows = [], [points(0, 2000), points(2000, 4000)]
    for number in range(2, 4):
        rows.append(points(number * 2000, number * 2000 + 600))
        pq.write_table(rows[-1], folder / f"{number}.parquet")
        check(grebe.open(str(folder)), pa.concat_tables(rows))
        (info,) = table.refresh()
        assert (info.files_stale, info.rows) == (0, sum(map(len, rows)))
        runs.append(len(runs_of(log_of(str(folder)).state.indexes["place"])))
        check(grebe.open(str(folder)), pa.concat_tables(rows))
    assert max(runs) == 2
    (folder / "0.parquet").unlink()
    check(grebe.open(str(folder)), pa.concat_tables(rows[1:]))
    table.refresh()
    assert table.verify(deep=True).ok
    check(grebe.open(str(folder)), pa.concat_tables(rows[1:]))
    table.optimize("place", mode="full")
    assert len(runs_of(log_of(str(folder)).state.indexes["place"])) == 1
    check(grebe.open(str(folder)), pa.concat_tables(rows[1:]))


def test_deleted_and_restored(spark: "SparkSession", folder: Path) -> None:
    table = LakeTable(spark, str(folder))
    table.create(Spatial("place", x="x", y="y"))
    rows = pa.concat_tables([points(0, 2000), points(2000, 4000)])
    table.delete("place")
    opened = grebe.open(str(folder))
    scanned = opened.scan("x BETWEEN -20 AND 15 AND y BETWEEN -20 AND 25")
    assert opened.within(BOX, on=["x", "y"]).num_rows == scanned.num_rows > 0
    with pytest.raises(grebe.InvalidPredicate):
        opened.within(BOX)
    table.restore("place")
    check(grebe.open(str(folder)), rows)
    warmed = grebe.open(str(folder))
    warmed.warm("place", pin=True)
    check(warmed, rows)


def test_a_large_tree_is_read_branch_by_branch(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_READ_WHOLE", 0)
    monkeypatch.setattr(probe, "_BRANCHES_AT_ONCE", 1)
    (tmp_path / "t").mkdir()
    rows = points(0, 110_000)
    pq.write_table(rows, tmp_path / "t" / "0.parquet")
    LakeTable(spark, str(tmp_path / "t")).create(Spatial("place", x="x", y="y"))
    table = grebe.open(str(tmp_path / "t"))
    check(table, rows)
    table.warm("place")
    x, y = rows["x"].fill_null(math.nan).to_numpy(), rows["y"].to_numpy()
    for point in [(-89.0, 0.0), (29.9, 3.0), (500.0, 500.0)]:
        away = np.sort(np.hypot(x - point[0], y - point[1]))
        found = table.nearest(*point, 5000, ["x", "y"])
        np.testing.assert_array_equal(
            np.hypot(found["x"].to_numpy() - point[0], found["y"].to_numpy() - point[1]), away[:5000]
        )


@pytest.mark.parametrize("part", ["tree.gix", "_00001.gix"])
def test_a_damaged_file_is_found_and_answers_stay_right(spark: "SparkSession", folder: Path, part: str) -> None:
    table = LakeTable(spark, str(folder))
    table.create(Spatial("place", x="x", y="y"))
    assert table.verify().ok
    (damaged,) = folder.parent.glob(f"_grebe/t/data/place/*/*{part}")
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 0xFF
    damaged.write_bytes(content)
    assert [Path(one.path).name for one in grebe.open(str(folder)).verify(deep=True).findings] == [damaged.name]
    check(grebe.open(str(folder)), pa.concat_tables([points(0, 2000), points(2000, 4000)]))
    damaged.unlink()
    assert not grebe.open(str(folder)).verify().ok
    check(grebe.open(str(folder)), pa.concat_tables([points(0, 2000), points(2000, 4000)]))


@pytest.mark.parametrize("kind", [pa.float32(), pa.int16(), pa.int64(), pa.decimal128(9, 3), pa.decimal128(38, 10)])
def test_coordinates_of_any_type_of_number(spark: "SparkSession", tmp_path: Path, kind: pa.DataType) -> None:
    random = np.random.default_rng(5)
    numbers = [np.round(random.uniform(-90, 90, 3000), 3) for _ in range(2)]

    def typed(values: Any) -> pa.Array:
        if pa.types.is_decimal(kind):
            return pa.array([Decimal(str(one)) for one in values], kind)
        return pa.array(values).cast(kind, safe=False)

    at = pa.StructArray.from_arrays([typed(one) for one in numbers], ["x", "y"])
    rows = pa.table({"id": range(3000), "at": at, "x": at.field("x"), "y": at.field("y")})
    (tmp_path / "t").mkdir()
    pq.write_table(rows, tmp_path / "t" / "0.parquet", row_group_size=500)
    LakeTable(spark, str(tmp_path / "t")).create(Spatial("place", x="at.x", y="at.y"))
    table = grebe.open(str(tmp_path / "t"))
    check(table, rows)
    box = "ST_Intersects(ST_Point(at.x, at.y), ST_PolygonFromEnvelope(1, 1, 9, 9))"
    assert table.files(box).index == "place"
    assert sorted(table.scan(box)["id"].to_pylist()) == sorted(table.within((1, 1, 9, 9))["id"].to_pylist())
    answer = table.files("at.x BETWEEN 1 AND 9 AND at.y < -70")
    assert answer.index == "place"
    assert answer.files[0].rows is not None
    assert len(answer.files[0].rows) == table.scan("at.x BETWEEN 1 AND 9 AND at.y < -70").num_rows


@pytest.mark.parametrize("what", ["one place", "a line", "nothing but NULL", "no rows"])
def test_places_that_are_hard_to_tell_apart(spark: "SparkSession", tmp_path: Path, what: str) -> None:
    count = 0 if what == "no rows" else 120_000
    up = np.linspace(-90, 90, count) if what == "a line" else np.full(count, 2.0)
    x = pa.nulls(count, pa.float64()) if what == "nothing but NULL" else pa.array(np.full(count, 1.0))
    rows = pa.table({"id": np.arange(count), "x": x, "y": up})
    (tmp_path / "t").mkdir()
    pq.write_table(rows, tmp_path / "t" / "0.parquet")
    LakeTable(spark, str(tmp_path / "t")).create(Spatial("place", x="x", y="y"))
    table = grebe.open(str(tmp_path / "t"))
    assert table.within((1, 2, 1, 2), ["id"]).num_rows == (count if what == "one place" else 0)
    assert table.nearest(1, 2, 5, ["id"]).num_rows == (0 if what in ("nothing but NULL", "no rows") else 5)
    if what == "a line":
        answer = table.files("x = 1 AND y BETWEEN 10 AND 10.01")
        assert sum(len(file.rows or ()) for file in answer.files) < 20
    assert table.files("x > 5").files == ()


def test_included_columns_are_not_read_from_the_files(spark: "SparkSession", folder: Path) -> None:
    LakeTable(spark, str(folder)).create(Spatial("place", x="x", y="y", include="id"))
    rows = pa.concat_tables([points(0, 2000), points(2000, 4000)])
    check(grebe.open(str(folder)), rows)
    table = grebe.open(str(folder))
    for file in folder.iterdir():
        file.write_bytes(b"gone")
    check(table, rows)


def test_text_is_looked_up_by_offsets(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    rows = points(0, 3000).filter(pa.compute.is_finite(points(0, 3000)["x"]))
    pa.csv.write_csv(rows, tmp_path / "t" / "0.csv")
    options = {"header": "true", "inferSchema": "true"}
    LakeTable(spark, str(tmp_path / "t"), "csv", options).create(Spatial("place", x="x", y="y"))
    table = grebe.open(str(tmp_path / "t"))
    check(table, rows)
    assert table.rows("x > 80").column_names == ["file", "offset", "length"]


def test_older_versions_of_a_delta_table(spark: "SparkSession", tmp_path: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    path = str(tmp_path / "t")
    first, second = points(0, 2000), points(2000, 3000)
    write_deltalake(path, first)
    table = LakeTable(spark, path)
    table.create(Spatial("place", x="x", y="y"))
    write_deltalake(path, second, mode="append")
    check(grebe.open(path), pa.concat_tables([first, second]))
    table.refresh()
    DeltaTable(path).delete("id < 1000")
    left = pa.concat_tables([first.slice(1000), second])
    check(grebe.open(path), left)
    check(grebe.open(path, version=0), first)
    table.refresh()
    check(grebe.open(path), left)
    check(grebe.open(path, version=1), pa.concat_tables([first, second]))
