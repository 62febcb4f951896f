"""Arrow's types for the columns of a Parquet file, as Spark sees what is stored."""

from collections.abc import Collection

import pyarrow as pa

from grebe.formats.spark_types import TIMESTAMP


def as_stored(schema: pa.Schema, int96: Collection[str]) -> pa.Schema:
    """The schema that Arrow gives a file, but INT96 are instants (Arrow forgets which those were: `int96` has their paths),
    and what Arrow writes of its own types is what is stored of them."""
    return pa.schema([_stored(field, field.name, int96) for field in schema])


def _stored(field: pa.Field, path: str, int96: Collection[str]) -> pa.Field:
    kind = field.type
    if path in int96:
        return field.with_type(TIMESTAMP)
    if pa.types.is_null(kind):
        return field.with_type(pa.int32())
    if pa.types.is_duration(kind):
        return field.with_type(pa.int64())
    if pa.types.is_struct(kind):
        parts = [kind.field(i) for i in range(kind.num_fields)]
        return field.with_type(pa.struct([_stored(part, f"{path}.{part.name}", int96) for part in parts]))
    if pa.types.is_map(kind):
        key = _stored(kind.key_field, f"{path}.key_value.key", int96)
        return field.with_type(pa.map_(key, _stored(kind.item_field, f"{path}.key_value.value", int96)))
    if pa.types.is_list(kind):
        # The two levels of a list have no fixed names.
        below = next((leaf for leaf in int96 if leaf.startswith(f"{path}.")), "")
        step = ".".join(below.split(".")[path.count(".") + 1 :][:2])
        return field.with_type(pa.list_(_stored(kind.value_field, f"{path}.{step}", int96)))
    return field


def field_ids(schema: pa.Schema) -> list[int | None]:
    """Those that a table format gave the columns, as Arrow tells them."""
    told = ((field.metadata or {}).get(b"PARQUET:field_id") for field in schema)
    return [None if one is None else int(one) for one in told]
