"""Which versions of its indexes are considered for a scan: what is current, and what was kept for older versions of the table.

Kept versions matter only to a scan that reads files which the current content does not hold. Which of them promise most is told by
the log alone; only those are opened, and then they compete by cost like any other index.
"""

from collections.abc import Callable, Sequence

from grebe.files import FileIds
from grebe.planner.query import Relation
from grebe.planner.tables import KnownIndex, KnownTable, OlderVersion

Measure = Callable[[OlderVersion], tuple[int, int]]


def offered(relation: Relation, table: KnownTable) -> list[KnownIndex]:
    """All indexes of the table, each followed by kept versions of it that know of files which it does not."""
    found: list[KnownIndex] = []
    for index in table.indexes:
        found.append(index)
        if index.older:
            found += [older.opened() for older in _promising(relation, table, index)]
    return found


def _promising(relation: Relation, table: KnownTable, index: KnownIndex) -> Sequence[OlderVersion]:
    """That which leaves least to be read directly, and that which leaves least to be read at all; often the same."""
    held = _held(index)
    missing = None if held is None else relation.listed - held
    useful = [older for older in index.older if missing and not missing.isdisjoint(older.held)]
    if not useful:
        return ()
    rest = {older.replaced_at: table.bytes_of(relation.listed - older.held) for older in useful}
    measures: tuple[Measure, ...] = (
        lambda older: (rest[older.replaced_at], older.bytes),
        lambda older: (rest[older.replaced_at] + older.bytes, 0),
    )
    best = {one.replaced_at: one for one in (min(useful, key=measure) for measure in measures)}
    return tuple(best.values())


def _held(index: KnownIndex) -> FileIds | None:
    """None where it is not used at all."""
    role = index.copy or index.pruner
    return None if role is None else role.covered
