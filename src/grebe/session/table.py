"""What users hold in their hands: `open(path)` and the verbs of a table."""

import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime
from os import PathLike
from typing import Self

import numpy as np
import pyarrow as pa

from grebe import telemetry
from grebe.advisor.measured.predictions import Predictions, predictions_of
from grebe.advisor.workload.columns import ColumnInfo, statistics_of
from grebe.advisor.workload.columns import described as described_columns
from grebe.advisor.workload.estimate import selectivity
from grebe.advisor.workload.observed import from_table
from grebe.advisor.workload.reading import Recorded, places_of
from grebe.advisor.workload.statistics import TableStatistics
from grebe.clock import SYSTEM
from grebe.config import Config
from grebe.credentials import refuse_credentials
from grebe.errors import IndexNotFound, InvalidPredicate, TableNotFound, Unsupported
from grebe.files import FileIds, FileList, canonical_uri, location_given, path_given
from grebe.formats import Reading
from grebe.formats.byte_cache import shared_cache
from grebe.indexes.faults import Report
from grebe.log.commit import Log
from grebe.log.describe import HistoryEntry, IndexInfo, describe_history, describe_indexes, no_indexes
from grebe.log.location import places
from grebe.log.registration import Registry
from grebe.log.snapshot import history
from grebe.lookup.answer import Answer
from grebe.lookup.engine import Engine, Snapshot
from grebe.lookup.explain import LookupExplanation
from grebe.lookup.finding import NOWHERE
from grebe.lookup.indexes import Listed, Usable, usable
from grebe.lookup.nearest import axes_of, nearest, within
from grebe.lookup.pin.asked import Asked
from grebe.lookup.pin.build import limit_of, pinned
from grebe.lookup.pin.pins import Pin, PinInfo, Pins, described
from grebe.lookup.places import Box, point_of
from grebe.maintenance.verify import changed_files, verify
from grebe.planner.prices import Prices
from grebe.predicate.tree import TRUE, Predicate
from grebe.session.arguments import column_given, column_names_given, keys_given, predicate_given
from grebe.session.snapshots import files_as_of, files_now, version_of
from grebe.session.stores import CountedStores
from grebe.shown.records import Records
from grebe.sources import Source, Version, open_source
from grebe.sources.plain import PlainSource
from grebe.store.access import taking_access_of
from grebe.store.counting import Counts
from grebe.store.opening import open_store

_logger = logging.getLogger("grebe")


