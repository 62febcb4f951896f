"""Hyperspace's verbs on indexes, by names that are unique in a system path, over Grebe's, by names that are unique on a table.

The tables looked at are those below `spark.hyperspace.system.path`, and those that this session has met; of each the log that
counts under the settings as they are at the call. A name means the index in the system path first: one of the same name that
lies elsewhere, beside its table say, stands back.
"""
# ruff: noqa: N802, N803 - the names are Hyperspace's

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grebe.compat.hyperspace.indexconfig import CoveringIndexConfig, normalised
from grebe.compat.hyperspace.listed import SUMMARY, detail_of, summary_of
from grebe.compat.hyperspace.settings import ENABLED, Settings, settings_of
from grebe.errors import Conflict, IndexExists, IndexNotFound, InvalidIndex
from grebe.log.commit import Log
from grebe.log.describe import IndexInfo, describe_indexes
from grebe.log.entry import NO_FILES
from grebe.maintenance.logs import Place, logs_below
from grebe.planner.reasons import Reason
from grebe.session.lake import Lake, attach
from grebe.session.lake_table import LakeTable
from grebe.spark.attaching import classic
from grebe.spark.stores import store_for
from grebe.store.protocol import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class _Known:
    """An index of one of the tables that this session knows, as its log says it."""

    table: str
    log: Log
    info: IndexInfo
    in_system_path: bool
    """Always, where none is set."""


