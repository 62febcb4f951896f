"""Partition columns in the names of folders, by Spark's rules: which folders count, how values are written, what type they have.

`year=2020/city=New%20York/…` gives the columns `year` (int) and `city` (string). A value is escaped as Hive does it, one character
for one `%XX`; `__HIVE_DEFAULT_PARTITION__` is NULL. The type of a column is the narrowest one that holds all its values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import reduce

import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats.java_floats import HEXADECIMAL, from_hexadecimal
from grebe.formats.local_time import instants
from grebe.formats.reading import Column
from grebe.formats.spark_types import TIMESTAMP_NTZ, arrow_type

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DOUBLE = re.compile(
    r"[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    rf"|{HEXADECIMAL})[dDfF]?)[\x00-\x20]*"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?")
_WHOLE_DIGITS = {"integer": 10, "long": 20}
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition columns of a table, and the values of each folder that has them, still as written."""

    columns: tuple[Column, ...]
    values: Mapping[str, tuple[str, ...]]


def unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def partitioning(folders: Sequence[str], bases: frozenset[str], given: Mapping[str, str]) -> Partitioning:
    """Of the folders (canonical URIs) that hold data files. Discovery stops at a base. `given` has types that the user chose, by
    name in lower case."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    stops: set[str] = set()
    for folder in folders:
        pairs, stop = _parse(folder, bases)
        if stop is not None:
            stops.add(stop)
        if pairs:
            found[folder] = pairs
    if not found:
        return Partitioning((), {})
    if len({stop.lower() for stop in stops}) > 1:
        raise Unsupported(
            f"the folders {', '.join(sorted(stops)[:3])} do not belong to one partitioned table; give the option basePath, or open "
            "them one by one",
            detail="PARTITIONS",
        )
    names = {tuple(name.lower() for name, _ in pairs) for pairs in found.values()}
    if len(names) > 1:
        shown = "; ".join(", ".join(each) for each in sorted(names)[:3])
        raise Unsupported(
            f"folders of one table have different partition columns: {shown}; open each kind of folder by itself",
            detail="PARTITIONS",
        )
    # Spark takes the spelling of the folder it happens to see first; the smallest path is at least always the same.
    spelling = [name for name, _ in found[min(found)]]
    columns = []
    for number, name in enumerate(spelling):
        kind = given.get(name.lower())
        if kind is None:
            kind = reduce(_wider, (_type_of(pairs[number][1]) for pairs in found.values()))
        columns.append(Column(name, kind, partition=True))
    return Partitioning(tuple(columns), {folder: tuple(value for _, value in pairs) for folder, pairs in found.items()})


def partition_array(texts: Sequence[str], column: Column, zone: str | None) -> pa.Array:
    """The values of one column, from their texts in the names of folders."""
    values = [_value(text, column) for text in texts]
    if column.type == "timestamp":
        return instants(pa.array(values, TIMESTAMP_NTZ), zone or "UTC")
    try:
        return pa.array(values, arrow_type(column.type))
    except pa.ArrowInvalid as error:
        raise _misfit(column) from error


def _parse(folder: str, bases: frozenset[str]) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """Names and values from the top down, and the folder where they end. The search goes upwards: levels without `=` below the
    first partition are passed over, the first one above ends it."""
    pairs: list[tuple[str, str]] = []
    current = folder
    while current not in bases:
        parent, _, level = current.rpartition("/")
        if not level or parent.endswith(":/"):
            break
        if level.lower() == "_temporary":
            return (), None
        name, equals, value = level.partition("=")
        if equals:
            if not name or not value:
                raise Unsupported(
                    f"the folder {current} has no name or no value at its `=`; rename it, or open the folders below it",
                    detail="PARTITIONS",
                )
            pairs.append((unescaped(name), value))
        elif pairs:
            break
        current = parent
    return (tuple(reversed(pairs)), current) if pairs else ((), folder)


def _type_of(text: str) -> str:
    if text == NULL_FOLDER:
        return "void"
    if _WHOLE.fullmatch(text):
        number = int(text)
        if -(2**31) <= number < 2**31:
            return "integer"
        if -(2**63) <= number < 2**63:
            return "long"
    if (whole := _whole_decimal(text)) is not None:
        return f"decimal({whole},0)"
    if _DOUBLE.fullmatch(text):
        return "double"
    plain = unescaped(text)
    if _TIMESTAMP.fullmatch(plain) and _timestamp(plain) is not None:
        return "timestamp"
    if _DATE.fullmatch(text) and _date(text) is not None:
        return "date"
    if (
        plain.startswith("0000-")
        and (_TIMESTAMP.fullmatch(plain) or _DATE.fullmatch(text))
        and _timestamp(f"2000{plain[4:]}")
    ):
        raise Unsupported(
            f"a folder is named by a day of the year 0 ({text}), which only Spark can read; rename it",
            detail="PARTITION_VALUE",
        )
    return "string"


def _whole_decimal(text: str) -> int | None:
    """The number of digits of a number without a fraction, if Spark can keep it as a decimal."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        _, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:
        return None
    if not isinstance(exponent, int) or exponent < 0:
        return None
    # Zeros that the exponent stands for count, even those of 0e5.
    precision = len(digits) + exponent
    return precision if precision <= _MOST_DIGITS else None


def _wider(left: str, right: str) -> str:
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    pair = {left, right}
    if pair == {"integer", "long"}:
        return "long"
    if pair == {"integer", "double"}:
        return "double"
    if pair == {"date", "timestamp"}:
        return "timestamp"
    digits = [_digits(kind) for kind in pair]
    if all(digits):
        return f"decimal({max(digits)},0)"
    return "string"


def _digits(kind: str) -> int:
    return _WHOLE_DIGITS.get(kind) or (int(kind[8:].partition(",")[0]) if kind.startswith("decimal") else 0)


def _value(text: str, column: Column) -> object:
    if text == NULL_FOLDER or column.type == "void":
        return None
    kind = column.type
    try:
        if kind == "string":
            return unescaped(text)
        if kind in ("byte", "short", "integer", "long") and _WHOLE.fullmatch(text):
            return int(text)
        if kind in ("float", "double") and _DOUBLE.fullmatch(text):
            return _double(text)
        if kind.startswith("decimal") and _NUMBER.fullmatch(text):
            return _decimal(text)
        if kind == "date" and _DATE.fullmatch(text):
            return date.fromisoformat(text)
        if kind in ("timestamp", "timestamp_ntz"):
            local = datetime.fromisoformat(unescaped(text))
            if local.tzinfo is None:
                return local
        if kind == "boolean" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind == "binary":
            return text.encode()
    except (ValueError, ArithmeticError) as error:
        raise _misfit(column) from error
    raise _misfit(column)


def _misfit(column: Column) -> Unsupported:
    return Unsupported(
        f"a folder has a value for {column.name} that is no {column.type}; list the table again",
        detail="PARTITION_VALUE",
    )


def _decimal(text: str) -> Decimal:
    """Return the number with all its digits: Arrow takes no exponents above its scale."""
    value = Decimal(text)
    if not value:
        return Decimal(0)
    if value.adjusted() > _MOST_DIGITS:
        raise ValueError("more digits than a decimal has")
    exponent = value.as_tuple().exponent
    return Decimal(int(value)) if isinstance(exponent, int) and exponent > 0 else value


def _double(text: str) -> float:
    bare = text.strip("".join(map(chr, range(33))))
    if "x" in bare.lower():
        return from_hexadecimal(bare.rstrip("dDfF"))
    return float(bare if bare.endswith(("Infinity", "NaN")) else bare.rstrip("dDfF"))


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _timestamp(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
