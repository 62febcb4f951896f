"""`open(timestamp=…)` of a Delta table finds the version that Spark's `TIMESTAMP AS OF` reads."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.errors import TableNotFound, Unsupported
from tests.lakes.formats import HERE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("lakes delta"),
    pytest.mark.skipif("delta" not in HERE, reason="Delta Lake has no runtime for this Spark"),
]

BEGIN = SYSTEM.now_ms() // 1000 * 1000 - 3_600_000
"""An hour ago: Delta refuses moments before its retention."""
NEVER = -1
"""What is told where there is no version at a time."""


class Timed:
    """A table whose version n has n + 1 rows."""

    def __init__(self, spark: "SparkSession", folder: Path, properties: str = "") -> None:
        self.spark = spark
        self.name = f"times{SYSTEM.new_id()[:8]}"
        self.path = folder / self.name
        self.log = self.path / "_delta_log"
        more = f"TBLPROPERTIES ({properties})" if properties else ""
        spark.sql(f"CREATE TABLE {self.name} (id BIGINT) USING delta LOCATION '{self.path}' {more}")
        self.versions = 0

    def append(self, times: int = 1) -> None:
        for _ in range(times):
            self.versions += 1
            self.spark.sql(f"INSERT INTO {self.name} VALUES ({self.versions})")

    def date(self, *at_ms: int) -> None:
        """Gives the commits other times of modification."""
        for version, at in enumerate(at_ms):
            os.utime(self.log / f"{version:020}.json", ns=(at * 1_000_000, at * 1_000_000))

    def ours(self, at_ms: int) -> int:
        asked = datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)
        try:
            found = grebe.open(str(self.path), timestamp=asked)
        except TableNotFound:
            return NEVER
        return found.count()

    def sparks(self, at_ms: int) -> int | str:
        """In a session that knows nothing of the table yet."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        asked = f"timestamp_millis({at_ms}L)"
        try:
            return int(self.spark.sql(f"SELECT count(*) FROM {self.name} TIMESTAMP AS OF {asked}").first()[0])  # type: ignore[index]
        except Exception as problem:  # noqa: BLE001 - told by its text; the JVM's classes of it are many
            text = str(problem)
            told = {"before the earliest version": "before", "is after the table's latest version": "after"}
            return next((short for sign, short in told.items() if sign in text), text)

    def same(self, moments: Sequence[int]) -> list[int]:
        """Of each moment our rows, after they were compared with Spark's."""
        ours = [self.ours(at) for at in moments]
        for at, rows in zip(moments, ours, strict=True):
            told = self.sparks(at)
            # After the last commit Delta refuses, as the answer may still change; `open` gives the newest version.
            assert told == {NEVER: "before", self.versions: told if told == "after" else rows}.get(rows, rows), (
                at - BEGIN
            )
        return ours


def test_a_moment_between_commits_is_the_version_before_it(spark: "SparkSession", tmp_path: Path) -> None:
    made = Timed(spark, tmp_path)
    made.append(3)
    made.date(*(BEGIN + 1_000 * one for one in range(4)))
    moments = [BEGIN - 1, BEGIN, BEGIN + 999, BEGIN + 1_000, BEGIN + 1_001, BEGIN + 2_500, BEGIN + 3_000, BEGIN + 9_999]
    assert made.same(moments) == [NEVER, 0, 0, 1, 1, 2, 3, 3]


def test_times_of_commits_that_run_backwards_count_as_delta_counts_them(spark: "SparkSession", tmp_path: Path) -> None:
    made = Timed(spark, tmp_path)
    made.append(4)
    made.date(BEGIN, BEGIN + 5_000, BEGIN + 1_000, BEGIN + 5_001, BEGIN + 7_000)
    moments = [BEGIN + 1_500, BEGIN + 5_000, BEGIN + 5_001, BEGIN + 5_002, BEGIN + 6_999, BEGIN + 7_000]
    assert made.same(moments) == [0, 1, 2, 3, 3, 4]


def test_after_log_cleanup_times_begin_with_the_first_checkpoint(spark: "SparkSession", tmp_path: Path) -> None:
    made = Timed(spark, tmp_path, "'delta.checkpointInterval' = '3'")
    made.append(7)
    made.date(*(BEGIN + 1_000 * one for one in range(8)))
    for version in (0, 1):  # as Delta's own cleanup does, days later
        (made.log / f"{version:020}.json").unlink()
        (made.log / f".{version:020}.json.crc").unlink(missing_ok=True)
        (made.log / f"{version:020}.crc").unlink(missing_ok=True)
    moments = [BEGIN + 2_000, BEGIN + 2_999, BEGIN + 3_000, BEGIN + 3_999, BEGIN + 6_500, BEGIN + 7_000]
    assert made.same(moments) == [NEVER, NEVER, 3, 3, 6, 7]


@pytest.mark.parametrize("later", [False, True], ids=["from the start", "enabled later"])
def test_commits_that_name_their_time_are_found_by_it(spark: "SparkSession", tmp_path: Path, later: bool) -> None:
    enabled = "'delta.enableInCommitTimestamps' = 'true'"
    made = Timed(spark, tmp_path, "" if later else enabled)
    if later:
        made.append(2)
        made.date(*(BEGIN + 1_000 * one for one in range(3)))
        spark.sql(f"ALTER TABLE delta.`{made.path}` SET TBLPROPERTIES ({enabled})")
    made.append(2)
    told = [
        json.loads(one.read_text().splitlines()[0])["commitInfo"].get("inCommitTimestamp")
        for one in sorted(made.log.glob("*.json"))
    ]
    named = [one for one in told if one is not None]
    assert len(named) == 3
    if not later:
        made.date(BEGIN, BEGIN, BEGIN)  # what the files say does not count
    moments = [named[0] - 1, named[0], named[1] - 1, named[1], named[2]]
    assert made.same(moments) == ([2, 2, 2, 3, 4] if later else [NEVER, 0, 0, 1, 2])
    if later:
        assert made.same([BEGIN - 1, BEGIN + 500, BEGIN + 1_500, BEGIN + 3_000]) == [NEVER, 0, 1, 2]


def test_what_the_package_cannot_read_is_told_with_the_features_of_the_table(
    spark: "SparkSession", tmp_path: Path
) -> None:
    path = f"{tmp_path}/widened"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, part DECIMAL(5, 2)) USING delta PARTITIONED BY (part) "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 9.87)")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN part TYPE DECIMAL(9, 4)")
    with pytest.raises(Unsupported, match="typeWidening") as refused:
        grebe.open(path)
    assert "9.87" not in str(refused.value)
