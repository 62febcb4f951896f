"""What a stand-in reads for a list of values: only pages that may hold one of them, however many they are."""

from pathlib import Path
from typing import Any

import pytest

import grebe
from testbed.spark import configured
from tests.spark.served import NOT_ADAPTIVE, Served

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark pushed")]
ROWS = 300_000
BUCKETS, PAGE = 2, 4_000


@pytest.fixture(scope="module")
def table(served: Served, folder: Path) -> str:
    path = folder / "t"
    columns = ("id", "CAST(id % 997 AS STRING) AS s", "IF(id % 10 = 0, NULL, id) AS n")
    served.spark.range(ROWS).selectExpr(*columns).repartition(4).write.parquet(str(path))
    served.lake.table(str(path)).create(grebe.Covering("by_id", on="id", include=["s", "n"], buckets=BUCKETS))
    served.view("pushed", path)
    return "pushed"


def rows_read(served: Served) -> int:
    """Of the files, as Spark counted them."""
    leaves: list[Any] = []
    pending = [served.plan()]
    while pending:
        node = pending.pop()
        below = [node.children().apply(i) for i in range(node.children().size())]
        pending += below
        leaves += [] if below else [node]
    return sum(int(leaf.metrics().apply("numOutputRows").value()) for leaf in leaves)


def values(count: int) -> str:
    return ", ".join(str(number * (ROWS // count)) for number in range(count))


@pytest.mark.parametrize("count", [5, 11, 30])
@pytest.mark.parametrize("ending", ["", " AND s > '2'"])
def test_many_values_leave_out_pages(served: Served, table: str, count: int, ending: str) -> None:
    with configured(served.spark, NOT_ADAPTIVE):
        served.same(f"SELECT id, s, n FROM {table} WHERE id IN ({values(count)}){ending}", "by_id")
        assert rows_read(served) <= count * BUCKETS * PAGE < ROWS


def test_of_very_many_values_all_is_read(served: Served, table: str) -> None:
    with configured(served.spark, NOT_ADAPTIVE):
        served.same(f"SELECT id, s FROM {table} WHERE id IN ({values(600)}) ORDER BY id", "by_id")
        assert rows_read(served) >= ROWS // 2


def test_a_list_with_null_and_one_of_another_column(served: Served, table: str) -> None:
    served.same(f"SELECT id, n FROM {table} WHERE id < 250000 AND n IN (NULL, {values(30)})", "by_id")
    texts = ", ".join(f"'{number}'" for number in range(11))
    served.same(f"SELECT id, s FROM {table} WHERE id > 5 AND s IN ({texts})", "by_id")
    served.same(f"SELECT s, count(*) FROM {table} WHERE id IN ({values(40)}) GROUP BY s", "by_id")
