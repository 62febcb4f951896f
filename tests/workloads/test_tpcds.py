"""TPC-DS: the answers are the same with indexes and without, and they are DuckDB's. Fifteen of its queries; all in `make soak`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from testbed import tpcds
from tests.workloads.eager import eager_lake
from tests.workloads.tpcds_lake import indexed
from tests.workloads.workload import NO_BROADCAST, NOT_ADAPTIVE, SOME_BROADCAST, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tpcds")]

# Correlated subqueries, outer and full joins, windows, INTERSECT, EXISTS, a table joined with itself. None gives an empty answer.
CHOSEN = (1, 7, 17, 38, 51, 72, 78, 81, 97)

Indexed = tuple[Workload, dict[int, str]]


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    session = spark.newSession()
    with eager_lake(session) as made:
        yield indexed(session, made, tmp_path_factory.mktemp("tpcds"))


def test_indexes_serve_whatever_they_can(lake: Indexed) -> None:
    workload, queries = lake
    assert {"store_sales_by_ss_customer_sk", "web_sales_by_ws_bill_customer_sk"} <= set(
        workload.used(queries[38], NO_BROADCAST)
    )


@pytest.mark.parametrize("number", CHOSEN)
def test_indexes_change_no_answer(lake: Indexed, number: int) -> None:
    workload, queries = lake
    workload.same_answers(queries[number], [NO_BROADCAST])


@pytest.mark.soak
@pytest.mark.parametrize("number", tpcds.QUERIES)
def test_indexes_change_no_answer_of_any_query(lake: Indexed, number: int) -> None:
    workload, queries = lake
    workload.same_answers(queries[number], [NO_BROADCAST, SOME_BROADCAST, {**NO_BROADCAST, **NOT_ADAPTIVE}])
