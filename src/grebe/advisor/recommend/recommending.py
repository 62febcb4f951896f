"""`lake.recommend()`: queries planned as they are, candidates imagined on their tables, the best of them chosen and told."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from grebe.advisor.budget import budget_bytes
from grebe.advisor.recommend.asked import Asked, heaviest
from grebe.advisor.recommend.candidates import Offered, candidates
from grebe.advisor.recommend.choosing import Costs, Limits, Option, best
from grebe.advisor.recommend.suggestion import Suggestion, Suggestions
from grebe.advisor.recommend.views import views_of
from grebe.advisor.what_if.answer import break_even
from grebe.advisor.what_if.asking import Opened
from grebe.advisor.what_if.imagined import imagine
from grebe.advisor.what_if.suppose import Ground, cores_of, ground_of, supposing
from grebe.errors import GrebeError, InvalidIndex, InvalidStatement
from grebe.indexes.view.spec import View
from grebe.maintenance.create import planned_for
from grebe.planner.prices import Prices
from grebe.spark.attaching import Attached
from grebe.spark.conditions import condition_of

OBJECTIVES = ("time", "space", "money")
_MOST = 10
_ENOUGH = 0.9
"""Of what could be saved: for the objective `space`."""
_SECOND = 1000.0


@dataclass(frozen=True, slots=True)
class Weighed:
    """A query as SQL, and how much it counts: how often it is asked."""

    sql: str
    weight: float = 1.0


def recommend(
    spark: Attached,
    queries: Sequence[Weighed],
    opened: Opened,
    budget: object = None,
    most: int | None = None,
    build_seconds: float | None = None,
    objective: str = "time",
) -> Suggestions:
    """Raises `InvalidStatement` for a workload without a query that can be planned."""
    if objective not in OBJECTIVES:
        raise InvalidStatement(f"objective is one of {', '.join(OBJECTIVES)}, not {objective!r}", detail="OBJECTIVE")
    queries, grounds = _looked_at(spark, queries, opened)
    cores = cores_of(spark.session)
    views = _views(spark, grounds, [one.sql for one in queries], cores)
    own = [(one, [view.imagined for view in views if view.table == one.uri]) for one in grounds.values()]
    with supposing(spark, own) as supposed:
        planned = [(spark.question(one.sql, supposed), one) for one in queries]
        asked = heaviest([Asked(query, one.weight) for query, one in planned if query is not None])
        tables = {uri: replace(found.table, indexes=grounds[uri].indexes) for uri, found in supposed.items()}
    options = [*_imagined(candidates(asked, grounds), grounds, cores), *views]
    costs = Costs(asked, tables, spark.config, spark.inquiry)
    whole = sum(ground.files.total_bytes for ground in grounds.values())
    limits = Limits(
        budget_bytes(budget, whole),
        _MOST if most is None else most,
        float("inf") if build_seconds is None else build_seconds,
    )
    chosen = best(options, costs, limits)
    if objective == "space":
        chosen = _smallest(chosen, options, costs)
    prices = Prices.of_settings(spark.config)
    told = _told(chosen, costs, prices, cores)
    if objective == "money":
        told = [one for one in told if one.break_even.money_saved > 0]
    return Suggestions(told)


def _looked_at(spark: Attached, queries: Sequence[Weighed], opened: Opened) -> tuple[list[Weighed], dict[str, Ground]]:
    """Those that Spark still understands (tables and columns may be gone since), and the tables that they read."""
    from pyspark.errors import PySparkException

    found, wrong = list[Weighed](), list[str]()
    needed: dict[str, set[str]] = {}
    for one in queries:
        try:
            query = spark.question(one.sql, {})
        except PySparkException as problem:
            wrong.append(condition_of(problem))
            continue
        found.append(one)
        for relation in query.relations if query is not None else ():
            needed.setdefault(relation.name, set()).update(path[0] for path in relation.required)
    if not found:
        said = (
            f"none of its {len(queries):,} queries can be planned ({wrong[0]})" if wrong else "there is no query in it"
        )
        raise InvalidStatement(
            f"nothing can be recommended for this workload: {said}. Give SQL texts, or record queries "
            "(record_workload=true) and come back",
            detail="WORKLOAD",
        )
    return found, _grounds(spark, needed, opened)


def _grounds(spark: Attached, needed: Mapping[str, set[str]], opened: Opened) -> dict[str, Ground]:
    found: dict[str, Ground] = {}
    for name, columns in needed.items():
        try:
            source, place = opened(name)
        except GrebeError:
            continue  # what cannot be read as a table cannot have an index
        if source.uri not in found:
            there = {column.name for column in source.reading.columns}
            found[source.uri] = ground_of(source, place, spark.indexes, columns & there)
    return found


def _imagined(offered: Sequence[Offered], grounds: Mapping[str, Ground], cores: int) -> list[Option]:
    found = []
    for one in offered:
        ground = grounds[one.table]
        taken = {index.name for index in ground.indexes}
        kind = one.kind if one.kind.name not in taken else replace(one.kind, name=f"{one.kind.name}_2")  # type: ignore[type-var]  # a dataclass
        try:
            planned = planned_for(ground.source, kind)
        except GrebeError:
            continue  # a column that no index of this kind can be on
        made = imagine(kind, planned.spec, ground.sample, ground.covered, cores)
        found.append(Option(one.table, made, one.reason))
    return found


def _views(spark: Attached, grounds: Mapping[str, Ground], texts: Sequence[str], cores: int) -> list[Option]:
    found = []
    for number, stored in enumerate(views_of(texts)):
        for ground in grounds.values():
            try:
                planned = planned_for(ground.source, View(f"view_{number}", stored.sql))
            except GrebeError:
                continue  # not of this table, or such as no view stores
            made = imagine(planned.kind, planned.spec, ground.sample, ground.covered, cores)
            found.append(Option(ground.uri, made, f"{stored.queries} queries group these tables so"))
            break
    return found


def _smallest(chosen: Sequence[Option], options: Sequence[Option], costs: Costs) -> list[Option]:
    """So few bytes that most of what could be saved is saved."""
    before, after = costs.total([]), costs.total(chosen)
    kept = list(chosen)
    for option in sorted(chosen, key=lambda one: -one.bytes):
        rest = [one for one in kept if one is not option]
        if before - costs.total(rest) >= _ENOUGH * (before - after):
            kept = rest
    return kept


def _told(chosen: Sequence[Option], costs: Costs, prices: Prices, cores: int) -> list[Suggestion]:
    """Each by what it saves beside those before it; that which saves most comes first."""
    before = costs.total([])
    left, taken, now = list(chosen), list[Option](), before
    queries = sum(one.weight for one in costs.asked)
    told = []
    while left:
        option = min(left, key=lambda one: costs.total([*taken, one]))
        left.remove(option)
        taken.append(option)
        total = costs.total(taken)
        gain, now = now - total, total
        used = [place for place in costs.concerned(option) if option.imagined.kind.name in costs.of(place, chosen)[1]]
        served = sum(costs.asked[place].weight for place in used)
        even = break_even(option.imagined.build_seconds, gain / _SECOND / max(queries, 1e-9), 0.0, prices, cores)
        told.append(
            Suggestion(
                kind=option.imagined.kind,
                table=option.table,
                predicted_bytes=option.bytes,
                predicted_build_seconds=option.imagined.build_seconds,
                predicted_gain=gain / before if before else 0.0,
                break_even=even,
                reasons=(option.reason, f"serves {served:,.0f} of {queries:,.0f} queries"),
            )
        )
    return told


def texts_of(workload: Iterable[object]) -> list[Weighed]:
    """SQL texts, alone or each with a weight. The same text twice weighs twice."""
    found: dict[str, float] = {}
    for one in workload:
        match one:
            case str():
                text, weight = one, 1.0
            case (str() as text, int() | float() as weight) if weight > 0:
                pass
            case _:
                raise InvalidIndex(
                    f"a workload is made of SQL texts, or of pairs of a text and a weight above 0, not of {type(one).__name__}",
                    detail="WORKLOAD",
                )
        found[text] = found.get(text, 0.0) + weight
    return [Weighed(text, weight) for text, weight in found.items()]
