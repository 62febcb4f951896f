"""Coordinates of the curve: the order of a column as Spark has it, in stretches that hold about as many rows each."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from grebe.indexes.columns import Chosen
from grebe.indexes.zorder import build
from grebe.indexes.zorder.curve import along, spread
from grebe.indexes.zorder.ranks import Stretch, ranks_of, stepped
from tests.indexes.key_types import KEYS, keys_table, ordered, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = Chosen(("n",), "long")


def test_values_at_even_steps_begin_stretches_of_equal_width() -> None:
    ranks = ranks_of(NUMBER, ["1", "5", "7", "20"], 8)
    assert ranks.stretches == tuple(
        Stretch(f"CAST('{value}' AS bigint)", cell) for value, cell in ((1, 1), (5, 3), (7, 5), (20, 7))
    )
    assert ranks.nulls == 0
    assert ranks.tell


def test_what_many_rows_have_takes_as_much_of_the_axis() -> None:
    ranks = ranks_of(NUMBER, [None, None, "1", "7", "7", "7", "7", "9"], 16)
    assert (ranks.nulls, [stretch.cell for stretch in ranks.stretches]) == (2, [5, 10, 15])


@pytest.mark.parametrize("steps", [["7"] * 8, [None] * 8])
def test_a_column_of_one_value_tells_nothing(steps: list[str | None]) -> None:
    ranks = ranks_of(NUMBER, steps, 8)
    assert len(ranks.stretches) == 1
    assert ranks.tell == (steps[0] is not None), "but NULL may still come beside a value"


def test_finer_grids_for_more_rows_coarser_ones_for_more_columns() -> None:
    assert [build.levels_for(rows, 2) for rows in (0, 100_000, 10_000_000, 10**12)] == [5, 6, 9, 10]
    assert build.levels_for(10_000_000, 4) < build.levels_for(10_000_000, 2)
    assert build.levels_for(10**12, 8) * 8 <= 62


@pytest.mark.spark
@pytest.mark.core
def test_coordinates_follow_the_order_of_every_type(spark: "SparkSession", tmp_path: Path) -> None:
    place = f"{tmp_path}/keys.parquet"
    pq.write_table(keys_table(), place)
    frame = spark.read.parquet(place)
    types = {field.name: str(field.dataType.jsonValue()) for field in frame.schema.fields}
    columns = [Chosen((name,), types[name]) for name in KEYS]
    ranked = [ranks_of(column, steps, 64) for column, steps in zip(columns, stepped(frame, columns, 64), strict=True)]
    for one in ranked:
        frame = build._along(frame, "z", [one], 6).withColumnRenamed(build._CURVE, f"rank of {one.column.content}")
    kept = f"{tmp_path}/ranked"
    frame.coalesce(1).write.parquet(kept)
    rows = pq.read_table(kept).to_pylist()
    for name in KEYS:
        by_value = {texts([row[name]])[0]: (row[name], row[f"rank of {name}"]) for row in rows}
        values = ordered([value for value, _ in by_value.values()])
        cells = [by_value[texts([value])[0]][1] for value in values]
        assert cells == sorted(cells), name
        assert len(set(cells)) == len(cells), name


@pytest.mark.spark
@pytest.mark.parametrize("columns", [2, 3, 5])
def test_spark_finds_the_numbers_that_numpy_finds(spark: "SparkSession", columns: int) -> None:
    levels, names = 6, [f"c{number}" for number in range(columns)]
    frame = spark.range(500).selectExpr(*(f"CAST(rand({n}) * 64 AS BIGINT) AS {name}" for n, name in enumerate(names)))
    ranked = [ranks_of(Chosen((name,), "long"), [str(step) for step in range(64)], 64) for name in names]
    for curve in ("hilbert", "z"):
        rows = build._along(frame, curve, ranked, levels).collect()
        found = np.array([list(row) for row in rows])
        address = np.zeros(len(found), np.int64)
        for column in range(columns):
            address |= spread(found[:, column], column, columns, levels)
        assert (found[:, -1] == along(curve, address, columns, levels)).all(), curve
