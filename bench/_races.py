"""A query with indexes and without, taking turns in one session; every answer is checked."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grebe
from bench.harness import Contestant, Report, Result, ratio_interval, samples, timed
from testbed.answers import Answer, differences, of_spark, order_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, RIVAL = "index", "no index"


@dataclass(frozen=True)
class Race:
    """The seconds of each contestant, round by round."""

    costs: dict[str, list[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.costs[name])

    def report(self, case: str, report: Report, rival: str = RIVAL, ours: str = OURS) -> Result:
        interval = ratio_interval(self.costs[ours], self.costs[rival])
        runs = len(self.costs[ours])
        return report.add(case, "s", self.median(ours), rival, self.median(rival), runs, interval)


def race(sql: str, runs: int, sessions: "dict[str, tuple[SparkSession, grebe.Lake | None]]") -> Race:
    """The query in each of the sessions, where a lake is switched on for the time of its turn. All answers must be the same."""
    answers: list[Answer] = []

    def contestant(spark: "SparkSession", lake: "grebe.Lake | None") -> Contestant:
        def before() -> None:
            for name, (_, other) in sessions.items():
                if other is not None:
                    other.enabled = other is lake and name != RIVAL

        return timed(lambda: answers.append(of_spark(spark, sql)), before)

    costs = samples({name: contestant(*session) for name, session in sessions.items()}, runs)
    _require_same(answers, sql)
    return Race(costs)


def race_of_views(spark: "SparkSession", lake: "grebe.Lake", queries: Mapping[str, str], runs: int) -> Race:
    """One query of several tables that hold the same rows, in one session; the rival's turn is without indexes."""
    answers: list[Answer] = []

    def contestant(name: str, sql: str) -> Contestant:
        def before() -> None:
            lake.enabled = name != RIVAL

        return timed(lambda: answers.append(of_spark(spark, sql)), before)

    costs = samples({name: contestant(name, sql) for name, sql in queries.items()}, runs)
    lake.enabled = True
    _require_same(answers, next(iter(queries.values())))
    return Race(costs)


def _require_same(answers: Sequence[Answer], sql: str) -> None:
    order = order_of(sql, answers[0].columns)
    for answer in answers[1:]:
        if wrong := differences(answer, answers[0], order):
            raise AssertionError(f"two answers of one query differ: {wrong}\n{sql}")


def with_and_without(spark: "SparkSession", lake: "grebe.Lake", sql: str, runs: int) -> Race:
    return race(sql, runs, {OURS: (spark, lake), RIVAL: (spark, None)})
