"""Values on the command line: typed text becomes values of a column, and values of a table become what JSON has.

JSON has them as Spark's `to_json` does: decimals as numbers with all their digits, dates and timestamps as ISO text, maps as
objects, and "NaN", "Infinity" and "-Infinity" as text; only bytes are "0x1F00", as they are typed.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from grebe.errors import InvalidPredicate
from grebe.predicate import scalar_text
from grebe.predicate.arrow_types import schema_type
from grebe.predicate.builder import col
from grebe.predicate.resolve import resolve
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Cast, Column, Literal, Term, Value
from grebe.predicate.types import DATE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type

_LONGEST_NUMBER = 1000  # Python refuses to read very long integers
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}.*", re.ASCII)
_BYTES = re.compile(r"0[xX]((?:[0-9a-fA-F]{2})+)")
_EXAMPLES = {
    "boolean": "true",
    "date": "2024-12-31",
    "timestamp": "2024-12-31T23:59:59Z",
    "timestamp_ntz": "2024-12-31T23:59:59",
    "binary": "0x1F00",
    "decimal": "12.50",
    "float": "0.5",
    "double": "0.5",
}


def column_of(schema: pa.Schema, name: str) -> Column:
    """The column that a name means, with its exact spelling. Raises `InvalidPredicate`."""
    named = col(name).term
    found = resolve(named.path, schema_type(schema), case_sensitive=False) if isinstance(named, Column) else named
    if not isinstance(found, Column) or found.type is None or not found.type.is_scalar:
        kind = found.type if isinstance(found, Column) else "a part of an array or a map"
        raise InvalidPredicate(
            f"column {name} is {kind}: only a single value can be looked up, such as a field a.b of a struct",
            detail="TYPE_MISMATCH",
        )
    return found


def typed(column: Column, texts: Sequence[str]) -> list[object]:
    """The texts as values that the column is compared with. Raises `InvalidPredicate` where one is of another type."""
    assert column.type is not None
    kind: Type = column.type
    read = _reader(kind)
    values = [read(text) for text in texts]
    for place, value in enumerate(values, 1):
        if value is None:
            which = f"value {place} of {len(texts)}" if len(texts) > 1 else "the value"
            example = _EXAMPLES.get(kind.name, "42")
            raise InvalidPredicate(
                f"column {column_sql(column.path)} is {kind}, and {which} is none, such as {example}; "
                "--null asks for rows without a value",
                detail="VALUE",
            )
    return values


def _reader(kind: Type) -> Callable[[str], object]:
    """What makes a value of a text; None of what is no such value."""

    def literal(read: Callable[[str], Value], of: Type) -> Callable[[str], object]:
        return lambda text: None if (value := read(text)) is None else Literal(value, of)

    if kind.is_integral:
        return _integer
    if kind.is_decimal:
        return _decimal
    readers: dict[str, Callable[[str], object]] = {
        "boolean": scalar_text.to_boolean,
        "double": scalar_text.to_double,
        "float": literal(scalar_text.to_float, FLOAT),
        "date": literal(scalar_text.to_date, DATE),
        "timestamp": _moment,
        "timestamp_ntz": literal(scalar_text.to_timestamp_ntz, TIMESTAMP_NTZ),
        "binary": _bytes,
    }
    return readers.get(kind.name, str)


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) and len(text) <= _LONGEST_NUMBER else None


def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if _NUMBER.fullmatch(text) and len(text) <= _LONGEST_NUMBER else None


def _moment(text: str) -> Term | None:
    """Without a zone it is a time in that of the table."""
    value = scalar_text.to_timestamp(text, "UTC")
    if value is None:
        return None
    return Literal(value, TIMESTAMP) if scalar_text.names_zone(text) else Cast(Literal(text, STRING), TIMESTAMP)


def _bytes(text: str) -> bytes | None:
    found = _BYTES.fullmatch(text)
    return bytes.fromhex(found[1]) if found else None


def readings(text: str) -> list[object]:
    """All that a text can mean where no column says so: itself, and the number, date, time, bytes or truth that it spells."""
    found: list[object] = [text, _bytes(text), {"true": True, "false": False}.get(text.lower())]
    if _NUMBER.fullmatch(text) or text.lower() in ("nan", "infinity", "-infinity"):
        whole = _integer(text)
        found.append(whole if whole is not None else _decimal(text) if _NUMBER.fullmatch(text) else float(text))
    try:
        if _DAY.fullmatch(text):
            found.append(date.fromisoformat(text))
        elif _MOMENT.fullmatch(text):
            found.append(datetime.fromisoformat(text))
    except ValueError:
        pass  # of the shape of a date, but none: then it is just text
    return [value for value in found if value is not None]


def plain_rows(table: pa.Table) -> list[dict[str, object]]:
    """The rows with nothing in them but what JSON has, and decimals."""
    columns = [_plain_column(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain_column(column: pa.ChunkedArray) -> list[object]:
    plain = _plain_of(column.type)
    try:
        return [None if value is None else plain(value) for value in column.to_pylist()]
    except (OverflowError, ValueError):  # a date beyond those that Python knows
        return list(column.cast(pa.string()).to_pylist())


def _plain_of(kind: pa.DataType) -> Callable[[Any], object]:
    if pa.types.is_struct(kind):
        below = {field.name: _nullable(_plain_of(field.type)) for field in kind}
        return lambda value: {name: plain(value[name]) for name, plain in below.items()}
    if pa.types.is_map(kind):
        key, item = _plain_of(kind.key_type), _nullable(_plain_of(kind.item_type))
        return lambda value: {str(key(name)): item(one) for name, one in value}
    if pa.types.is_nested(kind):
        element = _nullable(_plain_of(kind.value_type))
        return lambda value: [element(one) for one in value]
    return _plain_scalar


def _nullable(plain: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda value: None if value is None else plain(value)


def _plain_scalar(value: object) -> object:
    match value:
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return f"0x{value.hex().upper()}"
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case bool() | int() | float() | str() | Decimal():
            return value
    return str(value)
