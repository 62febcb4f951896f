"""Tables of Delta Lake, listed without Spark by the package deltalake: add actions are the files, vectors tell deleted rows."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa

from grebe.errors import StoreUnreachable, TableNotFound, UnreadableFile, Unsupported
from grebe.files import FileList, canonical_uri
from grebe.formats import Column
from grebe.formats.reading import columns_of
from grebe.sources.delta_log import commit_times, reader_features
from grebe.sources.delta_places import require_allowed_vectors, require_own_sidecars
from grebe.sources.lake import (
    LakeFiles,
    LakeKind,
    LakeVersion,
    Numbers,
    moment_ms,
    needs,
    no_such_version,
    require_one,
    uri_of,
)
from grebe.sources.marks import MARKS
from grebe.sources.protocol import Deleted, Request, Version
from grebe.store.protocol import Store

if TYPE_CHECKING:
    from deltalake import DeltaTable

_MODE = "delta.columnMapping.mode"
_KERNEL = "Kernel error: "
_BEYOND = f"{_KERNEL}Unsupported: "
_FEATURES = "Unsupported table features required"
_OF_STORES = ("object store", "objectstore", "sending request", "timed out", "connect", "permission", "credential")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_VALUE = re.compile(r"value '[^']*'")
"""In a message, one of the data."""
_PHYSICAL, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"


@dataclass(frozen=True)
class DeltaSource(LakeVersion):
    table: "DeltaTable" = field(repr=False, compare=False, kw_only=True)

    kind: ClassVar[str] = "delta"

    def at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> "DeltaSource":
        return _opened(self.uri, self.request, version, timestamp)

    def deleted(self, files: FileList) -> Deleted:
        vectors = self._vectors
        uris = files.uris().to_pylist() if vectors else []
        return {place: vectors[uri] for place, uri in enumerate(uris) if uri in vectors}

    @cached_property
    def _vectors(self) -> Mapping[str, Numbers]:
        """By URI. The log does not tell us which files have one, so all are read together, once."""
        if "deletionVectors" not in (self.table.protocol().reader_features or ()):
            return {}
        require_allowed_vectors(self.store, self.uri, self.table.version(), self.request.allowed_roots)
        with _errors(self.uri, self.store):
            found = pa.table(self.table.deletion_vectors())
        masks = found.column("selection_vector").combine_chunks()
        kept, starts = masks.values.to_numpy(zero_copy_only=False), masks.offsets.to_numpy()
        uris = [canonical_uri(one, encoded=True) for one in found.column("filepath").to_pylist()]
        return {
            uri: np.flatnonzero(~kept[start:stop])
            for uri, start, stop in zip(uris, starts[:-1], starts[1:], strict=True)
        }


def _opened(given: str, request: Request, version: Version | None, timestamp: str | datetime | None) -> DeltaSource:
    require_one(version, timestamp)
    uri = canonical_uri(given)
    with needs("deltalake", "delta"):
        from deltalake import DeltaTable
    options = {name.lower(): value for name, value in request.storage_options.items()}
    store = request.open_store(uri, request.storage_options)
    require_own_sidecars(store, uri)
    with _errors(uri, store):
        table = DeltaTable(_encoded(uri), storage_options=options or None)
    if timestamp is not None:
        version = _version_at(table, store, timestamp)
    if version is not None:
        _load(table, uri, version, store)
    if table.metadata().configuration.get(_MODE) == "id":
        # Its files may be another format's, with names of their own.
        raise Unsupported(
            f"{uri} finds columns by their ids ({_MODE} = id), which Grebe cannot read yet; by name it can",
            detail="COLUMN_MAPPING",
        )
    fields = json.loads(table.schema().to_json())["fields"]
    partitions = set(table.metadata().partition_columns)
    columns = delta_columns(fields, partitions)
    stored = tuple(_stored(one) for one in fields if one["name"] not in partitions)
    with _errors(uri, store):
        listed = _listed(uri, pa.table(table.get_add_actions()), columns, request.allowed_roots)
    return DeltaSource(uri, store, request, table.version(), columns, stored, listed, table=table)


def _encoded(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return rest if scheme == "file" else f"{scheme}://{quote(rest, safe='/@:')}"


def _version_at(newest: "DeltaTable", store: Store, timestamp: str | datetime) -> int:
    """The version that was the newest at that time; the newest of all, if the time is after it."""
    commits = commit_times(store, newest.version(), newest.metadata().configuration)
    found = commits.at(moment_ms(timestamp))
    if found is None:
        raise no_such_version(store.uri, timestamp, "the oldest that is left is younger")
    return found.version


def _load(newest: "DeltaTable", uri: str, version: Version, store: Store) -> None:
    from deltalake.exceptions import DeltaError

    last = newest.version()
    if not isinstance(version, int) and not version.isdecimal():
        raise no_such_version(uri, version, f"those of Delta Lake are numbers, the newest {last}")
    require_own_sidecars(store, uri, int(version))
    try:
        newest.load_as_version(int(version))
    except (DeltaError, OverflowError, ValueError) as error:
        raise no_such_version(
            uri, version, f"the newest is {last}, and old ones go with Delta's log retention"
        ) from error


def _listed(uri: str, actions: pa.Table, columns: Sequence[Column], allowed: Sequence[str]) -> LakeFiles:
    partitioned = [column for column in columns if column.partition]
    values = actions.column("partition").combine_chunks() if partitioned else None
    arrays = {} if values is None else {column.name: _values(values, column) for column in partitioned}
    return LakeFiles.build(
        uri,
        [uri_of(uri, unquote(path)) for path in actions.column("path").to_pylist()],
        actions.column("size_bytes").to_pylist(),
        actions.column("modification_time").to_pylist(),
        actions.column("num_records").to_pylist() if "num_records" in actions.column_names else None,
        pa.table(arrays) if arrays else None,
        allowed,
    )


def _values(partitions: pa.StructArray, column: Column) -> pa.Array:
    return partitions.field(column.name).cast(column.arrow.type)


def delta_columns(fields: Sequence[Mapping[str, Any]], partitions: Collection[str]) -> tuple[Column, ...]:
    """Of a schema as Delta's log has it."""
    return tuple(_column(one, one["name"] in partitions) for one in fields)


