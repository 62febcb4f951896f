"""A table of a lake format in a Spark session. Its files are listed without the format's jars, and read as the plain Parquet that
they are: an index holds all rows of a file, those that the table has deleted since included."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import SourceChanged, Unsupported
from grebe.files import FileList
from grebe.formats import Column
from grebe.indexes.columns import spark_schema
from grebe.indexes.kind import FILE_COLUMN, ROW_COLUMN
from grebe.sources import open_source
from grebe.sources.lake import LakeVersion
from grebe.spark import readings
from grebe.spark.shim import Shim
from grebe.spark.source import SparkSource, arrow_bytes, session_settings
from grebe.spark.stores import hadoop_uri, storage_options, table_store_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BY_ID = "spark.sql.parquet.fieldId.read.enabled"


@dataclass(frozen=True)
class LakeSource(SparkSource):
    """At one version; `newest` moves on."""

    lake: LakeVersion = field(repr=False, kw_only=True)
    given: "SparkSession" = field(repr=False, kw_only=True)
    """The user's own session."""

    @property
    def settling_ms(self) -> int:
        return 0

    @property
    def version(self) -> str:
        return str(self.lake.version())

    def newest(self) -> "LakeSource":
        if self._frame is None:
            return _of(self.given, self._shim, self.lake.at(), self.name, None)
        # Of what a catalog knows the catalog tells what is newest.
        told = json.loads(self._shim.bridge.relation(self._frame._jdf))
        allowed = self.lake.request.allowed_roots
        return lake_source(self.given, self._shim, told["lake"], told["at"], told["table"], self._frame, allowed)

    def files(self) -> FileList:
        return self.lake.files()

    def partition_values(self, files: FileList, columns: tuple[Column, ...]) -> dict[str, pa.Array]:
        values = self.lake.partition_values(files, replace(self.reading, columns=columns))
        return {name: values.column(name).combine_chunks() for name in values.column_names}

    def frame(self, files: FileList, ids: npt.NDArray[np.uint32], row_numbers: bool = False) -> "DataFrame":
        from pyspark.sql import DataFrame, functions
        from pyspark.sql.types import StructType

        if len(ids) != len(files):
            raise SourceChanged(f"{len(files)} files and {len(ids)} ids", detail="FILE_LIST")
        partitions = self.reading.partition_columns
        fields = [*((column.name, column.type) for column in partitions), (FILE_COLUMN, "integer")]
        rows, row_of = _distinct(self.partition_values(files, partitions), len(files))
        listed = arrow_bytes(files, ids, lambda uri: hadoop_uri(self.session, uri))
        made = self._shim.bridge.listed(
            self.session._jsparkSession,
            json.dumps({"type": "struct", "fields": list(self.lake.stored)}),
            json.dumps(spark_schema(fields)),
            json.dumps(rows),
            *listed,
            row_of.astype("<i4").tobytes(),
        )
        wanted = StructType.fromJson(
            json.loads(json.dumps(spark_schema((c.name, c.type) for c in self.reading.columns)))
        )
        stored = {
            column.name: str(one["name"])
            for column, one in zip(self.reading.file_columns, self.lake.stored, strict=True)
        }
        columns = [
            functions.col(_quoted(stored.get(one.name, one.name))).cast(one.dataType).alias(one.name) for one in wanted
        ]
        lineage = [functions.col(FILE_COLUMN)]
        if row_numbers:
            lineage.append(functions.col("_metadata.row_index").alias(ROW_COLUMN))
        return DataFrame(made, self.session).select(*columns, *lineage)


def lake_source(
    session: "SparkSession",
    shim: Shim,
    format: str,
    at: str,
    name: str | None = None,
    frame: "DataFrame | None" = None,
    allowed: Sequence[str] = (),
) -> LakeSource:
    """`at`: the table's folder, or of Iceberg the metadata file that counts. `frame`: what reads the table, if found by that."""
    options = storage_options(session, at if "://" in at else f"file://{at}")
    if options is None and format != "iceberg":
        raise Unsupported(
            f"{at} is reached through Spark's JVM only, where {format} cannot be listed by its Python package",
            detail="SCHEME",
        )
    lake = open_source(
        at,
        format=format,
        storage_options=options,
        open_store=lambda uri, _: table_store_for(session, uri),
        allowed=allowed,
    )
    return _of(session, shim, lake, name, frame)  # type: ignore[arg-type]  # what is opened by the name of a lake format is one


def _of(
    session: "SparkSession", shim: Shim, lake: LakeVersion, name: str | None, frame: "DataFrame | None"
) -> LakeSource:
    settings = session_settings(session, shim)
    given = session
    if lake.kind == "iceberg" and session.conf.get(_BY_ID) != "true":
        session = _finding_by_id(session)
    return LakeSource(
        session=session,
        uri=lake.uri,
        name=name or lake.name,
        reading=readings.lake_reading(lake.columns, settings, "UTC"),
        case_sensitive=settings["spark.sql.caseSensitive"] == "true",
        kind=lake.kind,
        _frame=frame,
        _shim=shim,
        lake=lake,
        given=given,
        allowed=lake.request.allowed_roots,
    )


def _finding_by_id(session: "SparkSession") -> "SparkSession":
    """A session like this one, which finds columns in files by their ids; the user's own settings stay as they are."""
    from pyspark.sql import SparkSession

    other = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    other.conf.set(_BY_ID, "true")
    return other


def _distinct(values: dict[str, pa.Array], files: int) -> tuple[list[list[str | None]], npt.NDArray[np.int64]]:
    """The different rows of values, as texts that Spark casts back, and for each file which one is its."""
    if not values:
        return [[]], np.zeros(files, np.int64)
    texts = pa.table({str(place): _text(array) for place, array in enumerate(values.values())})
    numbered = texts.append_column("file", pa.array(np.arange(files)))
    grouped = numbered.group_by(texts.column_names, use_threads=False).aggregate([("file", "list")])
    row_of = np.zeros(files, np.int64)
    for row, members in enumerate(grouped.column("file_list").to_pylist()):
        row_of[members] = row
    rows: list[list[Any]] = [list(row.values()) for row in grouped.select(texts.column_names).to_pylist()]
    return rows, row_of


def _text(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
