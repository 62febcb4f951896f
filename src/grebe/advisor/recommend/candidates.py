"""Kinds that might serve a workload: for its filters, joins, groupings and boxes, those of one table that are alike merged.

Candidates are cheap to list and are weighed afterwards, so that here too many are better than too few; but no more than a handful
for each thing that queries do.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grebe.advisor.recommend.asked import Asked, Uses, uses_of
from grebe.advisor.regions import Region, regions
from grebe.advisor.what_if.suppose import Ground
from grebe.errors import InvalidIndex
from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import Kind
from grebe.indexes.layout.logged import Logged
from grebe.indexes.layout.spec import Layout
from grebe.indexes.lookup.spec import Lookup
from grebe.indexes.sketches.bloom import Bloom
from grebe.indexes.sketches.min_max import MinMax
from grebe.indexes.skipping.spec import Skipping
from grebe.indexes.zorder.spec import ZOrder
from grebe.planner.implication import conjuncts, implies
from grebe.predicate.normalise import normalise
from grebe.predicate.text import column_sql, to_sql
from grebe.predicate.tree import TRUE, Column, Compare, In, Literal, Path, Predicate, columns_of, opaque_terms

_MOST_KEYS = 8
"""Columns of a table that queries compare or join most; others get no index of their own."""
_UNIQUE = 50.0
"""A key with fewer rows a value is looked up, and not only laid out by."""
_BOX = (2, 4)
_LOGGED_ENOUGH = 30
_USUAL = 0.7
"""Of the queries with a condition, those that a layout of fewer columns is for."""
_PART_ROWS, _PART_ASKED, _MOST_PARTS = 0.5, 0.3, 2
"""A layout of a part of the rows has at most that share of them, for at least that share of the queries."""


@dataclass
class _Wanted:
    """What the queries ask of one table."""

    equal: Counter[Path] = field(default_factory=Counter)
    ranged: Counter[Path] = field(default_factory=Counter)
    keys: Counter[tuple[Path, ...]] = field(default_factory=Counter)
    boxes: Counter[tuple[Path, ...]] = field(default_factory=Counter)
    needed: dict[Path, Counter[frozenset[Path]]] = field(default_factory=lambda: defaultdict(Counter))
    """By a column that queries compare, join or group by: all columns that those queries read."""
    predicates: Counter[Predicate] = field(default_factory=Counter)
    read: Counter[Path] = field(default_factory=Counter)
    together: Counter[frozenset[Path]] = field(default_factory=Counter)
    """Columns that a query reads under a condition."""


@dataclass(frozen=True, slots=True)
class Offered:
    table: str
    kind: Kind
    reason: str


def candidates(asked: Sequence[Asked], grounds: Mapping[str, Ground]) -> list[Offered]:
    """Of each table those for what its queries do."""
    wanted: dict[str, _Wanted] = defaultdict(_Wanted)
    for one in asked:
        for use in uses_of(one.query):
            table = use.relation.table
            if table is not None and table in grounds:
                _note(wanted[table], use, one.weight)
    found = [offer for table, what in wanted.items() for offer in _of_table(grounds[table], what)]
    return [one for one in found if _is_possible(one, grounds[one.table])]


def _note(wanted: _Wanted, use: Uses, weight: float) -> None:
    equal, ranged = set(), set()
    for part in conjuncts(normalise(use.relation.predicate)):
        match part:
            case Compare("=" | "<=>", Column(path), Literal()) | In(Column(path)):
                equal.add(path)
            case Compare("<" | "<=" | ">" | ">=", Column(path), Literal()):
                ranged.add(path)
    read = frozenset(use.relation.required)
    for path in read:
        wanted.read[path] += weight  # type: ignore[assignment]  # counters of weights
    for path in equal:
        wanted.equal[path] += weight  # type: ignore[assignment]
    for path in ranged:
        wanted.ranged[path] += weight  # type: ignore[assignment]
    for keys in (*use.joined, *use.grouped):
        wanted.keys[keys] += weight  # type: ignore[assignment]
    box = tuple(sorted(equal | ranged))
    if len(box) >= _BOX[0]:
        wanted.boxes[box] += weight  # type: ignore[assignment]
    for path in {*equal, *ranged, *(path for keys in (*use.joined, *use.grouped) for path in keys)}:
        wanted.needed[path][read] += weight  # type: ignore[assignment]
    predicate = use.relation.predicate
    if predicate != TRUE and not opaque_terms(predicate):
        wanted.predicates[predicate] += weight  # type: ignore[assignment]
        wanted.together[read | columns_of(predicate)] += weight  # type: ignore[assignment]


def _of_table(ground: Ground, wanted: _Wanted) -> Iterable[Offered]:
    leading: Counter[tuple[Path, ...]] = Counter(wanted.keys)
    for path, weight in (*wanted.equal.items(), *wanted.ranged.items()):
        leading[path,] += weight
    for keys, _ in leading.most_common(_MOST_KEYS):
        yield from _coverings(ground, wanted, keys)
    distinct, rows = ground.believed.distinct, float(ground.sample.facts.rows)
    for path, _ in wanted.equal.most_common(_MOST_KEYS):
        if rows / distinct.get(path, 1.0) <= _UNIQUE:
            yield _offer(ground, Lookup(_name("lookup", [path]), _sql([path])), f"{_said([path])} is looked up")
    compared = {*wanted.equal, *wanted.ranged}
    if compared:
        sketches = [MinMax(column_sql(path)) for path in sorted(compared)]
        blooms = [Bloom(column_sql(path)) for path in sorted(wanted.equal) if distinct.get(path, 0.0) > _UNIQUE]
        yield _offer(ground, Skipping("skip", *sketches), "files are left out by what conditions ask")
        if blooms:
            yield _offer(ground, Skipping("skip_values", *sketches, *blooms), "files without a value are left out")
    for box in _boxes(wanted):
        include = _union(wanted, box)
        kind = ZOrder(_name("box", box), _sql(box), _sql(sorted(include - set(box))))
        yield _offer(ground, kind, f"conditions on {_said(box)} together")
    if sum(wanted.predicates.values()) >= _LOGGED_ENOUGH and compared:
        yield from _layouts(ground, wanted)


def _layouts(ground: Ground, wanted: _Wanted) -> Iterable[Offered]:
    """With all columns that the queries read, with those that most of them do, and with the rows that many stay within."""
    every, usual = frozenset(wanted.read), _usual(wanted.together)
    asked = [(one, float(weight)) for one, weight in wanted.predicates.items()]
    yield from _layout(ground, "layout", asked, every)
    if usual != every:
        yield from _layout(ground, "layout_usual", asked, usual)
    found = regions(asked, {path[0] for path in every}, ground.sample.rows, _PART_ROWS)
    for place, part in enumerate(one for one in found[:_MOST_PARTS] if one.asked >= _PART_ASKED):
        within = [(one, weight) for one, weight in asked if implies(one, part.predicate)]
        yield from _layout(ground, f"layout_part_{place + 1}", within, every, part)


def _layout(
    ground: Ground,
    name: str,
    asked: Sequence[tuple[Predicate, float]],
    columns: frozenset[Path],
    part: Region | None = None,
) -> Iterable[Offered]:
    queries = [(one, weight) for one, weight in asked if columns_of(one) <= columns]
    compared = {path for one, weight in queries for path in Logged(one, weight).compared}
    if compared:
        texts = [(to_sql(one), weight) for one, weight in queries]
        others, where = _sql(sorted(columns - compared)), None if part is None else part.predicate
        reason = f"{len(queries)} different conditions"
        if part is not None:
            reason += f", {part.asked:.0%} of all, within {part.rows:.0%} of the rows"
        yield _offer(ground, Layout(name, texts, on=_sql(sorted(compared)), include=others, where=where), reason)


def _usual(together: Counter[frozenset[Path]]) -> frozenset[Path]:
    chosen: frozenset[Path] = frozenset()
    for columns, _ in together.most_common():
        if sum(weight for some, weight in together.items() if some <= chosen) >= _USUAL * together.total():
            break
        chosen |= columns
    return chosen


def _coverings(ground: Ground, wanted: _Wanted, keys: tuple[Path, ...]) -> Iterable[Offered]:
    """With what the queries that lead with the first key read, and with what most of them do."""
    needed = wanted.needed[keys[0]]
    every = frozenset[Path]().union(*needed)
    usual = needed.most_common(1)[0][0] if needed else frozenset[Path]()
    reason = f"conditions, joins or groups by {_said(keys)}"
    for suffix, include in (("", every), ("_usual", usual)):
        if not suffix or usual != every:
            others = _sql(sorted(include - set(keys)))
            yield _offer(ground, Covering(_name("by", keys) + suffix, _sql(keys), others), reason)


def _boxes(wanted: _Wanted) -> list[tuple[Path, ...]]:
    """Those that are asked for most, and of wider ones the columns that are asked for most."""
    found: dict[tuple[Path, ...], None] = {}
    for box, _ in wanted.boxes.most_common(_MOST_KEYS):
        weight = {path: wanted.ranged[path] + wanted.equal[path] for path in box}
        found[tuple(sorted(sorted(box, key=lambda path: -weight[path])[: _BOX[1]]))] = None
    every = [path for path, _ in (wanted.ranged + wanted.equal).most_common(_BOX[1])]
    if len(every) >= _BOX[0]:
        found[tuple(sorted(every))] = None
    return list(found)


def _union(wanted: _Wanted, box: Sequence[Path]) -> frozenset[Path]:
    return frozenset[Path]().union(*(some for path in box for some in wanted.needed[path]))


def _offer(ground: Ground, kind: Kind, reason: str) -> Offered:
    return Offered(ground.uri, kind, reason)


def _is_possible(offer: Offered, ground: Ground) -> bool:
    try:
        offer.kind.spec(ground.source.reading, ground.source.case_sensitive)
    except InvalidIndex:
        return False
    return True


def _name(begin: str, paths: Sequence[Path]) -> str:
    words = ("".join(sign if sign.isalnum() else "_" for sign in path[-1]) for path in paths)
    return "_".join((begin, *words))[:60]


def _sql(paths: Iterable[Path]) -> list[str]:
    return [column_sql(path) for path in paths]


def _said(paths: Iterable[Path]) -> str:
    return ", ".join(_sql(paths))
