"""The best set of candidates that a budget allows: lazy greedy, by what a candidate saves and by what it saves a byte, the better
of the two; then swaps, as long as they help.

What a set saves is the planner's own cost of all queries without it and with it. A candidate that serves no query alone may still
serve one together with another (both sides of a join), so that such pairs are tried as one.
"""

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grebe.advisor.recommend.asked import Asked, uses_of
from grebe.advisor.what_if.imagined import Imagined
from grebe.config import Config
from grebe.planner.choose import choose
from grebe.planner.inquiry import Inquiry
from grebe.planner.tables import KnownTable
from grebe.predicate.tree import Path

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

    @property
    def buckets_by(self) -> frozenset[Path]:
        """The columns whose equal values lie together, so that a join or a group by them sends nothing around."""
        copy = self.imagined.index.copy
        if copy is None or not copy.layout.buckets:
            return frozenset()
        return frozenset(path for path, name in copy.columns.items() if name in copy.layout.bucket_by)


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
    """Of the queries under sets of candidates; each is reckoned once, and only where a set differs in what the query reads."""

    asked: Sequence[Asked]
    tables: Mapping[str, KnownTable]
    """With the indexes that are there."""
    config: Config
    inquiry: Inquiry
    _known: dict[tuple[int, frozenset[int]], tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    _read: list[frozenset[str]] = field(default_factory=list)
    _of_table: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, one in enumerate(self.asked):
            self._read.append(frozenset(relation.table for relation in one.query.relations if relation.table))
            for table in self._read[place]:
                self._of_table.setdefault(table, []).append(place)

    def concerned(self, *options: Option) -> Sequence[int]:
        """Queries that read a table of these."""
        tables = {one.table for one in options}
        if len(tables) == 1:
            return self._of_table.get(tables.pop(), ())
        return sorted({place for table in tables for place in self._of_table.get(table, ())})

    def total(self, options: Sequence[Option], places: Sequence[int] | None = None) -> float:
        """Milliseconds by weight."""
        wanted = range(len(self.asked)) if places is None else places
        return sum(self.asked[place].weight * self.of(place, options)[0] for place in wanted)

    def saved(self, before: Sequence[Option], after: Sequence[Option]) -> float:
        """Milliseconds by weight that the second set saves beside the first: queries of other tables take what they took."""
        different = {*before} ^ {*after}
        places = self.concerned(*different)
        return self.total(before, places) - self.total(after, places)

    def of(self, place: int, options: Sequence[Option]) -> tuple[float, tuple[str, ...]]:
        """What a query takes, and the indexes that it uses."""
        own = [one for one in options if one.table in self._read[place]]
        key = (place, frozenset(map(id, own)))
        if key not in self._known:
            tables = {uri: self.tables[uri] for uri in self._read[place]}
            for one in own:
                table = tables[one.table]
                tables[one.table] = replace(table, indexes=(*table.indexes, one.imagined.index))
            made = choose(self.asked[place].query, tables, self.config, why=False, inquiry=self.inquiry)
            self._known[key] = (made.after.milliseconds, made.used)
        return self._known[key]

    def joins(self) -> set[frozenset[tuple[str, frozenset[Path]]]]:
        """Two tables with the keys that some query joins each by."""
        found = set()
        for one in self.asked:
            sides = {
                (use.relation.table, frozenset(keys))
                for use in uses_of(one.query)
                for keys in use.joined
                if use.relation.table is not None
            }
            found |= {frozenset(pair) for pair in itertools.combinations(sides, 2)}
        return found


def best(options: Sequence[Option], costs: Costs, limits: Limits) -> list[Option]:
    """In the order in which they were taken."""
    least = _LEAST_GAIN * costs.total([])
    alone = {option: costs.saved([], [option]) for option in options if limits.allow([option])}
    promising = [(option,) for option, gain in alone.items() if gain > least] + _pairs(alone, costs, limits, least)
    found = [
        _greedy(promising, costs, limits, least, by) for by in (lambda gain, _: gain, lambda gain, size: gain / size)
    ]
    chosen = min(found, key=costs.total)
    return _without_useless(_swapped(chosen, alone, costs, limits, least), costs, least)


def _pairs(alone: Mapping[Option, float], costs: Costs, limits: Limits, least: float) -> list[tuple[Option, ...]]:
    """Both sides of a join, where they save more together than alone."""
    by_side: dict[tuple[str, Path], list[Option]] = {}
    for option in alone:
        for path in option.buckets_by:
            by_side.setdefault((option.table, path), []).append(option)
    tried: dict[tuple[Option, Option], None] = {}
    for one, other in (tuple(join) for join in costs.joins()):
        if one[0] != other[0]:
            tried |= dict.fromkeys(itertools.product(_bucketed(by_side, *one), _bucketed(by_side, *other)))
    return [
        pair for pair in tried if limits.allow(pair) and costs.saved([], pair) > alone[pair[0]] + alone[pair[1]] + least
    ]


def _bucketed(by_side: Mapping[tuple[str, Path], list[Option]], table: str, keys: frozenset[Path]) -> list[Option]:
    """By some of these keys."""
    found = dict.fromkeys(option for path in keys for option in by_side.get((table, path), ()))
    return [option for option in found if option.buckets_by <= keys]


def _greedy(
    promising: Sequence[tuple[Option, ...]],
    costs: Costs,
    limits: Limits,
    least: float,
    worth: Callable[[float, float], float],
) -> list[Option]:
    chosen: list[Option] = []

    def gained(some: tuple[Option, ...]) -> tuple[float, float]:
        new = [one for one in some if one not in chosen]
        gain = costs.saved(chosen, [*chosen, *new]) if new else 0.0
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
        if gain > least:
            chosen += new
    return chosen


def _swapped(
    chosen: list[Option], alone: Mapping[Option, float], costs: Costs, limits: Limits, least: float
) -> list[Option]:
    """Takes one out for another as long as that saves more. What saves less alone than is lost by taking out is not tried."""
    for _ in range(_MOST_SWAPS):
        gains: dict[tuple[Option, ...], float] = {}
        for place in range(len(chosen)):
            rest = [*chosen[:place], *chosen[place + 1 :]]
            lost = costs.saved(rest, chosen)
            for other, gain in alone.items():
                tried = (*rest[:place], other, *rest[place:])
                if other not in chosen and gain > lost + least and limits.allow(tried):
                    gains[tried] = costs.saved(chosen, tried)
        better = max(gains, key=gains.__getitem__, default=None)
        if better is None or gains[better] <= least:
            break
        chosen = list(better)
    return chosen


def _without_useless(chosen: list[Option], costs: Costs, least: float) -> list[Option]:
    """What others have made superfluous is left out."""
    kept = list(chosen)
    for option in reversed(chosen):
        rest = [one for one in kept if one is not option]
        if costs.saved(rest, kept) <= least:
            kept = rest
    return kept
