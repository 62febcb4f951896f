"""Bringing the columns of one file to the columns of the table, as Spark does.

Columns are found by name, letter by letter or else in any case; one that the file lacks is NULL, or is refused if it has a default
(only Spark knows the value of that SQL); a type may be wider in the table than in the file. A narrower one is an error in Spark
and here.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.protocol import without_columns
from grebe.formats.reading import Column
from grebe.formats.spark_types import spark_type, type_json, type_text

_WHOLE = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}


def find_name(wanted: str, names: Sequence[str]) -> str | None:
    """The one of `names` that Spark takes for the wanted one."""
    if wanted in names:
        require_one(wanted, names)
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    if len(alike) > 1:
        raise Unsupported(
            f"the file has {len(alike)} columns called {wanted} in different case: {', '.join(alike)}; only Spark with "
            "spark.sql.caseSensitive=true can tell them apart",
            detail="NAMES",
        )
    return alike[0] if alike else None


def require_distinct(names: Sequence[str]) -> None:
    """Raise `Unsupported` if two columns of a file have one name."""
    if len(set(names)) < len(names):
        for name in names:
            require_one(name, names)


def require_one(name: str, names: Sequence[str]) -> None:
    """Raise `Unsupported` for a name that two columns of a file have: Spark refuses it too."""
    if names.count(name) > 1:
        raise Unsupported(
            f"the file has {names.count(name)} columns called {name}; rename one of them where the file is written",
            detail="NAMES",
        )


def find_column(column: Column, names: Sequence[str], ids: Sequence[int | None], uri: str) -> str | None:
    """The name under which a file with these columns and ids has a column of the table; None if it has not."""
    require_own(column, uri)
    found = _stored_name(column, names, ids, uri)
    if found is None:
        require_no_default(column, uri)
    return found


def require_own(column: Column, uri: str) -> None:
    """Raise `Unsupported` for a column that only the table's own reader reads right."""
    reason = column.foreign or column.elsewhere
    if reason is not None:
        raise _foreign(column, uri, reason)


def require_in_files(column: Column, uri: str) -> None:
    """Raise `Unsupported` for a column whose values are not all in the files of its table."""
    if column.elsewhere is not None:
        raise _foreign(column, uri, column.elsewhere)


def _foreign(column: Column, uri: str, reason: str) -> Unsupported:
    return Unsupported(
        f"column {column.name} of {uri}: {reason}; the table's own reader in Spark can read it", detail="FOREIGN_COLUMN"
    )


def require_no_default(column: Column, uri: str) -> None:
    """Raise `Unsupported` for a column whose value in a record without it is a default."""
    if column.default is not None:
        raise Unsupported(
            f"column {column.name} of {uri} has a default for records without it, which only Spark can evaluate; read the table "
            "through `grebe.attach`, or rewrite its files so that all hold the column",
            detail="COLUMN_DEFAULT",
        )


def _stored_name(column: Column, names: Sequence[str], ids: Sequence[int | None], uri: str) -> str | None:
    if column.stored is not None:
        return column.stored if column.stored in names else None
    if not column.ids:
        return find_name(column.name, names)
    if all(one is None for one in ids):
        raise Unsupported(
            f"{uri} does not tell the ids of its columns, so that column {column.name} cannot be found in it; its table's own "
            "reader in Spark may",
            detail="FIELD_IDS",
        )
    return names[ids.index(column.ids[0])] if column.ids[0] in ids else None


def unite(batch: pa.RecordBatch, columns: Sequence[Column], uri: str) -> pa.RecordBatch:
    """The records of one file with the columns of the table; `uri` is for the error."""
    if not columns:
        return without_columns(batch.num_rows)
    names = batch.schema.names
    arrays = []
    for column in columns:
        field = column.arrow
        found = find_name(column.name, names)
        if found is None:
            require_no_default(column, uri)
        arrays.append(
            pa.nulls(batch.num_rows, field.type)
            if found is None
            else _converted(batch.column(names.index(found)), field.type, f"column {column.name} of {uri}")
        )
    schema = pa.schema([column.arrow for column in columns])
    return pa.record_batch(arrays, schema=schema)


