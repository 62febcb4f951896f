"""The columns that a kind is made of: how they are named, where they lie in the table, and which types they may have.

Names are as in SQL: `a`, `a.b` for a field inside a struct, backticks around a name that holds a dot itself. A kind remembers the
table's own spelling.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from grebe.errors import InvalidIndex, InvalidPredicate, Unsupported
from grebe.formats import Column, Reading
from grebe.formats.spark_types import TypeJson, type_json, type_text
from grebe.indexes.kind import FILE_COLUMN, ROW_COLUMN
from grebe.predicate.builder import col
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Path, columns_of

_SCALARS = {
    "boolean",
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A column of the table, or a field inside one, spelt as the table spells it. `type` is Spark's, as text."""

    path: Path
    type: str

    @property
    def name(self) -> str:
        """What the log calls it: its path as SQL."""
        return column_sql(self.path)

    @property
    def content(self) -> str:
        """What the content calls it: a column keeps its name, a field inside one gets its path."""
        return self.path[0] if len(self.path) == 1 else self.name


def names_of(value: object, what: str, index: str) -> tuple[str, ...]:
    """One name or several, as given to a kind."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidIndex(
            f"index {index}: {what} takes the name of a column or a list of such names, not {type(value).__name__}",
            detail="COLUMNS",
        )
    return tuple(names)


def path_of(name: str, index: str) -> Path:
    try:
        term = col(name).term
    except InvalidPredicate as problem:
        raise InvalidIndex(
            f"index {index}: {name!r} names no column: write a, a.b, or `a.b` where the dot is part of the name",
            detail="COLUMN_NAME",
        ) from problem
    (path,) = columns_of(term)
    return path


def choose(names: Iterable[str], reading: Reading, case_sensitive: bool, index: str) -> tuple[Chosen, ...]:
    """The named columns, as Spark would find them."""
    return tuple(_find(path_of(name, index), reading, case_sensitive, index) for name in names)


def is_kept(column: Column) -> bool:
    """Whether an index can carry a whole column along."""
    return _is_kept(type_json(column.type))


def recorded(names: Iterable[str], reading: Reading, index: str) -> tuple[Chosen, ...]:
    """Columns that were chosen before, by the names that the log remembers."""
    return choose(names, reading, True, index)


def require_no_clash(chosen: Sequence[Chosen], reading: Reading, index: str) -> None:
    """No column twice, none that differs from another in case only, none of the names that lineage takes."""
    reserved = [column.name for column in reading.columns if column.name.lower() in (FILE_COLUMN, ROW_COLUMN)]
    if reserved:
        raise InvalidIndex(
            f"index {index}: the table has a column {reserved[0]}, a name that Grebe needs for the lineage of rows; rename it",
            detail="RESERVED_NAME",
        )
    seen: dict[str, str] = {}
    for column in chosen:
        before = seen.get(column.content.lower())
        if before is not None:
            said = (
                "twice" if before == column.name else f"beside {before}, and an index cannot tell the two names apart"
            )
            raise InvalidIndex(f"index {index}: column {column.name} is named {said}", detail="DUPLICATE_COLUMN")
        seen[column.content.lower()] = column.name


def require_keys(chosen: Iterable[Chosen], index: str) -> None:
    """Keys are sorted and hashed, so that they are scalars whose equal values have equal bytes."""
    for column in chosen:
        if not is_scalar(column.type):
            raise InvalidIndex(
                f"index {index}: column {column.name} is {_spoken(column.type)}; only numbers, booleans, text (of binary "
                "collation), bytes, dates and timestamps can be indexed on. A field of a struct can be named: a.b",
                detail="KEY_TYPE",
            )


def require_kept(chosen: Iterable[Chosen], index: str) -> None:
    """What is only carried along may also be an array or a struct of such."""
    for column in chosen:
        if not _is_kept(type_json(column.type)):
            raise InvalidIndex(
                f"index {index}: column {column.name} is {_spoken(column.type)}, which an index cannot keep; leave it out",
                detail="COLUMN_TYPE",
            )


def restricted(reading: Reading, paths: Iterable[Path]) -> Reading:
    """The reading of these columns alone; of all where they are told apart by their position."""
    if reading.by_position:
        return reading
    names = {path[0] for path in paths}
    columns = tuple(column for column in reading.columns if column.name in names)
    return Reading(reading.format, reading.options, columns, reading.time_zone, reading.by_position)


def spark_schema(fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A schema in Spark's JSON, of names and types as text. Everything may be NULL, as in whatever Spark reads from files."""
    return {"type": "struct", "fields": [_field(name, type_json(kind)) for name, kind in fields]}


