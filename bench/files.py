"""Does an index still help where there are very many files, and some of them came or went since it was made?

Tiny files are links to a few, so that a hundred thousand of them are made in seconds; only those with a row that is asked for are
written for themselves. One row is in a file that the index knows, one in a file that was appended, one in a file that is gone: the
query asks for all three. The index keeps bounds, which footers tell, and is brought from each number of files to the next by an
incremental refresh. As much as a third is appended, so the session allows half.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench._plans import planning
from bench._races import OURS, RIVAL, race_of_views
from bench._session import bench_session
from bench.harness import Report, Scale, samples, timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEMPLATES, _ROWS = 500, 20
_APART = 1_000_000
"""Keys of one template lie close together and far from those of any other."""
_BOUNDS = grebe.Skipping("bounds", grebe.MinMax("id"))
_INDEXED, _APPENDED, _GONE = -1, -2, -3
"""The keys that are asked for."""
_SCHEMA = "id bigint, customer bigint, amount double"


@dataclass(frozen=True)
class Case:
    indexed: int
    appended: int = 0
    deleted: int = 0

    def __str__(self) -> str:
        later = f" + {self.appended:,}" if self.appended else f" - {self.deleted:,}"
        return f"{self.indexed:,}{later} files"

    def part_of(self, share: int) -> "Case":
        return Case(self.indexed // share, self.appended // share, self.deleted // share)


PARTS = {
    "few_appended": Case(50_000, appended=200),
    "quarter_appended": Case(75_000, appended=25_000),
    "third_appended": Case(100_000, appended=50_000),
    "some_deleted": Case(100_000, deleted=1_000),
}
"""In this order, in which the number of indexed files only grows."""
_SHARE_OF_SMALL = 50


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    plans, runs = scale.pick((5, 3), (11, 2))
    with bench_session() as (spark, folder):
        lake = grebe.attach(spark, grebe.Config(hybrid_max_appended=0.5))
        table = _Table(lake, folder / "t", folder / "templates")
        table.make_templates()
        for name in (name for name in PARTS if not parts or name in parts):
            case = PARTS[name].part_of(scale.pick(_SHARE_OF_SMALL, 1))
            table.index(case.indexed, report)
            table.change(case)
            _measure(spark, lake, table.folder, case, plans, runs, report)
            table.change_back(case)


@dataclass
class _Table:
    lake: "grebe.Lake"
    folder: Path
    templates: Path
    indexed: int = 0

    def make_templates(self) -> None:
        self.templates.mkdir()
        self.folder.mkdir()
        for number in range(_TEMPLATES):
            _write(self.templates / str(number), np.arange(_ROWS) + (number + 1) * _APART)
        for key in (_INDEXED, _APPENDED, _GONE):
            _write(self.templates / str(key), np.array([key]))

    def index(self, count: int, report: Report) -> None:
        new = range(self.indexed, count)
        if not new:
            return
        for number in new:
            self._link(number, {0: _INDEXED, 1: _GONE}.get(number, number % _TEMPLATES))
        table = self.lake.table(str(self.folder))
        work = table.refresh if self.indexed else partial(table.create, _BOUNDS)
        verb = "refresh" if self.indexed else "creation"
        report.add(f"{verb}, {self.indexed:,} to {count:,} files", "s", timed(work)())
        self.indexed = count

    def change(self, case: Case) -> None:
        for number in range(case.indexed, case.indexed + case.appended):
            self._link(number, _APPENDED if number == case.indexed else number % _TEMPLATES, "later")
        for number in range(1, 1 + case.deleted):
            self._path(number).unlink()

    def change_back(self, case: Case) -> None:
        for number in range(case.indexed, case.indexed + case.appended):
            self._path(number, "later").unlink()
        for number in range(1, 1 + case.deleted):
            self._link(number, _GONE if number == 1 else number % _TEMPLATES)

    def _link(self, number: int, template: int, name: str = "part") -> None:
        os.link(self.templates / str(template), self._path(number, name))

    def _path(self, number: int, name: str = "part") -> Path:
        return self.folder / f"{name}-{number:06}.parquet"


def _measure(
    spark: "SparkSession", lake: "grebe.Lake", table: Path, case: Case, plans: int, runs: int, report: Report
) -> None:
    view = "files"
    spark.read.schema(_SCHEMA).parquet(str(table)).createOrReplaceTempView(view)
    sql = f"SELECT * FROM {view} WHERE id IN ({_INDEXED}, {_APPENDED}, {_GONE})"
    ours, plain = planning(spark, lake, sql, True), planning(spark, lake, sql, False)
    plain()  # so that the first one that counts does not pay for what any first query does
    report.add(f"{case}: first plan", "ms", 1000 * ours(), RIVAL, 1000 * plain())
    costs = samples({OURS: ours, RIVAL: plain}, plans)
    mine, other = (1000 * median(costs[name]) for name in (OURS, RIVAL))
    report.add(f"{case}: plan", "ms", mine, RIVAL, other, plans)
    lake.enabled = True
    if lake.explain(sql).to_dict()["used"] != [_BOUNDS.name]:
        raise AssertionError(f"{case}: the index is not used: {lake.why_not(sql)}")
    race_of_views(spark, lake, {OURS: sql, RIVAL: sql}, runs).report(f"{case}: query", report)


def _write(path: Path, ids: "npt.NDArray[np.int64]") -> None:
    columns = {"id": ids, "customer": ids % 1_000, "amount": ids * 0.25}
    pq.write_table(pa.table(columns), path)
