"""What users hold in their hands: `open(path)` and the verbs of a table."""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Self

from grebe.config import Config
from grebe.errors import IndexNotFound, TableNotFound, Unsupported
from grebe.files import FileIds, FileList, canonical_uri
from grebe.log.commit import Log
from grebe.log.describe import HistoryEntry, IndexInfo, describe_history, describe_indexes
from grebe.log.location import places
from grebe.log.registration import Registry
from grebe.log.snapshot import history
from grebe.sources import Source, Version, open_source
from grebe.store.opening import open_store

_logger = logging.getLogger("grebe")


class Table:
    """A table as it was when it was opened: one listing of its files, one state of its log. `reload` moves on."""

    def __init__(self, source: Source, log: Log | None, version: Version | None = None) -> None:
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

    def reload(self) -> Self:
        """Moves on to the table and the log as they are now; a version that was asked for stays."""
        if self._log is not None:
            self._log.reload()
        self._files = self._source.files(self._version)
        return self


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
    return Table(source, _find_log(source.uri, location, settings.location, storage_options), version)


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
