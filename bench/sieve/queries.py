"""Queries in Spark with indexes and without, taking turns in one session: seconds, and the bytes that were read.

Bytes are what the processes of the session read while a query ran, from files of the table and of the indexes alike.
"""

import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median

import grebe
from bench._races import OURS, RIVAL, Race
from bench._stage import Stage
from bench.harness import Contestant, samples
from bench.sieve import tables
from bench.sieve.memory import bytes_read, jvm_of
from testbed import tpch
from testbed.answers import Answer, differences, of_spark, order_of
from testbed.cached import working_copy

ZONE_MAP = "zone map alone"
_BOUNDS = "bounds"
"""The name of the index that holds the zone map."""
_Q6_COLUMNS = ("l_shipdate", "l_discount", "l_quantity")
_ASKED = "count(*), count(DISTINCT tail), sum(distance), max(delay), min(carrier), max(fuel)"
FLIGHTS = {
    "a day": f"SELECT {_ASKED} FROM flights WHERE {{day}}",
    "an hour": f"SELECT {_ASKED} FROM flights WHERE {{hour}}",
    "a flight number in a month": f"SELECT {_ASKED} FROM flights WHERE flight = 1234 AND {{month}}",
}
_TIMES = {
    "day": "event_time >= TIMESTAMP'2024-06-12 00:00:00Z' AND event_time < TIMESTAMP'2024-06-13 00:00:00Z'",
    "hour": "event_time BETWEEN TIMESTAMP'2024-06-12 10:00:00Z' AND TIMESTAMP'2024-06-12 10:59:59Z'",
    "month": "date_trunc('MONTH', event_time) = TIMESTAMP'2024-06-01 00:00:00Z'",
}


def queries(stage: Stage) -> None:
    factor, parts, runs = stage.scale.pick((0.05, 8, 2), (1, 64, 7))
    for layout, source in (
        ("as generated", tables.line_items(factor, parts)),
        ("in no order", tables.thrown_line_items(factor, parts)),
    ):
        bounds = grebe.Skipping(_BOUNDS, *map(grebe.MinMax, _Q6_COLUMNS))
        by_date = grebe.Sieve("by_shipdate", on="l_shipdate")
        _registered(stage, source, f"line items {layout}", "lineitem", bounds, by_date)
        _race(stage, f"TPC-H Q6, rows {layout}", tpch.query(6), runs)

    rows, files = stage.scale.pick((300_000, 50), (4_000_000, 200))
    bounds = grebe.Skipping(_BOUNDS, grebe.MinMax("event_time"), grebe.MinMax("flight"))
    by_time, by_flight = grebe.Sieve("by_time", on="event_time"), grebe.Skipping("by_flight", grebe.Bloom("flight"))
    _registered(stage, tables.flights(rows, files), "flights", "flights", bounds, by_time, by_flight)
    for case, sql in FLIGHTS.items():
        _race(stage, f"flights, {case}", sql.format(**_TIMES), runs)


def _registered(stage: Stage, source: Path, folder: str, view: str, *kinds: "grebe.Skipping | grebe.Sieve") -> None:
    table = working_copy(source, stage.folder / folder)
    stage.lake.table(str(table)).create(*kinds)
    stage.spark.read.parquet(str(table)).createOrReplaceTempView(view)


def _race(stage: Stage, case: str, sql: str, runs: int) -> None:
    """All answers must be the same."""
    jvm = jvm_of(stage.spark)
    answers: list[Answer] = []
    read: dict[str, list[int]] = {OURS: [], ZONE_MAP: [], RIVAL: []}

    def contestant(name: str) -> Contestant:
        def ask() -> float:
            stage.lake.enabled = name != RIVAL
            with _considered(stage, name):
                before, start = bytes_read(jvm), time.perf_counter()
                answers.append(of_spark(stage.spark, sql))
                seconds = time.perf_counter() - start
                read[name].append(bytes_read(jvm) - before)
            stage.lake.enabled = True
            return seconds

        return ask

    done = Race(samples({name: contestant(name) for name in read}, runs))
    order = order_of(sql, answers[0].columns)
    for answer in answers[1:]:
        if wrong := differences(answer, answers[0], order):
            raise AssertionError(f"two answers of one query differ: {wrong}\n{sql}")
    for rival in (RIVAL, ZONE_MAP):
        done.report(case, stage.report, rival)
        mine, other = (median(read[name][-runs:]) for name in (OURS, rival))
        stage.report.add(case, "bytes", mine, rival, other, runs)


def _considered(stage: Stage, name: str) -> "AbstractContextManager[None]":
    return stage.lake.only(_BOUNDS) if name == ZONE_MAP else nullcontext()
