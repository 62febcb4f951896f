"""Parquet and ORC without Spark: the columns and values that Spark reads, found again by row number."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from grebe.errors import SourceChanged, UnreadableFile, Unsupported
from grebe.formats import Column, DataFile, Format
from grebe.formats.orc import ORC
from grebe.formats.parquet import PARQUET
from grebe.formats.reading import columns_of
from grebe.formats.unite import merged_columns
from grebe.store.local import LocalStore
from tests.formats.reading_back import all_rows, data_file, plain, reading_of, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
EVERY_TYPE = """
SELECT CAST(id % 100 AS tinyint) ti, CAST(id AS smallint) si, CAST(id AS int) i, id l, CAST(id / 3 AS float) f, id / 7 d,
       CAST(id AS decimal(9, 2)) small, CAST(id AS decimal(38, 10)) big, id % 2 = 0 b, 'ü' || id s, CAST('b' || id AS binary) bi,
       date_add(DATE '2019-12-30', CAST(id AS int)) da, TIMESTAMP '2020-03-08 01:59:59.123456' + make_dt_interval(0, id) ts,
       TIMESTAMP_NTZ '2020-03-08 02:30:00' + make_dt_interval(0, id) nt, IF(id % 3 = 0, NULL, id) `some null`,
       CAST(NULL AS int) nu, named_struct('x', id, 'y', named_struct('z', 's' || id)) st, array(id, NULL, id + 1) ar,
       map('k', id) m, array(named_struct('q', id)) deep, CAST('c' AS char(3)) ch
