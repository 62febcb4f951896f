"""`attach(spark)`: from here on queries use indexes by themselves."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from grebe.advisor.measured.scales import pace_of
from grebe.advisor.recommend.events import queries_in_events
from grebe.advisor.recommend.recommending import recommend, texts_of
from grebe.advisor.recommend.replay import Named, replayed
from grebe.advisor.recommend.suggestion import Suggestions
from grebe.advisor.what_if.answer import WhatIf
from grebe.advisor.what_if.asking import what_if
from grebe.advisor.workload.observed import Observed, from_table
from grebe.advisor.workload.reading import Recorded, places_of
from grebe.advisor.workload.record import RECORDER
from grebe.config import SPARK_PREFIX, Config
from grebe.indexes.kind import Kind
from grebe.maintenance.logs import Place
from grebe.planner.decision import Decision
from grebe.planner.explain import Explanation
from grebe.planner.explain_text import Actual
from grebe.planner.prices import Prices
from grebe.planner.reasons import Code, Reason
from grebe.session.advice import may_name, named_tables, paths_as_views
from grebe.session.following import AfterBatch, Following, WriteBatch, sink_of
from grebe.session.lake_table import LakeTable
from grebe.session.statements import answer
from grebe.sources.roots import allowed_roots
from grebe.spark.attaching import Attached, attached, classic
from grebe.spark.frames import frame_of_arrow
from grebe.spark.queries import frame_of_query
from grebe.spark.source import SparkSource
from grebe.spark.stores import store_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TableGiven: TypeAlias = LakeTable | str | PathLike[str]
"""A table, its path, or its name in the catalog."""


class Lake:
    """The indexes of a Spark session's queries. Made by `attach`."""

    def __init__(self, spark: Attached) -> None:
        self._session = spark.session
        self._config = spark.config
        self._spark = spark
        self._met: list[str] = []

    def __repr__(self) -> str:
        return f"Lake(enabled={self.enabled}, tables={self.tables()!r})"

    @property
    def enabled(self) -> bool:
        """Whether queries use indexes; False leaves every plan alone."""
        return self._spark.enabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._spark.enabled = on

    def detach(self) -> None:
        """The session is as it was before; `attach` makes a new lake."""
        self._spark.detach()

    def table(
        self,
        source: "str | PathLike[str] | DataFrame",
        format: str | None = None,
        options: Mapping[str, str] | None = None,
        location: str | PathLike[str] | None = None,
    ) -> LakeTable:
        """A path, a name of the catalog, or a DataFrame that reads one table. `location`: where its indexes lie, if not beside."""
        return LakeTable(
            self._session,
            source,
            format,
            options,
            location,
            self._config,
            self._spark.changed,
            self._spark.heard,
            self._suggested,
        )

    def tables(self) -> list[str]:
        """Every table with indexes that this lake has met."""
        return self._spark.tables()

    def refresh_on(self, query: "StreamingQuery", *tables: "TableGiven", every: float | None = None) -> Following:
        """The indexes of these tables (of the one that the query writes to, if none is named) are refreshed after each
        micro-batch of the query, in the background; `every`: at most once in so many seconds."""
        return Following(self._session, query, lambda: self._opened(tables or (sink_of(query),)), every)

    def refreshing(self, *tables: "TableGiven") -> Callable[[WriteBatch], AfterBatch]:
        """For a function that is given to `foreachBatch`: the indexes of these tables are refreshed after each batch that it wrote,
        before the next begins."""
        return lambda write: AfterBatch(write, lambda: self._opened(tables))

    def _opened(self, tables: "tuple[TableGiven, ...]") -> list[LakeTable]:
        return [table if isinstance(table, LakeTable) else self.table(table) for table in tables]

    @contextmanager
    def only(self, *indexes: str) -> Iterator[None]:
        """Queries that this thread plans in the block consider just these indexes; in a block within a block, those of both."""
        with self._spark.saying("grebe.only", indexes, narrowing=True):
            yield

    @contextmanager
    def without(self, *indexes: str) -> Iterator[None]:
        """Queries that this thread plans in the block do not consider these indexes."""
        with self._spark.saying("grebe.without", indexes):
            yield

    def explain(self, df: "DataFrame | str", verbose: bool = False) -> Explanation:
        """What of this query (a frame, or SQL) is answered by which index, and why not by others. What it read is told if it ran.
        Raises `InvalidStatement` for a command, which is not run.

        `verbose` adds Spark's plans without and with indexes; a notebook shows them in any case.
        """
        plans, planned = self._spark.explain(frame_of_query(self._session, df) if isinstance(df, str) else df)
        decision = planned[-1].decision if planned else Decision((), ())
        decision = replace(decision, reasons=(*decision.reasons, *self._cached(plans["cached"])))
        actual = Actual(**plans["actual"]) if plans["actual"] else None
        return Explanation(decision, plans["before"], plans["after"], actual, verbose, Prices.of_settings(self._config))

    def why_not(self, df: "DataFrame | str", index: str | None = None) -> list[Reason]:
        """For every index of the query's tables that it does not use, the reason."""
        reasons = self.explain(df).decision.reasons
        return [reason for reason in reasons if index is None or reason.index == index]

    def workload(self, table: "TableGiven | None" = None) -> "DataFrame":
        """The queries that were recorded (`record_workload`), by Spark and without, one row each, oldest first: on one table, or
        on all that this lake has met."""
        if table is not None:
            return self._opened((table,))[0].workload()
        return frame_of_arrow(self._session, self._recorded().queries())

    def met(self, table: "TableGiven") -> None:
        """This table is among those that are asked for recorded queries, though no query of this lake has read it."""
        self._met.append(self._opened((table,))[0].uri)

    def _recorded(self) -> Recorded:
        return Recorded(tuple(self._recorded_at()), lambda place: store_for(self._session, place))

    def _recorded_at(self) -> dict[str, set[str]]:
        """The tables whose queries may have been recorded at a place, by the place."""
        logs = {seat.place: seat.table for seat in self._spark.heard()}
        root = self._config.location
        found: dict[str, set[str]] = {}
        where = [(uri, None) for uri in (*self.tables(), *self._met)]
        for uri, log in (*where, *((uri, log) for log, uri in logs.items())):
            for place in places_of(uri, root=root, log=log):
                found.setdefault(place, set()).add(uri)
        return found

    def _observed(self) -> list[Observed]:
        """The recorded queries that advice may go by: those that name no table that their log may not name."""
        at = self._recorded_at()
        met, roots = set().union(*at.values()), allowed_roots(self._config.allowed_roots)
        return from_table(self._recorded().queries(lambda place, table: may_name(table, at.get(place, ()), met, roots)))

    def what_if(self, df: "DataFrame | str", kinds: Kind | Sequence[Kind]) -> WhatIf:
        """As `explain`, as if these indexes existed on those of the query's tables that they fit: which would be used, what they
        would take and save, and after how many such queries they pay. Nothing is built or written."""
        frame = frame_of_query(self._session, df) if isinstance(df, str) else df
        wanted = kinds if isinstance(kinds, Sequence) else [kinds]
        pace = pace_of(from_table(self._recorded().queries())) if self._config.record_workload else 1.0
        return what_if(self._spark, frame, wanted, self._opened_for_advice, pace)

    def recommend(
        self,
        workload: Iterable[str | tuple[str, float]] | str | None = None,
        budget: object = None,
        *,
        most: int | None = None,
        build_seconds: float | None = None,
        objective: str = "time",
    ) -> Suggestions:
        """The indexes that would help a workload most, best first, each to be passed to `create`. `workload`: SQL texts, alone or
        with a weight; the path of an event log of Spark's; None: the queries that were recorded. `budget`: of bytes, as a number,
        `"10GB"`, or a share of the tables, `"20%"`; `most`: so many indexes; `build_seconds`: for building them all. `objective`:
        `time`, `space` (as few bytes as save nearly as much) or `money`. Nothing is built or written."""
        with self._named() as (named, spelled):
            pace = 1.0
            if workload is None:
                observed = self._observed()
                queries, pace = replayed(observed, named), pace_of(observed)
            else:
                queries = queries_in_events(workload) if isinstance(workload, str) else texts_of(workload)
            opened = self._opened_for_advice
            return recommend(self._spark, queries, opened, spelled, budget, most, build_seconds, objective, pace=pace)

    def _suggested(self, table: str, observed: Sequence[Observed], bytes: float) -> Suggestions:
        """Indexes of one table for these queries, within so many bytes."""
        met, roots = set().union(*self._recorded_at().values()), allowed_roots(self._config.allowed_roots)
        own = [one for one in observed if all(may_name(scan.table, (table,), met, roots) for scan in one.scans)]
        with self._named() as (named, spelled):
            queries = replayed(own, named)
            budget = None if bytes == float("inf") else int(bytes)
            opened, pace = self._opened_for_advice, pace_of(observed)
            return recommend(self._spark, queries, opened, spelled, budget, only=table, pace=pace)

    @contextmanager
    def _named(self) -> Iterator[tuple[Named, Callable[[str], str]]]:
        """What tables are called in queries that are planned for advice, and texts that are planned faster."""
        with (
            named_tables(self._session, lambda uri: self._opened_for_advice(uri)[0]) as named,
            paths_as_views(self._session) as spelled,
        ):
            yield named, spelled

    def _opened_for_advice(self, name: str) -> tuple[SparkSource, Place]:
        """With the log that queries go by, wherever it lies."""
        source = self.table(name).newest
        return source, Place(
            source.uri, self._spark.log_of(source.uri), None, lambda uri: store_for(self._session, uri)
        )

    def _cached(self, cached: list[list[str]]) -> list[Reason]:
        found = ((roots, self._spark.find(roots)) for roots in cached)
        return [
            Reason(Code.CACHED, known.name, {}, roots[0])
            for roots, table in found
            if table is not None
            for known in table.indexes
        ]


def _statement(spark: Attached, what: str, text: str) -> str:
    return answer(Lake(spark), what, text)


def attach(spark: "SparkSession", config: Config | None = None) -> Lake:
    """Queries of this session use indexes from now on. Doing it again gives another handle on the same."""
    session = classic(spark)
    settings = {name: value for name, value in session.sparkContext.getConf().getAll() if name.startswith(SPARK_PREFIX)}
    known = Config.load({}, config=config, spark_conf=settings)
    hears = RECORDER.queries(lambda place: store_for(session, place), known) if known.record_workload else None
    return Lake(attached(session, known, _statement, hears))
