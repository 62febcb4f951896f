"""Queries of lake tables use indexes, and give what they give without: fresh, stale, after deletes, of older versions."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from tests.lakes.formats import COLUMNS, FORMATS, NAMES, LakeFormat
from tests.spark.data import rows
from tests.spark.served import Served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("lakes queries")]

POINT = "SELECT * FROM {0} WHERE v = 20007"
RANGE = "SELECT k, w, v FROM {0} WHERE k BETWEEN 10 AND 30"
GROUP = "SELECT k, count(*), sum(v), max(s) FROM {0} GROUP BY k"
JOIN = "SELECT a.v, b.v AS bv FROM {0} a JOIN {0} b ON a.k = b.k WHERE a.w < 3"
COUNT = "SELECT count(*), min(v), max(v) FROM {0}"


def frame(served: Served, count: int, seed: int) -> "DataFrame":
    return served.spark.createDataFrame([tuple(row.values()) for row in rows(count, seed).to_pylist()], COLUMNS)


@pytest.fixture(scope="module", params=NAMES)
def lake(request: pytest.FixtureRequest, served: Served, folder: Path) -> LakeFormat:
    made = FORMATS[request.param](served.spark, folder)
    made.create(frame(served, 300, 1).repartition(2))
    for seed in (2, 3):
        made.append(frame(served, 300, seed).repartition(2))
    served.lake.table(made.given, format=request.param.split()[0] if made.given == made.path else None).create(
        grebe.Covering("by_k", on="k", include=["w", "v", "s"], buckets=4),
        grebe.Lookup("by_v", on="v"),
        grebe.Skipping("skip", grebe.MinMax("v")),
    )
    return made


def test_a_fresh_index_serves_as_over_plain_files(served: Served, lake: LakeFormat) -> None:
    for query, used in ((POINT, ["by_v"]), (RANGE, ["by_k"]), (GROUP, ["by_k"])):
        served.same(query.format(lake.sql), *used)
    assert served.run(JOIN.format(lake.sql)).exchanges == 0
    served.same(JOIN.format(lake.sql), "by_k")
    served.same(COUNT.format(lake.sql), "skip")
