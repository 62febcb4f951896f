"""What users hold in their hands: `open(path)` and the verbs of a table."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from grebe.config import Config
from grebe.errors import IndexNotFound, TableNotFound, Unsupported
from grebe.files import FileIds, FileList, canonical_uri
from grebe.indexes.kind import Pruner
from grebe.log.commit import Log
from grebe.log.describe import HistoryEntry, IndexInfo, describe_history, describe_indexes
from grebe.log.location import places
from grebe.log.registration import Registry
from grebe.log.snapshot import history
from grebe.lookup.answer import Answer
from grebe.lookup.engine import NOWHERE, Engine, Snapshot
from grebe.lookup.indexes import pruners, shared_cache
from grebe.predicate.bind import bind
from grebe.predicate.builder import col
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import Predicate
from grebe.sources import Source, Version, open_source
from grebe.store.opening import open_store

_logger = logging.getLogger("grebe")


class Table:
    """A table as it was when it was opened: one listing of its files, one state of its log. `reload` moves on."""

    def __init__(
        self, source: Source, log: Log | None, version: Version | None = None, cache_bytes: int = 256 * 1024 * 1024
    ) -> None:
        self._cache_bytes = cache_bytes
        self._source = source
        self._log = log
        self._version = version
        self._files = source.files(version)

    def __repr__(self) -> str:
        return (
            f"Table({self.uri!r}, {len(self._files)} files, {len(self._log.state.indexes) if self._log else 0} indexes)"
        )

    @property
    def uri(self) -> str:
        return self._source.uri

    def indexes(self) -> list[IndexInfo]:
        """All indexes of the table, by name."""
        if self._log is None:
            return []
        listed, unregistered = _ids(self._log, self._files)
        return describe_indexes(self._log.state, listed, unregistered)

    def index(self, name: str) -> IndexInfo:
        """Raises `IndexNotFound`."""
        by_name = {info.name: info for info in self.indexes()}
        if name not in by_name:
            raise IndexNotFound(f"no index {name} on {self.uri}; there are: {', '.join(by_name) or 'none yet'}")
        return by_name[name]

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The last `limit` entries of the log (all, if None), newest last."""
        if self._log is None:
            return []
        return describe_history(history(self._log.store, self._log.newest.number, limit))

    def get(self, column: str, value: object, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows in which the column has this value (None: in which it is NULL), in no promised order."""
        return self.scan(col(column).is_null() if value is None else col(column) == value, columns)

    def get_many(self, column: str, keys: Iterable[object], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows in which the column has one of these values, each row once."""
        return self.scan(col(column).isin(list(keys)), columns)

    def files(self, predicate: str | Predicate) -> Answer:
        """The files that can hold rows of the predicate, and which rows of them where an index knows."""
        return self._engine.files(self._bound(predicate))

    def scan(self, predicate: str | Predicate, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows for which the predicate is true."""
        return self._engine.scan(self._bound(predicate), columns)

    def reload(self) -> Self:
        """Moves on to the table and the log as they are now; a version that was asked for stays."""
        if self._log is not None:
            self._log.reload()
        self._files = self._source.files(self._version)
        self.__dict__.pop("_engine", None)
        return self

    def _bound(self, predicate: str | Predicate) -> Predicate:
        given = parse(predicate) if isinstance(predicate, str) else predicate
        return normalise(bind(given, self._engine.snapshot.reading.schema))

    @cached_property
    def _engine(self) -> Engine:
        reading = self._source.reading(self._files)
        ids = np.full(len(self._files), NOWHERE, np.int64)
        indexes: list[Pruner] = []
        if self._log is not None:
            found = Registry(self._log).files(self._log.state).ids_of(self._files)
            ids = found.cast(pa.int64()).fill_null(NOWHERE).to_numpy()
            indexes = pruners(self._log.state, self._log.store)
        number = None if self._log is None else self._log.newest.number
        snapshot = Snapshot(self._source, self._files, ids, reading, tuple(indexes), self._version, number)
        return Engine(snapshot, shared_cache(self._cache_bytes))


def open(
    path: str,
    format: str | None = None,
    location: str | None = None,
    version: Version | None = None,
    timestamp: str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
    config: Config | None = None,
) -> Table:
    """Opens a table without Spark. `location` is where its indexes lie, if not beside it. `version` and `timestamp` are for sources
    that keep versions."""
    settings = Config.load({}, config=config)
    source = open_source(path, format=format, storage_options=storage_options)
    if timestamp is not None:
        raise Unsupported(
            f"{source.uri} ({source.kind}) cannot be opened as of a time; leave timestamp= out to read it as it is now",
            detail="TIME_TRAVEL",
        )
    log = _find_log(source.uri, location, settings.location, storage_options)
    return Table(source, log, version, settings.cache_bytes)


def _find_log(table: str, location: str | None, root: str | None, options: Mapping[str, str] | None) -> Log | None:
    """The nearest log; None if there is none, or none that this version can read."""
    where = [canonical_uri(location)] if location else places(table, canonical_uri(root) if root else None)
    for place in where:
        try:
            return Log(open_store(place, options)).open()
        except TableNotFound:
            continue
        except Unsupported as newer:
            _logger.warning("%s", newer)
            return None
    return None


def _ids(log: Log, files: FileList) -> tuple[FileIds, int]:
    """The ids of the files, and how many have none."""
    found = Registry(log).files(log.state).ids_of(files)
    return FileIds.of(found.drop_null().to_numpy()), found.null_count
