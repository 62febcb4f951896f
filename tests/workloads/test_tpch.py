"""TPC-H: the answers are the same without indexes, with fresh ones and with stale ones, and they are DuckDB's."""

from typing import TYPE_CHECKING

import pytest

from bench.tpch import INDEXES
from testbed import tpch
from tests.workloads.tpch_lake import TpchLake
from tests.workloads.workload import NO_BROADCAST, SOME_BROADCAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One worker has the tables and runs these tests in their order: what has aged does not become young again.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tpch")]

OVER_CSV = (1, 3, 5, 6, 12, 14)
BROADCASTS = (NO_BROADCAST, SOME_BROADCAST)


@pytest.fixture(scope="module")
def young(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> TpchLake:
    return TpchLake.indexed(spark, tpch.generate_tested("parquet"), tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="module")
def old(young: TpchLake) -> TpchLake:
    young.age()
    return young


@pytest.fixture(scope="module")
def young_csv(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> TpchLake:
    return TpchLake.indexed(spark, tpch.generate_tested("csv"), tmp_path_factory.mktemp("tpch-csv"), "csv")


@pytest.fixture(scope="module")
def old_csv(young_csv: TpchLake) -> TpchLake:
    young_csv.age()
    return young_csv


def test_every_index_serves_some_query(young: TpchLake) -> None:
    used = {name for number in tpch.QUERIES for name in young.workload.used(tpch.query(number), NO_BROADCAST)}
    assert used == {kind.name for kinds in INDEXES.values() for kind in kinds}


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_fresh_indexes_change_no_answer(young: TpchLake, number: int) -> None:
    young.workload.same_answers(tpch.query(number), BROADCASTS)


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_stale_indexes_change_no_answer(old: TpchLake, number: int) -> None:
    old.workload.same_answers(tpch.query(number), BROADCASTS, plain=False)


@pytest.mark.parametrize("number", OVER_CSV)
def test_fresh_indexes_of_csv_change_no_answer(young_csv: TpchLake, number: int) -> None:
    young_csv.workload.same_answers(tpch.query(number), BROADCASTS)


@pytest.mark.parametrize("number", OVER_CSV)
def test_stale_indexes_of_csv_change_no_answer(old_csv: TpchLake, number: int) -> None:
    old_csv.workload.same_answers(tpch.query(number), [NO_BROADCAST], plain=False)
