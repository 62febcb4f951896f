"""A table as Spark reads it: one relation of files, found from a path, a catalog name or a DataFrame."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.clock import SYSTEM
from grebe.credentials import refuse_credentials
from grebe.errors import GrebeError, InvalidIndex, SourceChanged, TableNotFound, Unsupported
from grebe.files import FileList
from grebe.formats import Column, Reading
from grebe.formats.registry import format_of_file
from grebe.indexes.kind import FILE_COLUMN, ROW_COLUMN
from grebe.sources.ends import with_ends
from grebe.sources.partitions import partition_array, partitioning
from grebe.spark import readings
from grebe.spark.conditions import condition_of
from grebe.spark.shim import Shim
from grebe.spark.stores import hadoop_uri, table_store_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE_COLUMN = "value"
"""The name that Spark's text reader gives to a line."""
# How long after a change another one may leave size and time as they are.
_SETTLING_MS = {"file": 20}
_SETTLING_OTHERS_MS = 2_000


@dataclass(frozen=True)
class SparkSource:
    session: "SparkSession"
    uri: str
    """Canonical: the folder of the table, or the lowest folder above all its parts."""
    name: str
    reading: Reading
    case_sensitive: bool
    kind: str = "plain"
    identity: str = "stat"
    """The setting of that name."""
    guard_decoders: bool = True
    """The setting of that name."""
    _frame: Any = field(repr=False, default=None)
    _shim: Shim = field(repr=False, default=None)  # type: ignore[assignment]  # always given; only fields with defaults may follow
    allowed: tuple[str, ...] = field(repr=False, default=())
    """Folders beside its own lake where tables that its views join may lie."""

    @property
    def version(self) -> str:
        """Of the table; empty where it has none."""
        return ""

    def newest(self) -> "SparkSource":
        """The table as it is now."""
        return self

    def partition_values(self, files: FileList, columns: tuple[Column, ...]) -> dict[str, pa.Array]:
        """Of these partition columns, as the folders of the files tell them."""
        if not columns:
            return {}
        folders, folder_of = files.by_folder()
        found = partitioning(folders, frozenset(), {column.name.lower(): column.type for column in columns})
        place = {column.name.lower(): number for number, column in enumerate(found.columns)}
        if any(column.name.lower() not in place for column in columns) or any(
            one not in found.values for one in folders
        ):
            raise Unsupported(
                "the folders of some files do not tell the values of partition columns", detail="PARTITIONS"
            )
        texts = {column.name: [found.values[one][place[column.name.lower()]] for one in folders] for column in columns}
        zone = self.reading.time_zone
        return {
            column.name: partition_array(texts[column.name], column, zone).take(pa.array(folder_of))
            for column in columns
        }

    @property
    def settling_ms(self) -> int:
        return _SETTLING_MS.get(self.uri.partition("://")[0], _SETTLING_OTHERS_MS)

    def files(self) -> FileList:
        """Return the files that the relation reads, listed now. A partition that the catalog keeps elsewhere than below the table
        is not among them: no index covers it, and queries read it as it is. Raises `Unsupported` for a table that is one file."""
        lines = self._shim.bridge.files(self._frame._jdf).split("\n")[:-1]
        sizes, times = (np.array(lines[start::4], dtype=np.int64) for start in (1, 2))
        if lines[0::4] == [self.uri]:
            raise Unsupported(
                f"{self.uri} is a file, and indexes are made for folders of files: name its folder, with this file alone in it",
                detail="SINGLE_FILE",
            )
        files = FileList.build(self.uri, lines[0::4], sizes, times, [fact or None for fact in lines[3::4]]).below_root()
        if self.identity == "footer":
            return with_ends(files, table_store_for(self.session, self.uri))
        return files.without_etags() if self.identity == "times" else files

    def whole(self) -> "DataFrame":
        """The relation itself."""
        frame: DataFrame = self._frame
        return frame

    def frame(self, files: FileList, ids: npt.NDArray[np.uint32], row_numbers: bool = False) -> "DataFrame":
        """Exactly these files: the columns of the relation, then the id of each row's file and, if asked, its row number."""
        from pyspark.sql import functions

        frame = self._with_ids(self._frame, files, ids)
        if row_numbers:
            frame = frame.select("*", functions.col("_metadata.row_index").alias(ROW_COLUMN))
        return frame

    def lines(
        self, files: FileList, ids: npt.NDArray[np.uint32], line_separator: str = "", whole: bool = False
    ) -> "DataFrame":
        """Return the lines of exactly these files as text, or each file as one value, with the ids of their files."""
        relation = json.loads(self._shim.bridge.relation(self._frame._jdf))
        reader = self.session.read.format("text").option("recursiveFileLookup", "true").option("wholetext", whole)
        if line_separator:
            reader = reader.option("lineSep", line_separator)
        text = reader.load([hadoop_uri(self.session, root) for root in relation["roots"]])
        return self._with_ids(text, files, ids)

    def _with_ids(self, frame: "DataFrame", files: FileList, ids: npt.NDArray[np.uint32]) -> "DataFrame":
        from pyspark.sql import DataFrame

        if len(ids) != len(files):
            raise SourceChanged(f"{len(files)} files and {len(ids)} ids", detail="FILE_LIST")
        key = f"{self.uri}#{SYSTEM.new_id()}"
        snapshot = self._shim.bridge.snapshot(key)
        try:
            snapshot.add(*arrow_bytes(files, ids), b"")
            numbered = self._shim.bridge.numbered(frame._jdf, snapshot, FILE_COLUMN)
        finally:
            self._shim.bridge.forget(key)
        return DataFrame(numbered, self.session)


