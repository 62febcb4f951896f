"""`consistency="snapshot"`: the table as of the last refresh of all its indexes, whichever way it is read."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq

import grebe
from tests.spark.data import rows
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark snapshot")]

SNAPSHOT = grebe.Config(consistency="snapshot", hybrid_max_appended=1.0, hybrid_max_deleted=1.0)
QUERIES = {
    "group": "SELECT k, count(*), sum(v), max(s) FROM t GROUP BY k",
    "point": "SELECT * FROM t WHERE v = 20007",
    "nothing helps": "SELECT sum(v), count(*) FROM t WHERE s LIKE '%3'",
    "files": "SELECT DISTINCT element_at(split(input_file_name(), '/'), -1) FROM t",
    "metadata": "SELECT count(*), min(v), max(v) FROM t",
    "join": "SELECT a.v, b.v AS bv FROM t a JOIN t b ON a.k = b.k WHERE a.w < 2",
    "subquery": "SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t)",
}


@pytest.fixture(scope="module")
def readers(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, SNAPSHOT) as made:
        yield made


@pytest.fixture
def place(readers: Served, tmp_path: Path) -> Path:
    """Four files that indexes know, then one more, and one less."""
    folder = tmp_path / "t"
    write(folder, *(rows(200, seed) for seed in range(1, 5)))
    readers.lake.table(str(folder)).create(
        grebe.Covering("by_k", on="k", include=["w", "v", "s"], buckets=2),
        grebe.Lookup("by_v", on="v"),
        grebe.Skipping("skip", grebe.MinMax("v")),
    )
    (folder / "part-000.parquet").unlink()
    write(folder / "more", rows(150, 9))
    (folder / "more" / "part-000.parquet").rename(folder / "part-100.parquet")
    (folder / "more").rmdir()
    return folder


def _answers(served: Served, place: Path) -> dict[str, object]:
    served.view("t", place)
    return {name: served.run(query).rows for name, query in QUERIES.items()}


def _of(served: Served, place: Path, *names: str) -> dict[str, object]:
    """What Spark says of just these files, without indexes."""
    served.spark.read.parquet(*(str(place / name) for name in names)).createOrReplaceTempView("t")
    return {name: served.plain(query).rows for name, query in QUERIES.items()}


def test_every_way_of_reading_sees_the_same_files(readers: Served, place: Path) -> None:
    known = [f"part-{number:03d}.parquet" for number in (1, 2, 3)]
    expected = _of(readers, place, *known)
    assert _answers(readers, place) == expected
    with readers.lake.only():
        assert _answers(readers, place) == expected
    table = grebe.open(str(place), config=SNAPSHOT)
    assert table.count() == 600
    assert table.get("v", 90_007).num_rows == 0
    assert grebe.open(str(place)).get("v", 90_007).num_rows == 1
    readers.lake.table(str(place)).refresh(mode="quick")
    everything = _of(readers, place, *known, "part-100.parquet")
    assert _answers(readers, place) == everything
    assert grebe.open(str(place), config=SNAPSHOT).count() == 750


def test_a_refresh_of_one_index_alone_moves_nothing(readers: Served, place: Path) -> None:
    readers.lake.table(str(place)).refresh("by_v")
    expected = _of(readers, place, *(f"part-{number:03d}.parquet" for number in (1, 2, 3)))
    assert _answers(readers, place) == expected


def test_explain_says_so(readers: Served, place: Path) -> None:
    readers.view("t", place)
    told = readers.lake.explain(readers.spark.sql(QUERIES["nothing helps"]))
    assert "as of the last refresh" in str(told)
    assert told.to_dict()["as_of"]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_rows_of_a_text_file_that_grew_are_never_left_out(readers: Served, tmp_path: Path, format: str) -> None:
    place = tmp_path / "t"
    place.mkdir()
    line = {"csv": "{0},x{0}\n", "json": '{{"k": {0}, "s": "x{0}"}}\n'}[format]
    for part in range(3):
        numbers = range(100 * part, 100 * part + 100)
        (place / f"{part}.{format}").write_text("".join(map(line.format, numbers)))
    reader = readers.spark.read.format(format).schema("k INT, s STRING")
    readers.lake.table(reader.load(str(place))).create(grebe.Lookup("by_k", on="k"))
    assert grebe.open(str(place), config=SNAPSHOT).count() == 300
    with (place / f"1.{format}").open("a") as file:
        file.write(line.format(999))
    with pytest.raises(grebe.SourceChanged) as told:
        grebe.open(str(place), config=SNAPSHOT)
    assert told.value.code == "SOURCE_CHANGED_SNAPSHOT"
    assert "consistency='current'" in str(told.value)
    reader.load(str(place)).createOrReplaceTempView("t")
    query = "SELECT count(*), max(k) FROM t"
    assert [tuple(row) for row in readers.spark.sql(query).collect()] == [(301, 999)]
    assert "as it is now" in str(readers.lake.explain(readers.spark.sql(query)))
    readers.lake.table(reader.load(str(place))).refresh()
    assert grebe.open(str(place), config=SNAPSHOT).count() == 301


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {"parquet": pq.write_table, "orc": orc.write_table}


@pytest.mark.parametrize("how", ["rewritten", "longer", "closed to others"])
@pytest.mark.parametrize("format", WRITERS)
def test_rows_of_a_changed_file_are_never_left_out(readers: Served, tmp_path: Path, format: str, how: str) -> None:
    place = tmp_path / "t"
    place.mkdir()
    for part in range(3):
        WRITERS[format](_hundred(part), place / f"{part}.{format}")
    reader = readers.spark.read.format(format)
    readers.lake.table(reader.load(str(place))).create(grebe.Lookup("by_k", on="k"))
    changed = place / f"1.{format}"
    if how == "closed to others":
        changed.chmod(0o600 if changed.stat().st_mode & 0o077 else 0o640)
        rows = 300
    else:
        WRITERS[format](pa.concat_tables([_hundred(1)] * (2 if how == "longer" else 1)), changed)
        rows = 400 if how == "longer" else 300
    with pytest.raises(grebe.SourceChanged, match="SNAPSHOT"):
        grebe.open(str(place), config=SNAPSHOT)
    reader.load(str(place)).createOrReplaceTempView("t")
    query = "SELECT count(*), max(k) FROM t"
    assert [tuple(row) for row in readers.spark.sql(query).collect()] == [(rows, 299)]
    assert "as it is now" in str(readers.lake.explain(readers.spark.sql(query)))
    readers.lake.table(reader.load(str(place))).refresh()
    assert grebe.open(str(place), config=SNAPSHOT).count() == rows


def _hundred(part: int) -> pa.Table:
    keys = range(100 * part, 100 * part + 100)
    return pa.table({"k": pa.array(keys, pa.int32()), "s": [f"x{key}" for key in keys]})


def test_files_beyond_the_snapshot_may_change(readers: Served, tmp_path: Path) -> None:
    """Nothing of them is in the answer."""
    place = write(tmp_path / "t", _hundred(0))
    table = readers.lake.table(place)
    table.create(grebe.Covering("by_k", on="k", include=["s"], buckets=1))
    write(tmp_path / "t", _hundred(1))
    table.create(grebe.Lookup("by_s", on="s"))
    frame = readers.spark.read.parquet(place).where("k > 97").select("k")
    expected = [(98,), (99,)]
    bridge = readers.lake._spark._shim.bridge
    bridge.setComparisonMilliseconds(0)
    try:
        assert sorted(tuple(row) for row in frame.collect()) == expected
        assert readers.lake.explain(frame).to_dict()["used"] == ["by_k"]
        pq.write_table(_hundred(2), tmp_path / "t" / "part-001.parquet")
        assert sorted(tuple(row) for row in frame.collect()) == expected
    finally:
        bridge.setComparisonMilliseconds(1000)
