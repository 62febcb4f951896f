"""A workload looked at: its queries as the planner sees them, the tables that they read, and the indexes that might serve them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from grebe.advisor.recommend.asked import Asked
from grebe.advisor.recommend.candidates import candidates
from grebe.advisor.recommend.choosing import Costs, Option
from grebe.advisor.recommend.texts import Weighed, of_each_shape
from grebe.advisor.recommend.views import StoredQuery, views_of
from grebe.advisor.what_if.asking import Opened
from grebe.advisor.what_if.imagined import imagine
from grebe.advisor.what_if.suppose import Ground, cores_of, ground_of, supposing
from grebe.errors import GrebeError, InvalidStatement
from grebe.indexes.kind import Kind
from grebe.indexes.view.spec import View
from grebe.maintenance.create import planned_for
from grebe.maintenance.logs import Place
from grebe.planner.query import Query
from grebe.spark.attaching import Attached
from grebe.spark.conditions import condition_of
from grebe.spark.source import SparkSource

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


@dataclass(frozen=True)
class Considered:
    """What can be chosen from, and what each choice would cost the queries."""

    texts: tuple[str, ...]
    """Of the queries, in the order of `costs.asked`."""
    grounds: Mapping[str, Ground]
    options: tuple[Option, ...]
    costs: Costs
    cores: int

    @property
    def bytes(self) -> int:
        """Of the tables."""
        return sum(ground.files.total_bytes for ground in self.grounds.values())

    def option(self, table: str, kind: Kind, reason: str = "") -> Option | None:
        """The kind imagined on a table; None where it cannot be on it, or is about columns that no query reads."""
        return _option(self.grounds[table], kind, reason, self.cores)


def considered(
    spark: Attached, queries: Sequence[Weighed], opened: Opened, spelled: Callable[[str], str] = str
) -> Considered:
    """`spelled` gives a text that means the same and is planned faster. Raises `InvalidStatement` for a workload without a query
    that can be planned."""
    posed, grounds = _looked_at(spark, of_each_shape(queries), opened, spelled)
    cores = cores_of(spark.session)
    views = _views(grounds, posed, cores)
    own = [(one, [view.imagined for view in views if view.table == one.uri]) for one in grounds.values()]
    with supposing(spark, own) as supposed:
        planned = _at_once(cores, lambda one: spark.question(one.sql, supposed), posed)
        tables = {uri: replace(found.table, indexes=grounds[uri].indexes) for uri, found in supposed.items()}
    found = [
        (Asked(query, one.weight), one.told) for query, one in zip(planned, posed, strict=True) if query is not None
    ]
    asked = [one for one, _ in found]
    offered = [_option(grounds[one.table], one.kind, one.reason, cores) for one in candidates(asked, grounds)]
    options = (*(one for one in offered if one is not None), *views)
    costs = Costs(asked, tables, spark.config, spark.inquiry)
    return Considered(tuple(text for _, text in found), grounds, options, costs, cores)


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


def _option(ground: Ground, kind: Kind, reason: str, cores: int) -> Option | None:
    if kind.name in {index.name for index in ground.indexes}:
        kind = replace(kind, name=f"{kind.name}_2")  # type: ignore[type-var]  # a dataclass
    try:
        planned = planned_for(ground.source, kind)
    except GrebeError:
        return None  # a column that no index of this kind can be on
    if not kind.reads(planned.spec) <= {*ground.sample.rows.column_names}:
        return None
    made = imagine(kind, planned.spec, ground.sample, ground.covered, cores, ground.scales)
    return Option(ground.uri, made, reason)


def _views(grounds: Mapping[str, Ground], posed: Sequence[_Posed], cores: int) -> list[Option]:
    """Of the texts as they were given: no view is stored over a view that is gone tomorrow."""
    stored = sorted(views_of([(one.told, one.weight) for one in posed]), key=lambda one: -one.weight)[:_MOST_VIEWS]
    by_text = {one.told: one.tables for one in posed}
    made = _at_once(
        cores,
        lambda one: _view(one[1], f"view_{one[0]}", [grounds[uri] for uri in by_text[one[1].example]], cores),
        list(enumerate(stored)),
    )
    return [one for one in made if one is not None]


def _view(stored: StoredQuery, name: str, grounds: Sequence[Ground], cores: int) -> Option | None:
    """On the first of the tables that takes it."""
    for ground in grounds:
        try:
            planned = planned_for(ground.source, View(name, stored.sql))
        except GrebeError:
            continue  # not of this table, or such as no view stores
        made = imagine(planned.kind, planned.spec, ground.sample, ground.covered, cores, ground.scales)
        return Option(ground.uri, made, f"{stored.weight:,.0f} queries group these tables so")
    return None
