"""What an engine told of a query, as it is stored: which columns of which table are filtered, joined, grouped and sorted by."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from grebe.advisor.workload.literals import Mark, marked, shortened, unnamed
from grebe.advisor.workload.observed import Joined, Observed, Scan
from grebe.planner.observing import LookedUp, Ran, Read
from grebe.planner.query import Aggregate, Join, Key, Limit, Node, Project, Query, Sort
from grebe.planner.shapes import every_node
from grebe.predicate.codec import to_json
from grebe.predicate.text import column_sql, to_sql
from grebe.predicate.tree import TRUE, And, IsNotNull, Path, Predicate, columns_of

_NUMBER = re.compile(r"#(-?\d+)")
_MARK = re.compile(r"\((\?)\)")
_DIGEST = 16
_LONGEST = 4000
"""Characters of a predicate that people are shown."""


def of_lookup(seen: LookedUp, query: str, client: str, mark: Mark | None) -> Observed:
    columns = dict.fromkeys([*(column_sql((name,)) for name in seen.columns), *_columns(seen.predicate)])
    scan = Scan(table=seen.table, columns=tuple(columns), **_told(seen.predicate, mark), **_read(seen.read))
    shape = _select(seen.columns, [_short(seen.table)], [_shape(seen.predicate)])
    return Observed(
        query=query,
        at_ms=seen.at_ms,
        client=client,
        origin="lookup",
        call=seen.call,
        shape=shape,
        digest=_digest(seen.call, shape, seen.table),
        tables=(seen.table,),
        indexes=seen.indexes,
        milliseconds=seen.milliseconds,
        limit=None,
        hashed=mark is not None,
        scans=(scan,),
    )


def of_query(seen: Ran, query: str, client: str, marks: Mapping[str, Mark | None]) -> dict[str, Observed]:
    """By the place where each table's log is, or would be: the query with what it does there. `marks` are by place, too."""
    plan = _Plan.of(seen.query, [seat.table for seat in seen.seats])
    shape = plan.shape()
    tables = tuple(dict.fromkeys(seat.table for seat in seen.seats if seat.table))
    whole = Observed(
        query=query,
        at_ms=seen.at_ms,
        client=client,
        origin="spark",
        call="query",
        shape=shape,
        digest=_digest("query", shape, *tables),
        tables=tables,
        indexes=seen.indexes,
        milliseconds=seen.milliseconds,
        limit=plan.limit,
        hashed=any(mark is not None for mark in marks.values()),
        scans=(),
        expected_without=seen.expected_without,
        expected=seen.expected,
    )
    found: dict[str, Observed] = {}
    for relation, seat, read in zip(seen.query.relations, seen.seats, seen.reads, strict=True):
        if not seat.place:
            continue
        scan = plan.scan(relation.number, _told(relation.predicate, marks[seat.place]), read)
        there = found.get(seat.place, whole)
        found[seat.place] = replace(there, scans=(*there.scans, scan))
    return found


def _told(predicate: Predicate, mark: Mark | None) -> dict[str, Any]:
    short = shortened(predicate)
    kept = short if mark is None else marked(short, mark)
    # Text may hold halves of surrogate pairs, which no file of columns takes.
    text = to_sql(kept).encode(errors="replace").decode()
    return {"predicate": text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…", "tree": to_json(kept)}


def _read(read: Read) -> dict[str, Any]:
    return {name: getattr(read, name) for name in ("files", "files_of", "bytes", "bytes_of", "rows_read", "rows")}


def _columns(predicate: Predicate) -> list[str]:
    return sorted(map(column_sql, columns_of(predicate)))


def _shape(predicate: Predicate) -> str:
    kept = _without_implied(predicate)
    return "" if kept == TRUE else _MARK.sub(r"\1", to_sql(marked(kept, unnamed)))


def _without_implied(predicate: Predicate) -> Predicate:
    """Spark says `IS NOT NULL` of every column that it compares."""
    if not isinstance(predicate, And):
        return predicate
    nullness = [one for one in predicate.predicates if isinstance(one, IsNotNull)]
    others = [one for one in predicate.predicates if not isinstance(one, IsNotNull)]
    compared = frozenset().union(*map(columns_of, others))
    kept = [*others, *(one for one in nullness if not columns_of(one) <= compared)]
    return kept[0] if len(kept) == 1 else And(tuple(kept))


def _select(what: "tuple[str, ...] | list[str]", tables: list[str], predicates: list[str], rest: str = "") -> str:
    where = " AND ".join(filter(None, predicates))
    text = f"SELECT {', '.join(what) or '1'} FROM {', '.join(tables)}"
    return text + (f" WHERE {where}" if where else "") + rest


def _short(table: str) -> str:
    return column_sql((table.rstrip("/").rpartition("/")[2],))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="replace")).hexdigest()[:_DIGEST]


