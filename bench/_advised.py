"""A workload with the indexes that `recommend` chooses, with those of an expert within the same bytes, and without any: time, and
how far predictions of size, of building and of what a query saves were right."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench.harness import Contestant, Report, samples, timed
from grebe.advisor.recommend.choosing import Option
from grebe.advisor.recommend.considering import Considered, considered
from grebe.advisor.recommend.texts import Weighed
from grebe.indexes.kind import Kind
from testbed.answers import Answer, differences, of_spark, order_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADVISED, HAND, PLAIN = "recommended", "picked by hand", "no index"
_COUNTS = 0.1
"""Of a query's time: what saves less, as predicted and as measured, saves nothing, and is no case."""
_MOST_SINGLES = 16


@dataclass(frozen=True)
class Workload:
    name: str
    folder: Path
    """Of tables, each a view of its name."""
    queries: Mapping[str, str]
    hand: Mapping[str, Sequence[Kind]]


@dataclass
class Truth:
    """What was predicted and what came, over all workloads."""

    bytes: list[tuple[str, float]] = field(default_factory=list)
    seconds: list[tuple[str, float]] = field(default_factory=list)
    gains: list[tuple[str, float]] = field(default_factory=list)

    def tell(self, report: Report) -> None:
        """Also how far single predictions are right but for one factor, as that of a machine which is slower or busy."""
        for what, found, within, goal in (
            ("size", self.bytes, 1.25, " (goal 1)"),
            ("build time", self.seconds, 2.0, ""),
            ("gain", self.gains, 2.0, " (goal 0.8)"),
        ):
            if found:
                ratios = [ratio for _, ratio in found]
                middle = statistics.median(ratios)
                report.add(f"{what}, predicted / true, median", "ratio", middle, runs=len(ratios))
                report.add(f"{what} right within {within:g}x{goal}", "share", _within(ratios, within), runs=len(ratios))
                if 0 < middle < math.inf:
                    apart = [ratio / middle for ratio in ratios]
                    report.add(f"{what}, but for one factor", "share", _within(apart, within), runs=len(ratios))


def _within(ratios: Sequence[float], most: float) -> float:
    return sum(1 / most <= ratio <= most for ratio in ratios) / len(ratios)


def compare(
    spark: "SparkSession", lake: "grebe.Lake", workload: Workload, runs: int, report: Report, truth: Truth
) -> None:
    texts = [Weighed(text) for text in workload.queries.values()]
    start = time.perf_counter()
    seen = considered(lake._spark, texts, lake._opened_for_advice)
    report.add(f"{workload.name}: looking at {len(texts)} queries", "s", time.perf_counter() - start)
    tables = {table: lake.table(str(workload.folder / table)) for table in workload.hand}
    hand = {kind.name: (tables[table].uri, kind) for table, kinds in workload.hand.items() for kind in kinds}
    options = {name: option for name, (uri, kind) in hand.items() if (option := seen.option(uri, kind)) is not None}
    _build(lake, workload, hand, options, report, truth)
    size = sum(index.bytes for table in tables.values() for index in table.indexes())
    for table in tables.values():
        for index in table.indexes():
            table.delete(index.name)
    start = time.perf_counter()
    found = lake.recommend(list(workload.queries.values()), budget=size, most=max(10, len(hand)))
    report.add(f"{workload.name}: recommending for {len(texts)} queries", "s", time.perf_counter() - start)
    print(found, flush=True)
    for name, (uri, _) in hand.items():
        lake.table(uri).restore(name)
    advised = {one.kind.name: (one.table, one.kind) for one in found}
    by_name = {one.imagined.kind.name: one for one in seen.options}
    _build(lake, workload, advised, by_name, report, truth)
    built = sum(index.bytes for table in {uri for uri, _ in advised.values()} for index in lake.table(table).indexes())
    report.add(f"{workload.name}: bytes {ADVISED}", "bytes", built - _shared(lake, advised, hand), HAND, size)
    sets = {ADVISED: list(advised), HAND: list(hand)}
    _race(spark, lake, workload, seen, {**options, **by_name}, sets, runs, report, truth)


def _shared(lake: "grebe.Lake", advised: Mapping[str, tuple[str, Kind]], hand: Mapping[str, tuple[str, Kind]]) -> int:
    """Bytes of the other set on the same tables."""
    tables = {uri for uri, _ in advised.values()}
    return sum(index.bytes for uri in tables for index in lake.table(uri).indexes() if index.name in hand)


