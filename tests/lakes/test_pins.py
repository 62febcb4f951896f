"""Pinned rows of lake tables: rows that were deleted in place are gone after `reload`, whatever is in memory."""

from pathlib import Path

import pytest

import grebe
from tests.lakes.formats import COLUMNS, FORMATS, IN_SHORT
from tests.spark.data import rows
from tests.spark.served import Served

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("lakes queries")]
QUERIES = ("w = 1", "v < 20100", "k BETWEEN 10 AND 30 AND w < 3", "v >= 0")


@pytest.mark.parametrize(
    "name", [name for name in IN_SHORT if FORMATS[name].readable_without_spark and name.startswith(("delta", "hudi"))]
)
def test_rows_that_were_deleted_are_not_taken_from_memory(name: str, served: Served, folder: Path) -> None:
    lake = FORMATS[name](served.spark, folder)

    def frame(seed: int) -> object:
        made = rows(200, seed).to_pylist()
        return served.spark.createDataFrame([tuple(row.values()) for row in made], COLUMNS).repartition(2)

    def same(table: grebe.Table) -> list[int]:
        found = []
        for query in QUERIES:
            plain = grebe.open(lake.path).scan(query)
            assert sorted(map(repr, table.scan(query).to_pylist())) == sorted(map(repr, plain.to_pylist()))
            assert table.count(query) == len(plain)
            found.append(len(plain))
        return found

    lake.create(frame(1))  # type: ignore[arg-type]  # a frame of Spark's
    lake.append(frame(2))  # type: ignore[arg-type]  # as above
    table = grebe.open(lake.path)
    with table.pin("v >= 0", queries=["w = 1"]):
        before = same(table)
        assert table.pinned[0].rows == before[-1]
        lake.delete("w = 1")
        assert same(table.reload())[0] == 0
        lake.append(frame(3))  # type: ignore[arg-type]  # as above
        assert same(table.reload())[-1] > 0
    assert before[0] > 0
