"""One table whose files were written by many hands: lookups find the rows that DuckDB and a full scan find."""

import datetime
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.indexes.lookup.spec import Lookup
from grebe.session.lake_table import LakeTable
from grebe.session.table import Table
from testbed.spark import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("lookup")]

PART = 1_500
INNER = pa.struct({"x": pa.int64(), "y": pa.string()})


def rows(part: int) -> pa.Table:
    numbers = np.arange(part * PART, (part + 1) * PART)
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    ratios = [float("nan") if n % 500 == 1 else -0.0 if n % 500 == 2 else n / 7 for n in numbers.tolist()]
    return pa.table(
        {
            "id": pa.array(numbers * 7919 % 1_000_003, pa.int64(), mask=numbers % 301 == 7),
            "text": [
                f"{n:x} 日本" if n % 5 else "x" * (1_000_000 if n % PART == 1_250 else 300) for n in numbers.tolist()
            ],
            "amount": pa.array([Decimal(n * 13 % 100_000).scaleb(-2) for n in numbers.tolist()], pa.decimal128(12, 2)),
            "at": pa.array([moment + datetime.timedelta(seconds=int(n)) for n in numbers], pa.timestamp("us", "UTC")),
            "ratio": pa.array(ratios, pa.float64()),
            "tags": pa.array(
                [["a", None, str(n)][: n % 4] if n % 9 else None for n in numbers.tolist()], pa.list_(pa.string())
            ),
            "inner": pa.array([{"x": n, "y": f"y{n}"} if n % 11 else None for n in numbers.tolist()], INNER),
            "n": pa.array(numbers, pa.int64()),
        }
    )


def arrow(**options: Any) -> Callable[[pa.Table, Path], None]:
    return lambda table, path: pq.write_table(table, path, **options)


def by_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute(
            f"COPY (SELECT * FROM rows) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048)"
        )


def by_arrow_rs(table: pa.Table, path: Path) -> None:
    """By way of a Delta table, whose one file is taken."""
    with tempfile.TemporaryDirectory() as place:
        deltalake.write_deltalake(place, table)
        (file,) = Path(place).glob("*.parquet")
        file.rename(path)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "plain": arrow(),
    "pages": arrow(write_page_index=True, data_page_size=4_000),
    "v2 zstd": arrow(version="2.6", data_page_version="2.0", compression="zstd", write_page_index=True),
    "v2 gzip": arrow(data_page_version="2.0", compression="gzip", use_dictionary=False, write_page_index=True),
    "lz4": arrow(compression="lz4", write_page_index=True, write_statistics=False),
    "uncompressed": arrow(compression="none", use_dictionary=False, write_page_index=True, data_page_size=2_000),
    "int96": arrow(use_deprecated_int96_timestamps=True, write_page_index=True),
    "no statistics": arrow(write_statistics=False, row_group_size=700),
    "decimals as integers": arrow(store_decimal_as_integer=True, write_page_index=True),
    "duckdb": by_duckdb,
    "polars": lambda table, path: polars.from_arrow(table).write_parquet(path),  # type: ignore[union-attr]  # a table is a frame
    "arrow-rs": by_arrow_rs,
}
LACKING = len(WRITERS)
"""The number of a file without two of the columns; after it come an empty one and one without row groups."""


@pytest.fixture(scope="module")
def folder(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("writers") / "t"
    folder.mkdir()
    for part, write in enumerate(WRITERS.values()):
        write(rows(part), folder / f"{part:02}.parquet")
    pq.write_table(rows(LACKING).drop_columns(["tags", "ratio"]), folder / f"{LACKING:02}.parquet")
    pq.write_table(rows(0).slice(0, 0), folder / "80.parquet")
    with pq.ParquetWriter(folder / "81.parquet", rows(0).schema):
        pass
    kinds = [
        Lookup(f"by_{name.replace('.', '_')}", on=name) for name in ("id", "text", "amount", "at", "ratio", "inner.y")
    ]
    with configured(spark, {"spark.sql.parquet.int96RebaseModeInRead": "CORRECTED"}):
        LakeTable(spark, str(folder)).create(*kinds)
    return folder


@pytest.fixture(scope="module")
def opened(folder: Path) -> Table:
    return grebe.open(str(folder))


@pytest.fixture(scope="module")
def everything() -> pa.Table:
    parts = [rows(part) for part in range(LACKING + 1)]
    last = parts[-1]
    for name in ("tags", "ratio"):
        place = last.schema.get_field_index(name)
        last = last.set_column(place, last.schema.field(name), pa.nulls(PART, last.schema.field(name).type))
    return pa.concat_tables([*parts[:-1], last])


@pytest.mark.parametrize("name", ["id", "text", "amount", "at", "ratio", "inner.y"])
def test_rows_of_every_writer_are_found(opened: Table, everything: pa.Table, name: str) -> None:
    top, *below = name.split(".")
    column = everything[top] if not below else pc.struct_field(everything[top], below)
    for part in range(LACKING + 1):
        for row in (part * PART + 1_250, part * PART + 13):
            key = column[row]
            if not key.is_valid:
                continue
            wanted = everything.filter(pc.fill_null(pc.equal(column, key), False)).sort_by("n")
            found = opened.get(name, key.as_py()).sort_by("n")
            assert found.select(wanted.column_names).to_pylist() == wanted.to_pylist()
            assert opened.files(grebe.col(name) == key.as_py()).index == f"by_{name.replace('.', '_')}"


@pytest.mark.parametrize("value", [float("nan"), 0.0, -0.0])
def test_odd_numbers_are_found_in_every_file(opened: Table, value: float) -> None:
    rest = 1 if value != value else 2
    wanted = [n for n in range(LACKING * PART) if n % 500 == rest] + ([0] if not value else [])
    assert sorted(opened.get("ratio", value)["n"].to_pylist()) == sorted(wanted)


def test_many_keys_give_what_duckdb_gives(opened: Table, folder: Path, everything: pa.Table) -> None:
    keys = [key for key in everything["id"].to_pylist()[::29] if key is not None]
    with duckdb.connect() as connection:
        (count, total) = connection.execute(
            f"SELECT count(*), sum(n) FROM read_parquet('{folder}/*.parquet', union_by_name = true) WHERE id IN (SELECT unnest(?))",
            [keys],
        ).fetchall()[0]
    found = opened.get_many("id", keys, columns=["n"])
    assert (len(found), pc.sum(found["n"]).as_py()) == (count, total)
    assert count == len(keys)
