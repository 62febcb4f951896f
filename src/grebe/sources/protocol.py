"""What a source of data brings along: the files of a version, what changed between two, and how the files are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from grebe.files import Diff, FileList
from grebe.formats import Column, DataFile, Format, Reading
from grebe.store.opening import open_store
from grebe.store.protocol import Store

Version: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks to be opened. Paths are as written; `columns` is a schema that the user gives, or that was recorded."""

    paths: tuple[str, ...]
    format: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    columns: tuple[Column, ...] | None = None
    time_zone: str = "UTC"
    open_store: Callable[[str, Mapping[str, str] | None], Store] = field(default=open_store, repr=False)

    def option(self, name: str) -> str | None:
        """An option by its name in any case."""
        found = [value for key, value in self.options.items() if key.lower() == name.lower() and value is not None]
        return str(found[-1]) if found else None


class Source(Protocol):
    """One table. A file list that it returned says all it needs to answer about those files: it keeps no state of its own."""

    @property
    def uri(self) -> str:
        """Canonical: the folder of the table, or the lowest folder above all its parts."""
        ...

    @property
    def name(self) -> str:
        """For people and for the folder of the indexes: the last part of the URI."""
        ...

    @property
    def kind(self) -> str:
        """`plain`, `delta`, …: the name under which the source is registered."""
        ...

    @property
    def format(self) -> Format:
        """The format of its data files."""
        ...

    @property
    def settling_ms(self) -> int:
        """How long after a change another one may leave identity as it is; 0 where files never change."""
        ...

    def version(self) -> Version | None:
        """The newest version; None where the source has no versions."""
        ...

    def files(self, version: Version | None = None) -> FileList:
        """The data files of a version, or of now."""
        ...

    def changes(self, old: Version | FileList, new: Version | None = None) -> Diff:
        """What changed since a version, or since a file list."""
        ...

    def reading(self, files: FileList) -> Reading:
        """How these files are read."""
        ...

    def schema(self, version: Version | None = None) -> pa.Schema:
        """All columns, those of partitions included."""
        ...

    def partition_values(self, files: FileList, reading: Reading) -> pa.Table:
        """For each file the values of the partition columns of the reading, in the order of both."""
        ...

    def data_files(self, files: FileList) -> Sequence[DataFile]:
        """The files, ready to be read."""
        ...


class SourceKind(Protocol):
    """What an entry point of the group `grebe.sources` names; its name is what users give as `format`."""

    def recognises(self, request: Request) -> bool:
        """Whether this source takes a request that names no format. Must not raise, and not read more than it has to."""
        ...

    def open(self, request: Request) -> Source: ...
