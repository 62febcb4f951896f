"""Schemas of Iceberg, in its own JSON, as Spark reads them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from grebe.errors import Unsupported
from grebe.formats import Column
from grebe.formats.spark_types import TypeJson, type_text

FIELD_ID = "parquet.field.id"
_PLAIN = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "binary": "binary",
}
Field = Mapping[str, Any]


def iceberg_columns(
    schema: Field, history: Sequence[Field] = (), partition_only: Collection[int] = ()
) -> tuple[Column, ...]:
    """`history` are all schemas that files may have been written with. `partition_only` are ids of columns that some files may
    lack, since the table's log has their one value."""
    moved = _moved(history)
    return tuple(
        Column(
            one["name"],
            type_text(_spark(one["type"], one["name"], with_ids=False)),
            (one["id"], *_nested_ids(one["type"])),
            foreign=_why_foreign(one, moved),
            elsewhere=_why_elsewhere(one, partition_only),
        )
        for one in schema["fields"]
    )


def stored_fields(schema: Field) -> tuple[dict[str, Any], ...]:
    """Return fields in the JSON of Spark's schemas, with ids, by which Spark's reader finds columns in files.

    Their names are in no file: Spark decodes a column that it has found by its id with the type of the field that has the
    column's name, and after a rename that may be another one.
    """
    return tuple(
        {**_field(one, one["name"], with_ids=True), "name": f"_grebe_field_{one['id']}"} for one in schema["fields"]
    )


def _why_foreign(one: Field, moved: set[int]) -> str | None:
    return "fields nested in it were renamed, or given up and made anew" if one["id"] in moved else None


def _why_elsewhere(one: Field, partition_only: Collection[int]) -> str | None:
    if one.get("initial-default") is not None:
        return "rows that were written before it was added have a default"
    if one["id"] in partition_only:
        return "some of its files may not hold it, since it is a partition whose value is in the table's metadata"
    return None


def _field(one: Field, column: str, with_ids: bool) -> dict[str, Any]:
    metadata = {FIELD_ID: one["id"]} if with_ids else {}
    return {"name": one["name"], "type": _spark(one["type"], column, with_ids), "nullable": True, "metadata": metadata}


def _spark(kind: Any, column: str, with_ids: bool) -> TypeJson:
    if isinstance(kind, Mapping):
        if kind["type"] == "struct":
            return {"type": "struct", "fields": [_field(one, column, with_ids) for one in kind["fields"]]}
        if kind["type"] == "list":
            return {"type": "array", "elementType": _spark(kind["element"], column, with_ids), "containsNull": True}
        key, value = (_spark(kind[part], column, with_ids) for part in ("key", "value"))
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if kind.startswith("decimal"):
        return str(kind).replace(" ", "")
    if kind.startswith("fixed"):
        return "binary"
    if kind not in _PLAIN:
        raise Unsupported(f"column {column} has Iceberg's type {kind}, which Grebe cannot read yet", detail="TYPE")
    return _PLAIN[kind]


def _below(kind: Any) -> Iterator[Field]:
    """The fields right below a type; elements, keys and values are such as well."""
    if not isinstance(kind, Mapping):
        return
    if kind["type"] == "struct":
        yield from kind["fields"]
        return
    for part in ("element",) if kind["type"] == "list" else ("key", "value"):
        yield {"id": kind[f"{part}-id"], "name": part, "type": kind[part]}


def _nested_ids(kind: Any) -> Iterator[int]:
    for one in _below(kind):
        yield one["id"]
        yield from _nested_ids(one["type"])


def _moved(history: Sequence[Field]) -> set[int]:
    """Columns below which a name has meant several fields over time, or a field had several names."""
    ids: dict[tuple[int, tuple[str, ...]], int] = {}
    names: dict[int, tuple[str, ...]] = {}
    moved: set[int] = set()

    def look(top: int, path: tuple[str, ...], kind: Any) -> None:
        for one in _below(kind):
            here = (*path, one["name"])
            if ids.setdefault((top, here), one["id"]) != one["id"] or names.setdefault(one["id"], here) != here:
                moved.add(top)
            look(top, here, one["type"])

    for schema in history:
        for column in schema["fields"]:
            look(column["id"], (), column["type"])
    return moved
