"""`lake.what_if(frame, kinds)`: the tables of a query looked at, the kinds imagined on them, and the planner asked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from grebe.advisor.what_if.answer import WhatIf, predicted
from grebe.advisor.what_if.imagined import Imagined
from grebe.advisor.what_if.suppose import (
    Ground,
    columns_read,
    cores_of,
    ground_of,
    imagined_on,
    require_all_used,
    supposing,
)
from grebe.errors import GrebeError, InvalidIndex
from grebe.indexes.kind import Kind
from grebe.maintenance.logs import Place
from grebe.planner.choose import choose
from grebe.planner.decision import Decision, Estimate
from grebe.planner.explain import Explanation
from grebe.planner.prices import Prices
from grebe.planner.query import Query
from grebe.planner.tables import KnownTable
from grebe.spark.attaching import Attached
from grebe.spark.source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Opened = Callable[[str], tuple[SparkSource, Place]]
"""The table at a path, or of a name of the catalog."""


def what_if(spark: Attached, frame: "DataFrame", kinds: Sequence[Kind], opened: Opened, pace: float = 1.0) -> WhatIf:
    """`pace`: how much longer queries take than the planner reckons with."""
    if not kinds:
        raise InvalidIndex(
            'what_if takes at least one kind: what_if(df, [grebe.Covering("by_a", on="a")])', detail="SPEC"
        )
    grounds = grounds_of(spark, frame, opened, kinds)
    cores = cores_of(spark.session)
    imagined = [(ground, imagined_on(ground, kinds, cores)) for ground in grounds]
    every: list[Imagined] = [one for _, some in imagined for one in some]
    require_all_used(kinds, {one.kind.name for one in every}, grounds)
    with supposing(spark, imagined) as supposed:
        plans, planned = spark.explain(frame, supposed)
        decision = planned[-1].decision if planned else Decision((), ())
        now = (
            _as_it_is(planned[-1].query, [one.table for one in supposed.values()], grounds, spark) if planned else None
        )
    prices = Prices.of_settings(spark.config)
    explanation = Explanation(decision, plans["before"], "", None, False, prices)
    current = now or Estimate()
    return WhatIf(explanation, current, predicted(every, decision, current, prices, cores, pace))


def grounds_of(spark: Attached, frame: "DataFrame", opened: Opened, kinds: Sequence[Kind]) -> list[Ground]:
    """The tables of a query that Spark and Grebe can read again by name or path; sampled for what the query and the kinds need."""
    _, planned = spark.explain(frame, {})
    relations = planned[-1].query.relations if planned else ()
    grounds: dict[str, Ground] = {}
    for relation in relations:
        try:
            source, place = opened(relation.name)
        except GrebeError:
            continue  # what cannot be read as a table cannot have an index
        if source.uri not in grounds:
            columns = {column.name for column in source.reading.columns} & {path[0] for path in relation.required}
            columns |= columns_read(source, kinds)
            grounds[source.uri] = ground_of(source, place, spark.indexes, columns)
    return list(grounds.values())


def _as_it_is(query: Query, supposed: Sequence[KnownTable], grounds: Sequence[Ground], spark: Attached) -> Estimate:
    """What the query takes with the indexes that are there."""
    there = {ground.uri: ground.indexes for ground in grounds}
    tables = {table.uri: replace(table, indexes=there.get(table.uri, ())) for table in supposed}
    return choose(query, tables, spark.config, inquiry=spark.inquiry).after
