"""A layout for the recorded queries that fits a budget: of all columns that they read, of those that most of them read, or of the
part of the rows that most of them ask for."""

from collections.abc import Sequence
from dataclasses import dataclass

from grebe.advisor.organise.learned import Query
from grebe.advisor.regions import regions
from grebe.advisor.what_if.imagined import Imagined, imagine
from grebe.advisor.what_if.suppose import Ground
from grebe.errors import GrebeError, InvalidConfig
from grebe.indexes.layout.spec import Layout
from grebe.maintenance.create import planned_for
from grebe.planner.explain_text import size_text
from grebe.planner.implication import implies
from grebe.predicate.text import column_sql, to_sql
from grebe.predicate.tree import Predicate

_COVERED = (1.0, 0.95, 0.85, 0.7, 0.5)
"""Shares of the queries whose columns are kept."""


@dataclass(frozen=True, slots=True)
class Fitted:
    imagined: Imagined
    served: float
    """The share of the queries, by weight, that it can answer."""
    reason: str


def fitted(
    ground: Ground, queries: Sequence[Query], budget: float, name: str, cores: int, margin: float = 1.0
) -> Fitted:
    """That which serves most queries, and of such the smallest, by predictions that take at most `margin` of the budget. Raises
    `InvalidConfig` where nothing fits."""
    most = budget * margin
    least: float | None = None
    best: Fitted | None = None
    for covered in _COVERED:
        columns, served = _columns(queries, covered)
        one = _imagined(ground, queries, columns, None, name, cores)
        if one is None:
            continue
        least = one.bytes if least is None else min(least, float(one.bytes))
        if one.bytes <= most:
            reason = f"{len(columns)} columns, which {served:.0%} of the queries read"
            best = _better(best, Fitted(one, served, reason))
        elif best is None:
            asked = [(query.predicate, query.weight) for query in queries]
            for region in regions(asked, columns, ground.sample.rows, most / one.bytes):
                part = _imagined(ground, queries, columns, region.predicate, name, cores)
                if part is not None and part.bytes <= most:
                    reason = f"rows with {to_sql(region.predicate)}, which {region.rows:.0%} of the rows are"
                    best = _better(best, Fitted(part, _served(queries, columns, region.predicate), reason))
    if best is None:
        needed = "nothing that an index keeps" if least is None else f"at least {size_text(int(least))} for all rows"
        raise InvalidConfig(
            f"a budget of {size_text(int(budget))} is too small for any layout of {ground.uri}: the columns that half of the "
            f"recorded queries read take {needed}; give more, or drop other indexes",
            detail="BUDGET",
        )
    return best


def _better(one: Fitted | None, other: Fitted) -> Fitted:
    if one is None or (other.served, -other.imagined.bytes) > (one.served, -one.imagined.bytes):
        return other
    return one


def _columns(queries: Sequence[Query], covered: float) -> tuple[frozenset[str], float]:
    """Those of the queries that weigh most, until so many are covered."""
    whole = sum(one.weight for one in queries)
    by_columns: dict[frozenset[str], float] = {}
    for one in queries:
        by_columns[one.columns] = by_columns.get(one.columns, 0.0) + one.weight
    chosen: frozenset[str] = frozenset()
    for columns, _ in sorted(by_columns.items(), key=lambda item: -item[1]):
        if sum(weight for some, weight in by_columns.items() if some <= chosen) >= covered * whole:
            break
        chosen |= columns
    served = sum(weight for some, weight in by_columns.items() if some <= chosen)
    return chosen, served / whole


def _served(queries: Sequence[Query], columns: frozenset[str], region: Predicate) -> float:
    within = sum(one.weight for one in queries if one.columns <= columns and implies(one.predicate, region))
    return within / sum(one.weight for one in queries)


def _imagined(
    ground: Ground, queries: Sequence[Query], columns: frozenset[str], region: Predicate | None, name: str, cores: int
) -> Imagined | None:
    served = [one for one in queries if one.columns <= columns and (region is None or implies(one.predicate, region))]
    if not served:
        return None
    on = sorted({path for one in served for path in one.compared})
    others = sorted(columns - {path[0] for path in on})
    kind = Layout(
        name,
        [(one.predicate, one.weight) for one in served],
        on=[column_sql(path) for path in on],
        include=[column_sql((column,)) for column in others],
        where=region,
    )
    try:
        planned = planned_for(ground.source, kind)
    except GrebeError:
        return None  # columns that no index keeps
    return imagine(kind, planned.spec, ground.sample, ground.covered, cores, ground.scales)