FROM range(0, 900, 1, 1)
"""


@pytest.mark.parametrize("kind", [PARQUET, ORC], ids=lambda kind: kind.name)
def test_every_type_is_read_as_spark_reads_it(spark: "SparkSession", tmp_path: Path, kind: Format) -> None:
    spark.sql(EVERY_TYPE).write.option("parquet.block.row.count.limit", 200).option("orc.stripe.row.count", 200).format(
        kind.name
    ).save(str(tmp_path / "t"))
    frame = spark.read.format(kind.name).load(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob(f"*.{kind.name}")
    file = data_file(path)
    reading = reading_of(kind, file)
    assert reading.columns == columns_of(frame.schema.jsonValue())
    assert all_rows(kind, file, reading) == spark_rows(frame)
    assert all_rows(kind, file, reading, ["s", "i"]) == spark_rows(frame.select("s", "i"))


def test_old_timestamps_of_parquet_are_instants(spark: "SparkSession", tmp_path: Path) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        query = "SELECT TIMESTAMP '2020-03-08 01:59:59.123456' t, named_struct('a', array(TIMESTAMP '1999-01-01 00:00:00')) n"
        spark.sql(query).write.parquet(str(tmp_path / "t"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    (path,) = (tmp_path / "t").glob("*.parquet")
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pq.read_table(path, columns=["t"]), foreign, use_deprecated_int96_timestamps=True)
    for each in (path, foreign):
        frame = spark.read.parquet(str(each))
        reading = reading_of(PARQUET, data_file(each))
        assert reading.columns == columns_of(frame.schema.jsonValue())
        assert all_rows(PARQUET, data_file(each), reading) == spark_rows(frame)


FOREIGN: dict[str, pa.Array] = {
    "u8": pa.array([1, 255], pa.uint8()),
    "u16": pa.array([1, 65535], pa.uint16()),
    "u32": pa.array([1, 2**32 - 1], pa.uint32()),
    "u64": pa.array([1, 2**64 - 1], pa.uint64()),
    "large": pa.array(["x", None], pa.large_string()),
    "dictionary": pa.array(["x", "y"]).dictionary_encode(),
    "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
    "nothing": pa.nulls(2),
    "zone": pa.array([0, 1], pa.timestamp("us", "Europe/Berlin")),
    "millis": pa.array([0, 1], pa.timestamp("ms", "UTC")),
    "span": pa.array([5, 6], pa.duration("us")),
    "day": pa.array([0, 86_400_000], pa.date64()),
    "pair": pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
    "money": pa.array([1, 2], pa.decimal128(5, 2)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_types_of_other_writers_become_those_that_spark_gives_them(
    spark: "SparkSession", tmp_path: Path, name: str
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"v": FOREIGN[name]}), path)
    frame = spark.read.parquet(str(path))
    reading = reading_of(PARQUET, data_file(path))
    assert reading.columns == columns_of(frame.schema.jsonValue())
    assert all_rows(PARQUET, data_file(path), reading) == spark_rows(frame)


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.timestamp("ns"), pa.float16()], ids=str)
def test_a_type_that_spark_refuses_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"v": pa.array([0], pa.int16()).cast(pa.int64()).cast(kind)}), path)
    with pytest.raises(Unsupported, match="column of type"):
        reading_of(PARQUET, data_file(path))


WIDER = [
    *(
        "a bigint",
        "a double",
        "a decimal(12,2)",
        "a decimal(10,0)",
        "a decimal(5,0)",
        "a string",
        "a float",
        "a timestamp",
    ),
    *(
        "b double",
        "d timestamp_ntz",
        "d timestamp",
        "t int",
        "t bigint",
        "l int",
        "l double",
        "l decimal(20,0)",
        "s binary",
    ),
    *("y string", "m decimal(10,2)", "m decimal(10,4)", "m decimal(6,4)", "m double", "A bigint", "absent int"),
    *("n struct<x:bigint,z:int>", "r array<bigint>", "k map<string,bigint>"),
]


@pytest.mark.parametrize("column", WIDER)
def test_a_type_is_widened_where_spark_widens_it_and_nowhere_else(
    spark: "SparkSession", tmp_path: Path, column: str
) -> None:
    path = tmp_path / "t.parquet"
    table = {
        "a": pa.array([1, None], pa.int32()),
        "b": pa.array([1.5, 2], pa.float32()),
        "d": pa.array([0, 1], pa.date32()),
        "t": pa.array([1, 2], pa.int8()),
        "l": pa.array([2**40, 1], pa.int64()),
        "s": ["x", "y"],
        "y": [b"x", b"y"],
        "m": pa.array([1, 2], pa.decimal128(5, 2)),
        "n": pa.array([{"x": 1, "y": 2}, None], pa.struct([("x", pa.int32()), ("y", pa.int32())])),
        "r": pa.array([[1, None], None], pa.list_(pa.int32())),
        "k": pa.array([[("p", 1)], None], pa.map_(pa.string(), pa.int32())),
    }
    pq.write_table(pa.table(table), path)
    frame = spark.read.schema(column).parquet(str(path))
    reading = reading_of(PARQUET, frame.schema.jsonValue())
    try:
        expected = spark_rows(frame)
    except Exception:  # noqa: BLE001 - py4j's error; what counts is that Spark fails
        with pytest.raises(UnreadableFile, match=r"\[UNREADABLE_FILE_TYPE\].*the table has"):
            all_rows(PARQUET, data_file(path), reading)
    else:
        assert all_rows(PARQUET, data_file(path), reading) == expected


def test_schemas_of_several_files_are_merged_by_name() -> None:
    one = (Column("a", "integer"), Column("n", '{"type":"struct","fields":[{"name":"x","type":"integer"}]}'))
    two = (
        Column("b", "string"),
        Column("a", "long"),
        Column("n", '{"type":"struct","fields":[{"name":"y","type":"date"}]}'),
    )
    merged = merged_columns([one, two])
    assert merged is not None
    assert [column.name for column in merged] == ["a", "n", "b"]
    assert merged[0].type == "long"
    assert merged[1].type == '{"type":"struct","fields":[{"name":"x","type":"integer"},{"name":"y","type":"date"}]}'
    assert merged_columns([one, (Column("a", "string"),)]) is None


@pytest.mark.parametrize("kind", [PARQUET, ORC], ids=lambda kind: kind.name)
class TestDamage:
    def write(self, path: Path, kind: Format, rows: int = 20_000) -> DataFile:
        table = pa.table({"a": np.arange(rows), "b": np.random.default_rng(1).random(rows)})
        if kind is PARQUET:
            pq.write_table(table, path, compression="none")
        else:
            pa.orc.write_table(table, path)
        return data_file(path)

    def test_a_file_cut_short_is_unreadable(self, tmp_path: Path, kind: Format) -> None:
        whole = self.write(tmp_path / "whole", kind)
        for size in (0, 10, whole.size // 2, whole.size - 1):
            path = tmp_path / f"cut{size}"
            path.write_bytes((tmp_path / "whole").read_bytes()[:size])
            with pytest.raises(UnreadableFile, match=r"no (Parquet|ORC) file"):
                all_rows(kind, data_file(path), reading_of(kind, whole))

    def test_a_file_that_vanished_after_the_listing_has_changed(self, tmp_path: Path, kind: Format) -> None:
        file = self.write(tmp_path / "t", kind)
        reading = reading_of(kind, file)
        (tmp_path / "t").unlink()
        with pytest.raises(SourceChanged, match="gone"):
            all_rows(kind, file, reading)

    def test_a_file_that_shrank_after_the_listing_has_changed(self, tmp_path: Path, kind: Format) -> None:
        whole = self.write(tmp_path / "t", kind)
        longer = DataFile(LocalStore(tmp_path), "t", whole.size + 1000)
        with pytest.raises(SourceChanged, match="shorter"):
            all_rows(kind, longer, reading_of(kind, whole))

    def test_a_row_that_is_not_there_is_refused(self, tmp_path: Path, kind: Format) -> None:
        file = self.write(tmp_path / "t", kind, rows=3)
        reading = reading_of(kind, file)
        for row in (3, -1):
            with pytest.raises(Unsupported, match="has 3 rows"):
                kind.fetch(file, reading, pa.record_batch([pa.array([row])], schema=kind.locator.schema))

    def test_a_column_that_no_file_has_is_null_in_every_row(self, tmp_path: Path, kind: Format) -> None:
        file = self.write(tmp_path / "t", kind, rows=3)
        schema: dict[str, Any] = {"type": "struct", "fields": [{"name": "new", "type": "date"}]}
        assert all_rows(kind, file, reading_of(kind, schema)) == [(None,)] * 3


def test_fetching_rows_reads_their_row_groups_only(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(1).random(100_000)}), path, row_group_size=1000)
    store = CountingStore(tmp_path)
    file = DataFile(store, path.name, path.stat().st_size)
    locators = pa.record_batch([pa.array([99_999, 5])], schema=PARQUET.locator.schema)
    found = PARQUET.fetch(file, reading_of(PARQUET, data_file(path)), locators)
    assert plain(found) == [(pq.read_table(path)["a"][row].as_py(),) for row in (99_999, 5)]
    assert store.received < file.size / 4


def test_rows_are_counted_through_all_stripes(tmp_path: Path) -> None:
    path = tmp_path / "t.orc"
    table = pa.table({"a": np.arange(20_000), "b": np.random.default_rng(1).random(20_000)})
    pa.orc.write_table(table, path, stripe_size=20_000, batch_size=500)
    assert pa.orc.ORCFile(path).nstripes > 3
    assert all_rows(ORC, data_file(path), reading_of(ORC, data_file(path))) == plain(table)
    assert all_rows(ORC, data_file(path), reading_of(ORC, data_file(path)), []) == [()] * 20_000


class CountingStore(LocalStore):
    received = 0

    def get_range(self, path: str, start: int, length: int) -> bytes:
        data = super().get_range(path, start, length)
        self.received += len(data)
        return data
