"""Delta Lake's part of `table_rewrite`: what its own OPTIMIZE does with the files of a table, by another order of the rows.

The transaction reads its files at one version and removes exactly those. Delta itself then sees to it that files which others have
added stay, and that the commit fails if one of ours was removed, or rows of it were deleted.
"""

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from grebe.clock import SYSTEM
from grebe.errors import Unsupported
from grebe.sources.delta import DeltaSource
from grebe.sources.lake import uri_of
from grebe.spark.stores import hadoop_uri
from grebe.spark.table_rewrite import (
    Arrange,
    Rewritten,
    apart,
    calls_of,
    count_of,
    format_errors,
    require_all_there,
    require_same_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_OPERATION = "Optimize"
"""As which the history shows it: what it does is what OPTIMIZE does, in another order."""
_CONFLICTS = ("DeltaConcurrentModificationException",)
_KEPT_OTHERWISE = {
    "clustering": "is clustered by Delta itself (CLUSTER BY), which would lay it out by those columns again",
    "catalogManaged": "is committed to by its catalog only",
    "catalogOwned-preview": "is committed to by its catalog only",
}


def require_delta(session: "SparkSession", lake: DeltaSource) -> None:
    """That nothing of the table would be lost, and that it can be written. Raises `Unsupported`."""
    features = lake.table.protocol().writer_features or ()
    why = [_KEPT_OTHERWISE[one] for one in features if one in _KEPT_OTHERWISE]
    if lake.table.metadata().configuration.get("delta.enableRowTracking") == "true":
        why.append("tracks its rows (delta.enableRowTracking), whose ids would be others afterwards")
    if why:
        raise Unsupported(
            f"{lake.uri} {why[0]}; let organise make an index beside the table (without in_place)", detail="IN_PLACE"
        )
    if _EXTENSION not in str(session.conf.get("spark.sql.extensions", "")):
        raise Unsupported(
            f"{lake.uri} can be rewritten by a Spark only that has Delta's session extension: start it with "
            f"spark.sql.extensions={_EXTENSION}",
            detail="IN_PLACE_EXTENSION",
        )


def rewrite_delta(session: "SparkSession", lake: DeltaSource, uris: Collection[str], arrange: Arrange) -> Rewritten:
    """These files of the table, in one commit."""
    from pyspark.sql import DataFrame

    with apart(session) as own:
        jvm: Any = own._jvm
        sequence, nothing = jvm.org.apache.spark.api.python.PythonUtils.toSeq, jvm.scala.Option.empty()
        delta = jvm.org.apache.spark.sql.delta
        with format_errors(lake.uri, _CONFLICTS, "reading its log"), calls_of(lake.uri, "Delta Lake"):
            # All that a commit takes is made before anything is written.
            none = sequence([])
            optimize = getattr(delta.DeltaOperations, _OPERATION)(none, none, False, nothing, False)
            log = delta.DeltaLog.forTable(own._jsparkSession, hadoop_uri(own, lake.uri))
            transaction = log.startTransaction()
            snapshot = transaction.snapshot()
            listed = [(one, json.loads(one.json())["add"]) for one in snapshot.allFiles().collectAsList()]
            chosen = [(one, said) for one, said in listed if uri_of(lake.uri, unquote(said["path"])) in uris]
            require_all_there(len(uris), len(chosen), lake.uri)
            files = sequence([one for one, _ in chosen])
            transaction.trackFilesRead(files)
            frame = DataFrame(log.createDataFrame(snapshot, files, False, nothing), own)
        with format_errors(lake.uri, _CONFLICTS, "writing its rows"):
            told = _rows([said for _, said in chosen])
            expected = count_of(frame) if told is None else told
            partitions = [f"`{name.replace('`', '``')}`" for name in lake.table.metadata().partition_columns]
            laid = arrange(frame, partitions)
            written = transaction.writeFiles(laid._jdf, nothing, True, none)
            added = [
                json.loads(one.json())["add"] for one in jvm.scala.jdk.javaapi.CollectionConverters.asJava(written)
            ]
            counted = _rows(added)
            if counted is None:
                counted = count_of(DataFrame(log.createDataFrame(snapshot, written, False, nothing), own))
        require_same_rows(expected, counted, lake.uri)
        with format_errors(lake.uri, _CONFLICTS, "the commit"):
            action = delta.actions.Action.fromJson
            adds = [action(json.dumps({"add": {**one, "dataChange": False}})) for one in added]
            removes = [one.removeWithTimestamp(SYSTEM.now_ms(), False) for one, _ in chosen]
            version = transaction.commit(sequence([*adds, *removes]), optimize)
    return Rewritten(str(version), len(added), sum(one["size"] for one in added))


def _rows(files: Sequence[dict[str, Any]]) -> int | None:
    """As their statistics have it; None where some have none, or rows of some were deleted."""
    counts = [json.loads(one.get("stats") or "{}").get("numRecords") for one in files]
    return None if None in counts or any("deletionVector" in one for one in files) else sum(counts)
