"""What an index kind is to the rest of Grebe: something to make, and something that plays one or both of two roles.

*Stand in*: a `Copy`, read instead of the files it covers. *Prune*: a `Pruner`, asked which of the files it covers, and which
records of them, can make a predicate true. Planner and lookups know nothing else of a kind.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.files import FileIds
from grebe.formats import Column, Reading, format_named
from grebe.formats.parquet_statistics import Footer
from grebe.indexes.faults import Fault
from grebe.indexes.reading import Reader
from grebe.indexes.view.definition import Base, Definition
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import IndexState
from grebe.predicate.tree import Path, Predicate
from grebe.store.protocol import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE_COLUMN = "_grebe_file"
"""Lineage: the id (int) of the file that a row comes from."""
ROW_COLUMN = "_grebe_row"
"""Lineage where the format can delete single rows: the number (bigint) of the row in its file, from 0."""

LOCATORS_CHANGED = "UNSUPPORTED_LOCATORS_CHANGED"
"""The code of the error that says: records of new files are located otherwise than those of old ones, so build all anew."""


def locator_columns(format: str) -> tuple[str, ...]:
    """The columns of the content that find a record again in a file of this format: `_grebe_row`, or `_grebe_offset` and
    `_grebe_length`."""
    return tuple(f"_grebe_{name}" for name in format_named(format).locator.fields)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the rows before they are read: a guess by some footers or by sizes, good enough to choose a layout."""

    rows: int
    widths: Mapping[Path, float] = field(default_factory=dict)
    """Bytes a row of each leaf column, in Parquet with zstd."""
    measured: bool = False  # from footers, so that these can be read
    older_rows: int = 0
    older_bytes: int = 0
    """Of `rows`, those that lie in content already, and the bytes that they take there."""

    def bytes_of(self, paths: Sequence[Path]) -> int:
        """Of the columns at these paths, with all that lies below them."""
        wide = sum(width for leaf, width in self.widths.items() if any(leaf[: len(path)] == path for path in paths))
        return int((self.rows - self.older_rows) * wide) + self.older_bytes


@dataclass(frozen=True, slots=True)
class LocatedRows:
    """Some columns of the table, `FILE_COLUMN`, and as far as possible what finds each row again in its file."""

    frame: "DataFrame"
    locators: tuple[str, ...]
    """Its columns that do so, those of `locator_columns`; none, if only the file is known."""
    rows: int | None = None
    """How many there are, where that is known for sure."""
    file_level: str | None = None
    """Why there are no locators."""


class FileFold(Protocol):
    """Makes one row of the rows of a file, in Spark's tasks: of some of them a state, which may go to another process, and of all
    states of a file its row."""

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        """Of the row: `FILE_COLUMN` first, types as Spark writes them."""
        ...

    def state(self, rows: pa.RecordBatch) -> Any: ...

    def joined(self, states: Sequence[Any]) -> Any: ...

    def told(self, footer: Footer, columns: Mapping[str, Column]) -> Any | None:
        """The state of a whole file by its footer alone; None where its rows have to be read."""
        ...

    def rows(self, files: Sequence[int], states: Sequence[Any]) -> pa.RecordBatch: ...


class Rows(Protocol):
    """What a kind is built from: the rows of the files that it will cover, as Spark reads them."""

    @property
    def facts(self) -> Facts: ...

    @property
    def files(self) -> int:
        """How many there are."""
        ...

    @property
    def left_out(self) -> FileIds:
        """Files whose rows are not taken over from older content."""
        ...

    def frame(self, again: bool = False) -> "DataFrame":
        """All columns of the table and `FILE_COLUMN`. `again`: it will be read more than once, which may be worth keeping it."""
        ...

    def located(self, columns: Collection[str]) -> LocatedRows:
        """These columns of the table, whole ones; to be read as often as need be."""
        ...

    def folded(self, fold: FileFold, columns: Collection[str]) -> "DataFrame":
        """One row a file, of these columns of the table."""
        ...

    def older(self, fields: Sequence[tuple[str, str]]) -> "DataFrame | None":
        """Content of the index that is to be written anew with what is new, without `left_out`; it has these columns."""
        ...

    def existing(self, fields: Sequence[tuple[str, str]]) -> "DataFrame | None":
        """All content of the index as it is; None if it is built anew."""
        ...

    def other(self, base: Base) -> "DataFrame":
        """Another table, all of it."""
        ...

    def some(self) -> "DataFrame":
        """Some rows of some of the files, which cost little to read: for choosing a layout."""
        ...

    def counted(self, frame: "DataFrame", whole: bool) -> "DataFrame":
        """The same rows, and it will be checked that just as many are written. `whole`: these are all rows of the files."""
        ...


