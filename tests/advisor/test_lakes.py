"""Queries on lake tables are recorded as those on plain files, at what the table is called in its log."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from tests.lakes.formats import COLUMNS, FORMATS, HERE, LakeFormat
from tests.spark.data import rows
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
RECORDS = grebe.Config(record_workload=True, hybrid_max_appended=1.0, hybrid_max_deleted=1.0)


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, RECORDS) as made:
        yield made


@pytest.fixture(params=HERE)
def lake(request: pytest.FixtureRequest, served: Served, tmp_path: Path) -> LakeFormat:
    made = FORMATS[request.param](served.spark, tmp_path)
    frame = served.spark.createDataFrame([tuple(row.values()) for row in rows(200, 1).to_pylist()], COLUMNS)
    made.create(frame.repartition(2))
    return made


def test_before_and_after_an_index_is_made(served: Served, lake: LakeFormat) -> None:
    query = f"SELECT w FROM {lake.sql} WHERE k = 3"
    table = served.lake.table(lake.given, format=None if lake.given != lake.path else HERE[0])
    served.run(query)
    if lake.sql.startswith("ice."):
        served.run(f"SELECT snapshot_id FROM {lake.sql}.snapshots")  # is no query of its rows
    table.create(grebe.Covering("by_k", on="k", include=["w"], buckets=2))
    assert served.run(query).used == ["by_k"]
    plain, covered = table.workload().collect()
    assert plain.tables == covered.tables == [table.uri]
    assert plain.shape == covered.shape
    assert [one.scans[0].columns for one in (plain, covered)] == [["k", "w"]] * 2
    assert [one.indexes for one in (plain, covered)] == [[], ["by_k"]]
    assert [one.scans[0].predicate for one in (plain, covered)] == ["k = 3L AND k IS NOT NULL"] * 2
    assert list(Path(lake.path).rglob("_grebe")) == []  # nor is what a format asks its own metadata a query
