"""Queries of lake tables use indexes, and give what they give without: fresh, stale, after deletes, of older versions."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.errors import Unsupported
from tests.lakes.formats import COLUMNS, FORMATS, SHORT_FIRST, LakeFormat
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


@pytest.fixture(scope="module", params=SHORT_FIRST)
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
    for query, used in ((POINT, "by_v"), (RANGE, "by_k"), (GROUP, "by_k")):
        seen = served.same_rows(query.format(lake.sql))
        assert used in seen.used
        assert re.search(f"grebe: [^,]*{used}", seen.text), "the scan says so in Spark's UI"
    assert served.same(JOIN.format(lake.sql), "by_k").exchanges == 0
    # Formats answer that from what they know of their files, and may do it before us.
    served.same_rows(COUNT.format(lake.sql))


def test_deleted_rows_stay_deleted(served: Served, lake: LakeFormat) -> None:
    """An index holds rows of a file as it was written; the format's own reader knows which are gone."""
    lake.delete("v IN (20007, 20008) OR k = 17")
    seen = {query: served.same_rows(query.format(lake.sql)) for query in (POINT, RANGE, GROUP, JOIN, COUNT)}
    assert not seen[POINT].rows
    assert seen[GROUP].used == ["by_k"]


def test_appended_files_are_read_beside_the_index_and_after_a_refresh_from_it(served: Served, lake: LakeFormat) -> None:
    table = served.lake.table(lake.given)
    lake.append(frame(served, 200, 4).repartition(1))
    assert all(info.files_stale for info in table.indexes())
    seen = {query: served.same_rows(query.format(lake.sql)) for query in (POINT, RANGE, GROUP, JOIN, COUNT)}
    assert seen[GROUP].exchanges == 1
    table.refresh()
    assert not any(info.files_stale for info in table.indexes())
    assert {info.source_version for info in table.indexes()} == {str(lake.version())}
    for query in (POINT, GROUP, JOIN):
        assert served.run(query.format(lake.sql)).rows == seen[query].rows


def test_older_versions_use_what_the_index_holds_of_them(served: Served, lake: LakeFormat) -> None:
    table, before = served.lake.table(lake.given), lake.version()
    lake.compact()
    versions = (lake.sql, lake.as_of(before))
    seen = {(at, query): served.same_rows(query.format(at)).rows for at in versions for query in (POINT, GROUP)}
    table.refresh()
    for at in versions:
        served.same_rows(RANGE.format(at))
        assert served.run(POINT.format(at)).rows == seen[at, POINT]
        grouped = served.run(GROUP.format(at))
        assert grouped.rows == seen[at, GROUP]
        # Of merge-on-read some slices have log files by now, which no index covers.
        assert grouped.used == ["by_k"] or not lake.readable_without_spark


def test_without_spark_the_same_rows_are_found_at_every_version(served: Served, lake: LakeFormat) -> None:
    def expected(at: str, condition: str) -> list[tuple[object, ...]]:
        found = served.spark.sql(f"SELECT k, w, v, s FROM {at} WHERE {condition}").collect()
        return sorted(map(tuple, found), key=repr)

    before = lake.version()
    lake.delete("w = 5")
    if not lake.readable_without_spark:
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_LOG_FILES\].*log files"):
            grebe.open(lake.path).scan("k < 5")
        return
    for version, at in ((None, lake.sql), (before, lake.as_of(before))):
        table = grebe.open(lake.path, version=version)
        for condition in ("v = 30011", "k < 5", "w = 5 AND v > 20000"):
            rows_found = table.scan(condition, columns=["k", "w", "v", "s"]).to_pylist()
            assert sorted((tuple(row.values()) for row in rows_found), key=repr) == expected(at, condition), condition
        assert table.files("v = 30011").index == "by_v"
        assert table.count() == served.spark.sql(f"SELECT count(*) FROM {at}").collect()[0][0]
