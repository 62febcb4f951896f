"""`attach(spark)`: from here on queries use indexes by themselves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from grebe.advisor.what_if.answer import WhatIf
from grebe.advisor.what_if.asking import what_if
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
from grebe.session.following import AfterBatch, Following, WriteBatch, sink_of
from grebe.session.lake_table import LakeTable
from grebe.session.statements import answer
from grebe.spark.attaching import Attached, attached, classic
from grebe.spark.frames import frame_of_arrow
from grebe.spark.source import SparkSource
from grebe.spark.stores import store_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Lake:
    """The indexes of a Spark session's queries. Made by `attach`."""

    def __init__(self, spark: Attached) -> None:
        self._session = spark.session
        self._config = spark.config
        self._spark = spark

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
        source: "str | DataFrame",
        format: str | None = None,
        options: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> LakeTable:
        """A path, a name of the catalog, or a DataFrame that reads one table. `location`: where its indexes lie, if not beside."""
        return LakeTable(
            self._session, source, format, options, location, self._config, self._spark.changed, self._spark.heard
        )

    def tables(self) -> list[str]:
        """Every table with indexes that this lake has met."""
        return self._spark.tables()

    def refresh_on(self, query: "StreamingQuery", *tables: "LakeTable | str", every: float | None = None) -> Following:
        """The indexes of these tables (of the one that the query writes to, if none is named) are refreshed after each
        micro-batch of the query, in the background; `every`: at most once in so many seconds."""
        return Following(self._session, query, lambda: self._opened(tables or (sink_of(query),)), every)

    def refreshing(self, *tables: "LakeTable | str") -> Callable[[WriteBatch], AfterBatch]:
        """For a function that is given to `foreachBatch`: the indexes of these tables are refreshed after each batch that it wrote,
        before the next begins."""
        return lambda write: AfterBatch(write, lambda: self._opened(tables))

    def _opened(self, tables: "tuple[LakeTable | str, ...]") -> list[LakeTable]:
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

        `verbose` adds Spark's plans without and with indexes; a notebook shows them in any case.
        """
        plans, planned = self._spark.explain(self._session.sql(df) if isinstance(df, str) else df)
        decision = planned[-1].decision if planned else Decision((), ())
        decision = replace(decision, reasons=(*decision.reasons, *self._cached(plans["cached"])))
        actual = Actual(**plans["actual"]) if plans["actual"] else None
        return Explanation(decision, plans["before"], plans["after"], actual, verbose, Prices.of_settings(self._config))

    def why_not(self, df: "DataFrame | str", index: str | None = None) -> list[Reason]:
        """For every index of the query's tables that it does not use, the reason."""
        reasons = self.explain(df).decision.reasons
        return [reason for reason in reasons if index is None or reason.index == index]

    def workload(self, table: "LakeTable | str | None" = None) -> "DataFrame":
        """The queries that were recorded (`record_workload`), by Spark and without, one row each, oldest first: on one table, or
        on all that this lake has met."""
        if table is not None:
            return self._opened((table,))[0].workload()
        met = {seat.place: seat.table for seat in self._spark.heard()}
        root = self._config.location
        where = [place for uri in self.tables() for place in places_of(uri, root=root)]
        where += [place for log, uri in met.items() for place in places_of(uri, root=root, log=log)]
        recorded = Recorded(tuple(dict.fromkeys(where)), lambda place: store_for(self._session, place))
        return frame_of_arrow(self._session, recorded.queries())

    def what_if(self, df: "DataFrame | str", kinds: Kind | Sequence[Kind]) -> WhatIf:
        """As `explain`, as if these indexes existed on those of the query's tables that they fit: which would be used, what they
        would take and save, and after how many such queries they pay. Nothing is built or written."""
        frame = self._session.sql(df) if isinstance(df, str) else df
        wanted = kinds if isinstance(kinds, Sequence) else [kinds]
        return what_if(self._spark, frame, wanted, self._opened_for_advice)

    def _opened_for_advice(self, name: str) -> tuple[SparkSource, Place]:
        return self.table(name).opened

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
