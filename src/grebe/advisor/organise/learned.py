"""What the recorded queries ask of one table: conditions, and the columns that are read under them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from grebe.advisor.workload.observed import Observed
from grebe.errors import GrebeError, InvalidStatement
from grebe.formats import Reading
from grebe.indexes.layout.logged import Logged
from grebe.indexes.where import recalled
from grebe.predicate.codec import from_json
from grebe.predicate.text import to_sql
from grebe.predicate.tree import TRUE, Path, Predicate, opaque_terms

_MOST = 2_000
"""Of more queries, the latest."""


@dataclass(frozen=True, slots=True)
class Query:
    predicate: Predicate
    columns: frozenset[str]
    weight: float
    at_ms: int

    @property
    def compared(self) -> frozenset[Path]:
        return Logged(self.predicate, self.weight).compared


def queries_on(observed: Iterable[Observed], table: str, reading: Reading) -> list[Query]:
    """Those that still fit the table: of others columns are gone, or have another type than the values they were compared with."""
    there = {column.name for column in reading.columns}
    counted: Counter[tuple[Predicate, frozenset[str]]] = Counter()
    last: dict[tuple[Predicate, frozenset[str]], int] = {}
    for one in observed:
        for scan in one.scans:
            predicate = None if scan.table != table or one.hashed else _predicate(scan.tree, reading)
            columns = _whole(scan.columns)
            if predicate is not None and columns <= there:
                key = (predicate, columns)
                counted[key] += 1
                last[key] = max(last.get(key, 0), one.at_ms)
    found = [Query(*key, float(count), last[key]) for key, count in counted.items()]
    return sorted((one for one in found if one.compared), key=lambda one: -one.at_ms)[:_MOST]


def columns_asked(observed: Iterable[Observed], table: str) -> set[str]:
    """Whole ones, that queries on a table read."""
    return {name for one in observed for scan in one.scans if scan.table == table for name in _whole(scan.columns)}


def _whole(columns: Iterable[str]) -> frozenset[str]:
    return frozenset(name.partition(".")[0].strip("`") for name in columns)


def require_some(queries: list[Query], table: str) -> None:
    if not queries:
        raise InvalidStatement(
            f"no query with a condition on {table} has been recorded, so that there is nothing to learn from; set "
            "record_workload=true, let queries run, and come back",
            detail="WORKLOAD",
        )


def _predicate(tree: str | None, reading: Reading) -> Predicate | None:
    if tree is None:
        return None
    try:
        found = recalled(to_sql(from_json(tree)), reading)
    except GrebeError:
        return None
    return None if found == TRUE or opaque_terms(found) else found
