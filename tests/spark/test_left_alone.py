"""What no index may touch: streams, writers, caches, and whatever asks where a row lies."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from testbed.spark import configured
from tests.spark.data import rows
from tests.spark.served import Served, multiset, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark left alone")]


@pytest.fixture(scope="module")
def place(served: Served, folder: Path) -> str:
    made = write(folder / "alone", rows(600, 1), rows(600, 2))
    served.view("alone", made)
    served.lake.table(made).create(grebe.Covering("alone_k", on="k", include=["v", "w", "s"], buckets=4))
    return made


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, input_file_name() FROM {0} WHERE k > 300",
        "SELECT k, input_file_block_start() FROM {0} WHERE k = 5",
        "SELECT k, _metadata.file_name FROM {0} WHERE k = 5",
        "SELECT k, max(_metadata.row_index) FROM {0} GROUP BY k",
        "SELECT v FROM {0} WHERE k = 5 AND _metadata.file_size > 0",
    ],
)
def test_what_asks_for_the_file_of_a_row_is_answered_by_the_files(served: Served, place: str, query: str) -> None:
    query = query.format(f"parquet.`{place}`")
    served.same(query)
    assert served.reasons(query) == {"alone_k": "USES_FILE_METADATA"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, rand(7) r FROM alone WHERE k = 5",
        "SELECT k, monotonically_increasing_id() FROM alone WHERE k = 5",
        "SELECT k, spark_partition_id() FROM alone WHERE k > 390",
        "SELECT v FROM alone TABLESAMPLE (10 PERCENT) REPEATABLE (3) WHERE k > 100",
    ],
)
def test_what_hangs_on_the_order_of_rows_gives_the_same_rows(served: Served, place: str, query: str) -> None:
    served.same(query)
    assert served.reasons(query) == {"alone_k": "UNSUPPORTED_RELATION"}


def test_the_files_of_a_frame_are_those_of_its_table(served: Served, place: str) -> None:
    frame = served.spark.sql("SELECT v FROM alone WHERE k = 5")
    served.lake.enabled = False
    plain = sorted(served.spark.sql("SELECT v FROM alone WHERE k = 5").inputFiles())
    served.lake.enabled = True
    assert sorted(frame.inputFiles()) == plain


def test_a_cached_table_is_read_from_memory_and_why_not_says_so(served: Served, place: str) -> None:
    frame = served.spark.read.parquet(place)
    frame.cache()
    try:
        served.same(lambda spark: frame.where("k = 5"))
        assert served.reasons(lambda spark: frame.where("k = 5")) == {"alone_k": "CACHED"}
    finally:
        frame.unpersist(blocking=True)
    served.same(lambda spark: frame.where("k = 5"), "alone_k")


def test_what_is_cached_was_made_with_the_index_and_stays_as_it_was(served: Served, place: str) -> None:
    frame = served.spark.read.parquet(place).where("k = 6").cache()
    try:
        first = multiset(frame.collect())
        assert first == served.plain(lambda spark: spark.read.parquet(place).where("k = 6")).rows
        served.lake.table(place).delete("alone_k")
        assert multiset(frame.collect()) == first
    finally:
        served.lake.table(place).restore("alone_k")
        frame.unpersist(blocking=True)


def test_a_stream_reads_its_files(served: Served, place: str, tmp_path: Path) -> None:
    spark = served.spark
    before = served.counters()["rewritten"]
    stream = spark.readStream.schema(spark.read.parquet(place).schema).parquet(place).where("k = 5")
    running = stream.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
    running.awaitTermination(60)
    assert running.exception() is None
    assert served.counters()["rewritten"] == before
    got = multiset(spark.sql("SELECT k, v FROM streamed").collect())
    assert got == served.plain("SELECT k, v FROM alone WHERE k = 5").rows
    assert got


def test_a_stream_that_meets_a_table_on_the_way(served: Served, place: str, tmp_path: Path) -> None:
    spark = served.spark
    write(tmp_path / "in", {"k": range(5)})
    stream = spark.readStream.schema("k bigint").parquet(str(tmp_path / "in")).join(spark.table("alone"), "k")
    running = stream.writeStream.format("memory").queryName("met").trigger(availableNow=True).start()
    running.awaitTermination(60)
    assert running.exception() is None
    assert (
        multiset(spark.sql("SELECT k, v FROM met").collect()) == served.plain("SELECT k, v FROM alone WHERE k < 5").rows
    )


def test_writers_write_the_same_rows(served: Served, place: str, tmp_path: Path) -> None:
    def written(spark: "SparkSession") -> "DataFrame":
        name = "with_index" if served.lake.enabled else "without"
        folder = str(tmp_path / name)
        spark.sql("SELECT k, v FROM alone WHERE k < 50").write.mode("overwrite").partitionBy("k").parquet(folder)
        spark.sql("SELECT k, v FROM alone WHERE k = 60").write.mode("append").partitionBy("k").parquet(folder)
        return spark.read.parquet(folder)

    seen, expected = served.run(written), served.plain(written)
    assert seen.rows == expected.rows
    assert seen.rows.total() > 100


def test_a_table_may_be_written_from_itself(served: Served, tmp_path: Path) -> None:
    spark = served.spark
    spark.sql("CREATE TABLE itself USING parquet AS SELECT id % 50 AS k, id AS v FROM range(500)")
    try:
        served.lake.table("itself").create(grebe.Covering("itself_k", on="k", include="v", buckets=4))
        spark.sql("INSERT INTO itself SELECT k, -v FROM itself WHERE k < 3")
        seen = served.same("SELECT k, sum(v), count(*) FROM itself GROUP BY k", "itself_k")
        assert seen.rows.total() == 50
        assert served.plain("SELECT * FROM itself WHERE v < 0").rows.total() == 29
        with pytest.raises(Exception, match=r"(?i)overwrite"):
            spark.sql("INSERT OVERWRITE itself SELECT k, v FROM itself WHERE k < 3")
    finally:
        spark.sql("DROP TABLE itself")


def test_rows_as_an_rdd_and_by_pandas_are_the_same(served: Served, place: str) -> None:
    query = "SELECT k, v FROM alone WHERE k = 5"
    expected = served.plain(query).rows
    assert multiset(served.spark.sql(query).rdd.collect()) == expected
    assert multiset(served.spark.sql(query).toLocalIterator()) == expected
    assert multiset(served.spark.sql(query).localCheckpoint().collect()) == expected
    assert (
        len(served.spark.sql(query).toArrow()) == expected.total()
        if hasattr(served.spark.sql(query), "toArrow")
        else True
    )


HINT = "/*+ GREBE(without alone_k) */"


@pytest.mark.parametrize("escaped", ["false", "true"])
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT r'\\' AS a, '{HINT}' AS b",
        f"SELECT R\"\\\" AS a, '{HINT}' AS b",
        f"SELECT '\\'' AS a, '{HINT}' AS b",
        f"SELECT 'it''s', '{HINT}' AS b",
        f"SELECT /* a /* nested */ ' */ '{HINT}' AS b",
        f"SELECT /* it's */ '{HINT}' AS b -- {HINT}",
        f"SELECT -- it's \\\n carried on '\n'{HINT}' AS b",
        f"SELECT 1 AS `'`, '{HINT}' AS b",
        f"SELECT /*+ COALESCE(1), {HINT[4:-3]} */ '{HINT}' AS b",
    ],
)
def test_a_literal_that_looks_like_a_hint_is_a_literal(served: Served, query: str, escaped: str) -> None:
    with configured(served.spark, {"spark.sql.parser.escapedStringLiterals": escaped}):
        assert [row["b"] for row in served.spark.sql(query).collect()] == [HINT]


@pytest.mark.parametrize(
    ("hint", "used"),
    [
        ("/*+ GREBE(without alone_k) */", ()),
        ("/*+ COALESCE(1), GREBE(without alone_k), REPARTITION(2) */", ()),
        ("/*+ GREBE(only alone_k), GREBE(only alone_k), COALESCE(1) */", ("alone_k",)),
        ("/*+ COALESCE(1) grebe ( /* why */ without alone_k ) */", ()),
        ("/*+ GREBE(without alone_k)" + " " * 20_000 + "*/", ()),
        ("/*+ GREBE(without alone_k) */ /* /* */ ' */", ()),
        ("'\U0001f426' AS bird, /* a comment */", ("alone_k",)),
    ],
    ids=["alone", "between", "twice", "without commas", "blanks", "comment", "none"],
)
def test_a_hint_is_found_wherever_spark_sees_one(served: Served, place: str, hint: str, used: tuple[str, ...]) -> None:
    served.view("alone", place)
    served.same(f"SELECT {hint} v FROM alone WHERE k = 5", *used)
    served.same(f"SELECT '\U0001f426', r'\\', v FROM (SELECT {hint} v FROM alone WHERE k = 5)", *used)
