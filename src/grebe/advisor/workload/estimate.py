"""About which share of a table's rows makes a predicate true, by what is known of its columns.

A guess of the planner's own stands in where nothing is known. Conditions on different columns are seldom independent, so that each
further one counts less, as the planner reckons as well.
"""

import math
from collections.abc import Iterable

from grebe.advisor.workload.statistics import ColumnStatistics, TableStatistics
from grebe.planner.selectivity import NOTHING_KNOWN, share_of
from grebe.predicate.tree import (
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Path,
    Predicate,
    StartsWith,
)

_LAST = "\U0010ffff"


def selectivity(predicate: Predicate, statistics: TableStatistics) -> float:
    """Of a bound and normalised predicate: from 0 to 1."""
    return min(1.0, max(0.0, _share(predicate, statistics)))


def _share(predicate: Predicate, known: TableStatistics) -> float:
    match predicate:
        case Constant(value):
            return 1.0 if value else 0.0
        case And(below):
            return _together(below, known)
        case Or(below):
            return 1.0 - math.prod(1.0 - _share(part, known) for part in below)
        case Not(In(Column(path)) | Compare("=", Column(path))) if path in known.columns:
            return max(0.0, 1.0 - known.columns[path].nulls - _share(predicate.predicate, known))
        case Not(inner):
            return 1.0 - _share(inner, known)
    own = _of_column(predicate, known)
    return share_of(predicate, NOTHING_KNOWN) if own is None else own


def _of_column(predicate: Predicate, known: TableStatistics) -> float | None:
    """Of a condition on one column that something is known of."""
    match predicate:
        case IsNull(Column(path)) if path in known.columns:
            return known.columns[path].nulls
        case IsNotNull(Column(path)) if path in known.columns:
            return 1.0 - known.columns[path].nulls
        case Compare("=", Column(path), Literal(value)) if path in known.columns:
            return _values(known.columns[path]) * known.columns[path].equal(value)
        case Compare("<=>", Column(path), Literal(value)) if path in known.columns:
            column = known.columns[path]
            return column.nulls if value is None else _values(column) * column.equal(value)
        case Compare("<>", Column(path), Literal(value)) if path in known.columns:
            return _values(known.columns[path]) * (1.0 - known.columns[path].equal(value))
        case Compare("<" | "<=" | ">" | ">=", Column(path), Literal()) if path in known.columns:
            return _between([predicate], known.columns[path])
        case In(Column(path), values) if path in known.columns:
            column = known.columns[path]
            each = (column.equal(one.value) for one in values if isinstance(one, Literal) and one.value is not None)
            return _values(column) * min(1.0, sum(each))
        case StartsWith(Column(path), text) if path in known.columns:
            column = known.columns[path]
            first, last = column.below(text, False), column.below(text + _LAST, True)
            return None if first is None or last is None else _values(column) * (last - first)
    return None


def _values(column: ColumnStatistics) -> float:
    """The share of rows that have one."""
    return 1.0 - column.nulls


def _together(parts: Iterable[Predicate], known: TableStatistics) -> float:
    """The ends of one column's range are one condition; that it is not NULL follows from any other."""
    ends: dict[Path, list[Compare]] = {}
    shares: list[float] = []
    present: dict[Path, float] = {}
    compared: set[Path] = set()
    for part in parts:
        match part:
            case Compare("<" | "<=" | ">" | ">=", Column(path), Literal()) if path in known.columns:
                ends.setdefault(path, []).append(part)
                compared.add(path)
            case IsNotNull(Column(path)):
                present[path] = _share(part, known)
            case Compare(_, Column(path)) | In(Column(path)) | StartsWith(Column(path)):
                shares.append(_share(part, known))
                compared.add(path)
            case _:
                shares.append(_share(part, known))
    for path, both in ends.items():
        between = _between(both, known.columns[path])
        shares.append(share_of(And(tuple(both)), NOTHING_KNOWN) if between is None else between)
    shares += [share for path, share in present.items() if path not in compared]
    whole = 1.0
    for power, share in enumerate(sorted(shares)):
        whole *= share ** (1.0 / (1 << min(power, 3)))
    return whole


def _between(ends: list[Compare], column: ColumnStatistics) -> float | None:
    low, high = 0.0, 1.0
    for end in ends:
        value = end.right.value if isinstance(end.right, Literal) else None
        share = column.below(value, inclusive=end.operator in ("<=", ">"))
        if share is None:
            return None
        if end.operator[0] == "<":
            high = min(high, share)
        else:
            low = max(low, share)
    return _values(column) * max(0.0, high - low)