def _column(one: Mapping[str, Any], partition: bool) -> Column:
    (plain,) = columns_of({"type": "struct", "fields": [one]})
    metadata = one.get("metadata", {})
    if _PHYSICAL not in metadata:
        return Column(plain.name, plain.type, partition=partition)
    nested = list(_nested(one["type"]))
    why = "fields nested in it have other names in the files" if any(name != own for name, own, _ in nested) else None
    ids = (metadata[_ID], *(number for _, _, number in nested))
    return Column(plain.name, plain.type, ids, partition, metadata[_PHYSICAL], why)


def _nested(kind: Any) -> Iterator[tuple[str, str, int]]:
    """Name, name in the files, and id of all fields below."""
    if not isinstance(kind, dict):
        return
    for one in kind.get("fields", ()):
        metadata = one.get("metadata", {})
        yield one["name"], metadata.get(_PHYSICAL, one["name"]), metadata.get(_ID, -1)
        yield from _nested(one["type"])
    for below in ("elementType", "keyType", "valueType"):
        yield from _nested(kind.get(below))


def _stored(one: Mapping[str, Any]) -> dict[str, Any]:
    name = one.get("metadata", {}).get(_PHYSICAL, one["name"])
    return {"name": name, "type": _stored_type(one["type"]), "nullable": True, "metadata": {}}


def _stored_type(kind: Any) -> Any:
    if not isinstance(kind, dict):
        return kind
    if kind.get("type") == "udt":  # Spark would load the class that it names
        return _stored_type(kind["sqlType"])
    changed = {at: _stored_type(kind[at]) for at in ("elementType", "keyType", "valueType") if at in kind}
    if "fields" in kind:
        changed["fields"] = [_stored(one) for one in kind["fields"]]
    return {**kind, **changed}


@contextmanager
def _errors(uri: str, store: Store) -> Iterator[None]:
    """What deltalake raises, as errors of ours. Its messages may show more of a store's answer than is anybody's business."""
    from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError

    try:
        yield
    except TableNotFoundError as error:
        raise TableNotFound(
            f"{uri} is no table of Delta Lake: it has no {MARKS[DeltaSource.kind]} that can be read", detail="DELTA"
        ) from error
    except (DeltaError, OSError) as error:
        if isinstance(error, DeltaProtocolError) or (said := str(error)).startswith(_BEYOND):
            reason = str(error).removeprefix(_BEYOND).partition("\n")[0]
            raise Unsupported(
                f"{uri} asks of its readers what the package deltalake cannot do ({reason}); query it in Spark, or update it",
                detail="DELTA",
            ) from error
        if _FEATURES in said:
            lacking = said.partition(_FEATURES)[2][:200].strip(" :")
            raise Unsupported(
                f"{uri} has features that the package deltalake cannot read ({lacking}); query it in Spark, or update the package",
                detail="DELTA",
            ) from error
        of_store = not said.startswith(_KERNEL) or any(sign in said.lower() for sign in _OF_STORES)
        features = () if of_store else reader_features(store)
        if features:
            reason = _VALUE.sub("a value", said.removeprefix(_KERNEL).partition("\n")[0])
            raise Unsupported(
                f"the package deltalake cannot read the log of {uri} ({reason}); its reader features are: {', '.join(features)}. "
                "Query the table in Spark, or update the package",
                detail="DELTA",
            ) from error
        if not of_store:
            reason = _QUOTED.sub("…", said.removeprefix(_KERNEL).partition("\n")[0])
            raise UnreadableFile(
                f"the log of {uri} is damaged: the package deltalake says {reason[:200]}; restore it, or query a version before "
                "the damage",
                detail="DELTA",
            ) from error
        raise StoreUnreachable(
            f"the log of {uri} could not be read ({type(error).__name__}); look at its store and storage_options",
            detail="DELTA",
        ) from error


KIND = LakeKind("Delta Lake", _opened)
