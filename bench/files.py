"""Does an index still help where there are very many files, and some of them came or went since it was made?

Tiny files are links to a few, so that a hundred thousand of them are made in seconds; only those with a row that is asked for are
written for themselves. One row is in a file that the index knows, one in a file that was appended, one in a file that is gone: the
query asks for all three. The index keeps bounds, which footers tell. As much as a third is appended, so the session allows half.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
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
_INDEXED, _APPENDED, _GONE = (-1, -2, -3)
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
    "some_deleted": Case(100_000, deleted=1_000),
    "quarter_appended": Case(75_000, appended=25_000),
    "third_appended": Case(100_000, appended=50_000),
}
_SHARE_OF_SMALL = 50


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    plans, runs = scale.pick((5, 3), (11, 3))
    with bench_session() as (spark, folder):
        lake = grebe.attach(spark, grebe.Config(hybrid_max_appended=0.5))
        _make_templates(folder / "templates")
        for name in parts or PARTS:
            case = PARTS[name].part_of(scale.pick(_SHARE_OF_SMALL, 1))
            table = folder / name / "t"
            _measure(spark, lake, table, folder / "templates", case, plans, runs, report)
            shutil.rmtree(table.parent)


def _measure(
    spark: "SparkSession",
    lake: "grebe.Lake",
    table: Path,
    templates: Path,
    case: Case,
    plans: int,
    runs: int,
    report: Report,
) -> None:
    table.mkdir(parents=True)
    _fill(table, templates, 0, case.indexed, {0: _INDEXED, case.indexed - 1: _GONE})
    created = lake.table(str(table))
    report.add(f"{case}: creation", "s", timed(lambda: created.create(_BOUNDS))())
    _fill(table, templates, case.indexed, case.appended, {case.indexed: _APPENDED})
    for number in range(case.indexed - case.deleted, case.indexed):
        _path(table, number).unlink()

    view = "files"
    spark.read.schema(_SCHEMA).parquet(str(table)).createOrReplaceTempView(view)
    sql = f"SELECT * FROM {view} WHERE id IN ({_INDEXED}, {_APPENDED}, {_GONE})"
    ours, plain = planning(spark, lake, sql, True), planning(spark, lake, sql, False)
    plain()  # Spark has met the view before, as it has where nobody indexes
    report.add(f"{case}: first plan", "ms", 1000 * ours(), RIVAL, 1000 * plain())
    costs = samples({OURS: ours, RIVAL: plain}, plans)
    mine, other = (1000 * float(np.median(costs[name])) for name in (OURS, RIVAL))
    report.add(f"{case}: plan", "ms", mine, RIVAL, other, plans)
    lake.enabled = True
    if lake.explain(sql).to_dict()["used"] != [_BOUNDS.name]:
        raise AssertionError(f"{case}: the index is not used: {lake.why_not(sql)}")
    race_of_views(spark, lake, {OURS: sql, RIVAL: sql}, runs).report(f"{case}: query", report)
    if case.appended:
        report.add(f"{case}: incremental refresh", "s", timed(created.refresh)())


def _make_templates(folder: Path) -> None:
    folder.mkdir()
    for number in range(_TEMPLATES):
        _write(folder / str(number), np.arange(_ROWS) + (number + 1) * _APART)


def _write(path: Path, ids: "np.ndarray") -> None:
    columns = {"id": ids.astype(np.int64), "customer": ids.astype(np.int64) % 1_000, "amount": ids * 0.25}
    pq.write_table(pa.table(columns), path)


def _fill(table: Path, templates: Path, first: int, count: int, rare: dict[int, int]) -> None:
    """`rare`: the key of files that are no copies."""
    sources = [str(templates / str(number)) for number in range(_TEMPLATES)]
    for number in range(first, first + count):
        if number in rare:
            _write(_path(table, number), np.array([rare[number]]))
        else:
            os.link(sources[number % _TEMPLATES], _path(table, number))


def _path(table: Path, number: int) -> Path:
    return table / f"part-{number:06}.parquet"
