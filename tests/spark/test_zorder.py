"""Boxes over several columns are answered from a copy along a curve: the rows that they are without it, from fewer files."""

import math
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import grebe
from grebe.indexes.content import parts
from grebe.planner.decision import StandIn
from tests.indexes.covering_lake import log_of
from tests.spark.boxes import PLAIN, boxes, rows
from tests.spark.served import Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark zorder")]

KINDS = [
    grebe.ZOrder("xy", on=["x", "y"], include=["d", "s", "m", "n"]),
    grebe.ZOrder("four", on=["d", "s", "m", "x"], include=["y", "n"], curve="z"),
    grebe.ZOrder("place", on=["h.lon", "h.lat"], include=["n", "one"]),
]


@pytest.fixture(scope="module")
def many_files() -> Iterator[None]:
    """Also of a small table, so that some are left out."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parts, "_SMALL", ())
        yield


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path, many_files: None) -> Served:
    write(folder / "t", *(rows(700, seed) for seed in range(1, 5)), **PLAIN)
    served.lake.table(str(folder / "t")).create(*KINDS)
    served.view("t", folder / "t")
    return served


def box_query(conditions: tuple[str, ...]) -> str:
    return f"SELECT n, x, d, m FROM t WHERE {' AND '.join(conditions)}"


def left_out(lake: Served) -> bool:
    """Whether some files of the index were not read by the last query."""
    return any(isinstance(one, StandIn) and len(one.content) < len(one.copy.content) for one in lake.decision.choices)


def test_boxes_have_the_rows_that_they_have_without_the_index(lake: Served) -> None:
    pruned = 0
    queries = [box_query(conditions) for conditions in boxes(1, 25)]
    for query in queries:
        seen = lake.same_rows(query)
        assert seen.used in (["xy"], ["four"]), (query, lake.reasons(query))
        pruned += left_out(lake)
    assert pruned > len(queries) // 2


def test_every_column_of_the_curve_leaves_files_out(lake: Served) -> None:
    ranges = {
        "xy": ["x BETWEEN 0.1 AND 0.2", "y BETWEEN -5 AND -2", "x > 20", "y > 300"],
        "four": ["d < DATE '2020-02-01'", "s BETWEEN 'user1' AND 'user14'", "m > 990", "s LIKE 'user36%'"],
    }
    for index, conditions in ranges.items():
        for condition in conditions:
            with lake.lake.only(index):
                lake.same(f"SELECT n FROM t WHERE {condition}", index)
            assert left_out(lake), condition


def test_fields_inside_a_column_can_be_asked_for(lake: Served) -> None:
    lake.same("SELECT n, one FROM t WHERE h.lon BETWEEN 7 AND 7.5 AND h.lat > 48", "place")
    assert left_out(lake)


def test_of_several_indexes_the_one_that_reads_least_is_taken(lake: Served) -> None:
    assert lake.run("SELECT n FROM t WHERE x > 5 AND y < 70 AND y > 60").used == ["xy"]
    assert lake.run("SELECT n FROM t WHERE d > DATE '2021-11-01' AND m > 900").used == ["four"]


def test_a_column_that_is_not_there_is_told(lake: Served) -> None:
    reasons = lake.reasons("SELECT n FROM t WHERE one = 7 AND h.lon > 100")
    assert (reasons["xy"], reasons["four"]) == ("MISSING_REQUIRED_COL", "MISSING_REQUIRED_COL")


def test_no_order_is_promised(lake: Served) -> None:
    with lake.lake.only("xy"):
        seen = lake.same("SELECT n, x FROM t WHERE x > 1 ORDER BY x, n", "xy")
        assert seen.sorts == 1
        joined = lake.same("SELECT a.n, b.n AS m FROM t a JOIN t b ON a.y = b.y WHERE a.x > 90 AND b.x > 90", "xy")
    assert joined.exchanges >= 1


def test_stale_indexes_serve_what_they_cover(served: Served, folder: Path, many_files: None) -> None:
    place = folder / "stale"
    write(place, *(rows(300, seed) for seed in range(1, 5)), **PLAIN)
    table = served.lake.table(str(place))
    table.create(*KINDS[:2])
    write(place, rows(200, 9), **PLAIN)
    (place / "part-001.parquet").unlink()
    served.view("t", place)
    try:
        for conditions in boxes(2, 6):
            assert served.same_rows(box_query(conditions)).used, conditions
        table.refresh()
        for conditions in boxes(3, 4):
            assert served.same_rows(box_query(conditions)).used, conditions
    finally:
        served.view("t", folder / "t")


def content(table: "grebe.LakeTable", name: str) -> dict[str, int]:
    """The files of an index, and how many rows each has."""
    return {file.path: file.rows for file in log_of(table.uri).state.indexes[name].content}


def test_a_refresh_adds_a_run_and_leaves_the_rest(served: Served, folder: Path, many_files: None) -> None:
    place = folder / "grown"
    write(place, *(rows(1000, seed) for seed in range(1, 5)), **PLAIN)
    table = served.lake.table(str(place))
    table.create(KINDS[0])
    before = content(table, "xy")
    write(place, rows(40, 8), **PLAIN)
    table.refresh()
    after = content(table, "xy")
    assert before.items() <= after.items()
    assert sum(after.values()) - sum(before.values()) == 40
    served.view("grown", place)
    served.same("SELECT n, m FROM grown WHERE x BETWEEN 0 AND 1 AND y < 5", "xy")
    write(place, rows(40, 7), **PLAIN)
    table.refresh()
    merged = content(table, "xy")
    assert before.items() <= merged.items(), "only the small runs were merged"
    assert len({path.rpartition("/")[0] for path in merged}) == 2
    (place / "part-004.parquet").unlink()
    table.refresh(mode="quick")
    assert [info.name for info in table.optimize(mode="full")] == ["xy"]
    whole = content(table, "xy")
    assert len({path.rpartition("/")[0] for path in whole}) == 1
    assert sum(whole.values()) == 4040
    assert table.verify(deep=True).ok
    served.view("grown", place)
    served.same("SELECT n, m FROM grown WHERE x BETWEEN 0 AND 1 AND y < 5", "xy")


def test_columns_of_one_value_or_none_and_tables_without_rows(served: Served, folder: Path, many_files: None) -> None:
    write(folder / "flat", rows(500, 1).append_column("none", pa.nulls(500, pa.int32())), **PLAIN)
    write(folder / "empty", rows(0, 1), **PLAIN)
    served.lake.table(str(folder / "flat")).create(
        grebe.ZOrder("flat", on=["one", "none", "d"], include="n"),
        grebe.ZOrder("nothing", on=["one", "none"], include="x"),
        grebe.ZOrder("single", on="m"),
    )
    served.lake.table(str(folder / "empty")).create(grebe.ZOrder("empty", on=["x", "y"]))
    for name in ("flat", "empty"):
        served.view(name, folder / name)
    served.same("SELECT n FROM flat WHERE one = 7 AND d < DATE '2020-03-01'", "flat")
    assert left_out(served)
    served.same("SELECT x FROM flat WHERE one > 7 OR none IS NULL", "nothing")
    served.same("SELECT m FROM flat WHERE m BETWEEN 1 AND 50", "single")
    assert left_out(served)
    served.same_rows("SELECT x FROM empty WHERE y > 1")


def test_a_nan_lies_above_every_bound(served: Served, folder: Path, many_files: None) -> None:
    """As the writer of this Spark gives it; without that no upper bound of numbers could be believed."""
    values = [math.nan if n in (0, 500, 999) else float(n) for n in range(1000)]
    write(folder / "nan", {"x": values, "f": pa.array(values, pa.float32()), "n": list(range(1000))}, **PLAIN)
    served.lake.table(str(folder / "nan")).create(grebe.ZOrder("i", on=["n", "x", "f"]))
    served.view("nan", folder / "nan")
    assert served.same("SELECT n FROM nan WHERE x > 2000", "i").rows.total() == 3
    assert left_out(served), "files without a NaN"
    assert served.same("SELECT n FROM nan WHERE f = CAST('NaN' AS FLOAT)", "i").rows.total() == 3
