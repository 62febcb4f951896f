"""Schemas of Iceberg as Spark reads them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from grebe.errors import Unsupported
from grebe.formats import Column
from grebe.formats.spark_types import TypeJson, type_text

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

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


def columns_and_fields(
    schema: "Schema", history: "Sequence[Schema]"
) -> tuple[tuple[Column, ...], tuple[dict[str, Any], ...]]:
    """The columns, and how they are stored, in the JSON of Spark's schemas. `history` are all schemas that files may have been
    written with."""
    columns, fields = [], []
    moved = _moved(history)
    for one in schema.fields:
        kind = _spark(one.field_type, one.name)
        ids = (one.field_id, *_nested_ids(one.field_type))
        why = None
        if one.initial_default is not None:
            why = "rows that were written before it was added have a default"
        elif one.field_id in moved:
            why = "fields nested in it were renamed, or given up and made anew"
        columns.append(Column(one.name, type_text(_names_only(kind)), ids, foreign=why))
        fields.append({"name": one.name, "type": kind, "nullable": True, "metadata": {FIELD_ID: one.field_id}})
    return tuple(columns), tuple(fields)


def _spark(kind: "IcebergType", column: str) -> TypeJson:
    """With the ids of nested fields, by which Spark's reader can find them."""
    from pyiceberg.types import DecimalType, FixedType, ListType, MapType, StructType

    if isinstance(kind, StructType):
        return {
            "type": "struct",
            "fields": [
                {
                    "name": one.name,
                    "type": _spark(one.field_type, column),
                    "nullable": True,
                    "metadata": {FIELD_ID: one.field_id},
                }
                for one in kind.fields
            ],
        }
    if isinstance(kind, ListType):
        return {"type": "array", "elementType": _spark(kind.element_type, column), "containsNull": True}
    if isinstance(kind, MapType):
        key, value = _spark(kind.key_type, column), _spark(kind.value_type, column)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, FixedType):
        return "binary"
    if str(kind) not in _PLAIN:
        raise Unsupported(f"column {column} has Iceberg's type {kind}, which Grebe cannot read yet", detail="TYPE")
    return _PLAIN[str(kind)]


def _names_only(kind: TypeJson) -> TypeJson:
    if isinstance(kind, str):
        return kind
    changed: dict[str, Any] = {
        at: _names_only(kind[at]) for at in ("elementType", "keyType", "valueType") if at in kind
    }
    if "fields" in kind:
        changed["fields"] = [
            {"name": one["name"], "type": _names_only(one["type"]), "nullable": True, "metadata": {}}
            for one in kind["fields"]
        ]
    return {**kind, **changed}


def _nested_ids(kind: "IcebergType") -> Iterator[int]:
    for one in _below(kind):
        yield one.field_id
        yield from _nested_ids(one.field_type)


def _below(kind: "IcebergType") -> "Sequence[NestedField]":
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, MapType):
        return (kind.key_field, kind.value_field)
    return (kind.element_field,) if isinstance(kind, ListType) else ()


def _moved(history: "Sequence[Schema]") -> set[int]:
    """Columns below which a name has meant several fields over time, or a field had several names."""
    names: dict[tuple[int, tuple[str, ...]], int] = {}
    moved: set[int] = set()

    def look(top: int, path: tuple[str, ...], kind: "IcebergType") -> None:
        for one in _below(kind):
            here = (*path, one.name)
            if names.setdefault((top, here), one.field_id) != one.field_id:
                moved.add(top)
            if path_of.setdefault(one.field_id, here) != here:
                moved.add(top)
            look(top, here, one.field_type)

    path_of: dict[int, tuple[str, ...]] = {}
    for schema in history:
        for one in schema.fields:
            look(one.field_id, (), one.field_type)
    return moved
