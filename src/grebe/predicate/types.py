"""The scalar types of Spark SQL, by Spark's own names, and the structs that schemas are made of.

The planner and the indexes reason about predicates in these types, so nothing here needs pyarrow: `arrow_types` does the mapping.
"""

import re
from dataclasses import dataclass

from grebe.errors import InvalidPredicate

MAX_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Type:
    """One type of Spark. `precision` and `scale` belong to decimals, `fields` to structs."""

    name: str
    precision: int = 0
    scale: int = 0
    fields: tuple["Field", ...] = ()

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.name == "struct":
            return f"struct<{','.join(f'{field.name}:{field.type}' for field in self.fields)}>"
        return self.name

    @property
    def is_integral(self) -> bool:
        return self.name in INTEGRAL_BITS

    @property
    def is_floating(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def is_numeric(self) -> bool:
        return self.is_integral or self.is_floating or self.is_decimal

    @property
    def is_datetime(self) -> bool:
        return self.name in ("date", "timestamp", "timestamp_ntz")

    @property
    def is_scalar(self) -> bool:
        """Whether values of this type can be compared by Grebe."""
        return self.is_numeric or self.is_datetime or self.name in ("boolean", "string", "binary", "void")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type


VOID = Type("void")
BOOLEAN = Type("boolean")
TINYINT = Type("tinyint")
SMALLINT = Type("smallint")
INT = Type("int")
BIGINT = Type("bigint")
FLOAT = Type("float")
DOUBLE = Type("double")
STRING = Type("string")
BINARY = Type("binary")
DATE = Type("date")
TIMESTAMP = Type("timestamp")
TIMESTAMP_NTZ = Type("timestamp_ntz")
ARRAY = Type("array")
MAP = Type("map")
OTHER = Type("other")  # intervals, times, anything Spark may know and Grebe does not compare

INTEGRAL_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}

_BY_NAME = {
    **{t.name: t for t in (VOID, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE)},
    **{t.name: t for t in (TIMESTAMP, TIMESTAMP_NTZ)},
    "byte": TINYINT,
    "short": SMALLINT,
    "integer": INT,
    "long": BIGINT,
    "real": FLOAT,
    "timestamp_ltz": TIMESTAMP,
}
_DECIMAL_NAMES = ("decimal", "dec", "numeric")
_DECIMAL_TEXT = re.compile(r"(decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", precision, scale)


def struct(*fields: tuple[str, Type]) -> Type:
    return Type("struct", fields=tuple(Field(name, kind) for name, kind in fields))


def integral_range(kind: Type) -> tuple[int, int]:
    bits = INTEGRAL_BITS[kind.name]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def decimal_for_integral(kind: Type) -> Type:
    """The decimal that holds every value of an integer type, as Spark chooses it."""
    return decimal(_DECIMAL_DIGITS[kind.name], 0)


def is_type_name(word: str) -> bool:
    """Whether a word names a scalar type, so that it may be called like a function: `int('1')`."""
    return word.lower() in _BY_NAME or word.lower() in _DECIMAL_NAMES


def parse_type(text: str) -> Type:
    """A scalar type from Spark's DDL text; anything else is `OTHER`, which no value can be cast to here."""
    name = text.strip().lower()
    if known := _BY_NAME.get(name):
        return known
    if parts := _DECIMAL_TEXT.fullmatch(name):
        precision = int(parts[2]) if parts[2] else 10
        scale = int(parts[3]) if parts[3] else 0
        if not 0 <= scale <= precision <= MAX_PRECISION or precision == 0:
            raise InvalidPredicate(
                f"{name} is no decimal type: the precision is 1 to {MAX_PRECISION}, the scale at most the precision",
                detail="TYPE",
            )
        return decimal(precision, scale)
    return OTHER
