"""Iceberg's part of `table_rewrite`: what its own `rewrite_data_files` does, by another order of the rows.

The files of one snapshot are replaced by others in one commit that is validated against that snapshot: if one of them is gone, or
rows of it were deleted since, the commit fails. Files that others have added stay.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from grebe.clock import SYSTEM
from grebe.errors import GrebeError, Unsupported
from grebe.files import canonical_uri
from grebe.sources.iceberg import IcebergSource
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
    from pyspark.sql import DataFrame, SparkSession

_CONFLICTS = ("ValidationException", "CommitFailedException")
_FUNCTIONS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_CATALOG = "default_rewrite_catalog"
_VECTORS = "PUFFIN"


def require_iceberg(lake: IcebergSource) -> None:
    """That nothing of the table would be lost. Raises `Unsupported`."""
    current = lake.metadata.default_spec_id
    if any(one.spec_id != current for one in lake.entries()):
        raise Unsupported(
            f"{lake.uri} has files of a partitioning that it had before; let Iceberg's rewrite_data_files bring them to the one of "
            "now, or let organise make an index beside the table (without in_place)",
            detail="IN_PLACE",
        )


def rewrite_iceberg(
    session: "SparkSession", lake: IcebergSource, frame: "DataFrame | None", uris: Collection[str], arrange: Arrange
) -> Rewritten:
    """These files of the table, in one commit. `frame`: what reads it, where a catalog knows it."""
    with apart(session) as own:
        jvm: Any = own._jvm
        spark = jvm.org.apache.iceberg.spark
        group = f"grebe-{SYSTEM.new_id()}"
        with format_errors(lake.uri, _CONFLICTS, "reading its metadata"), calls_of(lake.uri, "Iceberg"):
            table = _table(own, lake, frame)
            table.refresh()
            snapshot = table.currentSnapshot()
            scan = table.newScan().useSnapshot(snapshot.snapshotId()).ignoreResiduals().planFiles()
            plans = jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList(scan)
            tasks = [one for one in plans if canonical_uri(one.file().location()) in uris]
            cache, staged = spark.SparkTableCache.get(), spark.ScanTaskSetManager.get()
            rewrites = spark.FileRewriteCoordinator.get()
        require_all_there(len(uris), len(tasks), lake.uri)
        cache.add(group, table)
        staged.stageTasks(table, group, tasks)
        try:
            added = _written(own, lake, table, group, tasks, arrange, rewrites)
            try:
                return _committed(lake, table, snapshot, tasks, added)
            except GrebeError as failed:
                if failed.code != "STORE_UNREACHABLE_COMMIT":
                    for file in added:
                        table.io().deleteFile(file.location())
                raise
        finally:
            cache.remove(group)
            staged.removeTasks(table, group)
            rewrites.clearRewrite(table, group)


def _table(own: "SparkSession", lake: IcebergSource, frame: "DataFrame | None") -> Any:
    """As whoever commits to it has it: its catalog, or the folder itself where that counts."""
    if frame is not None:
        return frame._jdf.queryExecution().analyzed().collectLeaves().head().table().table()
    from py4j.protocol import Py4JJavaError

    jvm: Any = own._jvm
    configuration = own._jsparkSession.sessionState().newHadoopConf()
    try:
        return jvm.org.apache.iceberg.hadoop.HadoopTables(configuration).load(hadoop_uri(own, lake.uri))
    except Py4JJavaError as unknown:
        raise Unsupported(
            f"{lake.uri} belongs to a catalog, which alone can commit to it; give organise the table by its name there",
            detail="IN_PLACE",
        ) from unknown


def _written(
    own: "SparkSession", lake: IcebergSource, table: Any, group: str, tasks: list[Any], arrange: Arrange, rewrites: Any
) -> list[Any]:
    with format_errors(lake.uri, _CONFLICTS, "writing its rows"):
        frame = own.read.format("iceberg").load(group)
        deleted = any(len(one.deletes()) for one in tasks)
        expected = count_of(frame) if deleted else sum(one.file().recordCount() for one in tasks)
        laid = arrange(frame, _partition(table))
        writer = laid.write.format("iceberg").option("use-table-distribution-and-ordering", "false")
        writer.option("output-spec-id", str(table.spec().specId())).mode("append").save(group)
        added = list(rewrites.fetchNewFiles(table, group))
    require_same_rows(expected, sum(one.recordCount() for one in added), lake.uri)
    return added


def _partition(table: Any) -> list[str]:
    """In which partition a row is, as expressions."""
    found = []
    for field in table.spec().fields():
        kind, _, width = str(field.transform().toString()).rstrip("]").partition("[")
        name = ".".join(f"`{part.replace('`', '``')}`" for part in _path(table, field.sourceId()))
        if kind == "identity":
            found.append(name)
        elif kind in ("bucket", "truncate"):
            found.append(f"{_CATALOG}.{kind}({width}, {name})")
        elif kind in _FUNCTIONS:
            found.append(f"{_CATALOG}.{_FUNCTIONS[kind]}({name})")
        elif kind != "void":
            raise Unsupported(
                f"{table.location()} is partitioned by {kind}, which is not known; let organise make an index beside the table "
                "(without in_place)",
                detail="IN_PLACE",
            )
    return found


def _path(table: Any, field: int) -> list[str]:
    return str(table.schema().findColumnName(field)).split(".")


def _committed(lake: IcebergSource, table: Any, snapshot: Any, tasks: list[Any], added: list[Any]) -> Rewritten:
    with format_errors(lake.uri, _CONFLICTS, "the commit"):
        rewrite = table.newRewrite().validateFromSnapshot(snapshot.snapshotId())
        # Rows that others delete by value meanwhile are deleted from these files as from those before.
        rewrite.dataSequenceNumber(snapshot.sequenceNumber())
        for task in tasks:
            rewrite.deleteFile(task.file())
            for one in task.deletes():
                if one.format().toString() == _VECTORS:
                    rewrite.deleteFile(one)
        for file in added:
            rewrite.addFile(file)
        rewrite.commit()
        table.refresh()
    return Rewritten(str(table.currentSnapshot().snapshotId()), len(added), sum(one.fileSizeInBytes() for one in added))