class Table:
    """A table as it was when it was opened: one listing of its files, one state of its log. `reload` moves on."""

    def __init__(
        self,
        source: Source,
        log: Log | None,
        config: Config | None = None,
        stores: CountedStores | None = None,
        stays: bool = False,
        recorded: Recorded | None = None,
    ) -> None:
        """`stays`: a version was asked for, so that `reload` keeps it. `recorded`: where the queries on it are."""
        self._source = source
        self._log = log
        self._stays = stays
        self._recorded = recorded or Recorded(tuple(places_of(source.uri)), open_store)
        self._config = config or Config()
        self._stores = stores or CountedStores()
        self._pins = Pins()
        self._files = self._listed()
        self._made: Engine | None = None
        with contextlib.suppress(Unsupported):
            # Text that does not say its columns has indexes and a history all the same; whoever looks something up is told.
            self._made = self._new_engine()
        self.opened = self._stores.counts
        """What opening asked of the stores."""

    def __repr__(self) -> str:
        indexes = len(self._log.state.indexes) if self._log else 0
        return f"Table({self.uri!r}, {len(self._files)} files, {indexes} indexes)"

    @property
    def uri(self) -> str:
        return self._source.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns, those of partitions included."""
        return self._engine.snapshot.reading.schema

    def indexes(self) -> Records[IndexInfo]:
        """All indexes of the table, by name."""
        if self._log is None:
            return no_indexes()
        listed, unregistered = _ids(self._log, self._files)
        return describe_indexes(self._log.state, listed, unregistered)

    def index(self, name: str) -> IndexInfo:
        """Raises `IndexNotFound`."""
        by_name = {info.name: info for info in self.indexes()}
        if name not in by_name:
            raise IndexNotFound(f"no index {name} on {self.uri}; there are: {', '.join(by_name) or 'none yet'}")
        return by_name[name]

    def history(self, limit: int | None = None) -> Records[HistoryEntry]:
        """The last `limit` entries of the log (all, if None), newest last."""
        if self._log is None:
            return describe_history(())
        return describe_history(history(self._log.store, self._log.newest.number, limit))

    def workload(self) -> pa.Table:
        """The queries on the table that were recorded (`record_workload`), by Spark and without, one row each, oldest first."""
        return self._recorded.queries()

    def forget_workload(self) -> int:
        """Removes what was recorded of queries; gives how many blocks of them."""
        return self._recorded.clear()

    def predictions(self) -> Predictions:
        """Predicted beside measured: of indexes whose building was predicted, and of recorded queries that used an index."""
        return predictions_of(None if self._log is None else self._log.state, from_table(self._recorded.queries()))

    def statistics(self, anew: bool = False) -> Records[ColumnInfo]:
        """Of each column the share of NULLs, how many different values there are, and quantiles, all by a sample of the rows. Kept
        beside the recorded queries, where they are recorded; `anew` takes another sample."""
        return described_columns(self._statistics(anew), self._engine.type_of)

    def selectivity(self, predicate: str | Predicate) -> float:
        """About which share of the rows makes the predicate true, by `statistics`."""
        return selectivity(self._bound(predicate), self._statistics())

    def _statistics(self, anew: bool = False) -> TableStatistics:
        return statistics_of(self._engine, self._config, self._recorded.store, anew)

    def get(self, column: str, value: object, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows in which the column has this value (None: in which it is NULL), in no promised order."""
        wanted = column_given(column)
        return self.scan(wanted.is_null() if value is None else wanted == self._typed(column, value), columns)

    def get_many(self, column: str, keys: Iterable[object], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows in which the column has one of these values, each row once."""
        wanted = column_given(column)
        return self.scan(wanted.isin([self._typed(column, key) for key in keys_given(keys)]), columns)

    def files(self, predicate: str | Predicate) -> Answer:
        """The files that can hold rows of the predicate, and which rows of them where an index knows."""
        return self._engine.files(self._bound(predicate))

    def rows(self, predicate: str | Predicate) -> pa.Table:
        """Where the rows of the predicate lie: `file`, and `row`, or `offset` and `length` of the record in its file."""
        return self._engine.rows(self._bound(predicate))

    def scan(self, predicate: str | Predicate, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows for which the predicate is true."""
        return self._engine.scan(self._bound(predicate), self._chosen(columns))

    def within(
        self, box: Sequence[float], columns: Sequence[str] | None = None, *, on: str | Sequence[str] | None = None
    ) -> pa.Table:
        """The rows that lie in the box (xmin, ymin, xmax, ymax), its bounds included; with xmin above xmax it crosses the
        antimeridian. Which columns say where a row lies is known by a Spatial index, or given by `on`: two of points, four of
        boxes, one of WKB. Boxes and geometries lie in it wholly."""
        wanted = Box.of(box)
        engine = self._engine
        return engine.scan(within(engine, axes_of(engine, on), wanted), self._chosen(columns))

    def nearest(
        self,
        x: float,
        y: float,
        k: int,
        columns: Sequence[str] | None = None,
        *,
        on: str | Sequence[str] | None = None,
    ) -> pa.Table:
        """The `k` rows nearest to the point, nearest first: by planar distance, any choice among equals, no row without a finite
        place. `on` as in `within`."""
        point, engine = point_of(x, y), self._engine
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise InvalidPredicate(f"nearest takes a number of rows, not k={k!r}", detail="POINT")
        return nearest(engine, axes_of(engine, on), point, k, self._chosen(columns))

    def count(self, predicate: str | Predicate | None = None) -> int:
        """How many rows make the predicate true (all, if there is none). What an index knows for sure is not read."""
        return self._engine.count(TRUE if predicate is None else self._bound(predicate))

    def exists(self, predicate: str | Predicate) -> bool:
        """Whether some row makes the predicate true."""
        return self._engine.exists(self._bound(predicate))

    def explain(self, predicate: str | Predicate) -> LookupExplanation:
        """Which files and rows a lookup would read, by which index, and why not by the others."""
        return replace(self._engine.explain(self._bound(predicate)), prices=Prices.of_settings(self._config))

    def warm(self, name: str, pin: bool = False) -> None:
        """Reads ahead what lookups by this index need. `pin`: it stays in memory, whatever else is read."""
        self.index(name)
        self._engine.warm(name, pin)

    def pin(
        self,
        predicate: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        memory: int | str = "2GB",
        *,
        queries: Iterable[str | Predicate] = (),
    ) -> Pin:
        """Keeps the rows of the predicate (all, if None) with these columns (all, if None) in memory, until `unpin`, the end of a
        `with`, or of the process. They are laid out for `queries`, else for those that this handle was asked so far. Raises
        `Unsupported` where they take more than `memory`. No answer changes: files that are not in it are read as ever."""
        limit = limit_of(memory)
        engine, listed = self._engine, self._listed_at
        wanted = TRUE if predicate is None else self._bound(predicate)
        chosen = self._chosen(columns)
        names = engine.snapshot.reading.schema.names if chosen is None else chosen
        asked = Asked()
        for query in queries:
            asked.hear(self._bound(query))
        wishes = asked.wishes()
        made = pinned(engine, wanted, names, limit, wishes if wishes.any else self._pins.asked.wishes(), listed)
        self._pins.add(made)
        return Pin(self._pins, made)

    def unpin(self) -> None:
        """Lets go of all that `pin` keeps."""
        self._pins.remove()

    @property
    def pinned(self) -> Records[PinInfo]:
        """What `pin` keeps, and how often it was used."""
        return described(self._pins)

    def verify(self, deep: bool = False) -> Report:
        """Whether the log and the files of the indexes are as they were written; `deep` reads all of their bytes."""
        if self._log is None:
            return Report()
        return replace(verify(self._log, deep), unchecked=changed_files(self._log, self._files))

    def counts(self) -> Counts:
        """What this table has asked of its stores so far, opening included."""
        return self._stores.counts

    def reload(self) -> Self:
        """Moves on to the table and the log as they are now; a version that was asked for stays."""
        if self._log is not None:
            self._log.reload()
        if not self._stays:
            self._source = self._source.at()
        self._files = self._listed()
        self._made = None
        return self

    def _listed(self) -> FileList:
        files = self._files_now()
        self._listed_at = SYSTEM.monotonic()
        return files

    def _files_now(self) -> FileList:
        """The files of the version or, for a reader of snapshots, those of the last refresh that are still there unchanged."""
        seen = None if self._log is None else self._log.state.seen
        if self._config.consistency != "snapshot" or self._stays or self._log is None or seen is None:
            return files_now(self._source, self._config.identity)
        if seen.version:
            self._source = self._source.at(version_of(seen.version))
            return self._source.files()
        return files_as_of(
            self._source, Registry(self._log).files(self._log.state).select(seen.files), self._config.identity
        )

    @property
    def _engine(self) -> Engine:
        if self._made is None:
            self._made = self._new_engine()
        return self._made

    def _bound(self, predicate: str | Predicate) -> Predicate:
        return self._engine.bound(predicate_given(predicate))

    def _typed(self, column: str, value: object) -> object:
        """A time without a zone is one of the column's own kind; in a comparison it would be a moment, and every row be cast."""
        if not isinstance(value, datetime) or value.tzinfo is not None:
            return value
        kind = self._engine.type_of(column)
        return pa.scalar(value, pa.timestamp("us")) if kind is not None and kind.name == "timestamp_ntz" else value

    def _chosen(self, columns: Sequence[str] | None) -> list[str] | None:
        """As the table spells them. A name in other case is the same column, as in Spark."""
        names = column_names_given(columns)
        if names is None:
            return None
        known = {column.name.lower(): column.name for column in self._engine.snapshot.reading.columns}
        lacking = [name for name in names if name.lower() not in known]
        if lacking:
            raise InvalidPredicate(
                f"{self.uri} has no column {', '.join(lacking)}; there are: {', '.join(known.values())}",
                detail="NO_COLUMN",
            )
        return [known[name.lower()] for name in names]

    def _new_engine(self) -> Engine:
        log, files = self._log, self._files
        source = _as_recorded(self._source, log)
        ids = np.full(len(files), NOWHERE, np.int64)
        indexes = Usable()
        if log is not None:
            with ThreadPoolExecutor(1) as aside:
                registered = aside.submit(Registry(log).files, log.state)
                reading = source.reading(files)
                ids = registered.result().ids_of(files).cast(pa.int64()).fill_null(NOWHERE).to_numpy()
            sizes = files.table["size"].to_numpy()
            indexes = usable(log.state, log.store, Listed(ids, sizes, reading))
        else:
            reading = source.reading(files)
        number = None if log is None else log.newest.number
        snapshot = Snapshot(source, files, ids, reading, indexes.pruners, source.version(), number, *indexes.told)
        zone = self._config.time_zone or reading.time_zone or "UTC"
        return Engine(
            snapshot, shared_cache(self._config.cache_bytes), zone, self._recorded.hears(self._config), self._pins
        )


def open(
    path: str | PathLike[str],
    format: str | None = None,
    location: str | PathLike[str] | None = None,
    version: Version | None = None,
    timestamp: str | date | None = None,
    storage_options: Mapping[str, str] | None = None,
    config: Config | None = None,
) -> Table:
    """Opens a table without Spark. `location` is where its indexes lie, if not beside it. `version` (of Delta Lake a number, of
    Iceberg a snapshot's id, a tag or a branch, of Hudi an instant) and `timestamp` are for sources that keep versions."""
    settings = Config.load({}, config=config)
    path, location = path_given(path), location_given(location) if location else None
    refuse_credentials(path)
    stores = CountedStores()
    with ThreadPoolExecutor(1) as aside:
        finding = aside.submit(_find_log, canonical_uri(path), location, settings.location, storage_options, stores)
        source = open_source(
            path,
            format=format,
            storage_options=storage_options,
            version=version,
            timestamp=timestamp,
            open_store=stores.open_table,
            allowed=settings.allowed_roots,
            guard_decoders=settings.guard_decoders,
        )
        log = finding.result()
    if log is None and source.uri != canonical_uri(path):
        log = _find_log(source.uri, location, settings.location, storage_options, stores)
    where = places_of(source.uri, location, settings.location, None if log is None else log.store.uri)
    recorded = Recorded(tuple(where), lambda place: taking_access_of(open_store(place, storage_options), source.uri))
    return Table(source, log, settings, stores, version is not None or timestamp is not None, recorded)


def _as_recorded(source: Source, log: Log | None) -> Source:
    """Text does not say how it is to be read: that was recorded when the first index was created."""
    recorded = log.state.table.reading if log is not None and log.state.table is not None else None
    if not recorded or not isinstance(source, PlainSource):
        return source
    reading = Reading.from_dict(recorded)
    return source.read_as(reading) if reading.format == source.format.name else source


def _find_log(
    table: str, location: str | None, root: str | None, options: Mapping[str, str] | None, stores: CountedStores
) -> Log | None:
    """The nearest log; None if there is none, or none that this version can read."""
    where = [canonical_uri(location)] if location else places(table, canonical_uri(root) if root else None)
    for place in where:
        try:
            return Log(stores.open(place, options)).open()
        except TableNotFound:
            continue
        except Unsupported as problem:
            telemetry.event(_logger, logging.WARNING, "log_not_read", code=problem.code, why=str(problem))
            return None
    return None


def _ids(log: Log, files: FileList) -> tuple[FileIds, int]:
    """The ids of the files, and how many have none."""
    found = Registry(log).files(log.state).ids_of(files)
    return FileIds.of(found.drop_null().to_numpy()), found.null_count
