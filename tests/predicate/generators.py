"""Hypothesis strategies: tables with a column of every scalar type, and predicates over them.

Values come from small pools full of edges, so that literals meet the values of the columns often.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from grebe.predicate.text import natural_decimal
from grebe.predicate.tree import (
    And,
    Arithmetic,
    Cast,
    Column,
    Compare,
    Contains,
    EndsWith,
    Holds,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
    TruthOf,
)
from grebe.predicate.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Type,
    decimal,
    integral_range,
)

DAY = 86_400_000_000
_WIDE = Context(prec=80)
# 1883: New York leaves local mean time. 1986: Kathmandu moves by a quarter of an hour at midnight. 2020: New York's clock changes.
_CHANGES = (-2_717_650_800_000_000, 504_901_800_000_000, 1_583_650_800_000_000, 1_604_210_400_000_000)
_MOMENTS = [
    *(change + shift for change in _CHANGES for shift in (-3_600_000_000, -1, 0, 1_800_000_000, 3_600_000_000)),
    *(0, 1, -1, DAY, -DAY, 18_000_000_000, -20_700_000_000, 1_709_164_800_123_456),
    *(-62_135_596_800_000_000, 253_402_300_799_999_999, -93_692_592_000_000_000, 569_000_000_000_000_000),
]
_DAYS = sorted({moment // DAY + shift for moment in _MOMENTS for shift in (0, 1)})
_DOUBLES = [0.0, -0.0, 1.0, -1.0, 1.5, 0.1, math.nan, math.inf, -math.inf, 5e-324, 1e308]
_DOUBLES += [2.0**31, 2.0**53, 2.0**53 + 2, 9.2e18, 16777217.0]
_SINGLES = [0.0, -0.0, 1.0, -1.5, 0.10000000149011612, math.nan, math.inf, -math.inf, 16777216.0, 3.4028234663852886e38]
_WORDS = ["", "a", "A", "b", "ab", "abc", "z", " a", "a ", "a%b", "a_b", "a\\b", "a\nb", "'", "''", "\0"]
_WORDS += ["ä", "é", "e\u0301", "\uffff", "\U0001f426"]
_INTEGER_TEXTS = ["0", "1", "-1", " 7 ", "+5", "007", "127", "128", "32768", "2147483648", "\t9\n"]
_NUMBER_TEXTS = ["0", "1", "-1.5", " 2.50 ", "1e2", ".5", "5.", "+0.1", "99999.99999"]
_DATE_TEXTS = ["1970-01-01", "2020-3-8", "2020", "2020-11", " 1986-01-01 ", "0001-01-01", "9999-12-31", "2020-03-08T00"]
_MOMENT_TEXTS = [
    "1970-01-01",
    "2020-03-08 02:30:00",
    "2020-11-01T01:30:00.5",
    "1986-01-01 00:05:00",
    "2020-03-08 07:00:00Z",
    "2020-03-08 02:00:00 America/New_York",
    "1883-11-18 12:00:00.123456",
    "2024-02-29 0:0:0+05:45",
]


def _integers(kind: Type) -> list[int]:
    low, high = integral_range(kind)
    inexact = (
        v + 1 for bits in (24, 53) if (v := 1 << bits) < high
    )  # the first that a float, or a double, cannot hold
    return sorted({low, low + 1, -1, 0, 1, 2, 100, high - 1, high, *inexact})


def _decimals(kind: Type) -> list[Decimal]:
    unit = Decimal(1).scaleb(-kind.scale)
    top = Decimal((0, (9,) * kind.precision, -kind.scale))
    near = [Decimal(v) for v in (0, 1, -1, 2, 100) if abs(v) <= top]
    halves = [Decimal("1.5"), Decimal("0.5")] if kind.scale and kind.precision > kind.scale else []
    return [value.quantize(unit, context=_WIDE) for value in (*near, *halves)] + [top, top.copy_negate(), unit, -unit]


@dataclass(frozen=True)
class Field:
    path: tuple[str, ...]
    kind: Type
    pool: list[Any]


_D9, _D38, _W38, _D5 = decimal(9, 2), decimal(38, 18), decimal(38, 0), decimal(5, 5)
FIELDS = [
    Field(("b",), BOOLEAN, [True, False]),
    *(Field((kind.name,), kind, _integers(kind)) for kind in (TINYINT, SMALLINT, INT, BIGINT)),
    Field(("f",), FLOAT, _SINGLES),
    Field(("d",), DOUBLE, _DOUBLES),
    *(Field((f"dec_{kind.precision}_{kind.scale}",), kind, _decimals(kind)) for kind in (_D9, _D38, _W38, _D5)),
    Field(("s",), STRING, _WORDS),
    Field(("s_int",), STRING, _INTEGER_TEXTS),
    Field(("s_num",), STRING, _NUMBER_TEXTS),
    Field(("s_date",), STRING, _DATE_TEXTS),
    Field(("s_ts",), STRING, _MOMENT_TEXTS),
    Field(("bin",), BINARY, [b"", b"a", b"\x00", b"\xff", b"ab", b"\xc3\xa4"]),
    Field(("dt",), DATE, _DAYS),
    Field(("ts",), TIMESTAMP, _MOMENTS),
    Field(("tn",), TIMESTAMP_NTZ, _MOMENTS),
    Field(("st", "a"), INT, _integers(INT)),
    Field(("st", "in", "s"), STRING, _WORDS),
    Field(("st", "in", "dec"), decimal(10, 3), _decimals(decimal(10, 3))),
]
POOLS = {field.path: field.pool for field in FIELDS}

_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(kind: Type) -> pa.DataType:
    return pa.decimal128(kind.precision, kind.scale) if kind.is_decimal else _ARROW[kind.name]


# The columns of `tables`.
SCHEMA = pa.schema(
    [(field.path[0], arrow_type(field.kind)) for field in FIELDS if len(field.path) == 1]
    + [("st", pa.struct([("a", pa.int32()), ("in", pa.struct([("s", pa.string()), ("dec", pa.decimal128(10, 3))]))]))]
)


def column_of(kind: Type, values: list[Any]) -> pa.Array:
    if kind == DATE:
        return pa.array(values, pa.int32()).view(pa.date32())
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return pa.array(values, pa.int64()).view(arrow_type(kind))
    return pa.array(values, arrow_type(kind))


@st.composite
def tables(draw: st.DrawFn, rows: int = 24) -> pa.Table:
    """A table with all columns of FIELDS; about one value in eight is NULL, and so is every third struct."""

    def values(field: Field) -> pa.Array:
        picks = draw(st.lists(st.integers(0, len(field.pool) * 8 // 7), min_size=rows, max_size=rows))
        return column_of(field.kind, [field.pool[pick] if pick < len(field.pool) else None for pick in picks])

    def mask() -> pa.Array:
        return pa.array(draw(st.lists(st.sampled_from([False, False, True]), min_size=rows, max_size=rows)))

    columns = {field.path[0]: values(field) for field in FIELDS if len(field.path) == 1}
    nested = {field.path[-1]: values(field) for field in FIELDS if len(field.path) > 1}
    inner = pa.StructArray.from_arrays([nested["s"], nested["dec"]], ["s", "dec"], mask=mask())
    columns["st"] = pa.StructArray.from_arrays([nested["a"], inner], ["a", "in"], mask=mask())
    return pa.table(columns)


_ENCODINGS = {
    "string": [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ],
    "binary": [pa.large_binary(), pa.binary_view()],
    "int": [pa.dictionary(pa.int32(), pa.int32())],
    "date": [pa.date64()],
    "timestamp": [pa.timestamp("us", "Asia/Kathmandu")],
}


@st.composite
def encoded(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    """The same rows, stored otherwise: dictionaries, views, several chunks."""
    for field in FIELDS:
        if len(field.path) == 1 and field.kind.name in _ENCODINGS:
            wanted = draw(st.sampled_from([None, *_ENCODINGS[field.kind.name]]))
            if wanted is not None:
                index = table.schema.get_field_index(field.path[0])
                table = table.set_column(index, field.path[0], _stored_as(table.column(index).combine_chunks(), wanted))
    cut = draw(st.integers(0, table.num_rows))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])


def _stored_as(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(wanted):
        return pc.run_end_encode(array)
    if pa.types.is_dictionary(wanted):
        return array.dictionary_encode().cast(wanted)
    return array.cast(wanted)


def literal(kind: Type, value: Any) -> Term:
    if kind.is_decimal:
        return Literal(value, natural_decimal(value))
    if kind.is_floating and not math.isfinite(value):
        return Cast(Literal("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity", STRING), kind)
    return Literal(value, kind)


def literals(field: Field) -> st.SearchStrategy[Term]:
    """Mostly of the column's own type and pool."""
    return st.sampled_from([*(literal(field.kind, value) for value in field.pool), Literal(None, VOID)])


