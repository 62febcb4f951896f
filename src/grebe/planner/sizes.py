"""How wide rows are: as Spark reckons when it knows nothing but types, and as it moves them through a shuffle."""

from collections.abc import Iterable
from functools import lru_cache

from grebe.planner.query import Relation
from grebe.predicate.tree import Path

_DEFAULT = {
    "boolean": 1,
    "byte": 1,
    "tinyint": 1,
    "short": 2,
    "smallint": 2,
    "int": 4,
    "integer": 4,
    "date": 4,
    "float": 4,
    "real": 4,
    "long": 8,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "string": 20,
    "binary": 100,
}
_NESTED = 100
_SMALL_DECIMAL, _LARGE_DECIMAL = 8, 16
_SMALL_PRECISION = 18
_WORD = 8
_UNKNOWN = "long"
_FIELD = "string"
"""Taken for a field inside a column, whose type the plan does not tell."""


@lru_cache(maxsize=1024)
def value_bytes(kind: str) -> int:
    """What Spark assumes of a value of this type, named as in the JSON of a schema or as in SQL."""
    if kind.startswith("decimal"):
        digits = kind.partition("(")[2].partition(",")[0].strip(" )")
        return _LARGE_DECIMAL if digits.isdigit() and int(digits) > _SMALL_PRECISION else _SMALL_DECIMAL
    if kind.startswith(("varchar", "char")):
        return _DEFAULT["string"]
    return _DEFAULT.get(kind, _NESTED)


def stored_bytes(kinds: Iterable[str]) -> int:
    """The row as Spark's size estimates see it."""
    return _WORD + sum(map(value_bytes, kinds))


def row_bytes(kinds: Iterable[str]) -> int:
    """The row as it is shuffled and sorted: a word for every value, then what does not fit into one."""
    return _WORD + sum(_WORD + (size if size > _WORD else 0) for size in map(value_bytes, kinds))


def required_types(relation: Relation) -> list[str]:
    return [type_of_path(relation, path) for path in sorted(relation.required)]


def all_types(relation: Relation) -> list[str]:
    """Of the columns as the files hold them; of what is no table of ours only the plan's attributes are known."""
    columns = relation.reading.columns
    if not columns:
        return [type_of_path(relation, attribute.path) for attribute in relation.attributes]
    return [column.type for column in columns if not column.partition]


def type_of_path(relation: Relation, path: Path) -> str:
    if len(path) == 1:
        for column in relation.reading.columns:
            if column.name == path[0]:
                return column.type
    for attribute in relation.attributes:
        if attribute.path == path:
            return attribute.type.strip('"') or _FIELD
    return _FIELD if len(path) > 1 else _UNKNOWN


def projected_share(relation: Relation) -> float:
    """How much of the files' bytes belongs to the columns that the query needs, as Spark reckons."""
    partitions = {column.name for column in relation.reading.partition_columns}
    wanted = [type_of_path(relation, path) for path in relation.required if path[0] not in partitions]
    return min(1.0, stored_bytes(wanted) / stored_bytes(all_types(relation)))
