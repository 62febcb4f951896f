"""Whatever lies in a table lies in its index: the same rows, each as often, wherever the files and the condition cut."""

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import FILE_COLUMN
from tests.indexes.covering_lake import Index, counted, created, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int32()), ("x", pa.float64()), ("t", pa.string())])
ROWS = st.tuples(
    st.none() | st.integers(-3, 3),
    st.none() | st.floats(allow_nan=True),
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
)
TABLES = st.lists(st.lists(ROWS, max_size=30), min_size=1, max_size=4)
KINDS = st.fixed_dictionaries(
    {
        "on": st.sampled_from([["k"], ["x"], ["t"], ["t", "k"], ["x", "t"]]),
        "buckets": st.sampled_from([None, 0, 1, 3, 8]),
        "where": st.sampled_from([None, "k > 0", "x IS NULL OR t >= 'a'"]),
        "lineage": st.booleans(),
    }
)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def holds(where: str | None, row: tuple[Any, ...]) -> bool:
    k, x, t = row
    if where is None:
        return True
    if where.startswith("k"):
        return k is not None and k > 0
    return x is None or (t is not None and t.encode() >= b"a")


def check(spark: "SparkSession", tables: list[list[tuple[Any, ...]]], asked: dict[str, Any]) -> None:
    kind = Covering("i", include=[name for name in SCHEMA.names if name not in asked["on"]], **asked)
    with tempfile.TemporaryDirectory() as folder:
        index = created(spark, write(Path(folder) / "t", [table_of(rows) for rows in tables]), kind)["i"]
        kept = [table_of([row for row in rows if holds(kind.where, row)]) for rows in tables]  # type: ignore[arg-type]  # text by now
        assert index.rows(*SCHEMA.names) == counted(table.select(SCHEMA.names) for table in kept)
        if kind.lineage:
            expected = [t.append_column(FILE_COLUMN, pa.array([i] * len(t), pa.int32())) for i, t in enumerate(kept)]
            assert index.rows(*SCHEMA.names, FILE_COLUMN) == counted(expected)
        expect_bounds(index, asked["on"][0])


def expect_bounds(index: Index, key: str) -> None:
    import pyarrow.parquet as pq

    for file, row in zip(index.files, index.copy.content.select(["min", "max"]).to_pylist(), strict=True):
        for value in pq.read_table(file, columns=[key])[0].to_pylist():
            if value is None:
                continue
            if isinstance(value, float) and math.isnan(value):
                assert row["max"] is None
                continue
            assert row["min"] is None or row["min"] <= value
            assert row["max"] is None or row["max"] >= value


@settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(TABLES, KINDS)
def test_an_index_holds_just_the_rows_of_its_table(
    spark: "SparkSession", tables: list[list[tuple[Any, ...]]], asked: dict[str, Any]
) -> None:
    check(spark, tables, asked)


@pytest.mark.soak
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(TABLES, KINDS)
def test_an_index_holds_just_the_rows_of_its_table_for_long(
    spark: "SparkSession", tables: list[list[tuple[Any, ...]]], asked: dict[str, Any]
) -> None:
    check(spark, tables, asked)
