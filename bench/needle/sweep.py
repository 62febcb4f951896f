"""Results from one row to a million: until where is an index worth while, and is it never worse than a scan beyond that?"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import grebe
from bench._races import OURS as WITH_INDEX
from bench._races import RIVAL as WITHOUT_INDEX
from bench._races import with_and_without
from bench.harness import samples, timed
from bench.needle.data import THREE
from bench.needle.stage import Stage

OURS = "grebe"


@dataclass(frozen=True)
class Range:
    """Events from `low` to `high`, both included, and how many rows they have."""

    low: int
    high: int
    rows: int

    @property
    def condition(self) -> str:
        return f"ev >= {self.low} AND ev <= {self.high}"


Count = Callable[[Range], int]
"""Fetches three columns of all rows of the range, and says how many they were."""


def sweep(stage: Stage) -> None:
    runs = stage.scale.pick(3, 7)
    opened = grebe.open(str(stage.table))
    engines: dict[str, Count] = {
        OURS: lambda wanted: opened.scan(wanted.condition, columns=THREE).num_rows,
        "DuckDB scan": _duckdb(stage.table),
        "pyarrow scan": _arrow(stage.table),
    }
    ratios: dict[str, list[tuple[int, float]]] = {name: [] for name in engines}
    for wanted in _ranges(stage.table, stage.scale.pick(100_000, 1_000_000)):
        costs = samples({name: timed(partial(_checked, count, wanted)) for name, count in engines.items()}, runs)
        medians = {name: statistics.median(of) for name, of in costs.items()}
        for name in list(engines)[1:]:
            case = f"sweep, {wanted.rows:,} rows"
            done = stage.report.add(case, "s", medians[OURS], name, medians[name], runs)
            ratios[name].append((wanted.rows, done.ratio or 0.0))
    for name in list(engines)[1:]:
        _crossing(stage, f"sweep, crossing with {name}", ratios[name])


def sweep_in_spark(stage: Stage) -> None:
    runs = stage.scale.pick(2, 5)
    stage.spark.read.parquet(str(stage.table)).createOrReplaceTempView("swept")
    ratios = []
    for wanted in _ranges(stage.table, stage.scale.pick(100_000, 1_000_000)):
        sql = f"SELECT count(*), sum(d0), max(uuid) FROM swept WHERE {wanted.condition}"
        done = with_and_without(stage.spark, stage.lake, sql, runs)
        done.report(f"sweep in Spark, {wanted.rows:,} rows", stage.report)
        ratios.append((wanted.rows, done.median(WITH_INDEX) / done.median(WITHOUT_INDEX)))
    _crossing(stage, "sweep in Spark, crossing", ratios)


def _crossing(stage: Stage, case: str, ratios: list[tuple[int, float]]) -> None:
    """The largest result up to which the index was never slower, of those that were tried."""
    slower = [rows for rows, ratio in ratios if ratio > 1]
    faster = [rows for rows, _ in ratios if not slower or rows < min(slower)]
    stage.report.add(f"{case}: faster up to", "rows", max(faster, default=0))
    stage.report.add(f"{case}: worst ratio", "ratio", max(ratio for _, ratio in ratios))


def _checked(count: Count, wanted: Range) -> None:
    if (found := count(wanted)) != wanted.rows:
        raise AssertionError(f"{found} rows were found where {wanted.condition}, which has {wanted.rows}")


def _ranges(table: Path, most: int) -> list[Range]:
    """With one row, and then about ten times as many each."""
    events, counts = np.unique(pq.read_table(table, columns=["ev"])["ev"].to_numpy(), return_counts=True)
    # Beyond the ten events that have many rows.
    first = 100
    lonely = first + int(np.flatnonzero(counts[first:] == 1)[0])
    found = [Range(int(events[lonely]), int(events[lonely]), 1)]
    up_to = np.cumsum(counts[first:])
    size = 10
    while size <= most:
        last = min(int(np.searchsorted(up_to, size)), len(up_to) - 1)
        found.append(Range(int(events[first]), int(events[first + last]), int(up_to[last])))
        size *= 10
    return found


def _duckdb(table: Path) -> Count:
    import duckdb

    connection = duckdb.connect()

    def count(wanted: Range) -> int:
        sql = f"SELECT {', '.join(THREE)} FROM read_parquet('{table}/*.parquet') WHERE {wanted.condition}"
        found: Any = connection.sql(sql).to_arrow_table()
        return int(found.num_rows)

    return count


def _arrow(table: Path) -> Count:
    import pyarrow.dataset as ds

    scanned = ds.dataset(table, format="parquet")

    def count(wanted: Range) -> int:
        inside = (ds.field("ev") >= wanted.low) & (ds.field("ev") <= wanted.high)
        return int(scanned.to_table(columns=THREE, filter=inside).num_rows)

    return count
