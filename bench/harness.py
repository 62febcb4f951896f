"""What every benchmark shares: the scale, the report, contestants taken in turn, and work in a process of its own.

A benchmark is a module `bench/<name>.py` with `def run(scale: Scale, report: Report) -> None`. All figures are
costs (seconds, bytes, requests): a ratio below 1 means that Grebe is better than its rival.
"""

import json
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Value = TypeVar("Value")
Contestant = Callable[[], float]

SLOWER = 1.05
"""The ratio that nobody would notice: slower is what lies above it with its whole interval."""
_RESAMPLES = 2000


class Scale(StrEnum):
    """How much work: `small` ends within a minute or two, `full` is what the project's claims rest on."""

    SMALL = "small"
    FULL = "full"

    def pick(self, small: Value, full: Value) -> Value:
        return small if self is Scale.SMALL else full


@dataclass(frozen=True)
class Result:
    """One line of a report; `ratio` is ours over the rival's value. Without a rival both are None."""

    bench: str
    case: str
    unit: str
    ours: float
    rival: str | None
    rival_value: float | None
    ratio: float | None
    runs: int
    interval: tuple[float, float] | None = None
    """Where the ratio lies with a confidence of 95%, if that was asked for."""

    @property
    def slower(self) -> bool:
        """Beyond doubt, and by more than what nobody would notice."""
        return self.interval is not None and self.interval[0] > SLOWER


@dataclass
class Report:
    """Prints every result as it comes and keeps them all."""

    bench: str
    results: list[Result] = field(default_factory=list)

    def add(
        self,
        case: str,
        unit: str,
        ours: float,
        rival: str | None = None,
        rival_value: float | None = None,
        runs: int = 1,
        interval: tuple[float, float] | None = None,
    ) -> Result:
        if (rival is None) != (rival_value is None):
            raise ValueError(f"case {case!r}: a rival comes with its value, and a value with its rival")
        ratio = ours / rival_value if rival_value else None
        result = Result(self.bench, case, unit, ours, rival, rival_value, ratio, runs, interval)
        if not self.results:
            print(f"{'case':44} {'unit':8} {'ours':>12} {'rival':>12} {'ratio':>7} {'runs':>5}  against")
        self.results.append(result)
        figures = f"{_figure(ours):>12} {_figure(rival_value):>12} {_figure(ratio):>7}"
        certainty = f" [{interval[0]:.3f}, {interval[1]:.3f}]{' SLOWER' if result.slower else ''}" if interval else ""
        print(f"{case:44} {unit:8} {figures} {runs:>5}  {rival or ''}{certainty}", flush=True)
        return result

    def write(self, path: Path) -> None:
        """A JSON array, one object a line; `interval` only where there is one."""
        lines = ",\n".join(json.dumps(_without_none(asdict(result), "interval")) for result in self.results)
        path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _without_none(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name or value is not None}


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def timed(work: Callable[[], object], before: Callable[[], object] | None = None) -> Contestant:
    """A contestant whose cost is the seconds that `work` takes; `before` runs ahead of it, off the clock."""

    def contestant() -> float:
        if before is not None:
            before()
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return contestant


def samples(contestants: Mapping[str, Contestant], runs: int, warm_up: int = 1) -> dict[str, list[float]]:
    """The costs of each. They take turns, another first in each round, so that drift of the machine hits all."""
    names = list(contestants)
    costs: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-warm_up, runs):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            cost = contestants[name]()
            if number >= 0:
                costs[name].append(cost)
    return costs


def medians(contestants: Mapping[str, Contestant], runs: int, warm_up: int = 1) -> dict[str, float]:
    """The median cost of each, of `samples`."""
    return {name: statistics.median(of_one) for name, of_one in samples(contestants, runs, warm_up).items()}


def ratio_interval(ours: Sequence[float], rivals: Sequence[float]) -> tuple[float, float]:
    """The 95% bootstrap interval of the ratio of medians; rounds are drawn as pairs, since both took their turns in them."""
    pairs = np.array([ours, rivals])
    drawn = np.random.default_rng(len(ours)).integers(0, len(ours), (_RESAMPLES, len(ours)))
    mine, other = np.median(pairs[:, drawn], axis=2)
    low, high = np.percentile(mine / other, [2.5, 97.5])
    return float(low), float(high)


@dataclass(frozen=True)
class Fresh:
    """What work in a process of its own gave and cost; `peak_bytes` is the most memory that the whole process held."""

    value: Any
    seconds: float
    peak_bytes: int


def in_fresh_process(work: Callable[..., object], *arguments: object) -> Fresh:
    """Runs `work` (a function of a module, no lambda) in a new interpreter: no cache is warm, its memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (work, arguments))


def _measure(work: Callable[..., object], arguments: tuple[object, ...]) -> Fresh:
    start = time.perf_counter()
    value = work(*arguments)
    return Fresh(value, time.perf_counter() - start, _peak_bytes())


def _peak_bytes() -> int:
    # A child inherits the parent's ru_maxrss across fork and exec; Linux tells the true peak of this image only here.
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
