"""How fast are the points of a box found, and those nearest to a place, in a table that is in no order of places?

Points crowd around cities and lie all over a map; files hold them as they came, at random. Boxes hold one point in ten thousand.
The rivals read the same files: DuckDB scans them, and a pyarrow dataset leaves out row groups by their bounds, as those do who use
GeoParquet's boxes. Asked are all columns, of an index of the coordinates and of one that includes the rest, and the coordinates
alone; in a process that has asked before, and in a new one, where opening counts.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import grebe
from bench._races import with_and_without
from bench._session import bench_session
from bench.harness import Report, Scale, in_fresh_process, samples, timed

FILES = 100
_SHARE = 1e-4
_NEAREST = 10
Box = tuple[float, float, float, float]
Numbers = npt.NDArray[np.float64]


def points(count: int) -> tuple[Numbers, Numbers]:
    """Four of five in one of 300 cities, the others anywhere."""
    random = np.random.default_rng(7)
    cities = np.stack((random.uniform(-170, 170, 300), random.uniform(-60, 70, 300)), axis=1)
    weights = 1 / np.arange(1, 301)
    chosen = cities[random.choice(300, count, p=weights / weights.sum())] + random.normal(0, 0.3, (count, 2))
    anywhere = np.stack((random.uniform(-180, 180, count), random.uniform(-90, 90, count)), axis=1)
    both = np.where((random.random(count) < 0.8)[:, None], chosen, anywhere)
    return both[:, 0], both[:, 1]


def write(folder: Path, x: Numbers, y: Numbers) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(3)
    part = len(x) // FILES
    for number in range(FILES):
        own = slice(number * part, (number + 1) * part)
        columns = {
            "id": np.arange(own.start, own.stop),
            "lon": x[own],
            "lat": y[own],
            "amount": random.integers(0, 10_000, part) / 100,
            "name": pa.array(np.char.mod("visitor %d", random.integers(0, 10**9, part))),
        }
        # Pages as Spark cuts them.
        layout = {"row_group_size": 100_000, "data_page_size": 20_000 * 8, "write_page_index": True}
        pq.write_table(pa.table(columns), folder / f"{number:03d}.parquet", **layout)


def boxes(x: Numbers, y: Numbers, count: int) -> list[Box]:
    """Around points of the table, as large as it takes to hold one in ten thousand."""
    wanted = round(len(x) * _SHARE)
    found = []
    for place in np.random.default_rng(11).integers(0, len(x), count).tolist():
        away = np.maximum(np.abs(x - x[place]), np.abs(y - y[place]))
        half = float(np.partition(away, wanted - 1)[wanted - 1])
        found.append((x[place] - half, y[place] - half, x[place] + half, y[place] + half))
    return [tuple(map(float, box)) for box in found]  # type: ignore[misc]  # four each


class DuckDB:
    def __init__(self, table: str) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 2})
        self._from = f"FROM read_parquet('{table}/*.parquet')"

    def box(self, box: Box, columns: Sequence[str] | None) -> int:
        where = f"lon BETWEEN {box[0]!r} AND {box[2]!r} AND lat BETWEEN {box[1]!r} AND {box[3]!r}"
        return self._rows(f"SELECT {', '.join(columns or '*')} {self._from} WHERE {where}")

    def nearest(self, box: Box, columns: Sequence[str] | None) -> int:
        x, y = _centre(box)
        order = f"(lon - {x!r}) * (lon - {x!r}) + (lat - {y!r}) * (lat - {y!r})"
        return self._rows(f"SELECT {', '.join(columns or '*')} {self._from} ORDER BY {order} LIMIT {_NEAREST}")

    def _rows(self, sql: str) -> int:
        return len(self._connection.sql(sql).to_arrow_table())


class Dataset:
    """Leaves out row groups by their bounds."""

    def __init__(self, table: str) -> None:
        self._files = ds.dataset(table, format="parquet")

    def box(self, box: Box, columns: Sequence[str] | None) -> int:
        lon, lat = ds.field("lon"), ds.field("lat")
        wanted = (lon >= box[0]) & (lon <= box[2]) & (lat >= box[1]) & (lat <= box[3])
        return int(self._files.to_table(columns=None if columns is None else list(columns), filter=wanted).num_rows)

    def nearest(self, box: Box, columns: Sequence[str] | None) -> int:
        """Of the box, as someone would do who knows how far away they are at most."""
        x, y = _centre(box)
        names = None if columns is None else list(dict.fromkeys([*columns, "lon", "lat"]))
        lon, lat = ds.field("lon"), ds.field("lat")
        near = (lon >= box[0]) & (lon <= box[2]) & (lat >= box[1]) & (lat <= box[3])
        found = self._files.to_table(columns=names, filter=near)
        away = np.hypot(found["lon"].to_numpy() - x, found["lat"].to_numpy() - y)
        return int(found.take(np.argsort(away)[:_NEAREST]).num_rows)


class Grebe:
    def __init__(self, table: str, location: str | None = None) -> None:
        self._table = grebe.open(table, location=location)

    def box(self, box: Box, columns: Sequence[str] | None) -> int:
        return int(self._table.within(box, columns).num_rows)

    def nearest(self, box: Box, columns: Sequence[str] | None) -> int:
        return int(self._table.nearest(*_centre(box), _NEAREST, columns).num_rows)


RIVALS: dict[str, Callable[[str], Any]] = {"DuckDB, scanning": DuckDB, "pyarrow, by bounds": Dataset}
QUESTIONS = ("box", "nearest")
COLUMNS: dict[str, list[str] | None] = {"all columns": None, "lon and lat": ["lon", "lat"]}


def run(scale: Scale, report: Report) -> None:
    count = scale.pick(1_000_000, 10_000_000)
    with bench_session() as (spark, folder):
        x, y = points(count)
        table = folder / "points"
        write(table, x, y)
        asked = boxes(x, y, 9)
        lake = grebe.attach(spark)
        building = timed(lambda: lake.table(str(table)).create(grebe.Spatial("place", x="lon", y="lat")))()
        report.add("build", "s", building)
        _sizes(report, lake.table(str(table)).index("place").bytes, x, y)
        wide = grebe.Spatial("place", x="lon", y="lat", include=["id", "amount", "name"])
        lake.table(str(table), location=str(folder / "wide")).create(wide)
        _warm(report, Grebe(str(table)), str(table), asked, COLUMNS)
        _warm(report, Grebe(str(table), str(folder / "wide")), str(table), asked, {"all columns, included": None})
        write(folder / "tiny", x[:FILES], y[:FILES])
        lake.table(str(folder / "tiny")).create(grebe.Spatial("place", x="lon", y="lat"))
        places = {"table": str(table), "tiny": str(folder / "tiny"), "wide": str(folder / "wide")}
        _cold(report, places, asked[:3])
        _in_spark(report, spark, lake, table, asked)


def _sizes(report: Report, ours: int, x: Numbers, y: Numbers) -> None:
    count = len(x)
    report.add("index", "bytes", ours, "x, y, file, row as numbers", count * (8 + 8 + 4 + 8))
    rows = np.arange(count) % (count // FILES)
    columns = {"x": x, "y": y, "file": (np.arange(count) // (count // FILES)).astype("int32"), "row": rows}
    with tempfile.TemporaryDirectory() as name:
        pq.write_table(pa.table(columns), Path(name) / "all.parquet", compression="zstd", use_dictionary=["file"])
        report.add("index", "bytes", ours, "the same in Parquet with zstd", (Path(name) / "all.parquet").stat().st_size)


def _warm(
    report: Report, ours: Grebe, table: str, asked: Sequence[Box], columns_of: Mapping[str, list[str] | None]
) -> None:
    for rival, make in RIVALS.items():
        other = make(table)
        for question in QUESTIONS:
            for what, columns in columns_of.items():
                mine, theirs = (_in_turn(getattr(one, question), asked, columns) for one in (ours, other))
                assert next(mine[1])() == next(theirs[1])()
                done = samples({"ours": mine[0], "theirs": theirs[0]}, len(asked), warm_up=len(asked) // 3)
                case = f"{question}, {what}, warm"
                report.add(case, "s", median(done["ours"]), rival, median(done["theirs"]), len(asked))


def _in_turn(
    ask: Callable[[Box, Sequence[str] | None], int], asked: Sequence[Box], columns: Sequence[str] | None
) -> tuple[Callable[[], float], Iterator[Callable[[], int]]]:
    """Another box at each call; and the answers of all."""
    turn = iter([*asked, *asked, *asked])
    return timed(lambda: ask(next(turn), columns)), (partial(ask, box, columns) for box in asked)


def _cold(report: Report, places: Mapping[str, str], asked: Sequence[Box]) -> None:
    """`places`: the table, a tiny one, and where the index lies that includes all columns."""
    for question in QUESTIONS:
        for rival, make in RIVALS.items():
            for what, columns in COLUMNS.items():
                costs: dict[str, list[float]] = {"ours": [], "included": [], "theirs": []}
                for box in asked:
                    given = (places["table"], places["tiny"], question, box, columns)
                    costs["ours"].append(in_fresh_process(_first, Grebe, *given).value)
                    costs["theirs"].append(in_fresh_process(_first, make, *given).value)
                    if columns is None:
                        costs["included"].append(in_fresh_process(_first, _with(places["wide"]), *given).value)
                for name, ours in costs.items():
                    if ours and name != "theirs":
                        included = ", included" if name == "included" else ""
                        case = f"{question}, {what}{included}, new process"
                        report.add(case, "s", median(ours), rival, median(costs["theirs"]), len(asked))


def _with(location: str) -> Callable[[str], "Grebe"]:
    return partial(_located, location)


def _located(location: str, table: str) -> "Grebe":
    return Grebe(table, location if table.endswith("points") else None)


def _first(
    make: Callable[[str], Any], table: str, tiny: str, question: str, box: Box, columns: Sequence[str] | None
) -> float:
    """The first question about a table, opening it included. What it takes to import was imported for a tiny one."""
    getattr(make(tiny), question)(box, columns)
    return timed(lambda: getattr(make(table), question)(box, columns))()


def _in_spark(report: Report, spark: Any, lake: grebe.Lake, table: Path, asked: Sequence[Box]) -> None:
    spark.read.parquet(str(table)).createOrReplaceTempView("points")
    runs = 5
    for what, chosen in {
        "coordinates": "count(*), avg(lon), avg(lat)",
        "included columns": "count(*), sum(amount), max(name)",
    }.items():
        box = asked[0]
        sql = (
            f"SELECT {chosen} FROM points WHERE lon BETWEEN {box[0]} AND {box[2]} AND lat BETWEEN {box[1]} AND {box[3]}"
        )
        with_and_without(spark, lake, sql, runs).report(f"Spark, box, {what}", report)


def _centre(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
