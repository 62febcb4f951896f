"""Indexes for data lakes: queries use them by themselves, they stay right while the data changes, and no server runs.

    import grebe
    table = grebe.open("s3://lake/orders")
    table.indexes(); table.history()

The map of the code, from the top down (imports go down only):

    cli                         the command line
    session                     open(path) and the verbs of a table
    sources | log | predicate   the files of a table; the operation log; what a query asks
    formats                     the records of one file
    store                       bytes, on any platform
    errors, config, clock, files

Names load when they are first used, so that `import grebe` costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grebe.config import Config
    from grebe.errors import (
        Conflict,
        CorruptIndex,
        CorruptLog,
        GrebeError,
        IndexExists,
        IndexNotFound,
        InvalidConfig,
        InvalidIndex,
        InvalidPredicate,
        SourceChanged,
        StoreRefused,
        StoreUnreachable,
        TableNotFound,
        UnreadableFile,
        Unsupported,
        WrongState,
    )
    from grebe.log.describe import HistoryEntry, IndexInfo
    from grebe.predicate.builder import col
    from grebe.session.table import Table, open

__all__ = [
    "Config",
    "Conflict",
    "CorruptIndex",
    "CorruptLog",
    "GrebeError",
    "HistoryEntry",
    "IndexExists",
    "IndexInfo",
    "IndexNotFound",
    "InvalidConfig",
    "InvalidIndex",
    "InvalidPredicate",
    "SourceChanged",
    "StoreRefused",
    "StoreUnreachable",
    "Table",
    "TableNotFound",
    "UnreadableFile",
    "Unsupported",
    "WrongState",
    "col",
    "open",
]

_HOMES = {
    "Config": "grebe.config",
    "HistoryEntry": "grebe.log.describe",
    "IndexInfo": "grebe.log.describe",
    "Table": "grebe.session.table",
    "col": "grebe.predicate.builder",
    "open": "grebe.session.table",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'grebe' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "grebe.errors")), name)


def __dir__() -> list[str]:
    return __all__
