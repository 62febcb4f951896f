"""Predicates about one column, as sketches ask for them, and the types that columns are stored by."""

import pyarrow as pa

from grebe.predicate.arrow_types import from_arrow, physical_type, to_physical
from grebe.predicate.tree import (
    Column,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Path,
    Predicate,
    StartsWith,
    Value,
)
from grebe.predicate.types import Type

_WIDTHS = {"boolean": 1.0, "tinyint": 1.0, "smallint": 2.0, "int": 4.0, "float": 4.0, "date": 4.0}
_LONG, _WIDE, _DIGITS_OF_LONG = 8.0, 16.0, 18


def subject(predicate: Predicate) -> Path | None:
    """The one plain column that a simple predicate compares with constants."""
    match predicate:
        case Not(inner):
            return subject(inner)
        case (
            Compare(_, Column(path), Literal())
            | In(Column(path))
            | IsNull(Column(path))
            | IsNotNull(Column(path))
            | StartsWith(Column(path))
            | EndsWith(Column(path))
            | Contains(Column(path))
            | Like(Column(path))
        ):
            return path
    return None


def equal_values(predicate: Predicate, path: Path, kind: Type) -> list[Value] | None:
    """The values of which the column must have one, if that is what the predicate asks; NULL is never among them."""
    match predicate:
        case Compare("=" | "<=>", Column(column, own), Literal(value, of)) if (
            column == path and own == of == kind and value is not None
        ):
            return [value]
        case In(Column(column, own), items) if column == path and own == kind:
            values = [item.value for item in items if isinstance(item, Literal) and item.type == kind]
            return [value for value in values if value is not None] if len(values) == len(items) else None
    return None


def stored_type(kind: Type) -> str:
    """How values of this type are stored, as Spark names it. Times are numbers: no zone, no calendar comes between."""
    if kind.is_integral or kind.is_datetime:
        return "long"
    if kind.is_floating:
        return "double"
    return str(kind)


def width_of(kind: Type) -> float:
    """Bytes of a value of this type; text has no width of its own."""
    return _WIDTHS.get(kind.name, _WIDE if kind.is_decimal and kind.precision > _DIGITS_OF_LONG else _LONG)


def physical(values: pa.Array, kind: Type) -> pa.Array:
    """A column as Spark or a reader of ours gives it, or as it was stored, in the physical form of its type."""
    wanted = physical_type(kind)
    if values.type == wanted:
        return values
    if kind.is_datetime and pa.types.is_integer(values.type):
        return values.cast(wanted)
    made = to_physical(values, from_arrow(values.type))
    return made if made.type == wanted else made.cast(wanted)
