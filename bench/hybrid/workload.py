"""A tenth was appended since the indexes were made: how much of a fresh index's gain is left, and does no query lose by it?

Three sessions take turns over the same rows: without indexes, with indexes made before the last tenth came, and with fresh ones.
The gain that is lost: seconds above the fresh index's, as a share of what the fresh index saves.
"""

import statistics
from typing import TYPE_CHECKING

import grebe
from bench._indexing import create
from bench._races import RIVAL, race
from bench._session import BROADCAST, broadcasting
from bench._stage import Stage
from bench.harness import Report
from bench.tpch import INDEXES
from testbed import tpch
from testbed.ageing import YoungLake
from testbed.cached import working_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STALE, FRESH = "stale index", "fresh index"
_JOIN = "FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
JOINS = {
    "join": f"SELECT count(*), sum(l_extendedprice * (1 - l_discount)), max(o_orderdate) {_JOIN}",
    "join of two years": f"SELECT o_orderpriority, count(*), sum(l_extendedprice) {_JOIN}"
    " WHERE o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1996-01-01'"
    " GROUP BY o_orderpriority ORDER BY o_orderpriority",
    "group by": "SELECT count(*), sum(quantity) FROM ("
    " SELECT l_orderkey, sum(l_quantity) AS quantity FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 100)",
}
_PARTS = 11
"""Files of the large tables: the last one comes later."""


def workload(stage: Stage) -> None:
    factor, runs = stage.scale.pick((0.1, 3), (1, 7))
    data, folder = tpch.generate(factor, parts=_PARTS), stage.folder / "workload"
    young = YoungLake.of(data, folder / "stale")
    stale, fresh, plain = (stage.spark.newSession() for _ in range(3))
    # Sessions made later are attached by themselves, so the rival's is told to do without.
    lakes = {session: grebe.attach(session) for session in (stale, fresh, plain)}
    create(lakes[stale], stale, young.folder, INDEXES)
    young.append()
    tables = working_copy(data, folder / "fresh")
    create(lakes[fresh], fresh, tables, INDEXES)
    tpch.register(stale, young.folder)
    for session in (fresh, plain):
        tpch.register(session, tables)
    sessions: dict[str, tuple[SparkSession, grebe.Lake | None]] = {
        STALE: (stale, lakes[stale]),
        FRESH: (fresh, lakes[fresh]),
        RIVAL: (plain, lakes[plain]),
    }
    for name, threshold in BROADCAST.items():
        with broadcasting(stale, threshold), broadcasting(fresh, threshold), broadcasting(plain, threshold):
            _all(sessions, name, runs, stage.report)


def _all(sessions: "dict[str, tuple[SparkSession, grebe.Lake | None]]", mode: str, runs: int, report: Report) -> None:
    lost, slower = [], 0
    for case, sql in {**JOINS, **{f"Q{number}": tpch.query(number) for number in tpch.QUERIES}}.items():
        done = race(sql, runs, sessions)
        slower += done.report(f"{case}, {mode}", report, ours=STALE).slower
        if case in JOINS:
            gain = done.median(RIVAL) - done.median(FRESH)
            lost.append((done.median(STALE) - done.median(FRESH)) / gain)
            report.add(f"{case}, {mode}, gain that is lost", "share", lost[-1], runs=runs)
    report.add(f"joins and groups, {mode}, gain that is lost", "share", statistics.mean(lost), runs=runs)
    report.add(f"queries that are slower, {mode}", "queries", slower)
