"""What the benchmarks count in plans."""

from typing import TYPE_CHECKING

import pytest

from bench._plans import Work, work_of
from testbed.spark import configured
from tests.workloads.workload import NO_BROADCAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_shuffles_and_sorts_are_counted_and_broadcasts_and_names_are_not(spark: "SparkSession") -> None:
    session = spark.newSession()
    session.range(10).createOrReplaceTempView("a")
    session.range(10).selectExpr("id", "id AS Sort").createOrReplaceTempView("b")
    join = "SELECT a.id, b.Sort FROM a JOIN b USING (id)"
    assert work_of(session, join) == Work(exchanges=0, sorts=0)
    with configured(session, NO_BROADCAST):
        assert work_of(session, join) == Work(exchanges=2, sorts=2)
        assert work_of(session, f"{join} WHERE b.Sort > (SELECT count(*) FROM a)") == Work(exchanges=3, sorts=2)
    assert session.conf.get("spark.sql.adaptive.enabled") == "true"
