"""What tables of lake formats have in common: a version is a list of immutable files, and the format's log tells all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import TableNotFound, Unsupported
from grebe.files import FileList, canonical_uri, join_uri, relative_path
from grebe.formats import Column, DataFile, Format, Reading, format_named
from grebe.sources.protocol import Deleted, Request, Version
from grebe.sources.roots import require_allowed
from grebe.store.protocol import Store

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LakeFiles:
    """The files of a version, and what is told of each, in the same order."""

    list: FileList
    partitions: pa.Table
    """Values of the partition columns, by their names; no columns where files hold them themselves."""

    @classmethod
    def build(
        cls,
        root: str,
        uris: Sequence[str],
        sizes: Sequence[int],
        modified_ms: Sequence[int],
        rows: Sequence[int | None] | None = None,
        partitions: pa.Table | None = None,
        allowed: Sequence[str] = (),
    ) -> "LakeFiles":
        """`uris` are as the format's log names them; `allowed`: where else than below the root they may lie."""
        paths = _within(root, [_seen_from(root, uri) for uri in uris], allowed)
        order = pc.sort_indices(paths)
        columns = (paths, pa.array(sizes, pa.int64()), pa.array(modified_ms, pa.int64()))
        counts = None if rows is None else pa.array(rows, pa.int64()).take(order)
        names, lengths, times = (column.take(order) for column in columns)
        listed = FileList.build(root, names, lengths, times, rows=counts)
        return cls(listed, pa.table({}) if partitions is None else partitions.take(order))

    @cached_property
    def by_uri(self) -> Mapping[str, int]:
        return {uri: place for place, uri in enumerate(self.list.uris().to_pylist())}


@dataclass(frozen=True)
class LakeVersion(ABC):
    """A table at one version. What differs between formats is how a version is found, and where deleted rows are told."""

    uri: str
    store: Store
    request: Request
    number: Version
    columns: tuple[Column, ...]
    stored: tuple[Mapping[str, Any], ...] = field(repr=False)
    """Of each column of the files how it is stored, in the JSON of Spark's schemas."""
    listed: LakeFiles = field(repr=False)

    kind: ClassVar[str]
    settling_ms: ClassVar[int] = 0

    @abstractmethod
    def at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> "LakeVersion": ...

    @abstractmethod
    def deleted(self, files: FileList) -> Deleted: ...

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    @property
    def format(self) -> Format:
        return format_named("parquet")

    def version(self) -> Version:
        return self.number

    def files(self) -> FileList:
        return self.listed.list

    def reading(self, files: FileList) -> Reading:
        # Partition values are told as UTC, and Parquet's own times have no zone.
        return Reading.of("parquet", self.format.options.of_reading({}), self.columns, "UTC", local_times=False)

    def schema(self) -> pa.Schema:
        return self.reading(self.files()).schema

    def partition_values(self, files: FileList, reading: Reading) -> pa.Table:
        own = self.listed.partitions.select([column.name for column in reading.partition_columns])
        return own if files is self.listed.list else own.take(pa.array(self.places(files), pa.int64()))

    def places(self, files: FileList) -> list[int]:
        """Of files that are all of this version."""
        by_uri = self.listed.by_uri
        return [by_uri[uri] for uri in files.uris().to_pylist()]

    def data_files(self, files: FileList) -> list[DataFile]:
        """A table may keep files elsewhere."""
        here = files.rebased(self.store.uri)
        others: dict[str, Store] = {}
        found = []
        for path, size in zip(here.paths().to_pylist(), here.table.column("size").to_pylist(), strict=True):
            if "://" not in path:
                found.append(DataFile(self.store, path, size))
                continue
            folder, _, name = path.rpartition("/")
            if folder not in others:
                others[folder] = self.request.open_store(folder, self.request.storage_options)
            found.append(DataFile(others[folder], name, size))
        return found


@dataclass(frozen=True)
class DeletedRows(Mapping[int, Numbers]):
    """Read file by file when they are asked for, and then kept."""

    told: Mapping[int, Any]
    """By place what `read` takes."""
    read: Callable[[Any], Numbers]
    _known: dict[int, Numbers] = field(default_factory=dict, repr=False)

    def __getitem__(self, place: int) -> Numbers:
        if place not in self._known:
            self._known[place] = self.read(self.told[place])
        return self._known[place]

    def __iter__(self) -> Iterator[int]:
        return iter(self.told)

    def __len__(self) -> int:
        return len(self.told)


