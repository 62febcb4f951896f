"""The best set of candidates that a budget allows: lazy greedy, by what a candidate saves and by what it saves a byte, the better
of the two; then swaps, as long as they help.

What a set saves is the planner's own cost of all queries without it and with it. A candidate that serves no query alone may still
serve one together with another (both sides of a join), so that such pairs are tried as one.
"""

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grebe.advisor.recommend.asked import Asked
from grebe.advisor.what_if.imagined import Imagined
from grebe.config import Config
from grebe.planner.choose import choose
from grebe.planner.inquiry import Inquiry
from grebe.planner.tables import KnownTable

_LEAST_GAIN = 0.002
"""Of all that the workload takes: what saves less is not worth being looked after."""
_MOST_SWAPS = 3


@dataclass(frozen=True, eq=False)
class Option:
    """A candidate of a table, imagined."""

    table: str
    imagined: Imagined
    reason: str

    @property
    def bytes(self) -> int:
        return self.imagined.bytes


@dataclass(frozen=True, slots=True)
class Limits:
    bytes: float
    number: int
    build_seconds: float

    def allow(self, options: Sequence[Option]) -> bool:
        return (
            len(options) <= self.number
            and sum(one.bytes for one in options) <= self.bytes
            and sum(one.imagined.build_seconds for one in options) <= self.build_seconds
        )


@dataclass
class Costs:
    """Of the queries under sets of candidates; each is reckoned once."""

    asked: Sequence[Asked]
    tables: Mapping[str, KnownTable]
    """With the indexes that are there."""
    config: Config
    inquiry: Inquiry
    _known: dict[tuple[int, frozenset[int]], tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    _read: dict[int, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, one in enumerate(self.asked):
            self._read[place] = frozenset(relation.table for relation in one.query.relations if relation.table)

    def concerned(self, option: Option) -> list[int]:
        return [place for place, tables in self._read.items() if option.table in tables]

    def total(self, options: Sequence[Option], places: Sequence[int] | None = None) -> float:
        """Milliseconds by weight."""
        wanted = range(len(self.asked)) if places is None else places
        return sum(self.asked[place].weight * self.of(place, options)[0] for place in wanted)

    def of(self, place: int, options: Sequence[Option]) -> tuple[float, tuple[str, ...]]:
        """What a query takes, and the indexes that it uses."""
        own = [one for one in options if one.table in self._read[place]]
        key = (place, frozenset(map(id, own)))
        if key not in self._known:
            tables = dict(self.tables)
            for one in own:
                table = tables[one.table]
                tables[one.table] = replace(table, indexes=(*table.indexes, one.imagined.index))
            made = choose(self.asked[place].query, tables, self.config, why=False, inquiry=self.inquiry)
            self._known[key] = (made.after.milliseconds, made.used)
        return self._known[key]


def best(options: Sequence[Option], costs: Costs, limits: Limits) -> list[Option]:
    """In the order in which they were taken."""
    before = costs.total([])
    promising = _promising(options, costs, limits, before)
    found = [
        _greedy(promising, costs, limits, before, by) for by in (lambda gain, _: gain, lambda gain, size: gain / size)
    ]
    chosen = min(found, key=costs.total)
    return _without_useless(_swapped(chosen, promising, costs, limits), costs, before)


def _promising(options: Sequence[Option], costs: Costs, limits: Limits, before: float) -> list[tuple[Option, ...]]:
    """Those that save something alone, and pairs of different tables that save more together."""
    alone = {option: before - costs.total([option]) for option in options if limits.allow([option])}
    found: list[tuple[Option, ...]] = [(option,) for option, gain in alone.items() if gain > _LEAST_GAIN * before]
    joined = [one for one in alone if one.imagined.index.copy is not None and one.imagined.index.copy.layout.buckets]
    for one, other in itertools.combinations(joined, 2):
        together = set(costs.concerned(one)) & set(costs.concerned(other))
        if one.table == other.table or not together or not limits.allow([one, other]):
            continue
        gain = before - costs.total([one, other])
        if gain > alone[one] + alone[other] + _LEAST_GAIN * before:
            found.append((one, other))
    return found


def _greedy(
    promising: Sequence[tuple[Option, ...]],
    costs: Costs,
    limits: Limits,
    before: float,
    worth: Callable[[float, float], float],
) -> list[Option]:
    chosen: list[Option] = []
    now = before

    def gained(some: tuple[Option, ...]) -> tuple[float, float]:
        new = [one for one in some if one not in chosen]
        gain = now - costs.total([*chosen, *new]) if new else 0.0
        return worth(gain, max(1.0, float(sum(one.bytes for one in new)))), gain

    heap = [(-gained(some)[0], place, 0) for place, some in enumerate(promising)]
    heapq.heapify(heap)
    while heap:
        _, place, seen = heapq.heappop(heap)
        some = promising[place]
        new = [one for one in some if one not in chosen]
        if not new or not limits.allow([*chosen, *new]):
            continue
        value, gain = gained(some)
        if seen < len(chosen) and heap and -heap[0][0] > value:
            heapq.heappush(heap, (-value, place, len(chosen)))
            continue
        if gain <= _LEAST_GAIN * before:
            continue
        chosen += new
        now -= gain
    return chosen


def _swapped(
    chosen: list[Option], promising: Sequence[tuple[Option, ...]], costs: Costs, limits: Limits
) -> list[Option]:
    """Takes one out for another as long as that saves more."""
    others = list(dict.fromkeys(option for some in promising for option in some))
    for _ in range(_MOST_SWAPS):
        now = costs.total(chosen)
        tried = [
            [*chosen[:place], other, *chosen[place + 1 :]]
            for place in range(len(chosen))
            for other in others
            if other not in chosen
        ]
        allowed = [one for one in tried if limits.allow(one)]
        better = min(allowed, key=costs.total, default=chosen)
        if costs.total(better) >= now * (1.0 - _LEAST_GAIN):
            break
        chosen = better
    return chosen


def _without_useless(chosen: list[Option], costs: Costs, before: float) -> list[Option]:
    """What others have made superfluous is left out."""
    kept = list(chosen)
    for option in reversed(chosen):
        rest = [one for one in kept if one is not option]
        if costs.total(rest) - costs.total(kept) <= _LEAST_GAIN * before:
            kept = rest
    return kept
