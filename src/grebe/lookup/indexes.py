"""The indexes that prune, of a log's state, and the cache that all tables of a process share."""

import logging
from functools import cache

from grebe.errors import GrebeError
from grebe.formats.byte_cache import ByteCache
from grebe.indexes.kind import Pruner
from grebe.indexes.registry import kind_named
from grebe.log.states import ACTIVE, TableState
from grebe.store.protocol import Store

_logger = logging.getLogger("grebe.lookup")


@cache
def shared_cache(limit: int) -> ByteCache:
    """One for each bound that somebody asks for."""
    return ByteCache(limit)


def pruners(state: TableState, store: Store) -> list[Pruner]:
    """Of the indexes in use. One that cannot be read is left out, with a warning: its files are scanned."""
    found = []
    for index in state.indexes.values():
        if index.state == ACTIVE:
            try:
                made = kind_named(index.spec.kind).pruner_of(index, store)
            except GrebeError as problem:
                _logger.warning("event=index_set_aside index=%s code=%s", index.name, problem.code)
                continue
            if made is not None:
                found.append(made)
    return found
