"""What a plan asks: the relations it reads, and the shape of what is done with them.

Made by `spark/read_plan` from Catalyst's optimised plan, and by the lookup engine from a predicate. Attributes are numbers (Spark's
expression ids); equal numbers are equal values wherever they appear in the plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from grebe.files import FileIds
from grebe.formats import Reading
from grebe.planner.reasons import Reason
from grebe.planner.views import Block
from grebe.predicate.tree import Path, Predicate

Key: TypeAlias = int | None
"""An attribute, or None for an expression that is no plain attribute (and so is partitioned by no index)."""


@dataclass(frozen=True, slots=True)
class Attribute:
    id: int
    path: Path
    """A column of the relation, or a field inside one that the plan extracts."""
    type: str


_NO_FILES = FileIds.of_ranges(())


@dataclass(frozen=True, slots=True)
class Relation:
    """One scan of files that Grebe could answer otherwise."""

    number: int
    """How a decision names it."""
    table: str | None
    """The URI of the table whose log was found; None: no indexes are known here."""
    name: str
    """For people: the catalog name, or the path."""
    reading: Reading
    attributes: tuple[Attribute, ...]
    required: frozenset[Path]
    """Columns (or fields, where only these are used) that the plan needs."""
    predicate: Predicate
    """What holds of every row that the plan lets through, directly above the scan; bound, best normalised too,
    TRUE if nothing is known."""
    listed: FileIds
    """Registered files that the scan reads."""
    listed_bytes: int
    unregistered_files: int
    unregistered_bytes: int
    obstacle: Reason | None = None
    """Why no index can serve this scan at all."""
    deleted: FileIds = _NO_FILES
    """Of the registered files those of which the table has deleted rows: their rows are more than the scan gives."""
    by_parts: bool = True
    """Of a file that is read parts can be left out, and files once the query runs."""
    beyond: FileIds | None = None
    """Registered files that the scan would read and must not, nor those that are not registered: they are younger than the snapshot
    that is asked for. `listed` is without them. None: whatever is there is read."""
    as_of: str = ""
    """What a reader of snapshots sees of it, in words."""
    root: str = ""
    """Where its files lie, whether or not a log was found there."""
    whole: bool = True
    """The scan lists all files of the table. Of one that lists a part (a folder, some partitions), the others are not gone."""

    @property
    def bytes(self) -> int:
        return self.listed_bytes + self.unregistered_bytes


class Node:
    """What is done with the relations. `rows` and sizes are the planner's business; a node only says what Spark will do."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Scan(Node):
    relation: int


@dataclass(frozen=True, slots=True)
class Leaf(Node):
    """Something else that gives rows: a cached table, a local relation, another source. `bytes` is Spark's estimate."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """Above a scan its predicate is part of `Relation.predicate` too; elsewhere it only thins the rows out."""

    child: Node
    terms: int
    """How many conjuncts, not counting `IS NOT NULL`."""


@dataclass(frozen=True, slots=True)
class Project(Node):
    """`aliases`: new attribute -> the attribute that it is another name of. All others pass or are computed."""

    child: Node
    aliases: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Join(Node):
    """An equi-join if it has keys. `kind` as Catalyst names it: Inner, LeftOuter, RightOuter, FullOuter, LeftSemi, LeftAnti, Cross,
    ExistenceJoin. `hint` is a side that the user asks to broadcast."""

    kind: str
    left: Node
    right: Node
    left_keys: tuple[Key, ...]
    right_keys: tuple[Key, ...]
    hint: str | None = None
    """`left`, `right`, `merge`, `hash`, or None."""


@dataclass(frozen=True, slots=True)
class Answerable:
    """An aggregate function of the closed list that metadata may answer: `count`, `min` or `max` of exactly one column, or a count
    of rows (no attribute). Not DISTINCT, without FILTER."""

    name: str
    attribute: int | None = None


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """No keys: one row. `outputs`: attribute after -> key attribute before, for keys that pass."""

    child: Node
    keys: tuple[Key, ...]
    outputs: Mapping[int, int]
    functions: tuple[str, ...]
    """As SQL text, for costs and for people: `count(1)`, `min(#12)`, …; `sum(?)` of more than one column; keys as their class."""
    answerable: tuple[Answerable | None, ...] = ()
    """Each output, where it is nothing but a function that metadata may answer; None for any other output."""


@dataclass(frozen=True, slots=True)
class Window(Node):
    child: Node
    keys: tuple[Key, ...]
    order: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Sort(Node):
    child: Node
    keys: tuple[Key, ...]
    everywhere: bool
    """A global sort shuffles by range first; else only within partitions."""


@dataclass(frozen=True, slots=True)
class Limit(Node):
    child: Node
    rows: int | None


@dataclass(frozen=True, slots=True)
class Union(Node):
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Other(Node):
    """Anything else. `keeps`: rows stay where they are (Generate, Sample, …), so that a single child's partitioning lives on."""

    name: str
    children: tuple[Node, ...]
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What of Spark's configuration decides how a plan is carried out."""

    cores: int
    shuffle_partitions: int
    broadcast_bytes: int
    """-1: never by size."""
    adaptive: bool
    adaptive_broadcast_bytes: int
    bucketing: bool


@dataclass(frozen=True, slots=True)
class Query:
    """`roots`: the plan, then each subquery that is planned by itself."""

    roots: tuple[Node, ...]
    relations: tuple[Relation, ...]
    settings: Settings
    only: frozenset[str] | None = None
    """Indexes that may be considered (`lake.only`, the hint); None: all."""
    without: frozenset[str] = frozenset()
    blocks: tuple[Block, ...] = ()
    """Parts of the plan that a view may answer; told only where there is a view."""
    digests: Mapping[int, str] = field(default_factory=dict)
    """Of relations that a view joins: a name for their files as they are."""