def plain_source(
    session: "SparkSession",
    shim: Shim,
    source: "str | DataFrame",
    frame: "DataFrame",
    relation: Mapping[str, Any],
    allowed: Sequence[str] = (),
) -> SparkSource:
    """Of a frame and what it reads; `source` is what the user called it. Raises `InvalidIndex` for what is not one relation of
    files."""
    if "roots" not in relation:
        raise InvalidIndex(
            f"{_spoken(source)} does not read one table of files, but is a {relation['node']}; give the table itself: its path, "
            "its name in the catalog, or the DataFrame that reads it, before any select, filter or view",
            detail="NOT_ONE_TABLE",
        )
    if not readings.is_ours(relation):
        raise Unsupported(
            f"{_spoken(source)} is read as {relation['format']}, which Grebe cannot index yet", detail="FORMAT"
        )
    for root in relation["roots"]:
        refuse_credentials(root)
    settings = session_settings(session, shim)
    uri = common_root(relation["roots"])
    if len({root.split("/")[2] for root in relation["roots"]}) > 1:
        raise Unsupported(
            f"the parts of {_spoken(source)} lie in several stores; index each part", detail="SEVERAL_STORES"
        )
    return SparkSource(
        session=session,
        uri=uri,
        name=relation.get("table") or uri.rpartition("/")[2],
        reading=readings.reading_of(relation, settings),
        case_sensitive=settings["spark.sql.caseSensitive"] == "true",
        _frame=frame,
        _shim=shim,
        allowed=tuple(allowed),
    )


def session_settings(session: "SparkSession", shim: Shim) -> dict[str, str]:
    """What of the session's settings counts for a reading."""
    values = json.loads(shim.bridge.values(session._jsparkSession, shim.java_list(list(readings.SETTINGS))))
    return readings.with_defaults(values)


def frame_of(
    session: "SparkSession", shim: Shim, source: "str | DataFrame", format: str | None, options: dict[str, str]
) -> "DataFrame":
    """What reads a path, a table of the catalog, or what a frame reads. Raises `TableNotFound`."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if not isinstance(source, str):
        return _read_anew(session, shim, source)
    try:
        if format is None and not is_path(source) and session.catalog.tableExists(source):
            return session.table(source)
        return session.read.format(format or _format_at(source)).options(**options).load(source)
    except (PySparkException, Py4JJavaError) as problem:  # files of another format fail in the JVM
        raise TableNotFound(
            f"{source} is neither a path that Spark can read nor a table of its catalog ({condition_of(problem)}); give the path, "
            "the name, and format= if the files do not tell it",
            detail="NOT_READABLE",
        ) from problem


def _read_anew(session: "SparkSession", shim: Shim, frame: "DataFrame") -> "DataFrame":
    """A frame lists its files once; ours must not change what the user's frame sees."""
    relation = json.loads(shim.bridge.relation(frame._jdf))
    if "roots" not in relation or not readings.is_ours(relation):
        return frame
    options = {key: value for key, value in relation["options"].items() if key.lower() not in ("path", "paths")}
    reader = session.read.format(readings.FORMATS[relation["format_class"]]).schema(frame.schema).options(**options)
    return reader.load([hadoop_uri(session, root) for root in relation["roots"]])


def is_path(text: str) -> bool:
    return "/" in text or ":" in text


def _format_at(path: str) -> str:
    found = format_of_file(path)
    return found.name if found else "parquet"


def common_root(roots: Sequence[str]) -> str:
    """Of several canonical roots the lowest folder above them all."""
    if len(roots) == 1:
        return roots[0]
    parts = [root.split("/") for root in roots]
    shared = 0
    while all(len(part) > shared for part in parts) and len({part[shared] for part in parts}) == 1:
        shared += 1
    return "/".join(parts[0][: max(shared, 3)])


def _spoken(source: "str | DataFrame") -> str:
    return source if isinstance(source, str) else "the DataFrame"


def arrow_bytes(
    files: FileList, ids: npt.NDArray[np.uint32], spelled: Callable[[str], str] | None = None
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Ids, sizes, times, and the URIs (canonical, or as `spelled`) as offsets and text."""
    if len(ids) and int(ids.max()) >= 2**31:
        raise GrebeError("file ids beyond 2^31 do not fit Spark's int")
    names: list[str] = files.uris().to_pylist() if len(files) else []
    uris = pa.array(names if spelled is None else [spelled(name) for name in names], pa.string())
    buffers = uris.buffers()
    text = buffers[2].to_pybytes() if len(files) and buffers[2] is not None else b""
    offsets = np.frombuffer(buffers[1], np.int32)[: len(files) + 1] if len(files) else np.zeros(1, np.int32)
    return (
        ids.astype("<i4").tobytes(),
        files.table["size"].to_numpy().astype("<i8").tobytes(),
        files.table["modified_ms"].to_numpy().astype("<i8").tobytes(),
        offsets.astype("<i4").tobytes(),
        text,
    )


def fact_bytes(files: FileList) -> bytes:
    """A line for each file: what tells it from another one of the same size and time, if anything is known; nothing if of none."""
    known = files.table["etag"].to_pylist()
    return "\n".join((one or "").replace("\n", " ") for one in known).encode() if any(known) else b""
