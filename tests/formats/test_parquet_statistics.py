"""Bounds are taken from the footer of a Parquet file only where they can be trusted."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.formats import Column
from grebe.formats.parquet_statistics import Statistics, footer_of
from grebe.formats.spark_types import spark_type, type_text
from tests.formats.reading_back import data_file


def told(folder: Path, values: pa.Array, read_as: pa.DataType | None = None, **options: Any) -> Statistics | None:
    """What the footer of a file with this column `a` says, in two row groups."""
    pq.write_table(pa.table({"a": values, "b": range(len(values))}), folder / "f.parquet", row_group_size=2, **options)
    column = Column("a", type_text(spark_type(read_as or values.type)))
    return footer_of(data_file(folder / "f.parquet")).statistics(column)


TRUSTED = {
    "int8": (pa.array([3, None, -2, 7], pa.int8()), Statistics(-2, 7, 1)),
    "int64": (pa.array([2**62, -(2**63), None, None], pa.int64()), Statistics(-(2**63), 2**62, 2)),
    "boolean": (pa.array([True, True, None, False]), Statistics(False, True, 1)),
    "date": (pa.array([-5, 40000, 7, 8], pa.int32()).cast(pa.date32()), Statistics(-5, 40000, 0)),
    "timestamp": (pa.array([-1, 5, 0, 9], pa.timestamp("us", "UTC")), Statistics(-1, 9, 0)),
    "timestamp_ntz": (pa.array([-1, 5, None, 9], pa.timestamp("us")), Statistics(-1, 9, 1)),
    "all null": (pa.array([None] * 4, pa.int64()), Statistics(None, None, 4)),
}


@pytest.mark.parametrize("name", TRUSTED)
def test_numbers_and_times_are_trusted(tmp_path: Path, name: str) -> None:
    values, expected = TRUSTED[name]
    assert told(tmp_path, values) == expected


def test_decimals_kept_as_numbers_are_trusted(tmp_path: Path) -> None:
    values = pa.array([Decimal("1.25"), Decimal("-3.10"), None, Decimal("0.00")], pa.decimal128(9, 2))
    assert told(tmp_path, values, store_decimal_as_integer=True) == Statistics(-310, 125, 1)
    assert told(tmp_path, values) is None, "kept as bytes"


def test_floating_point_is_never_trusted(tmp_path: Path) -> None:
    assert told(tmp_path, pa.array([1.0, float("nan"), 2.0, 3.0])) is None
    assert told(tmp_path, pa.array([1.0, 2.0, 2.0, 3.0], pa.float32())) is None


def test_text_is_never_trusted(tmp_path: Path) -> None:
    assert told(tmp_path, pa.array(["a", "b", "c", "d" * 5000])) is None
    assert told(tmp_path, pa.array([b"a", b"b"])) is None


def test_a_silent_footer_is_not_trusted(tmp_path: Path) -> None:
    assert told(tmp_path, pa.array([1, 2, 3]), write_statistics=False) is None
    assert told(tmp_path, pa.array([1, 2, 3]), write_statistics=["b"]) is None


def test_times_of_another_calendar_or_as_int96_are_not_trusted(tmp_path: Path) -> None:
    values = pa.array([-(10**17), 5], pa.timestamp("us", "UTC"))
    assert told(tmp_path, values, use_deprecated_int96_timestamps=True) is None
    schema = pa.schema([pa.field("a", pa.date32())], metadata={"org.apache.spark.legacyDateTime": ""})
    pq.write_table(pa.table([pa.array([1, 2], pa.date32())], schema=schema), tmp_path / "old.parquet")
    assert footer_of(data_file(tmp_path / "old.parquet")).statistics(Column("a", "date")) is None


@pytest.mark.parametrize("read_as", [pa.int64(), pa.float64(), pa.string()], ids=str)
def test_a_column_that_is_read_as_another_type_is_not_trusted(tmp_path: Path, read_as: pa.DataType) -> None:
    assert told(tmp_path, pa.array([1, 2, 3], pa.int32()), read_as) is None


def test_a_column_that_is_not_there_is_not_trusted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"A": [1]}), tmp_path / "f.parquet")
    assert footer_of(data_file(tmp_path / "f.parquet")).statistics(Column("a", "long")) is None