def _build(
    lake: "grebe.Lake",
    workload: Workload,
    kinds: Mapping[str, tuple[str, Kind]],
    options: Mapping[str, Option],
    report: Report,
    truth: Truth,
) -> None:
    """One by one, each beside what was predicted of it."""
    for name, (uri, kind) in kinds.items():
        table = lake.table(uri)
        start = time.perf_counter()
        (made,) = table.create(kind)
        taken = time.perf_counter() - start
        option = options.get(name)
        if option is None:
            continue
        case = f"{workload.name}: {name} ({made.kind})"
        truth.bytes.append((case, option.bytes / made.bytes))
        truth.seconds.append((case, option.imagined.build_seconds / taken))
        report.add(f"{case}, size predicted", "bytes", option.bytes, "built", made.bytes)
        report.add(f"{case}, build predicted", "s", option.imagined.build_seconds, "taken", taken)


def _race(
    spark: "SparkSession",
    lake: "grebe.Lake",
    workload: Workload,
    seen: Considered,
    options: Mapping[str, Option],
    sets: Mapping[str, Sequence[str]],
    runs: int,
    report: Report,
    truth: Truth,
) -> None:
    totals = dict.fromkeys((*sets, PLAIN), 0.0)
    predicted = [_Predicted(seen, place, options) for place in range(len(seen.texts))]
    by_text = {text: place for place, text in enumerate(seen.texts)}
    singles = sorted(
        ((-predicted[place].saved([name]), place, name) for place in range(len(predicted)) for name in options),
        key=lambda one: one[0],
    )[:_MOST_SINGLES]
    for text in workload.queries.values():
        _timed(spark, lake, text, {}, 0)  # a JVM that is not warm favours whoever comes last
    for case, text in workload.queries.items():
        place = by_text[text]
        alone = {
            f"only {name}": [name]
            for _, of, name in singles
            if of == place and any(name in one for one in sets.values())
        }
        cost = _timed(spark, lake, text, {**sets, **alone}, runs)
        for name in totals:
            totals[name] += cost[name]
        figures = f"{cost[PLAIN]:.3f} s without (predicted {predicted[place].before:.3f}), "
        figures += f"{cost[HAND]:.3f} by hand, {cost[ADVISED]:.3f} recommended"
        for name, used in {**sets, **alone}.items():
            guess, real = predicted[place].saved(used), cost[PLAIN] - cost[name]
            if max(guess, real) >= _COUNTS * cost[PLAIN] and (guess > 0 or _used(lake, text, used)):
                ratio = guess / real if real > 0 else math.inf
                truth.gains.append((f"{workload.name} {case} {name}", ratio))
                figures += f"; {name} saves {real:.3f}, predicted {guess:.3f}"
        print(f"{workload.name} {case}: {figures}", flush=True)
    count = f"{workload.name}: {len(workload.queries)} queries"
    report.add(f"{count}, {ADVISED} (goal 1.1)", "s", totals[ADVISED], HAND, totals[HAND], runs)
    report.add(f"{count}, {ADVISED}", "s", totals[ADVISED], PLAIN, totals[PLAIN], runs)
    report.add(f"{count}, {HAND}", "s", totals[HAND], PLAIN, totals[PLAIN], runs)


def _used(lake: "grebe.Lake", text: str, names: Sequence[str]) -> bool:
    with lake.only(*names):
        return bool(lake.explain(text).decision.used)


@dataclass(frozen=True)
class _Predicted:
    seen: Considered
    place: int
    options: Mapping[str, Option]

    @property
    def before(self) -> float:
        """Seconds of the query."""
        return self.seen.costs.of(self.place, [])[0] / 1000

    def saved(self, names: Sequence[str]) -> float:
        some = [self.options[name] for name in names if name in self.options]
        return self.before - self.seen.costs.of(self.place, some)[0] / 1000


def _timed(
    spark: "SparkSession", lake: "grebe.Lake", text: str, sets: Mapping[str, Sequence[str]], runs: int
) -> dict[str, float]:
    answers: list[Answer] = []

    def ask(names: Sequence[str]) -> Callable[[], None]:
        def work() -> None:
            with lake.only(*names):
                answers.append(of_spark(spark, text))

        return work

    turns: dict[str, Contestant] = {
        name: timed(ask(names)) for name, names in {**sets, PLAIN: ["none of them"]}.items()
    }
    cost = samples(turns, runs)
    order = order_of(text, answers[0].columns)
    for answer in answers[1:]:
        if wrong := differences(answer, answers[0], order):
            raise AssertionError(f"two answers of one query differ: {wrong}\n{text}")
    return {name: statistics.median(of_one) for name, of_one in cost.items() if of_one}
