"""What a record format brings along, so that Grebe can index and fetch its records.

First-party formats and those of other packages are the same to everyone above: see `registry`.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from grebe.errors import SourceChanged
from grebe.formats.options import OptionTable
from grebe.formats.reading import Column, Reading
from grebe.store.protocol import ObjectChanged, ObjectInfo, ObjectMissing, Store

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class LocatorShape:
    """The numbers that find a record again in its file, by name; each is a column of int64."""

    fields: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, pa.int64(), nullable=False) for name in self.fields])


ROW_NUMBER = LocatorShape(("row",))
"""Counted from 0 over the whole file."""
BYTE_SPAN = LocatorShape(("offset", "length"))
"""Bytes of the record in the (uncompressed) file, without what separates it from the next."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a table, as it was listed. Where its time is known, no byte is read of any other file of that name."""

    store: Store
    path: str
    size: int
    modified_ms: int | None = None
    etag: str | None = None
    guarded: bool = field(default=True, compare=False, kw_only=True)
    """Decode it in a guarded process where its format has one (the setting `guard_decoders`)."""

    @property
    def uri(self) -> str:
        return f"{self.store.uri}/{self.path}"

    def read(self, start: int, length: int) -> bytes:
        """Exactly these bytes. A file that is gone, or ends before its listed size, has changed under us."""
        length = max(0, min(length, self.size - start))
        if not length:
            return b""
        return self.read_spans([(start, length)])[0]

    def read_spans(self, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several (start, length), all within the listed size."""
        try:
            parts = self.store.get_ranges(self.path, spans, self.expected)
        except ObjectMissing as error:
            raise self._gone() from error
        except ObjectChanged as error:
            raise self.changed() from error
        return [self._whole(part, length) for part, (_, length) in zip(parts, spans, strict=True)]

    @property
    def expected(self) -> ObjectInfo | None:
        """What it must be whenever it is read; None where nothing is known but its length (files that never change)."""
        if self.modified_ms is None:
            return None
        return ObjectInfo(self.path, self.size, self.modified_ms, self.etag)

    def changed(self) -> SourceChanged:
        return SourceChanged(
            f"{self.uri} was changed after the files of the table were listed; open or reload() the table and ask again",
            detail="FILE_CHANGED",
        )

    def _whole(self, data: bytes, length: int) -> bytes:
        if len(data) != length:
            raise SourceChanged(
                f"{self.uri} is shorter than the {self.size} bytes it was listed with; open or reload() the table and ask again",
                detail="FILE_CHANGED",
            )
        return data

    def _gone(self) -> SourceChanged:
        return SourceChanged(
            f"{self.uri} was there when the files were listed and is gone; open or reload() the table and ask again",
            detail="FILE_GONE",
        )


@dataclass(frozen=True, slots=True)
class Located:
    """Records with their locators, row by row."""

    records: pa.RecordBatch
    locators: pa.RecordBatch


class Memory(Protocol):
    """Remembers what was found out about files, so that it is not read again: where a file's pages lie, for example."""

    def recall(self, file: DataFile, read: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """What `read` gives for this file, and gave before; it takes `size` bytes to keep."""
        ...

    def get(self, file: DataFile, what: Hashable) -> Any | None:
        """What was put, unless it had to go."""
        ...

    def put(self, file: DataFile, what: Hashable, value: Any, nbytes: int) -> None: ...

    def is_worth(self, file: DataFile, what: Hashable, nbytes: int) -> bool:
        """Whether something of this size, asked for now, should be made and put."""
        ...


@runtime_checkable
class KeepsMaps(Protocol):
    """A format whose files say where their records lie: that can be stored elsewhere, so that no file is opened to find a record.
    What `map_of` gives is what `fetch` recalls from its `Memory`."""

    def map_of(self, file: DataFile) -> Any: ...

    def pack_maps(self, maps: Sequence[Any]) -> bytes: ...

    def unpack_maps(self, data: bytes) -> Sequence[Any]:
        """None for a file whose map could not be stored."""
        ...

    def map_bytes(self, of: Any) -> int:
        """What a map takes in memory."""
        ...


class NoMemory:
    def recall(self, file: DataFile, read: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        return read()

    def get(self, file: DataFile, what: Hashable) -> None:
        return None

    def put(self, file: DataFile, what: Hashable, value: Any, nbytes: int) -> None:
        return None

    def is_worth(self, file: DataFile, what: Hashable, nbytes: int) -> bool:
        return False


NO_MEMORY = NoMemory()


class Format(Protocol):
    """Everything is asked for under a `Reading`; columns of partitions are not the format's business. What the format
    cannot do exactly as Spark does, it refuses with `Unsupported`; a damaged file is `UnreadableFile`."""

    @property
    def name(self) -> str: ...

    @property
    def suffixes(self) -> tuple[str, ...]:
        """With the dot, in lower case; of files that may be compressed, without the suffix of the compression."""
        ...

    @property
    def locator(self) -> LocatorShape: ...

    @property
    def options(self) -> OptionTable: ...

    @property
    def local_times(self) -> bool:
        """Whether files hold timestamps as local times of an unwritten zone."""
        ...

    @property
    def by_position(self) -> bool:
        """Whether columns are told apart by their position and not by name."""
        ...

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        """The columns that this file shows by itself, in the types that Spark gives them, under the complete
        options."""
        ...

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        """All records in the order of the file, with the named columns of the reading (None: all of the file's)."""
        ...

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        """The records at these locators, in that order."""
        ...


def wanted_columns(reading: Reading, names: Sequence[str] | None) -> tuple[Column, ...]:
    """The columns of the file that are asked for, in the order in which they are asked for."""
    columns = reading.file_columns
    if names is None:
        return columns
    by_name = {column.name: column for column in columns}
    return tuple(by_name[name] for name in names if name in by_name)


def without_columns(count: int) -> pa.RecordBatch:
    """So many records of no columns. Only a batch made of a struct remembers how many."""
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))
