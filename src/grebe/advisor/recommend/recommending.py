"""`lake.recommend()`: queries planned as they are, candidates imagined on their tables, the best of them chosen and told."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from grebe.advisor.budget import budget_bytes
from grebe.advisor.recommend.asked import Asked
from grebe.advisor.recommend.candidates import Offered, candidates
from grebe.advisor.recommend.choosing import Costs, Limits, Option, best
from grebe.advisor.recommend.suggestion import Suggestion, Suggestions
from grebe.advisor.recommend.texts import Weighed, of_each_shape
from grebe.advisor.recommend.views import StoredQuery, views_of
from grebe.advisor.what_if.answer import break_even
from grebe.advisor.what_if.asking import Opened
from grebe.advisor.what_if.imagined import imagine
from grebe.advisor.what_if.suppose import Ground, cores_of, ground_of, supposing
from grebe.errors import GrebeError, InvalidIndex, InvalidStatement
from grebe.indexes.view.spec import View
from grebe.maintenance.create import planned_for
from grebe.maintenance.logs import Place
from grebe.planner.prices import Prices
from grebe.planner.query import Query
from grebe.spark.attaching import Attached
from grebe.spark.conditions import condition_of
from grebe.spark.source import SparkSource
from grebe.spark.views import definition_of

OBJECTIVES = ("time", "space", "money")
_MOST = 10
_ENOUGH = 0.9
"""Of what could be saved: for the objective `space`."""
_SECOND = 1000.0
_MOST_AT_ONCE = 8
_MOST_VIEWS = 30
"""Groupings that are imagined as views, those asked for most: each is a question to Spark."""


Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class _Posed:
    """A query that Spark understands, as it is planned quickest, and the tables that it reads."""

    sql: str
    weight: float
    told: str
    """As its author wrote it."""
    tables: tuple[str, ...] = ()


def recommend(
    spark: Attached,
    queries: Sequence[Weighed],
    opened: Opened,
    spelled: Callable[[str], str] = str,
    budget: object = None,
    most: int | None = None,
    build_seconds: float | None = None,
    objective: str = "time",
    only: str | None = None,
    pace: float = 1.0,
) -> Suggestions:
    """`only`: indexes of this table. `pace`: how much longer queries take than the planner reckons with. `spelled` gives a text
    that means the same and is planned faster. Raises `InvalidStatement` for a workload without a query that can be planned."""
    if objective not in OBJECTIVES:
        raise InvalidStatement(f"objective is one of {', '.join(OBJECTIVES)}, not {objective!r}", detail="OBJECTIVE")
    posed, grounds = _looked_at(spark, of_each_shape(queries), opened, spelled)
    cores = cores_of(spark.session)
    views = _views(grounds, posed, spelled, cores)
    own = [(one, [view.imagined for view in views if view.table == one.uri]) for one in grounds.values()]
    with supposing(spark, own) as supposed:
        planned = _at_once(cores, lambda one: spark.question(one.sql, supposed), posed)
        asked = [Asked(query, one.weight) for query, one in zip(planned, posed, strict=True) if query is not None]
        tables = {uri: replace(found.table, indexes=grounds[uri].indexes) for uri, found in supposed.items()}
    options = [*_imagined(candidates(asked, grounds), grounds, cores), *views]
    options = [one for one in options if only in (None, one.table)]
    costs = Costs(asked, tables, spark.config, spark.inquiry)
    whole = sum(ground.files.total_bytes for ground in grounds.values())
    limits = Limits(
        budget_bytes(budget, whole),
        _MOST if most is None else most,
        float("inf") if build_seconds is None else build_seconds,
    )
    chosen = best(options, costs, limits)
    if objective == "space":
        chosen = _smallest(chosen, costs)
    prices = Prices.of_settings(spark.config)
    told = _told(chosen, costs, prices, cores, pace)
    if objective == "money":
        told = [one for one in told if one.break_even.money_saved > 0]
    return Suggestions(told)


def _at_once(cores: int, work: Callable[[Given], Made], some: Sequence[Given]) -> list[Made]:
    """Spark plans one query on one core."""
    with ThreadPoolExecutor(max(1, min(cores, _MOST_AT_ONCE))) as pool:
        return list(pool.map(work, some))


def _looked_at(
    spark: Attached, queries: Sequence[Weighed], opened: Opened, spelled: Callable[[str], str]
) -> tuple[list[_Posed], dict[str, Ground]]:
    """Those that Spark still understands (tables and columns may be gone since), and the tables that they read."""
    texts = [spelled(one.sql) for one in queries]
    answers = _at_once(cores_of(spark.session), partial(_asked, spark), texts)
    wrong = [one for one in answers if isinstance(one, str)]
    if len(wrong) == len(answers):
        said = (
            f"none of its {len(queries):,} queries can be planned ({wrong[0]})" if wrong else "there is no query in it"
        )
        raise InvalidStatement(
            f"nothing can be recommended for this workload: {said}. Give SQL texts, or record queries "
            "(record_workload=true) and come back",
            detail="WORKLOAD",
        )
    needed: dict[str, set[str]] = {}
    for answer in answers:
        for relation in answer.relations if isinstance(answer, Query) else ():
            needed.setdefault(relation.name, set()).update(path[0] for path in relation.required)
    grounds, uris = _grounds(spark, needed, opened)
    posed = []
    for one, text, answer in zip(queries, texts, answers, strict=True):
        if not isinstance(answer, str):
            read = () if answer is None else answer.relations
            tables = dict.fromkeys(uris[relation.name] for relation in read if relation.name in uris)
            posed.append(_Posed(text, one.weight, one.sql, tuple(tables)))
    return posed, grounds


def _asked(spark: Attached, text: str) -> Query | str | None:
    """As text, why Spark does not understand it; None for one that reads no table."""
    from pyspark.errors import PySparkException

    try:
        return spark.question(text, {})
    except PySparkException as problem:
        return condition_of(problem)


def _grounds(
    spark: Attached, needed: Mapping[str, set[str]], opened: Opened
) -> tuple[dict[str, Ground], dict[str, str]]:
    """By their URIs, and the URIs by what queries call them."""

    def open_one(name: str) -> tuple[SparkSource, Place] | None:
        try:
            return opened(name)
        except GrebeError:
            return None  # what cannot be read as a table cannot have an index

    cores = cores_of(spark.session)
    found: dict[str, tuple[SparkSource, Place, set[str]]] = {}
    uris: dict[str, str] = {}
    for (name, columns), there in zip(needed.items(), _at_once(cores, open_one, list(needed)), strict=True):
        if there is not None:
            source, place = there
            uris[name] = source.uri
            own = {column.name for column in source.reading.columns}
            found.setdefault(source.uri, (source, place, set()))[2].update(columns & own)
    made = _at_once(cores, lambda one: ground_of(one[0], one[1], spark.indexes, one[2]), list(found.values()))
    return {ground.uri: ground for ground in made}, uris


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
        made = imagine(kind, planned.spec, ground.sample, ground.covered, cores, ground.scales)
        found.append(Option(one.table, made, one.reason))
    return found


def _views(
    grounds: Mapping[str, Ground], posed: Sequence[_Posed], spelled: Callable[[str], str], cores: int
) -> list[Option]:
    stored = sorted(views_of([(one.told, one.weight) for one in posed]), key=lambda one: -one.weight)[:_MOST_VIEWS]
    by_text = {one.told: one.tables for one in posed}
    made = _at_once(
        cores,
        lambda one: _view(one[1], f"view_{one[0]}", [grounds[uri] for uri in by_text[one[1].example]], spelled, cores),
        list(enumerate(stored)),
    )
    return [one for one in made if one is not None]


def _view(
    stored: StoredQuery, name: str, grounds: Sequence[Ground], spelled: Callable[[str], str], cores: int
) -> Option | None:
    """On the first of the tables that takes it."""
    for ground in grounds:
        try:
            meant = definition_of(ground.source.session, spelled(stored.sql), ground.uri, name)
            planned = planned_for(ground.source, View(name, replace(meant, text=stored.sql)))
        except GrebeError:
            continue  # not of this table, or such as no view stores
        made = imagine(planned.kind, planned.spec, ground.sample, ground.covered, cores, ground.scales)
        return Option(ground.uri, made, f"{stored.weight:,.0f} queries group these tables so")
    return None


def _smallest(chosen: Sequence[Option], costs: Costs) -> list[Option]:
    """So few bytes that most of what could be saved is saved."""
    enough = _ENOUGH * costs.saved([], chosen)
    kept = list(chosen)
    for option in sorted(chosen, key=lambda one: -one.bytes):
        rest = [one for one in kept if one is not option]
        if costs.saved([], rest) >= enough:
            kept = rest
    return kept


def _told(chosen: Sequence[Option], costs: Costs, prices: Prices, cores: int, pace: float) -> list[Suggestion]:
    """Each by what it saves beside those before it; that which saves most comes first."""
    before = costs.total([])
    left, taken = list(chosen), list[Option]()
    queries = sum(one.weight for one in costs.asked)
    told = []
    while left:
        gain, _, option = max((costs.saved(taken, [*taken, one]), -place, one) for place, one in enumerate(left))
        left.remove(option)
        taken.append(option)
        used = [place for place in costs.concerned(option) if option.imagined.kind.name in costs.of(place, chosen)[1]]
        served = sum(costs.asked[place].weight for place in used)
        saved = gain * pace / _SECOND / max(queries, 1e-9)
        even = break_even(option.imagined.build_seconds, saved, 0.0, prices, cores)
        told.append(
            Suggestion(
                kind=option.imagined.kind,
                table=option.table,
                predicted_bytes=option.bytes,
                predicted_build_seconds=option.imagined.build_seconds,
                predicted_gain=gain / before if before else 0.0,
                break_even=even,
                reasons=(option.reason, f"serves {served:,.0f} of {queries:,.0f} queries"),
                prediction=option.imagined.prediction,
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
