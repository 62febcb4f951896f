"""Tables of Apache Iceberg, listed without Spark by the package pyiceberg, whose files are read through Grebe's own stores.

A path without a catalog means the newest metadata file below it. Columns are found by their ids: names change, ids do not.
"""

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from grebe.errors import TableNotFound, UnreadableFile, Unsupported
from grebe.files import FileList, canonical_uri
from grebe.files.untrusted import decoding, gunzip
from grebe.sources.avro_decoder import checked_decoder
from grebe.sources.iceberg_deletes import positions_in_parquet, positions_in_puffin
from grebe.sources.iceberg_io import file_io, located
from grebe.sources.iceberg_schema import iceberg_columns, stored_fields
from grebe.sources.lake import (
    DeletedRows,
    LakeFiles,
    LakeKind,
    LakeVersion,
    Numbers,
    moment_ms,
    needs,
    no_such_version,
    require_one,
)
from grebe.sources.marks import ICEBERG_SUFFIX, MARKS
from grebe.sources.protocol import Deleted, Request, Version
from grebe.sources.roots import require_allowed
from grebe.store.protocol import ObjectMissing, Store

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

METADATA = MARKS["iceberg"]
_SNAPSHOT = re.compile(r"-?[0-9]{1,19}")
_NUMBERED = re.compile(r"(?:v(\d+)|(\d+)-.*?)(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
_AT_ONCE = 8
_MOST_METADATA = 256 * 1024 * 1024
"""Bytes of a metadata file, unpacked."""
_GZIP = b"\x1f\x8b"
"""How gzip begins, and no JSON."""


@dataclass(frozen=True, slots=True)
class Deletes:
    """Of one data file: how many rows it has, and the files that say which of them were deleted."""

    rows: int
    files: "tuple[IcebergFile, ...]"


@dataclass(frozen=True)
class IcebergSource(LakeVersion):
    given: str = field(repr=False, kw_only=True)
    """Where to look for the newest metadata."""
    metadata: "TableMetadata" = field(repr=False, compare=False, kw_only=True)

    kind: ClassVar[str] = "iceberg"

    def at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> "IcebergSource":
        return _opened(self.given, self.request, version, timestamp)

    def deleted(self, files: FileList) -> Deleted:
        with _decoding(self.uri, self.request):
            told = self._deletes
        uris = files.uris().to_pylist() if told else []
        return DeletedRows(
            {place: (uri, told[uri]) for place, uri in enumerate(uris) if uri in told}, self._rows_deleted
        )

    def entries(self) -> "list[IcebergFile]":
        """What the manifests say of each data file, in the order of the list."""
        snapshot = self.metadata.snapshot_by_id(int(self.number)) if self.number else None
        with _decoding(self.uri, self.request):
            found = [] if snapshot is None else _files(snapshot, self.request, self.store)
        return sorted(found, key=lambda one: self.listed.by_uri[canonical_uri(one.file_path)])

    @cached_property
    def _deletes(self) -> "dict[str, Deletes]":
        """By the URI of a data file what is kept of rows deleted from it. Raises `Unsupported` for deletes by value."""
        from pyiceberg.manifest import ManifestContent
        from pyiceberg.table import DataScan

        io = file_io(self.request, self.store)
        snapshot = None if not self.number else self.metadata.snapshot_by_id(int(self.number))
        if snapshot is None or all(one.content == ManifestContent.DATA for one in snapshot.manifests(io)):
            return {}
        try:
            tasks = list(DataScan(table_metadata=self.metadata, io=io, snapshot_id=snapshot.snapshot_id).plan_files())
        except ValueError as error:
            raise Unsupported(
                f"rows of {self.uri} were deleted by value (equality deletes), which pyiceberg cannot read: {error}. Read the "
                "table in Spark, or let Iceberg rewrite its files first",
                detail="EQUALITY_DELETES",
            ) from error
        return {
            canonical_uri(task.file.file_path): Deletes(task.file.record_count, tuple(task.delete_files))
            for task in tasks
            if task.delete_files
        }

    def _rows_deleted(self, told: "tuple[str, Deletes]") -> Numbers:
        uri, deletes = told
        with _decoding(self.uri, self.request):
            found = [_positions(one, uri, deletes.rows, self.request, self.store) for one in deletes.files]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _opened(given: str, request: Request, version: Version | None, timestamp: str | datetime | None) -> IcebergSource:
    require_one(version, timestamp)
    with needs("pyiceberg", "iceberg"):
        import pyiceberg  # noqa: F401 - only to find out whether it is there
    with _decoding(given, request):
        return _read(given, request, version, timestamp)


@contextmanager
def _decoding(uri: str, request: Request) -> Iterator[None]:
    """Around what pyiceberg makes of metadata that somebody else has written: what fails there fails in many ways."""

    def refused(why: str) -> UnreadableFile:
        return UnreadableFile(f"the metadata of {uri} cannot be read ({why.partition(':')[0]})", detail="ICEBERG")

    from pyiceberg.exceptions import ResolveError, ValidationError

    with decoding(refused), checked_decoder() if request.guard_decoders else nullcontext():
        try:
            yield
        except (ResolveError, ValidationError) as error:  # which are no errors of values to pyiceberg
            raise refused(type(error).__name__) from error


def _read(given: str, request: Request, version: Version | None, timestamp: str | datetime | None) -> IcebergSource:
    metadata, folder = _metadata(given, request)
    uri = canonical_uri(metadata.location)
    if folder is not None:
        require_allowed((uri,), folder, request.allowed_roots)
    store = request.open_store(uri, request.storage_options)
    snapshot, of_snapshot = _snapshot(metadata, uri, version, timestamp)
    schema = metadata.schema()
    if of_snapshot and snapshot is not None and snapshot.schema_id is not None:
        schema = {one.schema_id: one for one in metadata.schemas}[snapshot.schema_id]
    read = json.loads(schema.model_dump_json())
    files = [] if snapshot is None else _files(snapshot, request, store)
    history = [json.loads(one.model_dump_json()) for one in metadata.schemas]
    columns = iceberg_columns(read, history, _partition_only(files, metadata))
    stored = stored_fields(read)
    listed = LakeFiles.build(
        uri,
        [canonical_uri(one.file_path) for one in files],
        [one.file_size_in_bytes for one in files],
        [0] * len(files),
        [one.record_count for one in files],
        allowed=request.allowed_roots,
    )
    number = 0 if snapshot is None else snapshot.snapshot_id
    return IcebergSource(uri, store, request, number, columns, stored, listed, given=given, metadata=metadata)


def _metadata(given: str, request: Request) -> "tuple[TableMetadata, str | None]":
    """Of a path, of a metadata file, or of a name `catalog.namespace.table`; and the folder of the table where it was found, unless
    a catalog said where that is."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.serializers import FromByteStream

    if "/" not in given and "." in given and not given.endswith(ICEBERG_SUFFIX):
        return _from_catalog(given, request), None
    path = canonical_uri(given)
    if path.endswith(ICEBERG_SUFFIX) or path.endswith(f"{ICEBERG_SUFFIX}.gz"):
        newest = path
        path = path.rpartition("/")[0].removesuffix(f"/{METADATA}")
    else:
        newest = f"{path}/{METADATA}/{_newest(request.open_store(path, request.storage_options))}"
    store, name = located(newest, request)
    try:
        with file_io(request, store).new_input(f"{store.uri}/{name}").open() as stream:
            data = _unpacked(stream.read(), newest)
        return FromByteStream.table_metadata(BytesIO(data)), path
    except (ObjectMissing, FileNotFoundError) as error:
        raise TableNotFound(f"{newest} is not there", detail="ICEBERG") from error
    except (ValidationError, ValueError) as error:
        raise Unsupported(
            f"{newest} is no metadata of Iceberg that pyiceberg can read ({type(error).__name__})", detail="ICEBERG"
        ) from error


def _unpacked(data: bytes, uri: str) -> bytes:
    """Return the JSON of a metadata file. pyiceberg would unpack it without a limit."""
    with decoding(lambda why: UnreadableFile(f"{uri} cannot be unpacked ({why})", detail="ICEBERG")):
        data = gunzip(data, _MOST_METADATA) if data.startswith(_GZIP) else data
    if len(data) > _MOST_METADATA:
        raise UnreadableFile(
            f"{uri} has {len(data):,} bytes; {_MOST_METADATA:,} are the most. Let Iceberg expire old snapshots",
            detail="ICEBERG",
        )
    return data


def _newest(store: Store) -> str:
    names = [one.path.rpartition("/")[2] for one in store.list(METADATA)]
    numbered = [(int(found[1] or found[2]), name) for name in names if (found := _NUMBERED.fullmatch(name))]
    if not numbered:
        raise TableNotFound(
            f"{store.uri} is no table of Iceberg: its folder {METADATA} has no *{ICEBERG_SUFFIX}", detail="ICEBERG"
        )
    last = max(number for number, _ in numbered)
    newest = sorted(name for number, name in numbered if number == last)
    # Of two writers with the same number one has failed; only a catalog knows which.
    if len(newest) > 1:
        raise Unsupported(
            f"{store.uri} has {len(newest)} metadata files with number {last}; name the one that counts by its path, or the "
            "table by its name in the catalog",
            detail="METADATA",
        )
    return newest[0]


def _from_catalog(given: str, request: Request) -> "TableMetadata":
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    name, _, table = given.partition(".")
    try:
        return load_catalog(name, **request.storage_options).load_table(table).metadata
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise TableNotFound(f"the catalog {name} has no table {table}", detail="ICEBERG") from error
    except ValueError as error:
        raise TableNotFound(
            f"pyiceberg knows no catalog {name} ({type(error).__name__}); describe it in .pyiceberg.yaml, or give the table's path",
            detail="ICEBERG",
        ) from error


def _snapshot(
    metadata: "TableMetadata", uri: str, version: Version | None, timestamp: str | datetime | None
) -> "tuple[Snapshot | None, bool]":
    """The snapshot, and whether the table has to be read with the schema that it was written with."""
    if timestamp is not None:
        asked = moment_ms(timestamp)
        before = [entry for entry in metadata.snapshot_log if entry.timestamp_ms <= asked]
        found = metadata.snapshot_by_id(before[-1].snapshot_id) if before else None
        if found is None:
            raise no_such_version(uri, timestamp, "the oldest that is left is younger")
        return found, True
    if version is None:
        return metadata.current_snapshot(), False
    reference = metadata.refs.get(str(version))
    number = reference.snapshot_id if reference is not None else version
    found = metadata.snapshot_by_id(int(number)) if _SNAPSHOT.fullmatch(str(number)) else None
    if found is None:
        raise no_such_version(
            uri,
            version,
            f"it has {len(metadata.snapshots)} snapshots and the references {', '.join(metadata.refs) or 'none'}",
        )
    return found, reference is None or str(reference.snapshot_ref_type) != "branch"


def _files(snapshot: "Snapshot", request: Request, store: Store) -> "list[IcebergFile]":
    from pyiceberg.manifest import FileFormat, ManifestContent, ManifestFile

    io = file_io(request, store)

    def read(manifest: ManifestFile) -> "list[IcebergFile]":
        return [entry.data_file for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)]

    manifests = [one for one in snapshot.manifests(io) if one.content == ManifestContent.DATA]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        files = [file for found in pool.map(read, manifests) for file in found]
    others = {str(one.file_format) for one in files if one.file_format != FileFormat.PARQUET}
    if others:
        raise Unsupported(
            f"{store.uri} has data files in {', '.join(sorted(others))}; of Iceberg Grebe reads Parquet only",
            detail="FORMAT",
        )
    return files


def _partition_only(files: "Sequence[IcebergFile]", metadata: "TableMetadata") -> set[int]:
    """Return the ids of columns that files may lack. Iceberg takes the value of an identity partition from the manifest where a
    file has no such column, and a file that has one usually says how many values it holds."""
    from pyiceberg.transforms import IdentityTransform

    sources = {
        spec.spec_id: {one.source_id for one in spec.fields if isinstance(one.transform, IdentityTransform)}
        for spec in metadata.partition_specs
    }
    return {
        source for file in files for source in sources.get(file.spec_id, ()) if source not in (file.value_counts or ())
    }


def _positions(kept: "IcebergFile", uri: str, rows: int, request: Request, store: Store) -> Numbers:
    """Of rows of the data file at this URI, which has so many."""
    from pyiceberg.manifest import FileFormat

    with file_io(request, store).new_input(kept.file_path).open() as stream:
        data = stream.read()
    with decoding(lambda why: _damaged(kept, why)):
        if kept.file_format == FileFormat.PUFFIN:
            return positions_in_puffin(data, uri, rows)
        if kept.file_format == FileFormat.PARQUET:
            return positions_in_parquet(data, uri)
    raise Unsupported(
        f"{kept.file_path} keeps deleted rows as {kept.file_format}; read the table in Spark, or let Iceberg rewrite its files "
        "first",
        detail="DELETES",
    )


def _damaged(kept: "IcebergFile", why: str) -> UnreadableFile:
    return UnreadableFile(f"{kept.file_path}, which keeps deleted rows, cannot be read ({why})", detail="ICEBERG")


KIND = LakeKind("Iceberg", _opened)
