"""What the Java part tells of a query that has run, as it is handed on to whoever records queries.

Tables without any index are told of as well: that is when somebody wants to know which one to make.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grebe.clock import SYSTEM
from grebe.files import FileIds
from grebe.formats import Reading
from grebe.planner.observing import Ran, Read, Seat
from grebe.planner.query import Relation
from grebe.predicate.tree import TRUE
from grebe.spark import readings
from grebe.spark.read_plan import read_plan

# Relations that only Grebe makes: to build an index, or to look whether it is right.
_OWN = "grebe.spark."
_INDEX_SUFFIX = ".gix"
_NO_READING = Reading("", (), ())
_NO_FILES = FileIds.of_ranges(())
NOWHERE = Seat("", "")
"""Of a relation that no index can be made for."""


def ran(told: Mapping[str, Any], seat: Callable[[Sequence[str]], Seat], cores: int) -> Ran | None:
    """`seat` finds the table behind the roots of a relation. None for what is no query of a user's, or none of a table."""
    asked = told["asked"]
    if any((one["files_class"] or "").startswith(_OWN) or _is_index_data(one["roots"]) for one in asked["relations"]):
        return None
    query = read_plan(asked, _relation, cores)
    seats = tuple(seat(one["roots"]) if readings.is_ours(one) else NOWHERE for one in asked["relations"])
    if all(one is NOWHERE for one in seats):
        return None
    unread = dict(told["ran"]["read"])
    # Of a plan that was left as it is an empty list.
    used = told["used"] or {"indexes": ()}
    return Ran(
        query,
        seats,
        tuple(_read(one, unread, files) for one, files in zip(asked["relations"], told["ran"]["files"], strict=True)),
        tuple(used["indexes"]),
        SYSTEM.now_ms(),
        told["ran"]["nanoseconds"] / 1e6,
        used.get("without"),
        used.get("with"),
    )


def _is_index_data(roots: Sequence[str]) -> bool:
    """Tell whether a relation reads files of an index, as `verify` and merges of old indexes do."""
    return any(root.rstrip("/").endswith(_INDEX_SUFFIX) for root in roots)


def _relation(number: int, described: Mapping[str, Any]) -> Relation:
    name = described.get("table") or described["roots"][0]
    return Relation(number, None, name, _NO_READING, (), frozenset(), TRUE, _NO_FILES, 0, 0, described["bytes"])


def _read(described: Mapping[str, Any], unread: dict[str, list[int]], there: int) -> Read:
    """What was read below a root is told once, of the first relation there. Nobody counts for Iceberg, whose scans are its own."""
    if readings.lake_of(described) == "iceberg":
        return Read(bytes_of=described["bytes"])
    files, size, rows_read, rows = unread.pop(described["roots"][0], (0, 0, 0, 0))
    # A plan that is carried out once more counts its rows again, but not its files.
    counted = files > 0 or rows_read == 0
    return Read(
        files if counted else None,
        there if there >= 0 else None,
        size if counted else None,
        described["bytes"],
        rows_read,
        rows,
    )
