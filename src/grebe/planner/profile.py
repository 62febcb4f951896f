"""What is guessed of each scan before anything is chosen: how many rows it has, how many its predicate lets through, how wide they
are. The same for every way of reading it, so that plans differ only in what they do."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from grebe.planner.candidates import Asked, Candidate
from grebe.planner.content import first_sorted
from grebe.planner.cost import is_columnar
from grebe.planner.query import Relation
from grebe.planner.selectivity import NOTHING_KNOWN, Statistics, share_of, share_within
from grebe.planner.sizes import all_types, projected_share, required_types, row_bytes, stored_bytes, type_of_path
from grebe.planner.tables import KnownTable
from grebe.predicate.tree import Path

_COMPRESSION = 2.5
"""Bytes of a row as Spark reckons, to bytes stored in a columnar file."""
_DAYS = 2_500
_WORDS = 50
_NUMBERS = 0.6
"""Of n numbers that nobody joins by, n to this power are different."""
_TEXTS = 0.75
"""The same of texts that are hashed or joined by."""
_ROWS_OF_A_KEY = 4.0


@dataclass(frozen=True, slots=True)
class Profile:
    asked: Asked
    statistics: Statistics
    rows: float
    """Of all files, before any condition."""
    passing: float
    """Rows that the predicate lets through."""
    width: float
    """Bytes of a row of the required columns, as it is shuffled."""
    share: float
    """Of the files' bytes, what a scan of the required columns reads."""
    opened: float
    """The share of the files that Spark opens: those of other partitions it leaves out by itself."""

    @property
    def relation(self) -> Relation:
        return self.asked.relation

    def distinct(self, path: Path) -> float:
        """How many different values a column has."""
        known = self.statistics.distinct.get(path)
        if known is not None:
            return known
        match type_of_path(self.relation, path):
            case "boolean":
                return 2.0
            case "date":
                return min(self.rows, _DAYS)
            case "string":
                return min(self.rows, _WORDS)
        return math.pow(self.rows, _NUMBERS)


def profile(
    asked: Asked,
    candidates: Iterable[Candidate],
    table: KnownTable | None,
    joined: frozenset[Path],
) -> Profile:
    """`joined`: columns that the query joins by."""
    relation = asked.relation
    believed = NOTHING_KNOWN if table is None else table.believed
    rows = None if table is None else table.rows
    if rows is None:
        rows = next((_rows_of(one, relation) for one in candidates if one.copy.where is None), None)
    if rows is None and table is not None:
        rows = _rows_known(table, relation)
    if rows is None:
        whole = stored_bytes(all_types(relation))
        compression = _COMPRESSION if is_columnar(relation.reading.format) else 1.0
        rows = relation.bytes * compression / whole
    rows = max(1.0, rows)
    ranges = dict(believed.ranges)
    for one in candidates:
        for path, column in one.content.columns.items():
            if column.least is not None and column.greatest is not None:
                ranges[path] = (column.least, column.greatest)
    keys = dict.fromkeys(joined, True)
    for index in table.indexes if table is not None else ():
        if index.copy is not None and (first := first_sorted(index.copy)) is not None:
            keys[first] = keys.get(first, False) or index.copy.layout.buckets > 0
    files = len(relation.listed) + relation.unregistered_files
    # That each partition has one file is the guess that favours the plain scan most.
    distinct: dict[Path, float] = {
        (column.name,): max(2.0, float(files)) for column in relation.reading.partition_columns
    }
    partitions = frozenset(distinct)
    distinct |= believed.distinct
    for path, hashed in keys.items():
        count = _distinct(type_of_path(relation, path), rows, hashed, ranges.get(path))
        if count is not None:
            distinct.setdefault(path, count)
    statistics = Statistics(ranges, distinct)
    types = tuple(required_types(relation))
    return Profile(
        asked=asked,
        statistics=statistics,
        rows=rows,
        passing=max(1.0, rows * share_of(asked.predicate, statistics)),
        width=_row_bytes(types),
        share=projected_share(relation) if is_columnar(relation.reading.format) else 1.0,
        opened=share_within(asked.predicate, partitions, statistics) if partitions else 1.0,
    )


def _distinct(kind: str, rows: float, hashed: bool, between: tuple[Any, Any] | None) -> float | None:
    """Of a column that an index leads with or the query joins by, which is taken to tell rows apart."""
    if kind == "boolean":
        return 2.0
    if kind == "string":
        return max(1.0, math.pow(rows, _TEXTS)) if hashed else None
    most = _DAYS if kind == "date" else rows / _ROWS_OF_A_KEY
    if between is not None and isinstance(between[0], int):
        # Whole numbers in a narrow range cannot be more different than the range is wide.
        most = min(most, between[1] - between[0] + 1)
    return max(1.0, most)


def _rows_of(candidate: Candidate, relation: Relation) -> float:
    held = candidate.coverage.source_bytes
    return candidate.content.row_count * (relation.bytes / held if held else 1.0)


def _rows_known(table: KnownTable, relation: Relation) -> float | None:
    """By an index that has counted the rows of the files that it covers."""
    for index in table.indexes:
        held = table.bytes_of(index.pruner.covered) if index.pruner is not None else 0
        if index.pruner is not None and held:
            return index.pruner.rows * relation.bytes / held
    return None


@lru_cache(maxsize=1024)
def _row_bytes(types: tuple[str, ...]) -> float:
    return float(row_bytes(types))