def _field(name: str, kind: TypeJson) -> dict[str, Any]:
    return {"name": name, "type": _nullable(kind), "nullable": True, "metadata": {}}


def _nullable(kind: TypeJson) -> TypeJson:
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "array":
            return {"type": "array", "elementType": _nullable(kind["elementType"]), "containsNull": True}
        case "struct":
            return {"type": "struct", "fields": [_field(field["name"], field["type"]) for field in kind["fields"]]}
        case "map":
            key, value = _nullable(kind["keyType"]), _nullable(kind["valueType"])
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    raise Unsupported(f"a column of type {kind['type']} has no place in an index", detail="TYPE")


def _find(path: Path, reading: Reading, case_sensitive: bool, index: str) -> Chosen:
    fields: Mapping[str, TypeJson] = {column.name: type_json(column.type) for column in reading.columns}
    exact: Path = ()
    kind: TypeJson = "struct"
    for depth, name in enumerate(path):
        if depth:
            fields = _fields(kind, path[:depth], index)
        exact = (*exact, _match(name, fields, path[: depth + 1], case_sensitive, index))
        kind = fields[exact[-1]]
    return Chosen(exact, type_text(kind))


def _fields(kind: TypeJson, path: Path, index: str) -> Mapping[str, TypeJson]:
    if isinstance(kind, str) or kind["type"] != "struct":
        raise InvalidIndex(
            f"index {index}: {column_sql(path)} is {_spoken(type_text(kind))}, not a struct, so that it has no fields to name",
            detail="UNKNOWN_COLUMN",
        )
    return {field["name"]: field["type"] for field in kind["fields"]}


def _match(name: str, fields: Mapping[str, TypeJson], path: Path, case_sensitive: bool, index: str) -> str:
    found = [f for f in fields if f == name or (not case_sensitive and f.lower() == name.lower())]
    if len(found) == 1:
        return found[0]
    shown = column_sql(path)
    if found:
        raise InvalidIndex(
            f"index {index}: column {shown} is ambiguous: the table has {', '.join(found)}, which differ in case only; set "
            "spark.sql.caseSensitive=true to tell them apart",
            detail="AMBIGUOUS_COLUMN",
        )
    raise InvalidIndex(
        f"index {index}: column {shown} is not there; {_hint(name, fields, path)}", detail="UNKNOWN_COLUMN"
    )


def _hint(name: str, fields: Mapping[str, TypeJson], path: Path) -> str:
    dotted = [field for field in fields if field.startswith(f"{name}.")]
    if dotted:
        return f"a column whose name holds a dot is written with backticks: {column_sql((*path[:-1], dotted[0]))}"
    by_lower = {field.lower(): field for field in fields}
    near = [by_lower[match] for match in get_close_matches(name.lower(), by_lower, n=3)]
    shown = ", ".join(column_sql((*path[:-1], field)) for field in near or list(fields)[:10])
    return f"did you mean {shown}?" if near else f"there are: {shown}{', …' if len(fields) > 10 else ''}"


def is_scalar(kind: str) -> bool:
    """Whether values of this type can be keys."""
    return kind in _SCALARS or kind.startswith("decimal(")


def _is_kept(kind: TypeJson) -> bool:
    if isinstance(kind, str):
        return is_scalar(kind)
    if kind["type"] == "array":
        return _is_kept(kind["elementType"])
    return (
        kind["type"] == "struct" and bool(kind["fields"]) and all(_is_kept(field["type"]) for field in kind["fields"])
    )


def _spoken(kind: str) -> str:
    parsed = type_json(kind)
    return parsed if isinstance(parsed, str) else f"{'an' if parsed['type'] == 'array' else 'a'} {parsed['type']}"
