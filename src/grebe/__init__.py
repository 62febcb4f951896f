"""Indexes for data lakes: queries use them by themselves, they stay right while the data changes, and no server runs.

    import grebe
    lake = grebe.attach(spark)                       # from here on queries use indexes by themselves
    lake.table("s3://lake/orders").create(grebe.Covering("by_customer", on="o_custkey", include=["o_totalprice"]))

    table = grebe.open("s3://lake/orders")           # no Spark, no Java
    table.indexes(); table.history()

The map of the code, from the top down (imports go down only):

    cli | compat                the command line; the names of Hyperspace
    session                     attach(spark), open(path), the verbs of a table, and the SQL that calls them
    maintenance                 create, refresh, delete, restore
    spark                       the rule in Spark's optimizer, and what it reads and writes through Spark
    planner | sql               what of a query is answered by which index; the statements on indexes
    indexes                     the kinds, one package each
    sources | log | predicate   the files of a table; the operation log; what a query asks
    formats                     the records of one file
    store                       bytes, on any platform
    errors, config, telemetry, shown, clock, files

Names load when they are first used, so that `import grebe` costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

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
        InvalidStatement,
        SourceChanged,
        StoreRefused,
        StoreUnreachable,
        TableNotFound,
        UnreadableFile,
        Unsupported,
        WrongState,
    )
    from grebe.indexes.covering.spec import Covering
    from grebe.indexes.layout.spec import Layout
    from grebe.indexes.lookup.spec import Lookup
    from grebe.indexes.sieve.spec import Sieve
    from grebe.indexes.sketches.bloom import Bloom
    from grebe.indexes.sketches.intervals import Intervals
    from grebe.indexes.sketches.min_max import MinMax, NullCount
    from grebe.indexes.sketches.ngram import Ngram
    from grebe.indexes.sketches.value_list import ValueList
    from grebe.indexes.skipping.spec import Skipping
    from grebe.indexes.spatial.spec import Spatial
    from grebe.indexes.view.spec import View
    from grebe.indexes.zorder.spec import ZOrder
    from grebe.log.describe import HistoryEntry, IndexInfo
    from grebe.planner.explain import Explanation
    from grebe.planner.reasons import Reason
    from grebe.predicate.builder import col
    from grebe.session.find import Finding, Findings, find
    from grebe.session.lake import Lake, attach
    from grebe.session.lake_table import LakeTable
    from grebe.session.table import Table, open

__all__ = [
    "Bloom",
    "Config",
    "Conflict",
    "CorruptIndex",
    "CorruptLog",
    "Covering",
    "Explanation",
    "Finding",
    "Findings",
    "GrebeError",
    "HistoryEntry",
    "IndexExists",
    "IndexInfo",
    "IndexNotFound",
    "Intervals",
    "InvalidConfig",
    "InvalidIndex",
    "InvalidPredicate",
    "InvalidStatement",
    "Lake",
    "LakeTable",
    "Layout",
    "Lookup",
    "MinMax",
    "Ngram",
    "NullCount",
    "Reason",
    "Sieve",
    "Skipping",
    "SourceChanged",
    "Spatial",
    "StoreRefused",
    "StoreUnreachable",
    "Table",
    "TableNotFound",
    "UnreadableFile",
    "Unsupported",
    "ValueList",
    "View",
    "WrongState",
    "ZOrder",
    "attach",
    "col",
    "find",
    "open",
]

_HOMES = {
    "Config": "grebe.config",
    "Covering": "grebe.indexes.covering.spec",
    "Layout": "grebe.indexes.layout.spec",
    "Lookup": "grebe.indexes.lookup.spec",
    "Sieve": "grebe.indexes.sieve.spec",
    "Skipping": "grebe.indexes.skipping.spec",
    "Spatial": "grebe.indexes.spatial.spec",
    "View": "grebe.indexes.view.spec",
    "ZOrder": "grebe.indexes.zorder.spec",
    "Bloom": "grebe.indexes.sketches.bloom",
    "Intervals": "grebe.indexes.sketches.intervals",
    "MinMax": "grebe.indexes.sketches.min_max",
    "NullCount": "grebe.indexes.sketches.min_max",
    "Ngram": "grebe.indexes.sketches.ngram",
    "ValueList": "grebe.indexes.sketches.value_list",
    "Explanation": "grebe.planner.explain",
    "Finding": "grebe.session.find",
    "Findings": "grebe.session.find",
    "HistoryEntry": "grebe.log.describe",
    "IndexInfo": "grebe.log.describe",
    "Lake": "grebe.session.lake",
    "LakeTable": "grebe.session.lake_table",
    "Reason": "grebe.planner.reasons",
    "Table": "grebe.session.table",
    "attach": "grebe.session.lake",
    "col": "grebe.predicate.builder",
    "find": "grebe.session.find",
    "open": "grebe.session.table",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    # The errors, and the kinds of indexes: those of installed packages too.
    if name[:1].isupper():
        errors = importlib.import_module("grebe.errors")
        found = getattr(errors, name, None) or importlib.import_module("grebe.indexes.registry").class_named(name)
        if found is not None:
            return found
    raise AttributeError(f"module 'grebe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
