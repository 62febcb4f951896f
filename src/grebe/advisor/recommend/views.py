"""Views that a workload asks for: of queries as SQL, those that group, without their constants.

What a query compares with a constant becomes a column that the view groups by, so that the view answers the same question about
other days and places too. Views over the same tables and joins are merged into one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_SUMMED = ("Sum", "Count", "Min", "Max", "Avg")
_MOST_KEYS, _MOST_MEASURES = 6, 12


@dataclass(frozen=True, slots=True)
class StoredQuery:
    sql: str
    weight: float
    """Of the queries that it may answer."""
    example: str
    """One of them."""


@dataclass(frozen=True)
class _Shape:
    source: str
    """FROM and joins."""
    kept: tuple[str, ...]
    """Conditions that are not about constants."""
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    text: str
    weight: float


def views_of(queries: Sequence[tuple[str, float]]) -> list[StoredQuery]:
    """Of SQL texts with their weights."""
    merged: dict[tuple[str, tuple[str, ...]], list[_Shape]] = defaultdict(list)
    for text, weight in queries:
        shape = _shape(text, weight)
        if shape is not None:
            merged[shape.source, shape.kept].append(shape)
    found = []
    for (source, kept), shapes in merged.items():
        for some in _alike(shapes):
            keys = list(dict.fromkeys(key for shape in some for key in shape.keys))
            measures = list(dict.fromkeys(one for shape in some for one in shape.measures))
            columns = [f"{sql} AS k{place}" for place, sql in enumerate(keys)]
            columns += [f"{sql} AS m{place}" for place, sql in enumerate(measures)]
            where = f" WHERE {' AND '.join(kept)}" if kept else ""
            group = f" GROUP BY {', '.join(keys)}" if keys else ""
            sql = f"SELECT {', '.join(columns)} {source}{where}{group}"
            found.append(StoredQuery(sql, sum(shape.weight for shape in some), some[0].text))
    return found


def _alike(shapes: Sequence[_Shape]) -> list[list[_Shape]]:
    """Merged as long as the view stays narrow."""
    groups: list[list[_Shape]] = []
    for shape in sorted(shapes, key=lambda one: -len(one.keys)):
        for group in groups:
            before = {key for one in group for key in one.keys}
            measures = {key for one in (*group, shape) for key in one.measures}
            # A key more makes a view many times as large.
            if len({*before, *shape.keys}) <= len(before) + 1 <= _MOST_KEYS and len(measures) <= _MOST_MEASURES:
                group.append(shape)
                break
        else:
            groups.append([shape])
    return groups


def _shape(text: str, weight: float) -> _Shape | None:
    """None for what no view stores."""
    import sqlglot
    from sqlglot import expressions as e
    from sqlglot.errors import SqlglotError

    try:
        tree: Any = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return None
    if not isinstance(tree, e.Select) or tree.find(e.Subquery, e.With, e.Window, e.Lateral):
        return None
    if any(join.side or join.kind in ("CROSS", "SEMI", "ANTI") for join in tree.args.get("joins") or ()):
        return None
    measures = {one.sql("spark") for one in tree.find_all(e.AggFunc)}
    if not measures or any(type(one).__name__ not in _SUMMED for one in tree.find_all(e.AggFunc)):
        return None
    if any(one.find(e.Distinct) for one in tree.find_all(e.AggFunc)):
        return None
    group = tree.args.get("group")
    aliases = {one.alias: one.this for one in tree.expressions if isinstance(one, e.Alias)}
    keys = [_key(one, tree.expressions, aliases) for one in (group.expressions if group else ())]
    kept, asked = [], []
    for part in _conjuncts(tree.args.get("where")):
        if part.find(e.Literal) is None:
            kept.append(part.sql("spark"))
        else:
            asked += [column.sql("spark") for column in part.find_all(e.Column)]
    source = " ".join(
        one.sql("spark") for one in (tree.args.get("from_") or tree.args.get("from"), *(tree.args.get("joins") or ()))
    )
    every = list(dict.fromkeys([*keys, *asked]))
    if len(every) > _MOST_KEYS or len(measures) > _MOST_MEASURES:
        return None
    return _Shape(source, tuple(sorted(kept)), tuple(every), tuple(sorted(measures)), text, weight)


def _key(key: Any, columns: Sequence[Any], aliases: dict[str, Any]) -> str:
    """What a group is by: its place or its name in the list of columns may stand for it."""
    from sqlglot import expressions as e

    if isinstance(key, e.Literal) and key.is_int:
        key = columns[int(key.this) - 1]
    if isinstance(key, e.Column) and key.name in aliases:
        key = aliases[key.name]
    return str(key.unalias().sql("spark"))


def _conjuncts(where: Any) -> list[Any]:
    return [] if where is None else list(where.this.flatten()) if type(where.this).__name__ == "And" else [where.this]