@dataclass(frozen=True, slots=True)
class _Plan:
    query: Query
    tables: list[str]
    nodes: list[Node]
    columns: Mapping[int, tuple[int, Path]]
    """Attribute -> its relation, and the column of it."""
    older: Mapping[int, int]
    """Attribute -> the one that it is another name of."""

    @classmethod
    def of(cls, query: Query, tables: list[str]) -> "_Plan":
        nodes = list(every_node(query.roots))
        columns = {one.id: (relation.number, one.path) for relation in query.relations for one in relation.attributes}
        older: dict[int, int] = {}
        for node in nodes:
            older |= node.aliases if isinstance(node, Project) else {}
            older |= node.outputs if isinstance(node, Aggregate) else {}
        return cls(query, tables, nodes, columns, older)

    @property
    def limit(self) -> int | None:
        rows = [node.rows for node in self.nodes if isinstance(node, Limit) and node.rows is not None]
        return min((one for one in rows if one >= 0), default=None)

    def found(self, key: Key) -> tuple[int, str] | None:
        """The relation and its column behind an attribute; None for what is computed."""
        for _ in range(len(self.older) + 1):
            if key is None or key in self.columns:
                break
            key = self.older.get(key)
        if key is None or key not in self.columns:
            return None
        relation, path = self.columns[key]
        return relation, column_sql(path)

    def pairs(self) -> list[tuple[tuple[int, str], tuple[int, str]]]:
        found = []
        for node in self.nodes:
            if isinstance(node, Join):
                sides = zip(map(self.found, node.left_keys), map(self.found, node.right_keys), strict=False)
                found += [(left, right) for left, right in sides if left is not None and right is not None]
        return found

    def keys(self, kind: type[Aggregate] | type[Sort]) -> list[tuple[int, str]]:
        keys = (key for node in self.nodes if isinstance(node, kind) for key in node.keys)
        return list(dict.fromkeys(one for one in map(self.found, keys) if one is not None))

    def functions(self) -> list[tuple[int | None, str]]:
        """As SQL, with the relation whose column they look at."""
        found: dict[tuple[int | None, str], None] = {}
        for node in self.nodes:
            for text in node.functions if isinstance(node, Aggregate) else ():
                if text.endswith(")"):
                    of = [self.found(int(number)) for number in _NUMBER.findall(text)]
                    named = _NUMBER.sub(lambda at: (self.found(int(at[1])) or (0, "?"))[1], text)
                    found[(of[0][0] if of and of[0] else None, named)] = None
        return list(found)

    def scan(self, number: int, told: dict[str, Any], read: Read) -> Scan:
        relation = self.query.relations[number]
        both = [(one, other) for left, right in self.pairs() for one, other in ((left, right), (right, left))]
        return Scan(
            table=self.tables[number],
            columns=tuple(sorted({*map(column_sql, relation.required), *_columns(relation.predicate)})),
            joins=tuple(
                dict.fromkeys(
                    Joined(one[1], self.tables[other[0]], other[1]) for one, other in both if one[0] == number
                )
            ),
            groups=tuple(column for of, column in self.keys(Aggregate) if of == number),
            aggregates=tuple(text for of, text in self.functions() if of in (None, number)),
            orders=tuple(column for of, column in self.keys(Sort) if of == number),
            **told,
            **_read(read),
        )

    def shape(self) -> str:
        names = [_short(table) for table in self.tables]
        groups = [f"{names[of]}.{column}" for of, column in self.keys(Aggregate)]
        functions = [text for _, text in self.functions()]
        required = [
            f"{names[one.number]}.{column_sql(path)}" for one in self.query.relations for path in sorted(one.required)
        ]
        joins = [f"{names[a]}.{x} = {names[b]}.{y}" for (a, x), (b, y) in self.pairs()]
        rest = f" GROUP BY {', '.join(groups)}" if groups else ""
        orders = [f"{names[of]}.{column}" for of, column in self.keys(Sort)]
        rest += f" ORDER BY {', '.join(orders)}" if orders else ""
        rest += " LIMIT ?" if self.limit is not None else ""
        filters = [_shape(relation.predicate) for relation in self.query.relations]
        return _select([*groups, *functions] if functions or groups else required, names, [*joins, *filters], rest)
