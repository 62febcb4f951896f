"""What was decided for a query: what each relation is read from, why every other index was not taken, and what that should cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from grebe.files import FileIds
from grebe.indexes.kind import Copy
from grebe.planner.parts import Parts
from grebe.planner.reasons import Reason
from grebe.planner.views import Match
from grebe.predicate.tree import Path


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of a whole plan. `milliseconds` compares plans with each other; it is no promise."""

    files: int = 0
    bytes: int = 0
    requests: int = 0
    shuffles: int = 0
    shuffle_bytes: int = 0
    sorts: int = 0
    broadcasts: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StandIn:
    """Read the copy for the files it covers, and every other file of the relation directly."""

    relation: int
    index: str
    table: str
    copy: Copy
    content: tuple[int, ...]
    """Positions of the content files that must be read (of runs that are read at all); ascending."""
    buckets: int
    """To be read as so many hash partitions: a divisor of those it was written with; 0: as plain files."""
    ordered: bool
    """The plan wants each partition in the order of `copy.layout.sort_by`: runs, and rows read directly, are merged."""
    drop: FileIds
    """Files whose rows are in the content but not in the query: filtered out by lineage."""
    direct: bool
    """Some files of the relation are not covered: these are read directly and put beside the copy's rows."""
    name: str = ""
    """The relation, as the query names it."""
    appended: float = 0.0
    """The share of the relation's bytes that is read directly."""
    deleted: float = 0.0
    """The share of the bytes behind the copy whose files the query does not read."""
    version: int | None = None
    """Of the index, where it is not the current one."""


@dataclass(frozen=True, slots=True)
class FromMetadata:
    """An aggregate without keys over a whole relation, answered without reading: the values of its functions, in their order."""

    relation: int
    index: str
    table: str
    values: tuple[object, ...]
    """Numbers, or None for NULL; a date as its days since 1970, a timestamp as its microseconds."""
    name: str = ""
    """The relation, as the query names it."""
    version: int | None = None
    """Of the index, where it is not the current one."""


@dataclass(frozen=True, slots=True)
class Narrow:
    """Read the files of the table themselves, but none of those that are known to hold no row of the query."""

    relation: int
    index: str
    """That which says most."""
    table: str
    without: FileIds
    """Files that are not read."""
    files: int
    """Files that are read, of how many."""
    files_of: int
    uncovered: int
    """How many of those that are read no index knows."""
    name: str = ""
    """The relation, as the query names it."""
    others: tuple[str, ...] = ()
    """Further indexes by which files were left out."""
    parts: Parts = field(default_factory=dict)
    """Of some of the files, the only ranges that are read."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Files that each index by itself rules out."""
    whys: Mapping[str, str] = field(default_factory=dict)
    """What some of the indexes say of themselves, for people."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Of those indexes that are not asked in their current version."""


@dataclass(frozen=True, slots=True)
class ByKeys:
    """When the query runs, the keys of a join's other side are looked up, and files without any of them are not read."""

    relation: int
    index: str
    table: str
    left: bool
    """Whether the relation is the left side of the join."""
    key: int
    """The attribute that the join compares, and the column of the relation that it is."""
    column: int
    path: Path
    type: str
    """As Spark's JSON."""
    broadcast: bool
    """The other side is broadcast anyway; else it is run once more, for its keys."""
    most: int
    """With more keys than these, all files are read."""
    name: str = ""
    """The relation, as the query names it."""
    version: int | None = None
    """Of the index, where it is not the current one."""
    replaced_at: int | None = None
    """The entry of the log that replaced that version."""


@dataclass(frozen=True, slots=True)
class FromView(StandIn):
    """A block of the query is answered by a view that is created on this relation."""

    block: int = 0
    """Its place among the query's blocks."""
    match: Match | None = None
    """How; None only before it is known."""


Choice: TypeAlias = StandIn | Narrow | ByKeys | FromMetadata


def indexes_of(choice: Choice) -> tuple[str, ...]:
    return (choice.index, *choice.others) if isinstance(choice, Narrow) else (choice.index,)


@dataclass(frozen=True, slots=True)
class Decision:
    choices: tuple[Choice, ...]
    reasons: tuple[Reason, ...]
    """One for every index that is known to the query's tables and not used."""
    before: Estimate = field(default_factory=Estimate)
    after: Estimate = field(default_factory=Estimate)
    as_of: tuple[str, ...] = ()
    """For readers of snapshots, what they see of each table."""

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(index for choice in self.choices for index in indexes_of(choice)))
