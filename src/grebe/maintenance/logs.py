"""The log of exactly one table: where it is, or where to make it.

A query may use the indexes of a table that it reads a part of. Whoever changes indexes must have the whole table in hand, so only
the log of the table itself will do here.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grebe.errors import TableNotFound
from grebe.files import canonical_uri
from grebe.log import names
from grebe.log.commit import Log
from grebe.log.entry import TableInfo
from grebe.log.location import below, beside
from grebe.log.ownership import require_owner
from grebe.maintenance.surroundings import require_place
from grebe.store.protocol import Store

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table's indexes are kept: the exact folder (`location`), else below a root for all tables, or beside the table."""

    table: str
    location: str | None
    root: str | None
    opener: Callable[[str], Store]

    def find(self) -> Log | None:
        """The log; None if nothing has been indexed yet."""
        for uri in self._candidates():
            try:
                log = Log(self.opener(uri)).open()
            except TableNotFound:
                continue
            require_owner(uri, log.state.table.uri if log.state.table else None, self.table)
            return log
        return None

    def existing(self) -> Log:
        """Raises `TableNotFound` where nothing has been indexed yet."""
        found = self.find()
        if found is None:
            raise TableNotFound(
                f"{self.table} has no indexes here (looked at {', '.join(self._candidates())}); create one, or name the right "
                "location=",
                detail="NO_INDEXES",
            )
        return found

    def made(self, table: TableInfo) -> Log:
        """The log, made if it is not there."""
        return self.find() or self._new(table)

    def _new(self, table: TableInfo) -> Log:
        location = self._candidates()[0]
        require_place(location, self.table, self.opener)
        return Log(self.opener(location)).create(table)

    def _candidates(self) -> list[str]:
        if self.location is not None:
            return [canonical_uri(self.location)]
        return [*([below(canonical_uri(self.root), self.table)] if self.root else []), beside(self.table)]


def logs_below(root: str, opener: Callable[[str], Store]) -> dict[str, Log]:
    """By its table every log below a root for all tables. All that is there is listed, and then the logs are opened at once."""
    top = canonical_uri(root)
    paths = (listed.path.partition("/") for listed in opener(top).list())
    folders = {folder for folder, _, path in paths if names.is_of_log(path)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        opened = list(pool.map(lambda folder: Log(opener(f"{top}/{folder}")).open(), sorted(folders)))
    by_table = {log.state.table.uri: log for log in opened if log.state.table is not None}
    # What was put there by location= is found by nobody who does not know of it.
    return {table: log for table, log in by_table.items() if log.store.uri == below(top, table)}
