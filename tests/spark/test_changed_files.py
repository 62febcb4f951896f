"""Data files that change between the listing, the planning and the execution of a Spark query."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.indexes.kind import Kind
from grebe.store.opening import open_store, open_table_store
from testbed import maven
from testbed.changing import CHANGES, KEYS_OF_A_FILE, SCHEMA, Change, ChangingTable, Row, rows_of
from testbed.s3 import S3Server
from testbed.spark import configured, use_s3
from tests.spark.served import LENIENT, Served, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark changed files")]

ROWS = 4_000
FORMATS = ("parquet", "csv")
INDEXES = ("by_id", "cov")
FILES_OF_A_SEED = 2
SEEDS = 8
SOAK_SEEDS = 120
# Spark cuts a file by the length that it was listed with: of a file that grew since, it reads a part, with or without indexes.
LATE_CHANGES: tuple[Change, ...] = ("overwrite", "rename over", "restore", "delete")
SAYS_SO = r"SOURCE_CHANGED_FILE_CHANGED|FILE_NOT_EXIST|SparkFileNotFoundException"
"""How a query may end whose files change after they were listed: in our words, in those of Spark, in those of Spark 3.5."""


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, LENIENT) as made:
        yield made


def _planned(frame: "DataFrame") -> "DataFrame":
    frame._jdf.queryExecution().executedPlan()
    return frame


def _collected(frame: "DataFrame") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def _write(format: str, path: Path, keys: list[int]) -> None:
    if format == "csv":
        path.write_text("".join(f"{key:07d},{'x' * 40}\n" for key in keys))
        return
    table = pa.table({"k": pa.array(keys, pa.int64()), "v": ["x" * 40] * len(keys)})
    pq.write_table(
        table,
        path,
        row_group_size=ROWS // 20,
        write_page_index=True,
        use_dictionary=False,
        column_encoding="PLAIN",
        compression="none",
    )


def _two_files(folder: Path) -> Path:
    folder.mkdir()
    _write("parquet", folder / "a.parquet", list(range(ROWS)))
    _write("parquet", folder / "b.parquet", list(range(ROWS, 2 * ROWS)))
    SYSTEM.sleep(0.05)
    return folder


# Where CSV is read leniently, its records depend on what is read, and no index covers it.
@pytest.mark.parametrize(("format", "lenient"), [("parquet", "false"), ("parquet", "true"), ("csv", "false")])
def test_ranges_of_a_file_that_changed_after_planning_are_not_trusted(
    served: Served, tmp_path: Path, format: str, lenient: str
) -> None:
    """The key moves to the other end of the file, which keeps its size: its old range holds other rows."""
    folder = tmp_path / "t"
    folder.mkdir()
    path = folder / f"part-0.{format}"
    _write(format, path, list(range(ROWS)))
    SYSTEM.sleep(0.05)
    row = [(77, "x" * 40)]

    def frame() -> "DataFrame":
        return served.spark.read.format(format).schema("k LONG, v STRING").load(str(folder)).where("k = 77")

    # With true, Spark skips a file whose reader raises most kinds of errors.
    served.spark.conf.set("spark.sql.files.ignoreCorruptFiles", lenient)
    try:
        own = served.lake.table(served.spark.read.format(format).schema("k LONG, v STRING").load(str(folder)))
        own.create(grebe.Lookup("by_k", on="k"))
        planned, earlier = _planned(frame()), frame()
        assert _collected(earlier) == row
        size = path.stat().st_size
        _write(format, path, list(reversed(range(ROWS))))
        assert path.stat().st_size == size
        for old in (planned, earlier, planned):
            with pytest.raises(Exception, match=r"SOURCE_CHANGED_FILE_CHANGED: .*part-0.* make the DataFrame anew"):
                old.collect()
        assert _collected(frame()) == row
        own.refresh()
        again = frame()
        assert _collected(again) == row
        assert served.lake.explain(again).to_dict()["used"] == ["by_k"]
    finally:
        served.spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_a_file_that_is_replaced_after_planning_gives_its_rows_once(served: Served, tmp_path: Path) -> None:
    """Its rows are in the index; beside that are read the files that came later, and they alone."""
    folder = _two_files(tmp_path / "t")
    served.lake.table(str(folder)).create(grebe.Covering("cov", on="k", include=["v"], buckets=2))
    _write("parquet", folder / "c.parquet", [9_000_001])
    served.view("replaced", folder)
    query = f"SELECT k FROM replaced WHERE k IN (7, {ROWS + 7}, 9000001)"
    frame = _planned(served.spark.sql(query))
    assert served.lake.explain(frame).to_dict()["used"] == ["cov"]
    _write("parquet", folder / "a.parquet", list(range(ROWS // 2)))
    served.spark.catalog.refreshTable("replaced")
    with _compared_for(served, 3_600_000):
        assert _collected(frame) == [(7,), (ROWS + 7,), (9_000_001,)]
    with _compared_for(served, 0), pytest.raises(Exception, match=CHANGED):
        frame.collect()
    assert _collected(served.spark.sql(query)) == [(7,), (ROWS + 7,), (9_000_001,)]


SERVED: dict[str, tuple[Kind, str]] = {
    "a covering index": (
        grebe.Covering("i", on="k", include=["v"], buckets=2),
        f"SELECT v FROM served WHERE k IN (7, {ROWS + 7})",
    ),
    "groups of a covering index": (grebe.Covering("i", on="k", buckets=2), "SELECT k, count(*) FROM served GROUP BY k"),
    "a curve": (grebe.ZOrder("i", on="k", include=["v"]), f"SELECT v FROM served WHERE k IN (7, {ROWS + 7})"),
    "a view": (
        grebe.View("i", "SELECT v, count(*) AS n FROM {table} GROUP BY v"),
        "SELECT v, count(*) AS n FROM served GROUP BY v",
    ),
    "a skipping index": (grebe.Skipping("i", grebe.MinMax("k")), f"SELECT v FROM served WHERE k = {ROWS + 7}"),
    "metadata": (grebe.Skipping("i", grebe.MinMax("k")), "SELECT count(*), max(k) FROM served"),
    "keys of a join": (
        grebe.Lookup("i", on="k"),
        "SELECT /*+ BROADCAST(few) */ v FROM served JOIN few ON served.k = few.id",
    ),
}
"""What answers for the first of two files: its rows are in the index, or the index says that it has none."""
CHANGED = r"SOURCE_CHANGED_FILE_CHANGED: .*make the DataFrame anew"


@contextmanager
def _compared_for(served: Served, milliseconds: int) -> Iterator[None]:
    bridge = served.lake._spark._shim.bridge
    bridge.setComparisonMilliseconds(milliseconds)
    try:
        yield
    finally:
        bridge.setComparisonMilliseconds(1000)


@pytest.mark.parametrize("how", SERVED)
@pytest.mark.parametrize("change", ["overwrite", "delete"])
def test_a_frame_that_runs_again_after_a_change_says_so(served: Served, tmp_path: Path, how: str, change: str) -> None:
    """Without the index its next run would read the file as it is now."""
    kind, query = SERVED[how]
    folder = _two_files(tmp_path / "t")
    served.view("served", folder)
    served.spark.range(ROWS + 7, ROWS + 8).write.parquet(str(tmp_path / "few"))
    served.view("few", tmp_path / "few")
    if isinstance(kind, grebe.View):
        kind = grebe.View("i", str(kind.query).format(table=f"parquet.`{folder}`"))
    served.lake.table(str(folder)).create(kind)
    again, later = served.spark.sql(query), _planned(served.spark.sql(query))
    rows = _collected(again)
    assert served.lake.explain(again).to_dict()["used"] == ["i"]
    with _compared_for(served, 0):
        assert _collected(again) == rows, "nothing has changed"
        _write("parquet", folder / "c.parquet", [ROWS + 7] * 3)
        assert _collected(again) == rows, "files that come later are none of the frame's"
        if change == "delete":
            (folder / "a.parquet").unlink()
        else:
            _write("parquet", folder / "a.parquet", list(range(ROWS, 2 * ROWS)))
        # Behind a shuffle, Spark itself gives the rows of the first run again.
        for frame in (later,) if how == "a view" else (again, later, again):
            with pytest.raises(Exception, match=CHANGED):
                frame.collect()
        served.view("served", folder)
        served.same_rows(query)


def test_a_changed_file_of_another_table_ends_the_frames_of_a_view(served: Served, tmp_path: Path) -> None:
    for name, keys in (("sales", range(ROWS)), ("shops", range(100))):
        (tmp_path / name).mkdir()
        _write("parquet", tmp_path / name / "a.parquet", list(keys))
        served.view(name, tmp_path / name)
    SYSTEM.sleep(0.05)
    query = "SELECT sales.v, count(*) AS n FROM {sales} JOIN {shops} ON sales.k = shops.k GROUP BY sales.v"
    stored = query.format(**{name: f"parquet.`{tmp_path / name}` AS {name}" for name in ("sales", "shops")})
    served.lake.table(str(tmp_path / "sales")).create(grebe.View("v", stored))
    query = query.format(sales="sales", shops="shops")
    frame, later = served.spark.sql(query), _planned(served.spark.sql(query))
    with _compared_for(served, 0):
        assert _collected(frame) == [("x" * 40, 100)]
        assert served.lake.explain(frame).to_dict()["used"] == ["v"]
        _write("parquet", tmp_path / "shops" / "a.parquet", list(range(50)))
        with pytest.raises(Exception, match=CHANGED):
            later.collect()
        served.view("shops", tmp_path / "shops")
        assert _collected(served.spark.sql(query)) == [("x" * 40, 50)]


@pytest.mark.parametrize("how", ["a covering index", "a skipping index", "metadata"])
def test_a_file_that_is_gone_when_a_query_is_planned_is_served_by_no_index(
    served: Served, tmp_path: Path, how: str
) -> None:
    """The frame has listed it before, and says what it says without an index."""
    kind, query = SERVED[how]
    folder = _two_files(tmp_path / "t")
    served.lake.table(str(folder)).create(kind)
    served.view("served", folder)
    served.same(query, "i")
    (folder / "a.parquet").unlink()
    with configured(served.spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        served.same(query)
    with pytest.raises(Exception, match=SAYS_SO):
        served.spark.sql(query).collect()


def test_an_old_listing_of_a_store_is_compared_before_an_index_serves(
    served: Served, s3_server: S3Server, tmp_path: Path
) -> None:
    if not maven.s3a_jars():
        pytest.skip("there is no s3a for this Spark")
    use_s3(served.spark, s3_server)
    uri = s3_server.uri(SYSTEM.new_id()) + "/t"
    store = open_store(uri, s3_server.storage_options)

    def put(name: str, keys: list[int]) -> None:
        _write("parquet", tmp_path / name, keys)
        store.put(name, (tmp_path / name).read_bytes())

    put("a.parquet", list(range(ROWS)))
    put("b.parquet", list(range(ROWS, 2 * ROWS)))
    SYSTEM.sleep(2.1)  # the times of a store are that coarse
    place = uri.replace("s3://", "s3a://")
    served.lake.table(place).create(
        grebe.Skipping("i", grebe.MinMax("k")), grebe.Covering("cov", on="k", include=["v"])
    )
    served.view("far", place)
    query = f"SELECT k, v FROM far WHERE k IN (7, {ROWS + 7})"
    served.same_rows(query)
    put("a.parquet", [key + 50_000 for key in range(ROWS - 1)] + [ROWS + 7])
    assert store.stat("a.parquet").size == (tmp_path / "b.parquet").stat().st_size
    for index in ("i", "cov"):
        with _compared_for(served, 0), served.lake.only(index):
            rows = _collected(served.spark.sql(query))
        assert [row[0] for row in rows] == [ROWS + 7] * 2, index


@dataclass
class Run:
    """One seed: queries with changes before the listing, after it, or after planning."""

    served: Served
    table: ChangingTable
    chance: random.Random
    files: list[int]
    answers: int = 0

    def queries(self, count: int) -> None:
        for _ in range(count):
            for _ in range(self.chance.randrange(3)):
                self.table.change(self.chance.choice(self.files), self.chance.choice(CHANGES))
            if self.chance.random() < 0.15:
                self.served.lake.table(self._frame()).refresh()
            self.query()

    def query(self) -> None:
        begin, late = len(self.table.states) - 1, self.chance.choice(("listed", "planned", None, None))
        keys = [file * KEYS_OF_A_FILE + self.chance.randrange(120) for file in self.files for _ in range(2)]
        with self.served.lake.only(*self.chance.choice([INDEXES, INDEXES[:1], INDEXES[1:]])):
            frame = self._frame()
            self.change(late == "listed")
            frame = _planned(frame.where(f"id IN ({', '.join(map(str, keys))})"))
            self.change(late == "planned")
            try:
                answer = _collected(frame)
            except Exception as problem:
                if late is None or not re.search(SAYS_SO, str(problem)):
                    raise
                answer, begin = self.again(keys), len(self.table.states) - 1
        moments = [rows_of(state, lambda row: row[0] in keys, self.files) for state in self.table.states[begin:]]
        assert answer in moments
        self.answers += 1

    def again(self, keys: list[int]) -> list[Row]:
        """Whatever a change did to a query: the next one is right."""
        return _collected(self._frame().where(f"id IN ({', '.join(map(str, keys))})"))

    def change(self, now: bool) -> None:
        if now:
            self.table.change(self.chance.choice(self.files), self.chance.choice(LATE_CHANGES))

    def _frame(self) -> "DataFrame":
        return self.served.spark.read.format(self.table.format).schema(SCHEMA).load(str(self.table.folder))


def _changing(served: Served, folder: Path, format: str, files: int) -> ChangingTable:
    folder.mkdir()
    table = ChangingTable(open_table_store(folder), format, folder)
    table.add(*range(files))
    SYSTEM.sleep(0.05)
    served.lake.table(served.spark.read.format(format).schema(SCHEMA).load(str(folder))).create(
        grebe.Lookup("by_id", on="id"), grebe.Covering("cov", on="id", include=["value", "text"], buckets=2)
    )
    return table


@pytest.mark.parametrize("format", FORMATS)
def test_every_answer_of_spark_is_that_of_one_moment(served: Served, tmp_path: Path, format: str) -> None:
    assert _answers(served, tmp_path / "t", format, range(SEEDS)) == SEEDS * 5


@pytest.mark.soak
@pytest.mark.parametrize("format", FORMATS)
def test_every_answer_of_spark_in_many_seeds_is_that_of_one_moment(served: Served, tmp_path: Path, format: str) -> None:
    for start in range(0, SOAK_SEEDS, 20):
        seeds = range(1000 + start, 1020 + start)
        assert _answers(served, tmp_path / f"t{start}", format, seeds) == len(seeds) * 5


def _answers(served: Served, folder: Path, format: str, seeds: range) -> int:
    table = _changing(served, folder, format, FILES_OF_A_SEED * len(seeds))
    answers = 0
    for place, seed in enumerate(seeds):
        run = Run(served, table, random.Random(seed), [FILES_OF_A_SEED * place + n for n in range(FILES_OF_A_SEED)])
        run.queries(5)
        answers += run.answers
    return answers
