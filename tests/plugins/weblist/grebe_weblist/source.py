"""The source itself, as `grebe.sources.Source` asks for it."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.errors import TableNotFound, Unsupported
from grebe.files import FileList, canonical_uri
from grebe.formats import DataFile, Format, Reading, format_named
from grebe.sources import Deleted, Request, Version
from grebe.store.opening import open_store
from grebe.store.protocol import ObjectMissing, Store

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class WebList:
    uri: str
    store: Store
    format: Format
    request: Request
    number: int

    kind = "weblist"
    settling_ms = 0  # A version of the manifest names its files for ever.

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    def version(self) -> int:
        return self.number

    def at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> "WebList":
        if timestamp is not None:
            raise Unsupported(f"{self.uri} does not tell when its versions were made", detail="VERSION")
        last = len(_manifest(self.store)["versions"]) - 1
        number = last if version is None else version
        if not isinstance(number, int) or not 0 <= number <= last:
            raise Unsupported(f"{self.uri} has the versions 0 to {last}, and no {version!r}", detail="VERSION")
        return replace(self, number=number)

    def files(self) -> FileList:
        entries = _manifest(self.store)["versions"][self.number]
        return FileList.build(
            self.uri,
            [entry["path"] for entry in entries],
            [entry["size"] for entry in entries],
            np.zeros(len(entries), np.int64),
            tags=[entry["etag"] for entry in entries],
        )

    def deleted(self, files: FileList) -> Deleted:
        return {}

    def reading(self, files: FileList) -> Reading:
        options = self.format.options.complete(self.request.options)
        columns = self.request.columns
        if columns is None:
            columns = self.format.columns(self.data_files(files)[0], options)
        return Reading.of(
            self.format.name,
            self.format.options.of_reading(self.request.options),
            columns,
            self.request.time_zone,
            local_times=self.format.local_times,
            by_position=self.format.by_position,
        )

    def schema(self) -> pa.Schema:
        return self.reading(self.files()).schema

    def partition_values(self, files: FileList, reading: Reading) -> pa.Table:
        return pa.table({})

    def data_files(self, files: FileList) -> list[DataFile]:
        sizes = files.table.column("size").to_pylist()
        return [DataFile(self.store, path, size) for path, size in zip(files.paths().to_pylist(), sizes, strict=True)]


class WebListKind:
    def recognises(self, request: Request) -> bool:
        return len(request.paths) == 1 and request.paths[0].startswith(("http://", "https://"))

    def open(self, request: Request) -> WebList:
        uri = canonical_uri(request.paths[0])
        store = open_store(uri, request.storage_options)
        manifest = _manifest(store)
        return WebList(uri, store, format_named(manifest["format"]), request, len(manifest["versions"]) - 1)


def _manifest(store: Store) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(store.get(_MANIFEST))
    except ObjectMissing as error:
        raise TableNotFound(f"{store.uri} has no {_MANIFEST}", detail="NO_MANIFEST") from error
    return manifest


KIND = WebListKind()
