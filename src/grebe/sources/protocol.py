"""What a source of data brings along: the files of a version, which rows of them do not count, and how they are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.files import FileList
from grebe.formats import Column, DataFile, Format, Reading
from grebe.store.opening import open_table_store
from grebe.store.protocol import Store

Version: TypeAlias = int | str
Deleted: TypeAlias = Mapping[int, npt.NDArray[np.int64]]
"""By the place of a file in its list the numbers of rows that were deleted, ascending; a file without such rows is not in it."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks to be opened. Paths are as written; `columns` is a schema that the user gives, or that was recorded."""

    paths: tuple[str, ...]
    format: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    columns: tuple[Column, ...] | None = None
    time_zone: str = "UTC"
    version: Version | None = None
    timestamp: str | datetime | None = None
    open_store: Callable[[str, Mapping[str, str] | None], Store] = field(default=open_table_store, repr=False)
    allowed_roots: tuple[str, ...] = ()
    """Canonical URIs of folders outside of the table where its log may name files, too."""
    guard_decoders: bool = True
    """Decode files in guarded processes, where their format has such."""

    def option(self, name: str) -> str | None:
        """An option by its name in any case."""
        found = [value for key, value in self.options.items() if key.lower() == name.lower() and value is not None]
        return str(found[-1]) if found else None


class Source(Protocol):
    """One table, at one version where it has versions. A file list that it returned says all it needs to answer about its files."""

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
        """The version that this is; None where the source has no versions."""
        ...

    def at(self, version: Version | None = None, timestamp: str | datetime | None = None) -> "Source":
        """The same table at another version, or as it was at a time; the newest if nothing is said."""
        ...

    def files(self) -> FileList:
        """The data files of the version, or of now."""
        ...

    def deleted(self, files: FileList) -> Deleted:
        """Rows of these files that the table no longer has. What is kept of them is read when it is asked for."""
        ...

    def reading(self, files: FileList) -> Reading:
        """How these files are read."""
        ...

    def schema(self) -> pa.Schema:
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
