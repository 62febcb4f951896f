"""Tables of plain files: folders, several roots, globs, hive partitions; one record format a table."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import TableNotFound, Unsupported
from grebe.files import FileList, canonical_uri, join_uri
from grebe.formats import Column, DataFile, Format, Reading, format_named, format_of_file
from grebe.formats.registry import data_suffix
from grebe.formats.unite import merged_columns
from grebe.sources.globs import name_pattern
from grebe.sources.listing import Listed, Roots, data_rows, list_roots, require_unicode
from grebe.sources.marks import ICEBERG_SUFFIX, MARKS
from grebe.sources.partitions import Partitioning, partition_array, partitioning
from grebe.sources.protocol import Deleted, Request, Version
from grebe.store.protocol import Store

# Another change within this time may leave size and modification time as they are.
_LOCAL_SETTLING_MS = 20
_REMOTE_SETTLING_MS = 2000
_THREADS = 16
_SELF_DESCRIBING = ("parquet", "orc", "avro")
_SINK_LOG = "_spark_metadata"


class LakeTableFound(Exception):
    """The path is a table of a lake format, which has sources of its own."""

    def __init__(self, format: str) -> None:
        super().__init__(format)
        self.format = format


@dataclass(frozen=True)
class PlainSource:
    """Keeps no files: every question about them comes with a file list. `format` was found at opening, or given."""

    uri: str
    roots: Roots
    store: Store
    request: Request
    format: Format
    at_opening: list[Listed] = field(default_factory=list, repr=False, compare=False)
    """What opening listed, for the first who asks."""

    kind = "plain"

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    @property
    def settling_ms(self) -> int:
        return _LOCAL_SETTLING_MS if self.uri.startswith("file:") else _REMOTE_SETTLING_MS

    def version(self) -> None:
        return None

    def at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> "PlainSource":
        if version is not None or timestamp is not None:
            asked = f"version {version!r}" if version is not None else f"state as of {timestamp}"
            raise Unsupported(
                f"plain files have no versions, so no {asked}; leave version= and timestamp= out", detail="VERSION"
            )
        return self

    def files(self) -> FileList:
        listed = self.at_opening.pop() if self.at_opening else list_roots(self.store, self.roots)
        files = _file_list(self.roots, listed, self.request)
        if not len(files) and self.request.columns is None:
            raise TableNotFound(
                f"{self.uri} has {listed.table.num_rows} files, and Spark would read none: hidden names and empty files do not "
                "count, and folders below that are no partitions only with recursiveFileLookup",
                detail="NO_DATA",
            )
        return files

    def deleted(self, files: FileList) -> Deleted:
        return {}

    def reading(self, files: FileList) -> Reading:
        partitions = _partitioning(files.by_folder()[0], self.roots, self.request).columns
        given = self.request.columns
        return Reading.of(
            self.format.name,
            self.format.options.of_reading(self.request.options),
            _with_partitions(self._found_columns(files), partitions)
            if given is None
            else _given_columns(given, partitions),
            self.request.option("timeZone") or self.request.time_zone,
            local_times=self.format.local_times,
            by_position=self.format.by_position,
        )

    def read_as(self, recorded: Reading) -> "PlainSource":
        """The same table, read as was recorded of it; the files still say which columns they have, if they can."""
        request = replace(self.request, options={**dict(recorded.options), **self.request.options})
        if recorded.time_zone:
            request = replace(request, time_zone=recorded.time_zone)
        if self.request.columns is None and self.format.name not in _SELF_DESCRIBING:
            request = replace(request, columns=recorded.file_columns)
        return replace(self, request=request, at_opening=[])

    def schema(self) -> pa.Schema:
        return self.reading(self.files()).schema

    def partition_values(self, files: FileList, reading: Reading) -> pa.Table:
        folders, folder_of = files.by_folder()
        found = _partitioning(folders, self.roots, self.request)
        place = {column.name.lower(): number for number, column in enumerate(found.columns)}
        arrays = []
        for column in reading.partition_columns:
            texts = [found.values[folder][place[column.name.lower()]] for folder in folders]
            arrays.append(partition_array(texts, column, reading.time_zone).take(pa.array(folder_of)))
        return pa.Table.from_arrays(arrays, schema=pa.schema([column.arrow for column in reading.partition_columns]))

    def data_files(self, files: FileList) -> list[DataFile]:
        here = files.rebased(self.uri)
        facts = (here.table.column(name).to_pylist() for name in ("size", "modified_ms", "etag"))
        guarded = self.request.guard_decoders
        return [
            DataFile(self.store, *each, guarded=guarded) for each in zip(here.paths().to_pylist(), *facts, strict=True)
        ]

    def _found_columns(self, files: FileList) -> tuple[Column, ...]:
        """Of one file, as Spark does it, or of all where `mergeSchema` says so."""
        options = self.format.options.complete(self.request.options)
        if options.get("mergeschema", "false").lower() != "true":
            # Where columns have no names of their own, Spark's first task decides, and that one gets the largest file.
            sizes = files.table.column("size").to_numpy()
            chosen = int(np.argmax(sizes)) if self.format.by_position else 0
            return self.format.columns(self.data_files(files.take(np.array([chosen])))[0], options)
        with ThreadPoolExecutor(_THREADS) as pool:
            schemas = list(pool.map(lambda file: self.format.columns(file, options), self.data_files(files)))
        merged = merged_columns(schemas)
        if merged is None:
            raise Unsupported(
                f"files of {self.uri} have a column of types that no type holds together; give a schema, or open the files of each "
                "type by themselves",
                detail="MERGE_SCHEMA",
            )
        return merged


def open_plain(request: Request) -> PlainSource:
    """Finds out where the table begins and, unless the request says it, which format its files have. Lists once."""
    roots = Roots.of(request.paths)
    store = request.open_store(roots.uri, request.storage_options)
    try:
        listed = list_roots(store, roots)
    except TableNotFound:
        if "" not in roots.paths:
            raise
        # No folder; perhaps a file.
        roots = roots.moved_up()
        store = request.open_store(roots.uri, request.storage_options)
        listed = list_roots(store, roots)
    _refuse_sinks(roots.uri, listed)
    format = format_named(request.format) if request.format else _format_found(roots.uri, listed, request)
    return PlainSource(roots.uri, roots, store, request, format, [listed])


def _file_list(roots: Roots, listed: Listed, request: Request) -> FileList:
    data = _data_rows(listed, request)
    folders = [join_uri(roots.uri, folder) for folder in listed.folders]
    recursive = (request.option("recursiveFileLookup") or "false").lower() == "true"
    partitioned = False
    if not recursive:
        with_data = [folders[number] for number in np.unique(listed.folder_of[data])]
        values = _partitioning(with_data, roots, request).values
        partitioned = bool(values)
        chosen = (
            [folder in values for folder in folders]
            if partitioned
            else [folder in listed.root_folders for folder in listed.folders]
        )
        data &= np.array(chosen, np.bool_)[listed.folder_of] | (listed.is_root & (not partitioned))
    data &= listed.table.column("size").to_numpy() > 0
    require_unicode(listed, data, roots.uri)
    table = listed.table.filter(pa.array(data))
    if partitioned or recursive:
        # Roots that overlap: Spark sees such a file once here, and twice in a table without partitions, which is then refused.
        table = table.group_by("path", use_threads=False).aggregate(
            [(name, "first") for name in table.column_names[1:]]
        )
        table = table.rename_columns([name.removesuffix("_first") for name in table.column_names])
    return FileList.build(roots.uri, *(table.column(name) for name in ("path", "size", "modified_ms", "etag")))


def _data_rows(listed: Listed, request: Request) -> npt.NDArray[np.bool_]:
    for name in ("modifiedBefore", "modifiedAfter"):
        if request.option(name):
            raise Unsupported(
                f"the option {name} chooses files by the clock; an index has no use for that", detail="READER_OPTION"
            )
    data = data_rows(listed)
    pattern = request.option("pathGlobFilter")
    if pattern:
        matches = name_pattern(pattern)
        data &= np.array([matches.fullmatch(name) is not None for name in listed.names.to_pylist()], np.bool_)
    return data


def _partitioning(folders: Sequence[str], roots: Roots, request: Request) -> Partitioning:
    if (request.option("recursiveFileLookup") or "false").lower() == "true":
        return Partitioning((), {})
    base = request.option("basePath")
    bases = frozenset((canonical_uri(base),)) if base else roots.bases(folders)
    given = {column.name.lower(): column.type for column in request.columns or ()}
    return partitioning(folders, bases, given)


def _format_found(uri: str, listed: Listed, request: Request) -> Format:
    """By the suffixes of the data files, which must tell one format."""
    _look_for_lakes(uri, listed)
    data = _data_rows(listed, request)
    nameable = data & listed.table.column("is_unicode").to_numpy()
    if not nameable.any():
        require_unicode(listed, data, uri)
    # Whether one of the others is read is only known with the file list, which refuses those that are.
    names = listed.names.filter(pa.array(nameable))
    if not len(names):
        raise TableNotFound(f"{uri} has no data files", detail="NO_DATA")
    endings = pc.unique(pc.replace_substring_regex(names, r"^.*?((?:\.[^.]*){0,2})$", r"\1")).to_pylist()
    formats = {suffix: format_of_file(suffix) for suffix in sorted({data_suffix(ending) for ending in endings})}
    unknown = [suffix for suffix, found in formats.items() if found is None]
    known = {found.name: found for found in formats.values() if found is not None}
    if len(known) == 1 and not unknown:
        return next(iter(known.values()))
    if not known:
        raise TableNotFound(
            f"{uri} has no files of a known format (suffixes: {_spoken(unknown)}); give `format`", detail="FORMAT"
        )
    kinds = " and ".join([*known, *([f"files of no known format ({_spoken(unknown)})"] if unknown else [])])
    raise Unsupported(
        f"{uri} mixes {kinds}; give `format`, and `pathGlobFilter` for the files that count", detail="MIXED_FORMATS"
    )


def _refuse_sinks(uri: str, listed: Listed) -> None:
    """A stream that writes files itself says in a log of its own which of them count; the others are of batches that failed."""
    if any(_SINK_LOG in folder.split("/") for folder in listed.folders):
        raise Unsupported(
            f"{uri} is written by a stream of Spark's, whose {_SINK_LOG} says which files count; read it in Spark, or let the "
            "stream write by foreachBatch or to a lake table",
            detail="STREAM_SINK",
        )


def _look_for_lakes(uri: str, listed: Listed) -> None:
    """A table at the path itself is one for its own source; one somewhere below is none of ours to mix in."""
    for number, folder in enumerate(listed.folders):
        parts = folder.split("/")
        found = next((lake for lake, mark in MARKS.items() if lake != "iceberg" and mark in parts), None)
        if found is None and parts[-1] == MARKS["iceberg"]:
            inside = listed.names.filter(pa.array(listed.folder_of == number))
            found = "iceberg" if pc.any(pc.ends_with(inside, ICEBERG_SUFFIX)).as_py() else None
        if found is not None and parts[0] == MARKS[found]:
            raise LakeTableFound(found)
        if found is not None:
            raise Unsupported(
                f"{uri} holds a table of {found} in {folder}; open that table by its own path", detail="LAKE_TABLE"
            )


def _spoken(suffixes: Sequence[str]) -> str:
    return ", ".join(suffix or "none" for suffix in suffixes)


def _with_partitions(columns: Sequence[Column], partitions: Sequence[Column]) -> tuple[Column, ...]:
    """A column that files and folders both have keeps its place and takes its values from the folders."""
    by_name = {column.name.lower(): column for column in partitions}
    own = [by_name.pop(column.name.lower(), column) for column in columns]
    return (*own, *by_name.values())


def _given_columns(given: Sequence[Column], partitions: Sequence[Column]) -> tuple[Column, ...]:
    """Spark puts the partition columns of a schema that was given behind the others, and spells them as given."""
    spelling = {column.name.lower(): column for column in given}
    found = {column.name.lower() for column in partitions}
    own = [replace(column, partition=False) for column in given if column.name.lower() not in found]
    return (*own, *(replace(column, name=spelling.get(column.name.lower(), column).name) for column in partitions))
