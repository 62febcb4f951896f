"""What lies in a covering index: exactly the rows of its table, whatever their types and wherever they come from."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import CorruptIndex
from grebe.formats.parquet_file import open_parquet
from grebe.indexes.content import bounds, parts
from grebe.indexes.content.directory import NAME
from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import FILE_COLUMN, Layout
from tests.formats.reading_back import data_file
from tests.indexes.covering_lake import Index, counted, created, file_ids, index_of, log_of, write
from tests.indexes.key_types import KEYS, keys_table, ordered, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]


@pytest.fixture(scope="module")
def kept(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    """A table of three files with all types of keys, and indexes that hold them all."""
    table = keys_table()
    parts = [table.slice(0, 100), table.slice(100, 100), table.slice(200)]
    source = write(tmp_path_factory.mktemp("kept") / "keys", parts)
    numbers = Covering("by_number", on="number", include=list(KEYS), buckets=2)
    return created(spark, source, numbers, *(Covering(f"by_{name}", on=name) for name in ("double", "moment", "text")))


def test_every_row_is_there_once_with_every_value_as_it_was(kept: dict[str, Index]) -> None:
    index = kept["by_number"]
    assert index.rows("number", *KEYS) == counted([keys_table().select(["number", *KEYS])])
    assert file_ids(index) == {0, 1, 2}
    assert index.copy.layout == Layout(2, ("number",), ("number",))
    assert index.copy.content["rows"].to_pylist() == [pq.read_metadata(file).num_rows for file in index.files]
    assert index.copy.content["size"].to_pylist() == [file.stat().st_size for file in index.files]
    assert {pq.read_metadata(file).row_group(0).column(0).compression for file in index.files} == {"ZSTD"}


def test_the_copy_says_what_the_content_is_called_and_of_which_types(
    spark: "SparkSession", kept: dict[str, Index]
) -> None:
    from pyspark.sql.types import StructType

    index = kept["by_number"]
    assert index.copy.columns == {(name,): name for name in ["number", *KEYS]}
    schema = StructType.fromJson(json.loads(index.copy.schema))
    table = spark.read.format("parquet").load(str(index.root.parent.parent / "keys"))
    types = {field.name: field.dataType for field in table.schema}
    assert [(f.name, f.dataType) for f in schema][:-1] == [(name, types[name]) for name in ["number", *KEYS]]
    assert (schema[-1].name, schema[-1].dataType.simpleString()) == (FILE_COLUMN, "int")
    content = spark.read.schema(schema).format("parquet").load([str(file) for file in index.files])
    columns = ["number", *KEYS]
    assert content.select(columns).exceptAll(table.select(columns)).count() == 0


@pytest.mark.parametrize("name", [name for name in KEYS if name not in ("float", "double")])
def test_bounds_are_exact(kept: dict[str, Index], name: str) -> None:
    """One file has one row group here, so that its statistics tell of every column, sorted or not."""
    file = kept["by_number"].files[0]
    kind = dict(
        zip(["number", *KEYS], [f["type"] for f in json.loads(kept["by_number"].copy.schema)["fields"]], strict=False)
    )
    found = bounds.bounds_of(open_parquet(data_file(file)), name, kind[name])
    column = pq.read_table(file, columns=[name])[0]
    values = [value for value in ordered(column.to_pylist()) if value is not None]
    low, high = (bounds.column_of([value], kind[name])[0].as_py() for value in (found.low, found.high))
    assert found.nulls == column.null_count
    assert texts([low]) == texts(values[:1])
    assert texts([high]) == texts(values[-1:])


def test_the_directory_holds_the_bounds_of_each_file(kept: dict[str, Index]) -> None:
    (double,) = kept["by_double"].copy.content.to_pylist()
    assert double["bucket"] == -1
    assert (double["min"], double["max"], double["nulls"]) == (-math.inf, None, 50), "a NaN is above every bound"
    (moment,) = kept["by_moment"].copy.content.select(["min", "max"]).to_pylist()
    assert [moment["min"], moment["max"]] == KEYS["moment"][1]
    (text,) = kept["by_text"].copy.content.select(["min", "max"]).to_pylist()
    assert [text["min"], text["max"]] == ["", "\U0001f426"]


def test_numbers_without_nan_have_an_upper_bound_and_long_text_has_none(spark: "SparkSession", tmp_path: Path) -> None:
    table = pa.table({"x": [2.5, -1.0, None], "t": ["a", "b" * 5000, None]})
    kinds = Covering("x", on="x"), Covering("t", on="t", buckets=1)
    found = created(spark, write(tmp_path / "t", [table]), *kinds)
    (x,) = found["x"].copy.content.select(["min", "max", "nulls"]).to_pylist()
    assert x == {"min": -1.0, "max": 2.5, "nulls": 1}
    (t,) = found["t"].copy.content.select(["min", "max"]).to_pylist()
    assert t == {"min": None, "max": None}


def test_a_bucket_that_is_far_too_large_is_cut_into_files_in_order(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_FILE_BYTES", 1)
    monkeypatch.setattr(parts, "_FEWEST_ROWS_PER_FILE", 1_000)
    table = pa.table({"k": pa.array([7 if n < 4_500 else n for n in range(5_000)], pa.int64()), "n": range(5_000)})
    kind = Covering("i", on=["k", "n"], buckets=2, lineage=False)
    index = created(spark, write(tmp_path / "t", [table]), kind)["i"]
    buckets = index.copy.content["bucket"].to_pylist()
    assert sorted(buckets) == buckets
    assert len(buckets) >= 5
    assert index.copy.runs[0].files == tuple(range(len(buckets)))
    for bucket in set(buckets):
        files = [file for file, b in zip(index.files, buckets, strict=True) if b == bucket]
        rows = [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]
        assert rows == sorted(rows)
    assert pq.read_schema(index.files[0]).names == ["k", "n"], "there is no lineage"
    assert index.copy.lineage is False


def test_partitions_nested_fields_arrays_and_a_condition(spark: "SparkSession", tmp_path: Path) -> None:
    home = [{"city": c, "zip": z} for c, z in (("Bern", 1), ("Rom", 2), (None, 3))]
    for region, shift in (("north", 0), ("sou th", 10), ("__HIVE_DEFAULT_PARTITION__", 20)):
        ids = [shift, shift + 1, shift + 2]
        table = pa.table({"id": ids, "home": home, "tags": [["a", None], [], None], "a.b": ids})
        write(tmp_path / "t" / f"region={region}", [table])
    kind = Covering(
        "i", on=["region", "home.city"], include=["id", "tags", "`a.b`", "home"], where="id <> 11", buckets=3
    )
    index = created(spark, str(tmp_path / "t"), kind)["i"]
    names = ["region", "home.city", "id", "tags", "a.b", "home"]
    assert list(index.copy.columns.values()) == names
    expected = duckdb.execute(
        f"""SELECT nullif(region, '__HIVE_DEFAULT_PARTITION__'), home.city, id, tags, "a.b", home
        FROM read_parquet('{tmp_path}/t/*/*.parquet', hive_partitioning = true) WHERE id <> 11"""
    )
    rows = [
        row for file in index.files for row in zip(*(c.to_pylist() for c in pq.read_table(file).columns), strict=True)
    ]
    assert sorted(map(repr, (row[:-1] for row in rows))) == sorted(map(repr, expected.fetchall()))
    assert len(rows) == 8
    assert str(index.copy.where) != "None"


@pytest.mark.parametrize("format", ["csv", "json", "orc"])
def test_tables_of_other_formats(spark: "SparkSession", tmp_path: Path, format: str) -> None:
    columns = "id BIGINT, price DECIMAL(10,2), day DATE, name STRING"
    frame = spark.range(500).selectExpr(
        "id",
        "CAST(if(id % 7 = 0, NULL, id / 4) AS DECIMAL(10,2)) AS price",
        "DATE '2024-01-01' + CAST(id AS INT) AS day",
        "if(id % 5 = 0, '', concat('nämé,\"', id, '\n')) AS name",
    )
    options = {"csv": {"header": "true", "multiLine": "true", "quoteAll": "true"}}.get(format, {})
    frame.repartition(3).write.options(**options).format(format).save(str(tmp_path / "t"))
    source = spark.read.format(format).schema(columns).options(**options).load(str(tmp_path / "t"))
    rest = ["price", "day", "name"]
    kinds = [Covering("by_id", on="id", include=rest), Covering("by_day", on="day", include=["id"], where="price > 20")]
    found = created(spark, source, *kinds)
    expected = source.select("id", *rest).toPandas()
    assert found["by_id"].rows("id", *rest) == counted([pa.Table.from_pandas(expected, found["by_id"].schema(4))])
    assert found["by_day"].copy.rows == source.where("price > 20").count()
    assert file_ids(found["by_id"]) == set(range(len(list((tmp_path / "t").glob("part-*")))))


def test_a_table_without_rows_or_files_has_an_index_of_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    kinds = [
        Covering("hashed", on="id"),
        Covering("sorted", on="id", buckets=0),
        Covering("part", on="id", where="id > 1"),
    ]
    no_rows = created(spark, write(tmp_path / "rows", [pa.table({"id": pa.array([], pa.int64())})]), *kinds)
    (tmp_path / "files").mkdir()
    no_files = created(spark, spark.read.schema("id BIGINT").format("parquet").load(str(tmp_path / "files")), *kinds)
    for index in [*no_rows.values(), *no_files.values()]:
        assert (index.copy.rows, index.copy.bytes, index.files, index.copy.runs) == (0, 0, [], ())
    assert len(no_rows["hashed"].copy.covered) == 1
    assert len(no_files["hashed"].copy.covered) == 0


def test_a_directory_that_is_lost_or_damaged_is_a_corrupt_index(spark: "SparkSession", tmp_path: Path) -> None:
    table = write(tmp_path / "t", [pa.table({"id": [1, 2]})])
    index = created(spark, table, Covering("i", on="id"))["i"]
    log = log_of(table)
    state = log.state.indexes["i"]
    directory = next(file.path for file in state.content if file.path.endswith(NAME))
    whole = log.store.get(directory)
    for damaged in (whole[:-3], b"", whole.replace(b"PAR1", b"PAR2")):
        log.store.put(directory, damaged)
        with pytest.raises(CorruptIndex, match="mode='full'"):
            Covering.copy_of(state, log.store)
    log.store.delete(directory)
    with pytest.raises(CorruptIndex, match="missing"):
        Covering.copy_of(state, log.store)
    log.store.put(directory, whole)
    assert index_of(table, "i").copy.key == index.copy.key


def test_a_directory_that_lists_other_files_is_a_corrupt_index(spark: "SparkSession", tmp_path: Path) -> None:
    from dataclasses import replace

    table = write(tmp_path / "t", [pa.table({"id": [1, 2]})])
    created(spark, table, Covering("i", on="id", buckets=1))
    log = log_of(table)
    state = log.state.indexes["i"]
    grown = replace(state, content=tuple(replace(file, size=file.size + 1) for file in state.content))
    with pytest.raises(CorruptIndex, match="does not list"):
        Covering.copy_of(grown, log.store)
    fewer: Any = replace(state, content=tuple(file for file in state.content if file.path.endswith(NAME)))
    assert Covering.copy_of(fewer, log.store).rows == 0, "files may be replaced one by one"
