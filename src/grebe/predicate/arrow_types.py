"""Between Arrow's types and Spark's.

Spark has no unsigned integers: it reads them into the next wider type, and the widest into a decimal. Values are compared in one
physical form for each Spark type: dates as days and timestamps as microseconds since 1970, both plain integers.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from grebe.predicate.types import (
    ARRAY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAP,
    MAX_PRECISION,
    OTHER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Field,
    Type,
    decimal,
)

_SIMPLE = {
    pa.null(): VOID,
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INT,
    pa.int64(): BIGINT,
    pa.uint8(): SMALLINT,
    pa.uint16(): INT,
    pa.uint32(): BIGINT,
    pa.uint64(): decimal(20, 0),
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.date32(): DATE,
    pa.date64(): DATE,
}

_PHYSICAL = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.large_string(),
    "binary": pa.large_binary(),
    "date": pa.int32(),
    "timestamp": pa.int64(),
    "timestamp_ntz": pa.int64(),
}
_MICROS_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def from_arrow(arrow: pa.DataType) -> Type:
    """The type that Spark gives a column of this Arrow type."""
    if simple := _SIMPLE.get(arrow):
        return simple
    if pa.types.is_decimal(arrow):
        return decimal(arrow.precision, arrow.scale) if 0 <= arrow.scale <= arrow.precision <= MAX_PRECISION else OTHER
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP if arrow.tz else TIMESTAMP_NTZ
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        return from_arrow(arrow.value_type)
    if pa.types.is_fixed_size_binary(arrow):
        return BINARY
    if pa.types.is_struct(arrow):
        return Type("struct", fields=tuple(Field(field.name, from_arrow(field.type)) for field in arrow))
    if pa.types.is_map(arrow):
        return MAP
    if pa.types.is_nested(arrow):
        return ARRAY
    return OTHER


def schema_type(schema: pa.Schema) -> Type:
    """A whole schema as one struct."""
    return Type("struct", fields=tuple(Field(field.name, from_arrow(field.type)) for field in schema))


def physical_type(kind: Type) -> pa.DataType:
    """The Arrow type in which values of this Spark type are compared."""
    return pa.decimal128(kind.precision, kind.scale) if kind.is_decimal else _PHYSICAL[kind.name]


def to_physical(array: pa.Array, kind: Type) -> pa.Array:
    """A column as stored, in the physical form of `kind` = `from_arrow(array.type)`."""
    stored = array.type
    if pa.types.is_dictionary(stored):
        return to_physical(array.dictionary_decode(), kind)
    if pa.types.is_run_end_encoded(stored):
        return to_physical(pc.run_end_decode(array), kind)
    if pa.types.is_timestamp(stored):
        return _micros(array)
    if pa.types.is_date64(stored):
        return array.cast(pa.date32()).view(pa.int32())
    if pa.types.is_date32(stored):
        return array.view(pa.int32())
    wanted = physical_type(kind)
    return array if stored == wanted else array.cast(wanted)


def _micros(array: pa.Array) -> pa.Array:
    counts = array.view(pa.int64())
    if array.type.unit == "ns":
        return _floor_divide(counts, 1_000)
    factor = _MICROS_PER_UNIT[array.type.unit]
    return counts if factor == 1 else pc.multiply_checked(counts, factor)


def _floor_divide(values: pa.Array, divisor: int) -> pa.Array:
    """Arrow divides towards zero; times before 1970 need the floor."""
    quotient: Any = pc.divide(values, divisor)
    below_zero = pc.less(pc.subtract(values, pc.multiply(quotient, divisor)), 0)
    return pc.subtract(quotient, below_zero.cast(pa.int64()))