@dataclass(frozen=True, slots=True)
class Arranged:
    """Rows as they are to be written: each partition becomes files of its own, its rows in this order."""

    frame: "DataFrame"
    options: Mapping[str, str]
    """Of the Parquet writer; `maxRecordsPerFile` cuts a partition into several files."""
    properties: Mapping[str, Any]
    """What the index remembers about this content, beside its spec."""
    maps: bool = False
    """Whether the maps of the covered files are to be kept beside (`content.maps`)."""


class Kind(Protocol):
    """A frozen dataclass that users make (`grebe.Covering(…)`): checked as far as it can be without the table."""

    @property
    def name(self) -> str: ...

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        """What the log remembers, columns spelt as the table spells them. A condition is understood by the session's time zone and
        ANSI mode. Raises `InvalidIndex`."""
        ...

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        """The columns of the table (whole ones) that building needs."""
        ...

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        """The content to be written, by Spark."""
        ...

    def described(self, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
        """What was written to that folder of the store, with what a probe needs to know of it. `spec` has all its properties."""
        ...


@runtime_checkable
class FromQuery(Kind, Protocol):
    """A kind that is made from a query: only a session of Spark can say what that means."""

    @property
    def query(self) -> Any:
        """SQL or a DataFrame, as long as nothing more is known."""
        ...

    @property
    def definition(self) -> Definition | None:
        """What the query means, if that is known."""
        ...

    def meaning(self, definition: Definition) -> Kind:
        """The same, once that is known."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a copy lie. Hash buckets as Spark makes them (`buckets` > 0), or the whole sorted by range or along a
    curve (0)."""

    buckets: int
    bucket_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    """Within each bucket, or, without buckets, over all files. Ascending, NULL first, as Spark sorts."""
    along: tuple[str, ...] = ()
    """Columns that are near each other in rows that lie near each other, none of them in order: a curve through all of them."""
    sides: tuple[float, ...] = ()
    """Of each column of `along`, the share of the rows that have a value between the least and the greatest one of a page, on the
    average; empty: about the same for all."""


@dataclass(frozen=True, slots=True)
class Run:
    """Files that were written by one operation: each bucket is sorted across the files of a run, in the order of the run."""

    files: tuple[int, ...]
    """Positions in `Copy.content`."""


def bound_names(place: int) -> tuple[str, str, str]:
    """What `Copy.content` calls the least value, the greatest one and the number of NULLs of the bounded column at that place."""
    return ("min", "max", "nulls") if place == 0 else (f"min_{place}", f"max_{place}", f"nulls_{place}")


@dataclass(frozen=True, slots=True)
class Copy:
    """Some columns of the covered files, laid out better. Column names in `layout` and `columns` are those of the content."""

    name: str
    reading: Reading
    """How the table was read when this was made."""
    columns: Mapping[Path, str]
    """Column of the table (a path: nested fields are flattened) -> column of the content."""
    schema: str
    """Of the content files, as Spark's JSON: the columns, then the lineage."""
    layout: Layout
    where: Predicate | None
    """A partial index holds only the rows for which this is true."""
    lineage: bool
    """Whether `FILE_COLUMN` is there, so that rows of files that are gone can be told apart."""
    rows_numbered: bool
    """Whether `ROW_COLUMN` is there."""
    covered: FileIds
    """All files whose rows are in the content, those that the newest version of the table has no more included: rows of files that
    a query does not read are filtered out by lineage."""
    content: pa.Table
    """One row a content file: `path` (below the log's folder), `size`, `rows`, `tail` (bytes from its first index or filter to the
    end), `tail_digest`, `bucket` (-1 without buckets), and of each of the columns `bounded` three that are named by its place (see
    `bound_names`): its bounds, of its own type, and how many are NULL, each null where unknown."""
    runs: tuple[Run, ...]
    key: str
    """Names this very content: equal keys, equal files. (Index, version and a digest of the paths.)"""
    bounded: tuple[str, ...] = ()
    """Columns of the content whose bounds are known of each file."""
    definition: Definition | None = None
    """The rows are not those of the files but those of this query over them: one for each group of each file, if it groups."""

    @property
    def bytes(self) -> int:
        return int(pc.sum(self.content["size"]).as_py() or 0)

    @property
    def rows(self) -> int:
        return int(pc.sum(self.content["rows"]).as_py() or 0)


@dataclass(frozen=True, slots=True)
class Entries:
    """Files, or single records, that may make a predicate true."""

    files: npt.NDArray[np.int64]
    """The id of the file: of each record, or each file once."""
    locators: pa.Table | None
    """Where in its file each record lies, as the format's `locator` has it; None where only files are known."""
    values: pa.Table | None
    """What the index itself holds of each record, flat, under the names of its content."""


class Hits(Protocol):
    """What a pruner knows of a predicate without having read much."""

    @property
    def likely(self) -> int | None:
        """About so many records will be found; None: unknown."""
        ...

    def entries(self, reader: Reader) -> Entries: ...


@dataclass(frozen=True, slots=True)
class Extreme:
    """Of one column: how many values are NULL, and the least and the greatest of the others, where these are known for sure."""

    nulls: int
    least: Any = None
    greatest: Any = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What is known for sure of rows without reading any."""

    rows: int
    columns: Mapping[Path, Extreme]


class Pruner(Protocol):
    """An index that knows for the files it covers (all those whose rows are in its content) where rows of a predicate can lie. Of
    other files it knows nothing."""

    @property
    def name(self) -> str: ...

    @property
    def reading(self) -> Reading:
        """How the table was read when this was made."""
        ...

    @property
    def covered(self) -> FileIds: ...

    @property
    def columns(self) -> Mapping[Path, str]:
        """Column of the table -> column of `Entries.values`."""
        ...

    @property
    def bytes(self) -> int: ...

    @property
    def rows(self) -> int:
        """Of the covered files, all together."""
        ...

    @property
    def by_file(self) -> bool:
        """Whether it tells whole files, at next to no cost: then several of them are asked, and other indexes beside them."""
        ...

    @property
    def chosen(self) -> str:
        """What was chosen for it by itself, and why; empty if nothing was."""
        ...

    def leads(self, column: Path) -> bool:
        """Whether it can be asked where keys of this column lie."""
        ...

    def helps(self, predicate: Predicate) -> bool:
        """Whether it can tell anything of this (bound and normalised) predicate. Reads nothing."""
        ...

    def hits(self, predicate: Predicate, reader: Reader) -> Hits:
        """Raises `CorruptIndex` or `UnreadableFile` where the index is damaged."""
        ...

    def certain(self, predicate: Predicate, reader: Reader) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Covered files (ids) of which every row makes the predicate true, and how many rows each has."""
        ...

    def totals(self, predicate: Predicate, files: FileIds, reader: Reader) -> Totals | None:
        """Of the rows of these covered files that make the predicate true: None where some would have to be looked at. What a
        table format deletes of a file is not known here."""
        ...

    def maps(self, reader: Reader) -> Mapping[int, Any]:
        """By file id, what the index remembers of where records lie in the files (`formats.KeepsMaps`); may be empty."""
        ...

    def warm(self, reader: Reader, pin: bool) -> None:
        """Reads ahead what later calls need."""
        ...


class KindType(Protocol):
    """The class of a kind, as `registry` lists it."""

    kind: str
    """`covering`: the name in the log, in SQL's USING and in `--kind`."""

    def faults_of(self, index: IndexState, store: Store, deep: bool) -> Sequence[Fault]:
        """What is wrong with the files of this index; `deep` reads every byte."""
        ...

    def copy_of(self, index: IndexState, store: Store) -> Copy | None:
        """The stand-in that this index offers; None if the kind only prunes. `store` is that of the log."""
        ...

    def pruner_of(self, index: IndexState, store: Store) -> Pruner | None:
        """None if the kind only stands in."""
        ...

    def from_spec(self, name: str, spec: IndexSpec) -> Kind:
        """The kind that makes such an index again (full refresh)."""
        ...
