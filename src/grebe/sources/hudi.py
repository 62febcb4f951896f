"""Tables of Apache Hudi, listed without Spark by the package hudi: the base files of a version's file slices.

A slice with log files (merge-on-read) is more than its base file, and only Hudi's own reader puts it together. So such slices are
not listed, and whoever would read the table without Spark is told; in Spark they are read directly, beside the covered files.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from grebe.errors import StoreUnreachable, TableNotFound, UnreadableFile, Unsupported
from grebe.files import FileList, canonical_uri
from grebe.formats import Column, DataFile
from grebe.formats.spark_types import spark_type, type_json, type_text
from grebe.sources.lake import LakeFiles, LakeKind, LakeVersion, moment_ms, needs, no_such_version, require_one, uri_of
from grebe.sources.marks import MARKS
from grebe.sources.protocol import Deleted, Request, Version
from grebe.sources.roots import refused, require_regular_files
from grebe.store.protocol import ObjectMissing, ObjectTooLarge, Store

if TYPE_CHECKING:
    from hudi import HudiFileSlice, HudiInstant, HudiTable

_PROPERTIES = f"{MARKS['hudi']}/hoodie.properties"
_METADATA = f"{MARKS['hudi']}/metadata"
_BASE_PATH = "hoodie.base.path"
_MOST_PROPERTIES = 1024 * 1024
_BEYOND = ("Only support", "not supported")
"""How the package says that it does not read such tables: of another version, not of Parquet, without partition columns."""


@dataclass(frozen=True)
class HudiSource(LakeVersion):
    merged: int = field(default=0, kw_only=True)
    """Slices with log files, which are not listed."""

    kind: ClassVar[str] = "hudi"

    def at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> "HudiSource":
        return _opened(self.uri, self.request, version, timestamp)

    def deleted(self, files: FileList) -> Deleted:
        return {}  # a base file is rewritten for each delete

    def data_files(self, files: FileList) -> list[DataFile]:
        if self.merged:
            raise Unsupported(
                f"{self.merged} file slices of {self.uri} have log files, which only Hudi's reader in Spark merges; query it "
                "there, or compact the table first",
                detail="LOG_FILES",
            )
        return super().data_files(files)


def _opened(given: str, request: Request, version: Version | None, timestamp: str | datetime | None) -> HudiSource:
    require_one(version, timestamp)
    uri = canonical_uri(given)
    with needs("hudi", "hudi"):
        from hudi import HudiReadOptions, HudiTableBuilder
    store = request.open_store(uri, request.storage_options)
    _require_own_places(store, uri)
    with _errors(uri):
        builder = HudiTableBuilder.from_base_uri(uri)
        table = builder.with_storage_options(dict(request.storage_options)).build()
        instant = _instant(table, uri, version, timestamp)
        asked = HudiReadOptions() if instant is None else HudiReadOptions().with_as_of_timestamp(instant)
        slices = table.get_file_slices(asked)
        fields = list(table.get_schema_with_meta_fields())
    columns = tuple(Column(one.name, type_text(spark_type(one.type))) for one in fields)
    stored = tuple({"name": one.name, "type": type_json(one.type), "nullable": True, "metadata": {}} for one in columns)
    plain = [one for one in slices if not one.has_log_files()]
    merged = len(slices) - len(plain)
    return HudiSource(
        uri, store, request, instant or "", columns, stored, _listed(uri, plain, request.allowed_roots), merged=merged
    )


def _require_own_places(store: Store, uri: str) -> None:
    """Raise `Unsupported` if the properties of the table, or of its table of metadata, say that it lies elsewhere: the package hudi
    goes there, with the credentials of this table or with whatever the machine has. Other paths it takes for relative ones."""
    require_regular_files(uri, deep=True)
    for table in (uri, f"{uri}/{_METADATA}"):
        path = f"{table}/{_PROPERTIES}".removeprefix(f"{uri}/")
        for line in _lines(store, path):
            value = line.partition("=")[2].strip()
            if _BASE_PATH in line and (not value or canonical_uri(value) != table):
                raise refused(uri, f"the place {value!r}, as that of the table itself (in {path})")


def _lines(store: Store, path: str) -> list[str]:
    try:
        return store.get(path, _MOST_PROPERTIES).decode(errors="replace").splitlines()
    except ObjectMissing:
        return []
    except ObjectTooLarge as error:
        raise UnreadableFile(f"{error.args[0]}: no properties of Hudi", detail="HUDI") from error


def _listed(uri: str, slices: "Sequence[HudiFileSlice]", allowed: Sequence[str]) -> LakeFiles:
    """The name of a base file holds its file id and its commit: that and its size are its identity."""
    return LakeFiles.build(
        uri,
        [uri_of(uri, one.base_file_relative_path()) for one in slices],
        [one.base_file_size for one in slices],
        [0] * len(slices),
        allowed=allowed,
    )


def _instant(table: "HudiTable", uri: str, version: Version | None, timestamp: str | datetime | None) -> str | None:
    """None for a table without commits."""
    timeline = table.get_timeline()
    instants: list[HudiInstant] = [
        *timeline.get_completed_commits(),
        *timeline.get_completed_deltacommits(),
        *timeline.get_completed_replacecommits(),
    ]
    known = sorted(instants, key=lambda one: one.timestamp)
    if timestamp is not None:
        asked = moment_ms(timestamp)
        before = [one.timestamp for one in known if one.epoch_mills <= asked]
        if not before:
            raise no_such_version(uri, timestamp, "the oldest that is left is younger")
        return str(before[-1])
    if version is None:
        return str(known[-1].timestamp) if known else None
    if str(version) not in {one.timestamp for one in known}:
        raise no_such_version(
            uri, version, f"those of Hudi are instants such as {known[-1].timestamp}" if known else "it has none"
        )
    return str(version)


@contextmanager
def _errors(uri: str) -> Iterator[None]:
    """What the package hudi raises, as errors of ours."""
    try:
        yield
    except Exception as error:  # the package has one class of errors, and does not export it
        if type(error).__name__ != "HudiCoreError":
            raise
        if any(sign in str(error) for sign in ("hoodie.properties", "hoodie.table.name")):
            raise TableNotFound(
                f"{uri} is no table of Hudi: it has no {MARKS[HudiSource.kind]}/hoodie.properties that can be read",
                detail="HUDI",
            ) from error
        if any(sign in str(error) for sign in _BEYOND):
            raise Unsupported(
                f"{uri} asks of its readers what the package hudi cannot do ({error}); query it in Spark", detail="HUDI"
            ) from error
        raise StoreUnreachable(
            f"the timeline of {uri} could not be read; look at its store and storage_options", detail="HUDI"
        ) from error


KIND = LakeKind("Hudi", _opened)