@dataclass(frozen=True)
class LakeKind:
    """How a lake format is opened: `opened` takes the path as given, the request, and a version or a time."""

    name: str
    """For people."""
    opened: Callable[[str, Request, Version | None, str | datetime | None], LakeVersion]

    def recognises(self, request: Request) -> bool:
        return False  # what lies in the folder tells, see `marks`

    def open(self, request: Request) -> LakeVersion:
        """A table of a lake format lies at one place."""
        if len(request.paths) != 1:
            raise Unsupported(
                f"a table of {self.name} is one path, and {len(request.paths)} were given; open each by itself",
                detail="SEVERAL_PATHS",
            )
        return self.opened(request.paths[0], request, request.version, request.timestamp)


def version_given(version: object) -> Version | None:
    """Return a version as callers name it. Raise `Unsupported` for what names none."""
    if version is None or isinstance(version, str):
        return version
    if isinstance(version, Integral) and not isinstance(version, bool):
        return int(version)
    raise Unsupported(
        f"version={version!r} is no version; give a whole number or text, as the lake format names its versions",
        detail="VERSION",
    )


def time_given(timestamp: object) -> str | datetime | None:
    """Return a time as callers name it; a day is its midnight in UTC. Raise `Unsupported` for what is none."""
    if timestamp is None or isinstance(timestamp, str | datetime):
        return timestamp
    if isinstance(timestamp, date):
        return datetime(timestamp.year, timestamp.month, timestamp.day, tzinfo=UTC)
    raise Unsupported(
        f"timestamp={timestamp!r} is no time; give a datetime, or text such as 2026-01-31T12:00:00+00:00",
        detail="TIMESTAMP",
    )


def moment(timestamp: str | datetime) -> datetime:
    """A time with a zone; one without is taken for UTC."""
    if isinstance(timestamp, str):
        try:
            timestamp = datetime.fromisoformat(timestamp)
        except ValueError as error:
            raise Unsupported(
                f"timestamp={timestamp!r} is no time; write it as 2026-01-31T12:00:00+00:00", detail="TIMESTAMP"
            ) from error
    return timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)


def moment_ms(timestamp: str | datetime) -> int:
    """Return the milliseconds since 1970 of a time, rounded down as Spark does."""
    return (moment(timestamp) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def require_one(version: Version | None, timestamp: str | datetime | None) -> None:
    if version is not None and timestamp is not None:
        raise Unsupported(
            f"version={version!r} and timestamp={timestamp} name a version each; give one of them", detail="VERSION"
        )


def no_such_version(uri: str, asked: object, known: str) -> TableNotFound:
    return TableNotFound(f"{uri} has no version {asked}; {known}", detail="VERSION")


@contextmanager
def needs(package: str, extra: str) -> Iterator[None]:
    """Around the import of a package that comes with an extra."""
    try:
        yield
    except ImportError as error:
        raise Unsupported(
            f"tables of this format need the package {package}: pip install 'grebe[{extra}]'", detail="PACKAGE"
        ) from error


def uri_of(root: str, path: str) -> str:
    """Of a path as a format's log has it, decoded: below the table, or a whole one."""
    return canonical_uri(path) if path.startswith("/") or ":/" in path else f"{root}/{path}"


def _within(root: str, seen: Sequence[str], allowed: Sequence[str]) -> pa.Array:
    """Paths as seen from the root. Raises `Unsupported` where one leads to a place that the table may not name."""
    paths = pa.array(seen, pa.large_string())
    signs = (pc.match_substring(paths, "//"), pc.match_substring(paths, "/."), pc.starts_with(paths, "."))
    odd = pc.or_(pc.or_(signs[0], signs[1]), pc.or_(signs[2], pc.starts_with(paths, "/")))
    if not pc.any(odd, min_count=0).as_py():
        return paths
    plain = [
        canonical_uri(join_uri(root, path)) if sign else "" for path, sign in zip(seen, odd.to_pylist(), strict=True)
    ]
    require_allowed(filter(None, plain), root, allowed)
    return pa.array(
        [_seen_from(root, uri) if uri else path for path, uri in zip(seen, plain, strict=True)], pa.large_string()
    )


def _seen_from(root: str, uri: str) -> str:
    inside = relative_path(root, uri)
    return uri if inside is None else inside
