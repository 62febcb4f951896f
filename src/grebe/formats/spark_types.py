"""Spark's types as JSON, and what they are in Arrow.

A type is written as Spark writes it in the JSON of a schema: a name such as `"integer"` or `"decimal(10,2)"`, or an
object for arrays, maps and structs. Everything is nullable, as it is for Spark when it reads files. Text of one form
for one type, so that equal types are equal text.
"""

import json
import re
from typing import Any, TypeAlias

import pyarrow as pa

from grebe.errors import Unsupported

TypeJson: TypeAlias = "str | dict[str, Any]"
TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

_ATOMS: dict[str, pa.DataType] = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_NAMES = {kind: name for name, kind in _ATOMS.items()}
# What Spark makes of types that it does not have.
_WIDENED: dict[pa.DataType, str] = {
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date64(): "date",
}
_DECIMAL = re.compile(r"decimal\(([0-9]+),(-?[0-9]+)\)")
# Nothing in a name of a type, or between its brackets, could be anything but a type where it is put into SQL.
_NAMED = re.compile(
    r"[A-Za-z][A-Za-z_ ]{0,60}(?:\([0-9A-Za-z:_, -]{0,60}\))?(?: collate [A-Za-z0-9_.]{1,60})?", re.ASCII
)
_CHAR = re.compile(r"(?:var)?char\([0-9]+\)")


def type_text(kind: TypeJson) -> str:
    """The one text of a type."""
    normal = _normal(kind)
    return normal if isinstance(normal, str) else json.dumps(normal, separators=(",", ":"), ensure_ascii=False)


def type_json(text: str) -> TypeJson:
    """The type of a text that `type_text` made. Spark loads the classes that a type of users (`udt`) names, so none comes out of
    this, whoever wrote the text."""
    return _normal(json.loads(text)) if text.startswith("{") else text


def arrow_type(kind: TypeJson) -> pa.DataType:
    """The type of Arrow that holds the values of a type of Spark."""
    if isinstance(kind, str):
        if kind in _ATOMS:
            return _ATOMS[kind]
        if found := _DECIMAL.fullmatch(kind):
            return pa.decimal128(int(found[1]), int(found[2]))
        raise _unknown(kind)
    if kind["type"] == "array":
        return pa.list_(arrow_type(kind["elementType"]))
    if kind["type"] == "map":
        return pa.map_(arrow_type(kind["keyType"]), arrow_type(kind["valueType"]))
    return pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in kind["fields"]])


def spark_type(kind: pa.DataType) -> TypeJson:
    """The type that Spark gives to values that Arrow reads as `kind`."""
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if name := _NAMES.get(kind) or _WIDENED.get(kind):
        return name
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_map(kind):
        return {"type": "map", "keyType": spark_type(kind.key_type), "valueType": spark_type(kind.item_type)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"type": "array", "elementType": spark_type(kind.value_type)}
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return {"type": "struct", "fields": [{"name": f.name, "type": spark_type(f.type)} for f in fields]}
    raise _unknown(str(kind))


def _normal(kind: TypeJson) -> TypeJson:
    if isinstance(kind, str):
        if not _NAMED.fullmatch(kind):
            raise _unknown(repr(kind[:100]))
        # Spark reads both as plain text; the length matters to its writers only.
        return "string" if _CHAR.fullmatch(kind) else kind.replace(" ", "") if kind.startswith("decimal") else kind
    match kind["type"]:
        case "array":
            return {"type": "array", "elementType": _normal(kind["elementType"])}
        case "map":
            return {"type": "map", "keyType": _normal(kind["keyType"]), "valueType": _normal(kind["valueType"])}
        case "struct":
            return {"type": "struct", "fields": [_normal_field(field) for field in kind["fields"]]}
        case "udt":
            return _normal(kind["sqlType"])
        case other:
            raise _unknown(str(other))


def _normal_field(field: dict[str, Any]) -> dict[str, Any]:
    normal = {"name": field["name"], "type": _normal(field["type"])}
    return normal | {"id": field["id"]} if field.get("id") is not None else normal


def _unknown(kind: str) -> Unsupported:
    return Unsupported(
        f"a column of type {kind} cannot be read without Spark; leave it out of `columns`", detail="TYPE"
    )