_BY_GROUP = {
    "number": [field for field in FIELDS if field.kind.is_numeric],
    "time": [field for field in FIELDS if field.kind.is_datetime],
}
_TEXT_FOR = {
    "tinyint": _INTEGER_TEXTS[:4],
    "smallint": _INTEGER_TEXTS,
    "int": _INTEGER_TEXTS,
    "bigint": _INTEGER_TEXTS,
    "float": _NUMBER_TEXTS,
    "double": [*_NUMBER_TEXTS, "NaN", "Infinity", "-inf"],
    "decimal": _NUMBER_TEXTS,
    "date": _DATE_TEXTS,
    "timestamp": _MOMENT_TEXTS,
    "timestamp_ntz": _MOMENT_TEXTS,
    "boolean": ["true", " F ", "0", "yes"],
    "binary": _WORDS,
    "string": _WORDS,
}
_STRING_COLUMN_FOR = {
    "integral": "s_int",
    "fractional": "s_num",
    "date": "s_date",
    "timestamp": "s_ts",
    "timestamp_ntz": "s_ts",
    "binary": "s",
}


def column(field: Field) -> Column:
    return Column(field.path)


def _string_column_for(kind: Type) -> str:
    group = "integral" if kind.is_integral else "fractional" if kind.is_numeric else kind.name
    return _STRING_COLUMN_FOR.get(group, "s")