class Hyperspace:
    """The indexes of a session's queries. None is used before `Hyperspace.enable(spark)`."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark
        self._session = classic(spark)
        self._now()

    def indexes(self) -> "DataFrame":
        """One row an index, as the logs say it; the tables themselves are not looked at."""
        lake, settings = self._now()
        found = self._known(lake, settings)
        return self.spark.createDataFrame([summary_of(one.info, one.log) for one in found], SUMMARY)

    def index(self, indexName: str) -> "DataFrame":
        """One row with more columns, for which the files of the index's table are listed."""
        lake, known = self._found(indexName)
        row, schema = detail_of(lake.table(known.table).index(known.info.name), known.log)
        return self.spark.createDataFrame([row], schema)

    def createIndex(self, dataFrame: "DataFrame", indexConfig: CoveringIndexConfig) -> None:
        """On the one table that the frame reads. The name must be free in the system path, and, where none is set, on all tables
        that `indexes()` is about."""
        if not isinstance(indexConfig, CoveringIndexConfig):
            raise InvalidIndex(
                f"a {type(indexConfig).__name__} does not say what to index; give an IndexConfig", detail="KIND"
            )
        lake, settings = self._now()
        kind = indexConfig.kind(settings)
        table = lake.table(dataFrame)
        for other in self._known(lake, settings):
            if other.in_system_path and other.info.name == kind.name and other.table != table.uri:
                raise IndexExists(
                    f"there is an index {kind.name} on {other.table}, and Hyperspace's names are those of all tables; take "
                    f"another name, or create it with grebe.attach(spark).table({table.uri!r})",
                    detail="OTHER_TABLE",
                )
        table.create(kind)

    def deleteIndex(self, indexName: str) -> None:
        """Out of use at once; `restoreIndex` brings it back."""
        table, name = self._table(indexName)
        table.delete(name)

    def restoreIndex(self, indexName: str) -> None:
        table, name = self._table(indexName)
        table.restore(name)

    def vacuumIndex(self, indexName: str) -> None:
        """Removes a deleted index for good, and of any other what is out of use. Bytes that a reader may still be at wait for a
        later vacuum (`vacuum_retention_seconds`)."""
        table, name = self._table(indexName)
        table.vacuum(name)

    def refreshIndex(self, indexName: str, mode: str = "full") -> None:
        """Brings it up to the table as it is now: `full`, `incremental` or `quick`."""
        table, name = self._table(indexName)
        table.refresh(name, mode=mode)

    def optimizeIndex(self, indexName: str, mode: str = "quick") -> None:
        """Merges its small files (`quick`), or all of them (`full`)."""
        table, name = self._table(indexName)
        table.optimize(name, mode=mode)

    def cancel(self, indexName: str) -> None:
        """Ends what is under way on it; the index is as it was before."""
        table, name = self._table(indexName)
        table.cancel(name)

    def explain(self, df: "DataFrame", verbose: bool = False, redirectFunc: Callable[[str], object] = print) -> None:
        """What the query would use if Hyperspace is enabled, whether or not it is; `verbose` adds Spark's plans."""
        lake, settings = self._now()
        with _considered(lake):
            explanation = lake.explain(df, verbose)
        redirectFunc(explanation._repr_html_() if settings.as_html else str(explanation))

    def whyNot(
        self,
        df: "DataFrame",
        indexName: str = "",
        extended: bool = False,
        redirectFunc: Callable[[str], object] = print,
    ) -> None:
        """For every index of the query's tables, or for this one, why the query would not use it; `extended` adds the values that
        decided."""
        lake, _ = self._now()
        with _considered(lake):
            reasons = lake.why_not(df, normalised(indexName) or None)
        redirectFunc("\n".join(_told(reason, extended) for reason in reasons) or "No index was left out.")

    @staticmethod
    def enable(spark: "SparkSession") -> "SparkSession":
        """From here on queries of this session use indexes."""
        return _switched(spark, "true")

    @staticmethod
    def disable(spark: "SparkSession") -> "SparkSession":
        """From here on queries of this session are left alone."""
        return _switched(spark, "false")

    @staticmethod
    def isEnabled(spark: "SparkSession") -> bool:
        lake, _ = _attached(classic(spark))
        return lake.enabled

    def _now(self) -> tuple[Lake, Settings]:
        return _attached(self._session)

    def _table(self, index_name: str) -> tuple[LakeTable, str]:
        lake, known = self._found(index_name)
        return lake.table(known.table), known.info.name

    def _found(self, index_name: str) -> tuple[Lake, _Known]:
        lake, settings = self._now()
        name, known = normalised(index_name), self._known(lake, settings)
        found = [one for one in known if one.info.name == name]
        if not found:
            there = ", ".join(sorted({one.info.name for one in known})) or "none"
            raise IndexNotFound(
                f"no index {name} on the tables that are known here; there are: {there}. Set spark.hyperspace.system.path to "
                "where it was created, or explain a query on its table first"
            )
        if len(found) > 1:
            raise Conflict(
                f"there is an index {name} on each of {', '.join(one.table for one in found)}; say which one is meant with "
                "grebe.attach(spark).table(…)",
                detail="SEVERAL_TABLES",
            )
        return lake, found[0]

    def _known(self, lake: Lake, settings: Settings) -> list[_Known]:
        location = settings.config.location
        below = logs_below(location, self._store) if location else {}
        met = {table: Place(table, None, location, self._store).find() for table in lake.tables() if table not in below}
        logs = below | {table: log for table, log in met.items() if log is not None}
        known = [
            _Known(table, log, info, in_system_path=not location or table in below)
            for table, log in sorted(logs.items())
            for info in describe_indexes(log.state, NO_FILES, 0)
        ]
        names = {one.info.name for one in known if one.in_system_path}
        return [one for one in known if one.in_system_path or one.info.name not in names]

    def _store(self, uri: str) -> Store:
        return store_for(self._session, uri)


def _attached(session: "SparkSession") -> tuple[Lake, Settings]:
    """Under the settings as they are now: programs of Hyperspace change them on the way."""
    settings = settings_of(session)
    return attach(session, settings.config), settings


def _switched(spark: "SparkSession", on: str) -> "SparkSession":
    session = classic(spark)
    session.conf.set(ENABLED, on)
    _attached(session)
    return spark


@contextmanager
def _considered(lake: Lake) -> Iterator[None]:
    """Indexes are considered in the block, as Hyperspace explains what it would do also while it is disabled."""
    before = lake.enabled
    lake.enabled = True
    try:
        yield
    finally:
        lake.enabled = before


def _told(reason: Reason, extended: bool) -> str:
    title = ": ".join(part for part in (reason.relation, reason.index) if part)
    lines = [f"{title} [{reason.code}]", f"  {reason.sentence}"]
    if extended:
        lines += [f"  {name} = {value}" for name, value in reason.arguments.items()]
    return "\n".join(lines)