def widened(left: str, right: str) -> str | None:
    """The narrowest type that holds the values of both, as Spark's schema merging knows it; None where there is
    none."""
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    if left in _WHOLE and right in _WHOLE:
        return max(left, right, key=_WHOLE.index)
    pair = {left, right}
    if pair == {"float", "double"}:
        return "double"
    if pair == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    if left.startswith("decimal") and right.startswith("decimal"):
        return _wider_decimal(left, right)
    a, b = type_json(left), type_json(right)
    if not isinstance(a, dict) or not isinstance(b, dict) or a["type"] != b["type"]:
        return None
    if a["type"] == "struct":
        merged = merged_columns([_fields(a), _fields(b)])
        fields = (
            [{"name": column.name, "type": type_json(column.type)} for column in merged] if merged is not None else None
        )
        return type_text({"type": "struct", "fields": fields}) if fields is not None else None
    parts = {}
    for part in a.keys() - {"type"}:
        wider = widened(type_text(a[part]), type_text(b[part]))
        if wider is None:
            return None
        parts[part] = type_json(wider)
    return type_text({"type": a["type"], **parts})


def merged_columns(schemas: Sequence[Sequence[Column]]) -> tuple[Column, ...] | None:
    """All columns of all schemas by name, in order of first appearance, each with the type that holds all; None if
    one has none."""
    merged: dict[str, Column] = {}
    for column in (column for schema in schemas for column in schema):
        known = merged.get(column.name)
        wider = column.type if known is None else widened(known.type, column.type)
        if wider is None:
            return None
        merged[column.name] = Column(column.name, wider, default=(known or column).default)
    return tuple(merged.values())


def _fields(struct: dict[str, list[dict[str, str]]]) -> list[Column]:
    return [Column(field["name"], type_text(field["type"])) for field in struct["fields"]]


def _wider_decimal(left: str, right: str) -> str | None:
    (p1, s1), (p2, s2) = (
        (kind.precision, kind.scale) for kind in (Column("", left).arrow.type, Column("", right).arrow.type)
    )
    scale = max(s1, s2)
    precision = max(p1 - s1, p2 - s2) + scale
    # Without Spark 4's type widening two scales do not merge.
    return f"decimal({precision},{scale})" if s1 == s2 and precision <= 38 else None


def _converted(array: pa.Array, wanted: pa.DataType, what: str) -> pa.Array:
    if array.type.equals(wanted):
        return array
    if pa.types.is_dictionary(array.type):
        return _converted(array.dictionary_decode(), wanted, what)
    if pa.types.is_struct(wanted) and pa.types.is_struct(array.type):
        names = [array.type.field(i).name for i in range(array.type.num_fields)]
        parts = []
        for i in range(wanted.num_fields):
            field = wanted.field(i)
            found = find_name(field.name, names)
            parts.append(
                pa.nulls(len(array), field.type)
                if found is None
                else _converted(array.flatten()[names.index(found)], field.type, f"{what}.{field.name}")
            )
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=array.is_null())
    if pa.types.is_map(wanted) and pa.types.is_map(array.type):
        keys = _converted(array.keys, wanted.key_type, f"{what} (keys)")
        items = _converted(array.items, wanted.item_type, f"{what} (values)")
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=array.is_null())
    if pa.types.is_list(wanted) and _is_list(array.type):
        plain = array.cast(pa.list_(array.type.value_type)) if not pa.types.is_list(array.type) else array
        values = _converted(plain.values, wanted.value_type, f"{what} (elements)")
        return pa.ListArray.from_arrays(plain.offsets, values, type=wanted, mask=plain.is_null())
    if not _may_convert(array.type, wanted):
        raise UnreadableFile(
            f"{what} has type {_spoken(array.type)} and the table has {_spoken(wanted)}; give the table a schema that holds both",
            detail="TYPE",
        )
    try:
        return pc.cast(array, wanted)
    except pa.ArrowInvalid as error:
        raise UnreadableFile(
            f"{what} does not fit the table's type {_spoken(wanted)}: {type(error).__name__}", detail="TYPE"
        ) from error


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _may_convert(have: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark's reader makes the one of the other without losing anything."""
    if pa.types.is_null(have):
        return True
    source, target = spark_type(have), spark_type(wanted)
    if source == target:
        return True
    if source in _WHOLE:
        if target in _WHOLE:
            return _WHOLE.index(str(target)) > _WHOLE.index(str(source))
        if pa.types.is_decimal(wanted):
            return bool(wanted.precision - wanted.scale >= _DIGITS[str(source)])
        return target == "double" and source != "long"
    if pa.types.is_decimal(have) and pa.types.is_decimal(wanted):
        return bool(wanted.scale >= have.scale and wanted.precision - wanted.scale >= have.precision - have.scale)
    return (source, target) in {
        ("float", "double"),
        ("date", "timestamp_ntz"),
        ("binary", "string"),
        ("string", "binary"),
    }


def _spoken(kind: pa.DataType) -> str:
    try:
        return type_text(spark_type(kind))
    except Unsupported:
        return str(kind)
