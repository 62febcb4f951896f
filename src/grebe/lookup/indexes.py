"""The lookup indexes of a log's state, and the cache that all tables of a process share."""

import logging
from functools import cache

from grebe.errors import GrebeError
from grebe.formats.byte_cache import ByteCache
from grebe.indexes.lookup.probe import LookupIndex
from grebe.indexes.lookup.spec import Lookup
from grebe.log.states import ACTIVE, TableState
from grebe.store.protocol import Store

_logger = logging.getLogger("grebe.lookup")


@cache
def shared_cache(limit: int) -> ByteCache:
    """One for each bound that somebody asks for."""
    return ByteCache(limit)


def lookup_indexes(state: TableState, store: Store) -> list[LookupIndex]:
    """Those in use. One that cannot be read is left out, with a warning: its files are scanned."""
    found = []
    for index in state.indexes.values():
        if index.state == ACTIVE and index.spec.kind == Lookup.kind:
            try:
                found.append(LookupIndex.of(index, store))
            except GrebeError as problem:
                _logger.warning("event=index_set_aside index=%s code=%s", index.name, problem.code)
    return found
