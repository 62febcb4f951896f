"""Queries of a table in each state: without indexes, with those made before it changed, and after a refresh in each mode.

Each contestant has a table of its own with the same rows, all in one session. Nothing is broadcast, so that joins are those of a
large lake at any scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING

import grebe
from bench._ageing import AgeingTable
from bench._races import RIVAL, Race, race_of_views
from bench._session import BROADCAST, broadcasting
from bench._stage import Stage
from bench.harness import SLOWER, Report
from bench.hybrid.refreshes import MODES, require_fresh
from bench.hybrid.states import INDEXED, KINDS, State, data, line_items, states
from testbed import tpch
from testbed.cached import working_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STALE, FRESH = "stale", "full"
_HARDLY_SLOWER_THAN_FRESH = 1.2
_AT = State(10, 0)
"""Where this must hold."""
_KEYS = 20
_ORDERS = grebe.Covering("by_order", on="o_orderkey", include=["o_orderpriority", "o_orderdate"])
_GAIN = "sum(l_extendedprice * (1 - l_discount))"


def _questions(factor: float, state: State) -> dict[str, str]:
    """Keys lie all over the table, in files that are deleted and in such that are appended too. Each state has a needle of its own,
    of which nothing was found out before."""
    last = int(6_000_000 * factor)
    keys = ", ".join(str((number * last // _KEYS) // 32 * 32 + 7) for number in range(_KEYS))
    return {
        "filter": f"SELECT l_orderkey, count(*), {_GAIN} FROM {{0}} WHERE l_orderkey IN ({keys})"
        " GROUP BY l_orderkey ORDER BY l_orderkey",
        "needle": f"SELECT * FROM {{0}} WHERE l_partkey = {int(123_456 * factor) + state.appended + 100 * state.deleted}",
        "group by": "SELECT count(*), sum(quantity) FROM (SELECT l_orderkey, sum(l_quantity) AS quantity FROM {0}"
        " GROUP BY l_orderkey HAVING sum(l_quantity) > 100)",
        "join": f"SELECT o_orderpriority, count(*), {_GAIN} FROM {{0}} JOIN orders ON l_orderkey = o_orderkey"
        " GROUP BY o_orderpriority ORDER BY o_orderpriority",
    }


@dataclass
class _Ratios:
    """Of the stale index, over all queries so far."""

    to_fresh: list[float] = field(default_factory=list)
    to_none: list[float] = field(default_factory=list)
    slower: int = 0

    def report(self, report: Report, runs: int) -> None:
        goal = f"goal: at most {_HARDLY_SLOWER_THAN_FRESH:g}"
        for name, ratio in (("mean", geometric_mean(self.to_fresh)), ("worst", max(self.to_fresh))):
            case = f"stale / refreshed, {_AT}, {name}"
            report.add(case, "ratio", ratio, goal, _HARDLY_SLOWER_THAN_FRESH, runs)
        report.add("stale / no index, worst", "ratio", max(self.to_none), f"goal: at most {SLOWER:g}", SLOWER, runs)
        report.add("queries that are slower than without index", "queries", self.slower, runs=runs)


def queries(stage: Stage) -> None:
    factor, runs = stage.scale.pick((0.01, 3), (1, 7))
    files, ratios, lake = line_items(stage.scale), _Ratios(), stage.lake
    with broadcasting(stage.spark, BROADCAST["no broadcast"]):
        working_copy(data(stage.scale) / "orders", stage.folder / "orders")
        lake.table(str(stage.folder / "orders")).create(_ORDERS)
        tpch.register(stage.spark, stage.folder, tables=["orders"])
        tables = _indexed(lake, stage.folder, files)
        for state in states():
            _brought_to(stage.spark, tables, state, files)
            for case, sql in _questions(factor, state).items():
                asked = {name: sql.format(name) for name in tables} | {RIVAL: sql.format(STALE)}
                used = set(lake.explain(asked[STALE]).to_dict()["used"]) & {kind.name for kind in KINDS}
                done = race_of_views(stage.spark, lake, asked, runs)
                ratios.slower += _told(done, f"{case}, {state}", bool(used), stage.report)
                ratios.to_none.append(done.median(STALE) / done.median(RIVAL))
                if state == _AT:
                    ratios.to_fresh.append(done.median(STALE) / done.median(FRESH))
    ratios.report(stage.report, runs)


def _indexed(lake: "grebe.Lake", folder: Path, files: list[Path]) -> dict[str, AgeingTable]:
    tables = {}
    for name in (STALE, *MODES):
        table = tables[name] = AgeingTable(lake, folder / name, folder / "indexes" / name)
        table.hold(files[:INDEXED])
        table.create(*KINDS)
    return tables


def _brought_to(spark: "SparkSession", tables: Mapping[str, AgeingTable], state: State, files: list[Path]) -> None:
    for name, table in tables.items():
        table.hold(state.files(files))
        young = table.young()
        if name in MODES:
            require_fresh(young.refresh(mode=name), name)
        spark.read.parquet(str(table.folder)).createOrReplaceTempView(name)


def _told(done: Race, case: str, used: bool, report: Report) -> bool:
    """Whether the stale index makes the query slower, beyond doubt."""
    for mode in MODES:
        done.report(f"{case}, after {mode}", report, ours=mode)
    done.report(f"{case}, stale", report, FRESH, STALE)
    return done.report(f"{case}, stale{'' if used else ' (not used)'}", report, ours=STALE).slower
