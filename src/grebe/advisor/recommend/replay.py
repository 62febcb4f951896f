"""Recorded queries as SQL again: what of them counts for indexes, their conditions, joins and groups, over tables by their paths.

Of queries that differ only in their values a few stand for all. What was recorded lies beside the indexes, and others may write
there: so each piece is read by our own parsers and written anew, and a query with a piece that they do not know is left out.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from grebe import telemetry
from grebe.advisor.recommend.texts import Weighed
from grebe.advisor.workload.observed import Joined, Observed, Scan
from grebe.errors import GrebeError
from grebe.files.untrusted import FOREIGN
from grebe.indexes.columns import path_of
from grebe.indexes.view.allowed import AGGREGATES, FUNCTIONS
from grebe.predicate.codec import from_json
from grebe.predicate.lexer import tokens
from grebe.predicate.parse import parse
from grebe.predicate.text import column_sql, to_sql
from grebe.predicate.tree import TRUE, opaque_terms

_logger = logging.getLogger("grebe.advisor")
_OF_A_SHAPE = 6
_KNOWN = (
    FUNCTIONS | AGGREGATES | {"avg", "cast", "distinct", "first", "last", "stddev", "variance", "approx_count_distinct"}
)
_OF_QUERIES = frozenset(("select", "from", "union", "values", "table", "join", "lateral", "where", "with"))

Named = Callable[[str], str | None]
"""What SQL may call the table at a URI; None if it cannot be read any more."""


def replayed(observed: Sequence[Observed], named: Named) -> list[Weighed]:
    by_shape: dict[str, list[Observed]] = defaultdict(list)
    for one in observed:
        by_shape[one.digest].append(one)
    found: dict[str, float] = {}
    for alike in by_shape.values():
        step = max(1, len(alike) // _OF_A_SHAPE)
        some = alike[::step]
        for one in some:
            text = _sql_of(one, named)
            if text is not None:
                found[text] = found.get(text, 0.0) + len(alike) / len(some)
    return [Weighed(text, weight) for text, weight in found.items()]


def _sql_of(one: Observed, named: Named) -> str | None:
    """As `sql_of`; None too for what was never recorded of a query."""
    try:
        return sql_of(replace(one, scans=tuple(map(_read, one.scans))), named)
    except (GrebeError, *FOREIGN) as problem:
        telemetry.event(
            _logger, logging.WARNING, "recorded_query_left_out", query=str(one.query)[:40], why=type(problem).__name__
        )
        return None


def _read(scan: Scan) -> Scan:
    """With columns and functions written anew. Raises `GrebeError` where one is none."""
    return replace(
        scan,
        columns=tuple(map(_column, scan.columns)),
        groups=tuple(map(_column, scan.groups)),
        aggregates=tuple(text for text in scan.aggregates if _is_aggregate(text)),
        joins=tuple(replace(one, column=_column(one.column), other=_column(one.other)) for one in scan.joins),
    )


def _column(text: str) -> str:
    return column_sql(path_of(text, "recorded"))


def _is_aggregate(text: str) -> bool:
    """Tell whether a text calls nothing but functions that are known, and has no word of a query in it."""
    found = tokens(text)
    called = {
        one.text.lower() for one, behind in pairwise(found) if behind.is_sign("(") and one.kind in ("word", "name")
    }
    return called <= _KNOWN and not {one.word for one in found} & _OF_QUERIES


def sql_of(one: Observed, named: Named) -> str | None:
    """None where a table of it is gone, or nothing is known of what it reads."""
    tables = [named(scan.table) for scan in one.scans]
    if not tables or None in tables:
        return None
    if len(one.scans) == 1:
        (scan,) = one.scans
        return f"SELECT {_selected(scan, '')} FROM {tables[0]}{_where(scan)}{_grouped(scan, '')}"
    parts = [
        f"(SELECT {_columns(scan)} FROM {table}{_where(scan)})" for scan, table in zip(one.scans, tables, strict=True)
    ]
    source = f"{parts[0]} t0"
    for number in range(1, len(parts)):
        source += (
            f" CROSS JOIN {parts[number]} t{number}"
            if not (ties := _ties(one.scans, number))
            else (f" JOIN {parts[number]} t{number} ON {' AND '.join(ties)}")
        )
    grouping = next(((number, scan) for number, scan in enumerate(one.scans) if scan.groups), None)
    if grouping is None:
        return f"SELECT {', '.join(f't{number}.*' for number in range(len(parts)))} FROM {source}"
    number, scan = grouping
    groups = ", ".join(f"t{number}.{group}" for group in scan.groups)
    return f"SELECT {groups}, count(*) FROM {source}{_grouped(scan, f't{number}.')}"


def _ties(scans: Sequence[Scan], number: int) -> list[str]:
    """What ties a table to those before it."""
    found = []
    for before in range(number):
        found += [_tie(before, number, join) for join in scans[before].joins if join.table == scans[number].table]
        found += [_tie(number, before, join) for join in scans[number].joins if join.table == scans[before].table]
    return list(dict.fromkeys(found))


def _tie(one: int, other: int, join: Joined) -> str:
    first, second = sorted([(one, join.column), (other, join.other)])
    return f"t{first[0]}.{first[1]} = t{second[0]}.{second[1]}"


def _columns(scan: Scan) -> str:
    return ", ".join(scan.columns) or "1 AS one"


def _selected(scan: Scan, of: str) -> str:
    if not scan.groups and not scan.aggregates:
        return _columns(scan)
    return ", ".join([*(f"{of}{group}" for group in scan.groups), *(scan.aggregates or ("count(*)",))])


def _grouped(scan: Scan, of: str) -> str:
    return f" GROUP BY {', '.join(f'{of}{group}' for group in scan.groups)}" if scan.groups else ""


def _where(scan: Scan) -> str:
    if scan.tree is None:
        return ""
    try:
        # A tree that was forged may hold any name of a function: only what our parser makes of its text is known.
        predicate = parse(to_sql(from_json(scan.tree)))
    except GrebeError:
        return ""  # of a later version, or with literals of a wrong type
    return "" if predicate == TRUE or opaque_terms(predicate) else f" WHERE {to_sql(predicate)}"