def others(field: Field) -> st.SearchStrategy[Term]:
    """Something to compare a column with: its own kind, text that reads as it, or a related type, by literal or by column."""
    kin = [other for group in _BY_GROUP.values() if field in group for other in group] or [
        f for f in FIELDS if f.kind == field.kind
    ]
    by_text = st.sampled_from(_TEXT_FOR[field.kind.name]).map(lambda text: Literal(text, STRING))
    return st.one_of(
        literals(field),
        literals(field),
        st.sampled_from(kin).flatmap(literals),
        by_text,
        st.sampled_from(kin).map(column),
        st.just(Column((_string_column_for(field.kind),))),
        constant_arithmetic() if field.kind.is_numeric else literals(field),
    )


def constant_arithmetic() -> st.SearchStrategy[Term]:
    numbers = st.sampled_from(
        [Literal(v, INT) for v in (0, 1, 2, 7, -3)]
        + [Literal(Decimal("1.5"), decimal(2, 1)), Literal(2.5, DOUBLE), Literal(3, BIGINT)]
    )
    return st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%", "div"]), numbers, numbers)


_CAST_TARGETS = [
    BOOLEAN,
    TINYINT,
    INT,
    BIGINT,
    FLOAT,
    DOUBLE,
    decimal(10, 1),
    decimal(38, 20),
    STRING,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
]


@st.composite
def casts(draw: st.DrawFn) -> Predicate:
    """An explicit cast of a column, compared with a value of the type it is cast to."""
    field = draw(st.sampled_from(FIELDS))
    target = draw(st.sampled_from(_CAST_TARGETS))
    like = draw(st.sampled_from([f for f in FIELDS if f.kind.name == target.name]))
    cast = Cast(column(field), target, draw(st.sampled_from(["session", "try", "try"])))
    return Compare(draw(_OPERATORS), cast, draw(literals(like)))


_OPERATORS: st.SearchStrategy[Operator] = st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="])
_STRINGS = [field for field in FIELDS if field.kind == STRING]
_PATTERNS = st.text(alphabet="ab%_A\nä\U0001f426", max_size=4)


@st.composite
def comparisons(draw: st.DrawFn) -> Predicate:
    field = draw(st.sampled_from(FIELDS))
    other = draw(others(field))
    sides = (column(field), other) if draw(st.booleans()) else (other, column(field))
    return Compare(draw(_OPERATORS), *sides)


@st.composite
def ins(draw: st.DrawFn) -> Predicate:
    field = draw(st.sampled_from(FIELDS))
    items = draw(
        st.lists(st.one_of(literals(field), literals(field), literals(field), others(field)), min_size=1, max_size=14)
    )
    return In(column(field), tuple(items))


@st.composite
def text_matches(draw: st.DrawFn) -> Predicate:
    field = draw(st.sampled_from([*_STRINGS, *(f for f in FIELDS if f.kind in (INT, BOOLEAN, DATE))]))
    words = st.sampled_from(_WORDS)
    matches: st.SearchStrategy[Predicate] = st.one_of(
        _PATTERNS.map(lambda pattern: Like(column(field), pattern)),
        words.map(lambda word: Like(column(field), "%" + word.replace("\\", "\\\\").replace("%", "\\%") + "%")),
        _PATTERNS.map(lambda pattern: Like(column(field), pattern.replace("A", "!%"), "!")),
        words.map(lambda word: StartsWith(column(field), word)),
        words.map(lambda word: EndsWith(column(field), word)),
        words.map(lambda word: Contains(column(field), word)),
    )
    return draw(matches)


def simple() -> st.SearchStrategy[Predicate]:
    fields = st.sampled_from(FIELDS).map(column)
    nulls = st.one_of(fields.map(IsNull), fields.map(IsNotNull), st.just(IsNull(Column(("st", "in")))))
    return st.one_of(
        comparisons(), comparisons(), ins(), casts(), text_matches(), nulls, st.just(Holds(Column(("b",))))
    )


def predicates() -> st.SearchStrategy[Predicate]:
    def deeper(below: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(below, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            several.map(And),
            several.map(Or),
            below.map(Not),
            below.map(lambda inner: IsNull(_truth(inner))),
            st.builds(lambda one, other: Compare("<=>", _truth(one), _truth(other)), below, below),
        )

    return st.recursive(simple(), deeper, max_leaves=4)


def _truth(predicate: Predicate) -> Term:
    return predicate.term if isinstance(predicate, Holds) else TruthOf(predicate)
