"""What an index kind is to the rest of Grebe: something to make, and something that plays one or both of two roles.

*Stand in*: a `Copy`, read instead of the files it covers. *Prune*: comes with the first kind that does. The planner knows nothing
else of a kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from grebe.files import FileIds
from grebe.formats import Reading
from grebe.log.entry import IndexSpec
from grebe.log.states import IndexState
from grebe.predicate.tree import Path, Predicate
from grebe.store.protocol import Store

FILE_COLUMN = "_grebe_file"
"""Lineage: the id (int) of the file that a row comes from."""
ROW_COLUMN = "_grebe_row"
"""Lineage where the format can delete single rows: the number (bigint) of the row in its file, from 0."""


class Kind(Protocol):
    """A frozen dataclass that users make (`grebe.Covering(…)`): checked as far as it can be without the table."""

    @property
    def name(self) -> str: ...

    def spec(self, reading: Reading, case_sensitive: bool) -> IndexSpec:
        """What the log remembers, columns spelt as the table spells them. Raises `InvalidIndex`."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a copy lie. Hash buckets as Spark makes them (`buckets` > 0), or the whole sorted by range (0)."""

    buckets: int
    bucket_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    """Within each bucket, or, without buckets, over all files. Ascending, NULL first, as Spark sorts."""


@dataclass(frozen=True, slots=True)
class Run:
    """Files that were written by one operation: each bucket is sorted across the files of a run, in the order of the run."""

    files: tuple[int, ...]
    """Positions in `Copy.content`."""


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
    dormant: FileIds
    """Files whose rows are in the content, but that are not covered: to be filtered out like covered files that are gone."""
    content: pa.Table
    """One row a content file: `path` (below the log's folder), `size`, `rows`, `bucket` (-1 without buckets), and of the first
    column sorted by the bounds `min` and `max` (of its own type) and `nulls` (a count), each null where unknown."""
    runs: tuple[Run, ...]
    key: str
    """Names this very content: equal keys, equal files. (Index, version and a digest of the paths.)"""

    @property
    def bytes(self) -> int:
        return int(pa.compute.sum(self.content["size"]).as_py() or 0)

    @property
    def rows(self) -> int:
        return int(pa.compute.sum(self.content["rows"]).as_py() or 0)


class KindType(Protocol):
    """The class of a kind, as `registry` lists it."""

    kind: str
    """`covering`: the name in the log, in SQL's USING and in `--kind`."""

    def copy_of(self, index: IndexState, store: Store) -> Copy | None:
        """The stand-in that this index offers; None if the kind only prunes. `store` is that of the log."""
        ...

    def from_spec(self, name: str, spec: IndexSpec) -> Kind:
        """The kind that makes such an index again (full refresh)."""
        ...


Properties = Mapping[str, Any]
