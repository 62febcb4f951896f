"""What the two engines tell of a query that ran, to whoever records queries. Neither knows who that is, or whether there is one.

All of it is what the engine had in its hands anyway: to make something of it is the business of the one who listens, later and in
another thread.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from grebe.planner.query import Query
from grebe.predicate.tree import Predicate


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one table, and how much there is of it; None where nobody counted."""

    files: int | None = None
    files_of: int | None = None
    bytes: int | None = None
    bytes_of: int | None = None
    rows_read: int | None = None
    rows: int | None = None
    """How many of those that were read the predicate let through."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A lookup without Spark."""

    call: str
    table: str
    predicate: Predicate
    columns: tuple[str, ...]
    read: Read
    indexes: tuple[str, ...]
    at_ms: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Seat:
    """The table behind a relation: what its log calls it, or where it lies; and where its log is, or would be."""

    table: str
    place: str


@dataclass(frozen=True, slots=True)
class Ran:
    """A query of Spark. `seats` and `reads` are in the order of the query's relations."""

    query: Query
    seats: tuple[Seat, ...]
    reads: tuple[Read, ...]
    indexes: tuple[str, ...]
    at_ms: int
    milliseconds: float
    expected_without: float | None = None
    """Milliseconds that the planner reckoned with, had there been no index; None where none was used."""
    expected: float | None = None
    """With those that were."""


HearsLookups: TypeAlias = Callable[[LookedUp], None]
HearsQueries: TypeAlias = Callable[[Ran], None]
