"""Files that an index knows to hold no row of a query are not read, and the answers are those of the whole table."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import grebe
from grebe.planner.decision import Narrow
from tests.spark.served import LENIENT, Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark pruning")]

FILES, ROWS = 12, 60
READS_FILES = "Location: Narrowed("


def part(number: int, seed: int = 0) -> pa.Table:
    """k: 60 values of its own in each file, some NULL; w: the same few values in each second file; d: NaN and zeros too."""
    random = np.random.default_rng(100 * seed + number)
    k = np.arange(ROWS) + number * ROWS + 10_000 * seed
    d = np.where(random.random(ROWS) < 0.2, np.nan, number / 4)
    d[:2] = 0.0, -0.0
    inner = pa.StructArray.from_arrays([pa.array(k * 2), pa.array([f"x{number}"] * ROWS)], ["b", "c"])
    return pa.table(
        {
            "k": pa.array(random.permutation(k), pa.int64(), mask=(np.arange(ROWS) < 3) & (number == 5)),
            "w": pa.array(np.full(ROWS, number % 3), pa.int32()),
            "d": pa.array(d, pa.float64()),
            "s": pa.array([f"s{number:02d}-{row}" for row in range(ROWS)]),
            "a": inner,
            "t": pa.array(k * 1_000_000, pa.timestamp("us", "UTC")),
            "v": pa.array(np.arange(ROWS) + 7 * number, pa.int64()),
        }
    )


@dataclass(frozen=True)
class Lake:
    served: Served
    folder: Path

    def files(self, query: Any, *used: str) -> int:
        """How many files of the table a query read, whose answer is the same without indexes."""
        seen = self.served.same(query, *used)
        assert READS_FILES in seen.text or not used, seen.text
        return self.served.read()["files"]


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, LENIENT) as made:
        yield made


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path) -> Lake:
    write(folder / "t", *(part(number) for number in range(FILES)))
    table = served.lake.table(str(folder / "t"))
    table.create(
        grebe.Lookup("by_k", on="k"),
        grebe.Lookup("by_wd", on=["w", "d"]),
        grebe.Lookup("by_s", on="s"),
        grebe.Lookup("by_b", on="a.b"),
        grebe.Lookup("by_t", on="t"),
    )
    served.view("t", folder / "t")
    return Lake(served, folder)


CASES = {
    "k = 130": (("by_k",), 1),
    "k = 999999": (("by_k",), 0),
    "k IN (1, 2, 61, 700)": (("by_k",), 3),
    "k BETWEEN 100 AND 200": (("by_k",), 3),
    "k IS NULL": (("by_k",), 1),
    "k <=> NULL": (("by_k",), 1),
    "k <=> 5": (("by_k",), 1),
    "k = 7 OR k = 400": (("by_k",), 2),
    "k = 7 AND v > 1000": (("by_k",), 1),
    "k > 600 AND k < 610 AND s LIKE 's10%'": (("by_k",), 1),
    "k = CAST('77' AS INT)": (("by_k",), 1),
    "k = 130.0": (("by_k",), 1),
    "w = 1": (("by_wd",), 4),
    "w = 1 AND d = 1.0": (("by_wd",), 1),
    "w = 0 AND isnan(d)": (("by_wd",), 4),
    "w = 2 AND d = 0.0": (("by_wd",), 4),
    "s = 's03-5'": (("by_s",), 1),
    "s LIKE 's1%'": (("by_s",), 2),
    "a.b = 14": (("by_b",), 1),
    "t = timestamp'1970-01-01 00:01:10Z'": (("by_t",), 1),
    "w = 1 AND k > 300": (("by_k", "by_wd"), 2),
}


@pytest.mark.parametrize("where", CASES)
def test_only_files_with_rows_are_read(lake: Lake, where: str) -> None:
    used, files = CASES[where]
    assert lake.files(f"SELECT * FROM t WHERE {where}", *used) == files


@pytest.mark.parametrize("where", ["v = 3", "k > 3 OR v = 1", "k % 7 = 5", "k IS NOT NULL"])
def test_conditions_that_no_index_knows_read_all(lake: Lake, where: str) -> None:
    assert lake.files(f"SELECT * FROM t WHERE {where}") == FILES


QUERIES = [
    "SELECT w, count(*), sum(v) FROM t WHERE k < 100 GROUP BY w",
    "SELECT x.k, y.v FROM t x JOIN t y ON x.v = y.v WHERE x.k = 17 AND y.k = 400",
    "SELECT * FROM (SELECT k AS z, v + 1 AS u FROM t) WHERE z = 17",
    "SELECT v FROM t WHERE k = 17 UNION ALL SELECT v FROM t WHERE k = 99",
    "SELECT v FROM t WHERE k = 9 AND v > (SELECT max(v) - 100 FROM t WHERE k < 50)",
    "SELECT v, row_number() OVER (ORDER BY v) FROM t WHERE k BETWEEN 5 AND 9",
    "SELECT k, input_file_name() FROM t WHERE k = 130",
    "SELECT * FROM t WHERE k BETWEEN 5 AND 80 ORDER BY v LIMIT 5",
    "WITH c AS (SELECT * FROM t WHERE k IN (3, 500)) SELECT a.v, b.s FROM c a JOIN c b ON a.k = b.k",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_rest_of_a_query_is_as_it_was(lake: Lake, query: str) -> None:
    assert 0 < lake.files(query, "by_k") < FILES


def test_rows_still_know_their_files(lake: Lake) -> None:
    def query(session: "SparkSession") -> Any:
        frame = session.read.parquet(str(lake.folder / "t")).where("k IN (130, 131)")
        return frame.select("k", "_metadata.file_name", "_metadata.row_index", "_metadata.file_size")

    assert lake.files(query, "by_k") == 1


def test_frames_give_the_tables_files_and_their_own_rows(lake: Lake) -> None:
    frame = lake.served.frame("SELECT * FROM t WHERE k = 130")
    assert len(frame.collect()) == 1
    assert len(frame.inputFiles()) == FILES


def test_an_explanation_says_which_files(lake: Lake) -> None:
    explanation = lake.served.lake.explain("SELECT * FROM t WHERE k = 130")
    [choice] = explanation.decision.choices
    assert isinstance(choice, Narrow)
    assert (choice.index, choice.files, choice.files_of) == ("by_k", 1, FILES)
    assert "by_k, 1 of 12 files of the table" in str(explanation)
    reasons = lake.served.reasons("SELECT * FROM t WHERE k = 130")
    assert reasons == dict.fromkeys(["by_wd", "by_s", "by_b", "by_t"], "NO_FIRST_INDEXED_COL_COND")


def test_only_and_without_and_hints_hold(lake: Lake) -> None:
    query = "SELECT * FROM t WHERE w = 1 AND k > 300"
    with lake.served.lake.only("by_wd"):
        assert lake.files(query, "by_wd") == 4
    assert lake.files(query.replace("SELECT", "SELECT /*+ GREBE(without by_wd) */"), "by_k") == 7


def test_files_that_come_go_and_change_are_seen(served: Served, folder: Path) -> None:
    place = folder / "changing"
    write(place, *(part(number) for number in range(6)))
    served.lake.table(str(place)).create(grebe.Lookup("by_k", on="k"))
    write(place, part(30), part(31))
    (place / "part-000.parquet").unlink()
    rewritten = part(2, seed=1)
    write(place / "new", rewritten)
    (place / "new" / "part-000.parquet").replace(place / "part-002.parquet")
    (place / "new").rmdir()
    served.view("changing", place)
    lake = Lake(served, place)
    # Three files are unknown to the index: two that came, and one that was rewritten.
    assert lake.files("SELECT * FROM changing WHERE k = 70", "by_k") == 4
    assert lake.files("SELECT * FROM changing WHERE k = 5", "by_k") == 3
    assert lake.files("SELECT * FROM changing WHERE k IN (130, 10130, 1801)", "by_k") == 3
    assert lake.files("SELECT * FROM changing WHERE k IS NULL", "by_k") == 4


def test_partitions_are_left_out_too(served: Served, folder: Path) -> None:
    place = folder / "parts"
    for number in range(FILES):
        write(place / f"p={number % 4}" / f"q=x{number % 2}", part(number))
    served.lake.table(str(place)).create(grebe.Lookup("by_k", on="k"))
    served.view("parts", place)
    lake = Lake(served, place)
    assert lake.files("SELECT * FROM parts WHERE k = 130", "by_k") == 1
    assert lake.files("SELECT p, q, v FROM parts WHERE k IN (3, 130, 500) AND p = 2", "by_k") == 1
    assert lake.files("SELECT * FROM parts WHERE k = 130 AND p = 3", "by_k") == 0
    small = "SELECT /*+ BROADCAST(x) */ parts.v FROM parts JOIN (SELECT p FROM parts WHERE k = 130) x ON parts.p = x.p"
    served.same(small + " WHERE parts.k < 200", "by_k")


@pytest.mark.parametrize("name", ["orc", "csv"])
def test_other_formats(served: Served, folder: Path, name: str) -> None:
    place = folder / f"as_{name}"
    plain = part(0).schema.names[:4]
    for number in range(4):
        source = write(folder / f"of_{name}_{number}", part(number).select(plain))
        served.spark.read.parquet(source).coalesce(1).write.format(name).option("header", True).mode("append").save(
            str(place)
        )
    reader = served.spark.read.format(name).option("header", True).schema("k bigint, w int, d double, s string")
    served.lake.table(reader.load(str(place))).create(grebe.Lookup("by_k", on="k"))
    reader.load(str(place)).createOrReplaceTempView(f"as_{name}")
    lake = Lake(served, place)
    assert lake.files(f"SELECT * FROM as_{name} WHERE k = 130", "by_k") == 1
    assert lake.files(f"SELECT * FROM as_{name} WHERE k IN (3, 130) AND s LIKE 's0%'", "by_k") == 2


def test_a_table_in_the_catalog(served: Served, folder: Path) -> None:
    served.spark.sql("DROP TABLE IF EXISTS pruned_table")
    write(folder / "catalog", *(part(number).drop_columns(["a"]) for number in range(4)))
    served.spark.sql(f"CREATE TABLE pruned_table USING parquet LOCATION '{folder / 'catalog'}'")
    served.lake.table("pruned_table").create(grebe.Lookup("by_k", on="k"))
    try:
        assert Lake(served, folder).files("SELECT * FROM pruned_table WHERE k = 130", "by_k") == 1
    finally:
        served.spark.sql("DROP TABLE pruned_table")


def test_a_bucketed_table_stays_bucketed(served: Served, folder: Path) -> None:
    spark = served.spark
    spark.sql("DROP TABLE IF EXISTS bucketed_table")
    source = spark.read.parquet(write(folder / "of_buckets", part(0), part(1)))
    source.drop("a").write.bucketBy(4, "w").option("path", str(folder / "buckets")).saveAsTable("bucketed_table")
    served.lake.table("bucketed_table").create(grebe.Lookup("by_k", on="k"))
    try:
        query = "SELECT w, sum(v) FROM bucketed_table WHERE k < 50 GROUP BY w"
        seen = served.same(query, "by_k")
        assert READS_FILES in seen.text
        assert seen.exchanges == served.plain(query).exchanges == 0
    finally:
        spark.sql("DROP TABLE bucketed_table")


@pytest.mark.parametrize("damage", ["missing", "cut", "garbled"])
def test_a_damaged_index_is_set_aside_and_the_answer_is_right(
    served: Served, folder: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    place = folder / damage
    write(place, *(part(number) for number in range(4)))
    served.lake.table(str(place)).create(grebe.Lookup("by_k", on="k"))
    files = sorted((folder / "_grebe" / damage / "data").rglob("*.gix"))
    assert files
    for file in files:
        data = file.read_bytes()
        if damage == "missing":
            file.unlink()
        else:
            file.write_bytes(data[: len(data) // 2] if damage == "cut" else bytes(len(data)))
    served.view("damaged", place)
    query = "SELECT * FROM damaged WHERE k = 130"
    served.same(query)
    served.same(query)
    assert served.reasons(query) == {"by_k": "SET_ASIDE"}
    assert sum("index_set_aside" in record.message for record in caplog.records) == 1
    shutil.rmtree(place)
