"""The long form of TPC-H: at scale 1, over Parquet and CSV, adaptive or not, fresh and stale. Only in `make soak`."""

from typing import TYPE_CHECKING

import pytest

import grebe
from bench._plans import work_of
from testbed import tpch
from testbed.spark import configured
from tests.workloads.tpch_lake import TpchLake
from tests.workloads.workload import NO_BROADCAST, NOT_ADAPTIVE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.xdist_group("tpch at scale 1")]

DEFAULT: dict[str, str] = {}
SETTINGS = (DEFAULT, NO_BROADCAST, NOT_ADAPTIVE, {**NO_BROADCAST, **NOT_ADAPTIVE})


@pytest.fixture(scope="module")
def young(request: pytest.FixtureRequest, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> TpchLake:
    format = request.param
    session = spark.newSession()
    data, target = tpch.generate(1, format, parts=22), tmp_path_factory.mktemp(f"tpch-1-{format}")
    return TpchLake.indexed(session, grebe.attach(session), data, target, format)


@pytest.fixture(scope="module")
def old(young: TpchLake) -> TpchLake:
    young.age()
    return young


@pytest.mark.parametrize(("settings", "left"), [(NO_BROADCAST, 0.6), (DEFAULT, 0.65)])
@pytest.mark.parametrize("young", ["parquet"], indirect=True)
def test_indexes_take_shuffles_out_of_the_plans(young: TpchLake, settings: dict[str, str], left: float) -> None:
    def exchanges(enabled: bool) -> int:
        young.workload.lake.enabled = enabled
        with configured(young.workload.spark, settings):
            return sum(work_of(young.workload.spark, tpch.query(number)).exchanges for number in tpch.QUERIES)

    assert exchanges(True) <= left * exchanges(False)


@pytest.mark.parametrize("young", ["parquet", "csv"], indirect=True)
@pytest.mark.parametrize("number", tpch.QUERIES)
def test_fresh_indexes_change_no_answer(young: TpchLake, number: int) -> None:
    young.workload.same_answers(tpch.query(number), SETTINGS)


@pytest.mark.parametrize("young", ["parquet", "csv"], indirect=True)
@pytest.mark.parametrize("number", tpch.QUERIES)
def test_stale_indexes_change_no_answer(old: TpchLake, number: int) -> None:
    old.workload.same_answers(tpch.query(number), SETTINGS, plain=False)
