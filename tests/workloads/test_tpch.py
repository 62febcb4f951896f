"""TPC-H: the answers are the same without indexes, with fresh ones and with stale ones, and they are DuckDB's.

The tables are small, so the planner is told that an index costs next to nothing: whatever can serve does. At scale 1 it decides by
itself (`test_tpch_at_scale_1.py`).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from bench.tpch import INDEXES
from testbed import tpch
from tests.workloads.eager import eager_lake
from tests.workloads.tpch_lake import TpchLake
from tests.workloads.workload import NO_BROADCAST, SOME_BROADCAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One worker has the tables and runs these tests in their order: what has aged does not become young again.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tpch")]

OVER_CSV = (1, 3, 5, 6, 12, 14)
LARGE_TABLES_OF_CSV = ("lineitem", "orders", "customer", "part")
LARGE_TABLES = {*LARGE_TABLES_OF_CSV, "partsupp"}


@pytest.fixture(scope="module")
def young(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[TpchLake]:
    session = spark.newSession()
    with eager_lake(session) as lake:
        yield TpchLake.indexed(session, lake, tpch.generate_tested("parquet"), tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="module")
def old(young: TpchLake) -> TpchLake:
    young.age()
    return young


@pytest.fixture(scope="module")
def young_csv(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[TpchLake]:
    session = spark.newSession()
    with eager_lake(session) as lake:
        data, target = tpch.generate_tested("csv"), tmp_path_factory.mktemp("tpch-csv")
        yield TpchLake.indexed(session, lake, data, target, "csv", LARGE_TABLES_OF_CSV)


@pytest.fixture(scope="module")
def old_csv(young_csv: TpchLake) -> TpchLake:
    young_csv.age()
    return young_csv


def test_every_large_table_is_served_by_an_index(young: TpchLake) -> None:
    used = {name for number in (3, 16, 17) for name in young.workload.used(tpch.query(number), NO_BROADCAST)}
    assert {table for table, kinds in INDEXES.items() if used & {kind.name for kind in kinds}} >= LARGE_TABLES


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_fresh_indexes_change_no_answer(young: TpchLake, number: int) -> None:
    young.workload.same_answers(tpch.query(number), [NO_BROADCAST])


@pytest.mark.parametrize(
    "number",
    [number if number in OVER_CSV else pytest.param(number, marks=pytest.mark.soak) for number in tpch.QUERIES],
)
def test_fresh_indexes_change_no_answer_beside_broadcasts(young: TpchLake, number: int) -> None:
    young.workload.same_answers(tpch.query(number), [SOME_BROADCAST], plain=False)


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_stale_indexes_change_no_answer(old: TpchLake, number: int) -> None:
    old.workload.same_answers(tpch.query(number), [NO_BROADCAST], plain=False)


@pytest.mark.parametrize("number", OVER_CSV)
def test_fresh_indexes_of_csv_change_no_answer(young_csv: TpchLake, number: int) -> None:
    young_csv.workload.same_answers(tpch.query(number), [NO_BROADCAST], plain=False)


@pytest.mark.parametrize("number", OVER_CSV)
def test_stale_indexes_of_csv_change_no_answer(old_csv: TpchLake, number: int) -> None:
    old_csv.workload.same_answers(tpch.query(number), [NO_BROADCAST], plain=False)
