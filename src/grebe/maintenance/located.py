"""Rows with the places where they lie, for formats of which Spark does not tell that: read by Grebe's own reader in Spark's tasks,
and compared with what Spark's own reader makes of the same files.

The comparison is what makes it safe: an index is built of these rows only if both readers see the same rows in every file (their
number, and sums of a hash of the columns). It costs one more pass of Spark over these columns; for text, where a pass is a parse,
that is about as much again as indexing at file level would take. Our own rows are read once and kept on disk.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import Unsupported
from grebe.files import FileList
from grebe.formats import Column
from grebe.indexes.classic import functions
from grebe.indexes.columns import spark_schema
from grebe.indexes.kind import FILE_COLUMN, locator_columns
from grebe.indexes.workers import map_in_arrow
from grebe.maintenance.record_reader import LISTED, REFUSED_COLUMN, RecordReader, in_tasks
from grebe.spark.source import SparkSource
from grebe.spark.stores import storage_options

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Row

_LOW_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows with lineage and locators, on the disks of the executors until `frame` is unpersisted."""

    frame: "DataFrame"
    kept: "DataFrame"
    rows: int


def located_rows(
    source: SparkSource, files: FileList, ids: npt.NDArray[np.uint32], names: Iterable[str], by_spark: "DataFrame"
) -> Kept:
    """The named columns of these files. `by_spark` are the same files as Spark reads them, with `FILE_COLUMN`. Raises `Unsupported`
    where both do not agree, or where our reader cannot read a file, or where the workers cannot reach it."""
    from pyspark import StorageLevel

    reader = record_reader(source, files, ids, set(names))
    every = _run(source, reader).persist(StorageLevel.DISK_ONLY)
    try:
        ours = _sums_of_ours(every, reader.columns)
        theirs = _by_file(_summed(by_spark, reader.columns).collect())
        _require_same(ours, theirs, files, ids)
    except BaseException:
        every.unpersist()
        raise
    # Lost blocks are read anew. What is refused then was not so before, and must not be left out in silence.
    wrong = functions.raise_error(functions.col(REFUSED_COLUMN)).cast("int")
    file = functions.when(functions.col(REFUSED_COLUMN).isNull(), functions.col(FILE_COLUMN)).otherwise(wrong)
    own = [functions.col(_quoted(column.name)) for column in reader.columns]
    places = map(functions.col, locator_columns(source.reading.format))
    return Kept(every.select(*own, file.alias(FILE_COLUMN), *places), every, sum(sums[0] for sums in ours.values()))


def record_reader(source: SparkSource, files: FileList, ids: npt.NDArray[np.uint32], names: set[str]) -> RecordReader:
    options = storage_options(source.session, source.uri)
    if options is None:
        raise Unsupported(
            f"{source.uri} is reached through Spark's JVM only, where Grebe cannot read by itself", detail="SCHEME"
        )
    columns = tuple(column for column in source.reading.columns if column.name in names)
    here = files.rebased(source.uri)
    sizes = files.table["size"].to_numpy()
    tasks = in_tasks(sizes, source.uri.startswith("file:"))
    times = files.table["modified_ms"] if source.settling_ms else pa.nulls(len(files), pa.int64())
    known = (
        pa.array(ids.astype(np.int32)),
        here.paths(),
        pa.array(sizes),
        times,
        files.table["etag"],
        pa.array(tasks),
    )
    if any("://" in path for path in here.paths().to_pylist()):
        raise Unsupported(
            f"{source.uri} keeps files elsewhere, where Grebe does not read by itself", detail="ELSEWHERE"
        )
    values = source.partition_values(files, tuple(column for column in columns if column.partition))
    listed = pa.table({**dict(zip(LISTED, known, strict=True)), **values})
    return RecordReader(source.uri, options, source.reading, columns, listed, source.guard_decoders)


def _run(source: SparkSource, reader: RecordReader) -> "DataFrame":
    from pyspark.sql.types import StructType

    places = [(FILE_COLUMN, "integer"), *((name, "long") for name in locator_columns(source.reading.format))]
    fields = [*((column.name, column.type) for column in reader.columns), *places, (REFUSED_COLUMN, "string")]
    schema = StructType.fromJson(spark_schema(fields))
    return map_in_arrow(source.session.range(0, reader.tasks, 1, max(1, reader.tasks)), reader.read, schema)


Sums = dict[int, tuple[int, int, int]]
"""By file id: the number of its rows, and sums of the lower and the upper half of a hash of each, which no order changes."""


def _sums_of_ours(every: "DataFrame", columns: Sequence[Column]) -> Sums:
    from pyspark.errors import PythonException

    try:
        found = _summed(every, columns, functions.min(REFUSED_COLUMN)).collect()
    except PythonException as problem:
        raise Unsupported(
            "Spark's Python workers could not run Grebe's reader; the package must be installed for them as well",
            detail="WORKERS",
        ) from problem
    refused = min((str(row[4]) for row in found if row[4] is not None), default=None)
    if refused is not None:
        raise Unsupported(refused, detail="READER")
    return _by_file(found)


def _by_file(found: "Iterable[Row]") -> Sums:
    return {int(row[0]): (int(row[1]), int(row[2]), int(row[3])) for row in found}


def _summed(frame: "DataFrame", columns: Sequence[Column], *more: "SparkColumn") -> "DataFrame":
    own = [functions.col(_quoted(column.name)) for column in columns]
    # A hash passes over NULL, so that it alone would not tell (NULL, 1) from (1, NULL).
    hashed = functions.xxhash64(*own, *map(functions.isnull, own))
    halves = (
        functions.sum(hashed.bitwiseAND(functions.lit(_LOW_BITS))),
        functions.sum(functions.shiftrightunsigned(hashed, 32)),
    )
    return frame.groupBy(FILE_COLUMN).agg(functions.count(functions.lit(1)), *halves, *more)


def _require_same(ours: Sums, theirs: Sums, files: FileList, ids: npt.NDArray[np.uint32]) -> None:
    nothing = (0, 0, 0)
    for place, file in enumerate(ids.tolist()):
        mine, sparks = ours.get(file, nothing), theirs.get(file, nothing)
        if mine == sparks:
            continue
        told = f"{mine[0]:,} records for {sparks[0]:,}" if mine[0] != sparks[0] else "other values than Spark"
        raise Unsupported(f"Grebe's own reader sees {told} in {files.uris()[place].as_py()}", detail="READERS_DIFFER")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
