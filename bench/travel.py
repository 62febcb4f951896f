"""Fifty versions of a table, each with an index version of its own: what does a query of an old version cost, to plan and to run?

Half of the files are rewritten from version to version, and the indexes refreshed as a whole, so that every version of an index is
kept. A version is read as the list of its files. The rival is the same session without indexes.
"""

import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench._plans import planning
from bench._races import RIVAL, with_and_without
from bench._session import bench_session
from bench.harness import Report, Scale, samples
from grebe.files import canonical_uri
from grebe.log.entry import Keep
from grebe.maintenance.create import create
from grebe.maintenance.logs import Place
from grebe.maintenance.refresh import refresh
from grebe.spark.opening import spark_source
from grebe.spark.source import SparkSource
from grebe.spark.stores import store_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSIONS = 50
_FILES, _REWRITTEN = 20, 10
_PLANNING_MS = 50.0
_KINDS = (
    grebe.Covering("by_customer", on="customer", include=["amount"], buckets=4),
    grebe.Lookup("by_id", on="id"),
)
_MOMENTS = {"oldest": 0, "middle": VERSIONS // 2, "newest": VERSIONS - 1}


def run(scale: Scale, report: Report) -> None:
    rows, runs = scale.pick(5_000, 100_000), scale.pick(5, 15)
    with bench_session() as (spark, folder):
        lake = grebe.attach(spark)
        table = _Table(spark, folder / "t", rows)
        table.live(VERSIONS)
        lake.table(str(table.folder)).indexes()  # the session is told that something changed
        slowest = 0.0
        for name, version in _MOMENTS.items():
            table.frame(version).createOrReplaceTempView(name)
            for case, (sql, index) in table.queries(name, version).items():
                _check_version(lake, sql, index, version)
                slowest = max(slowest, _plan(spark, lake, f"planning, {case}, {name}", sql, 3 * runs, report))
                with_and_without(spark, lake, sql, runs).report(f"{case}, {name}", report)
    if slowest > _PLANNING_MS:
        raise SystemExit(f"planning with {VERSIONS} versions took {slowest:.0f} ms more than without indexes")


@dataclass(frozen=True)
class _Table:
    spark: "SparkSession"
    folder: Path
    rows: int
    """Of a file."""

    def live(self, versions: int) -> None:
        self.folder.mkdir()
        uri = canonical_uri(str(self.folder))
        place = Place(uri, None, None, lambda where: store_for(self.spark, where))
        for version in range(versions):
            for number in self.files(version):
                self._write(number)
            if version == 0:
                create(self._source(version), place, _KINDS)
            else:
                refresh(self._source(version), place.existing(), mode="full", keep=Keep(versions))

    def files(self, version: int) -> range:
        return range(version * _REWRITTEN, version * _REWRITTEN + _FILES)

    def frame(self, version: int) -> "DataFrame":
        return self.spark.read.parquet(*(str(self._path(number)) for number in self.files(version)))

    def queries(self, view: str, version: int) -> dict[str, tuple[str, str]]:
        """SQL, and the index that is to be used."""
        key = (version * _REWRITTEN + 3) * self.rows + self.rows // 2
        return {
            "one row": (f"SELECT * FROM {view} WHERE id = {key}", "by_id"),
            "customer": (f"SELECT count(*), sum(amount) FROM {view} WHERE customer = 42", "by_customer"),
        }

    def _source(self, version: int) -> SparkSource:
        """As a source with versions, which plain files are not."""
        return replace(spark_source(self.spark, self.frame(version)), kind="versions")

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.parquet"

    def _write(self, number: int) -> None:
        if self._path(number).exists():
            return
        random = np.random.default_rng(number)
        ids = np.arange(number * self.rows, (number + 1) * self.rows)
        texts = random.integers(0, 2**62, self.rows)
        columns = {
            "id": random.permutation(ids),
            "customer": random.integers(0, 1_000, self.rows),
            "amount": random.random(self.rows),
            "text": [f"order {text:x} of somebody who wants it soon" for text in texts.tolist()],
        }
        pq.write_table(pa.table(columns), self._path(number))


def _check_version(lake: "grebe.Lake", sql: str, index: str, version: int) -> None:
    """The index is used, and in the version of just these files."""
    lake.enabled = True  # whoever raced last may have left it off
    told = lake.explain(sql).to_dict()
    older = {name for choice in told["choices"] for name in choice["older_versions"]}
    if told["used"] != [index] or older != (set() if version == VERSIONS - 1 else {index}):
        raise SystemExit(f"version {version} was read by {told['choices']}, and not by {index}: {told['not_used']}")


def _plan(spark: "SparkSession", lake: "grebe.Lake", case: str, sql: str, runs: int, report: Report) -> float:
    """How many milliseconds more than without indexes."""

    costs = samples(
        {"ours": planning(spark, lake, sql, True), RIVAL: planning(spark, lake, sql, False)}, runs, warm_up=5
    )
    mine, other = (1000 * statistics.median(costs[name]) for name in ("ours", RIVAL))
    report.add(case, "ms", mine, RIVAL, other, runs)
    return mine - other
