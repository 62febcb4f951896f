"""Tables of several files, made to be misjudged: every type, with the values at which orders, hashes and cuts go wrong.

All comes from one `random.Random`, so that a seed makes the same table again.
"""

import math
import random
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.predicate.arrow_types import from_arrow, physical_type
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
    Type,
    decimal,
    integral_range,
)

_DAY = 86_400_000_000
_WIDE = Context(prec=80)
_HUGE = 1 << 20
_LONGEST_DAY = 2_147_483_647
_MOMENTS = [0, 1, -1, _DAY, -_DAY, _DAY - 1, 1_709_164_800_123_456, -62_135_596_800_000_000, -93_692_592_000_000_000]
_MOMENTS += [253_402_300_799_999_999, 253_402_300_800_000_000, 569_000_000_000_000_000]
_MOMENTS += [-(2**63), -(2**63) + 1, 2**63 - 1, 2**63 - 2]
_DAYS = [0, 1, -1, -719_162, -719_528, -719_529, 2_932_896, 2_932_897, 2_932_898, -_LONGEST_DAY - 1, _LONGEST_DAY]
_MOST = 1.7976931348623157e308
_DOUBLES = [0.0, -0.0, 1.0, -1.0, 1.5, 0.1, math.nan, math.nan, math.inf, -math.inf, 5e-324, -5e-324, _MOST, -_MOST]
_DOUBLES += [2.0**53, 2.0**53 + 2, 2.0**63, 16777217.0, 2.2250738585072014e-308]
_SINGLES = [float(np.float32(value)) for value in (*_DOUBLES[:10], 3.4028234663852886e38, -1e-45, 16777216.0, 0.3)]
_TEXTS = ["", " ", "  ", "a", "A", "a ", " a", "ab", "abc", "abd", "abcabc", "b", "z", "%", "_", "\\", "a%b", "a_b"]
_TEXTS += ["a\\b", "'", "\n", "\0", "\0\0", "a\0", "\x7f", "\x80", "é", "e\u0301", "ß", "ſ", "\u07ff", "\u0800"]
_TEXTS += ["\ud7ff", "\ue000", "\ufffd", "\uffff", "\U00010000", "\U0001f41f", "x\U0001f41fy", "\U0010ffff", "\u2028"]
_TEXTS += ["\U0010ffffa", "日本語の本", "a" * 63, "a" * 64, "a" * 65, "a" * 64 + "b", "a" * 63 + "\ud7ffb", "a" * 300]
_TEXTS += ["a" * 63 + "\U0010ffffb", "\U0010ffff" * 64, "\U0010ffff" * 65, "\uffff" * 70, "\ud7ff" * 64 + "x"]
_TEXTS += ["é" * 64, "é" * 65, "é" * 200]
_BYTES = [b"", b"\0", b"\0\0", b"a", b"ab", b"abc", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xff\0", b"\xfe\xff"]
_BYTES += [b"\xc3", b"\xc3\xa4", b"\xff" * 64, b"\xff" * 65, b"\xff" * 300, b"a" * 64, b"a" * 64 + b"\xff"]
_BYTES += [b"a" * 63 + b"\xff" * 9, b"\0" * 65, b"ab" * 200]


@dataclass(frozen=True)
class Field:
    path: tuple[str, ...]
    kind: Type

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @cached_property
    def pool(self) -> list[Any]:
        kind = self.kind
        if kind.is_integral:
            return _integers(kind)
        if kind.is_decimal:
            return _decimals(kind)
        if kind.is_datetime:
            return _DAYS if kind == DATE else _MOMENTS
        plain: dict[str, list[Any]] = {"float": _SINGLES, "double": _DOUBLES, "string": _TEXTS, "binary": _BYTES}
        plain["boolean"] = [True, False]
        return plain[kind.name]


def _integers(kind: Type) -> list[int]:
    low, high = integral_range(kind)
    inexact = [sign * ((1 << bits) + 1) for bits in (7, 15, 24, 31, 53) for sign in (-1, 1)]
    return sorted({low, low + 1, -2, -1, 0, 1, 2, 42, high - 1, high, *(one for one in inexact if low <= one <= high)})


def _decimals(kind: Type) -> list[Decimal]:
    most = 10**kind.precision - 1
    wide = [sign * 10**digits for digits in (17, 18, 19, 20, 37) for sign in (-1, 1)]
    near = (0, 1, -1, 2, 100, -100, 2**57, 2**63, -(2**63) - 1, 2**64, -(2**64), *wide)
    return [_scaled(number, kind) for number in (most, -most, most - 1, *near) if abs(number) <= most]


def _scaled(number: int, kind: Type) -> Decimal:
    return Decimal(number).scaleb(-kind.scale, _WIDE)


_FLAT = [("b", BOOLEAN), ("i8", TINYINT), ("i16", SMALLINT), ("i32", INT), ("i64", BIGINT), ("f", FLOAT), ("d", DOUBLE)]
_FLAT += [(f"dec{p}_{s}", decimal(p, s)) for p, s in ((9, 2), (18, 18), (19, 0), (38, 2), (38, 38))]
_FLAT += [("s", STRING), ("t", STRING), ("bin", BINARY), ("dt", DATE), ("ts", TIMESTAMP), ("tn", TIMESTAMP_NTZ)]
FIELDS = [Field((name,), kind) for name, kind in _FLAT]
FIELDS += [Field(("st", "a"), INT), Field(("st", "in", "s"), STRING), Field(("st", "in", "x"), DOUBLE)]


def anywhere(chance: random.Random, kind: Type) -> Any:
    """Any value of a type, drawn from all of its range."""
    if kind == BOOLEAN:
        return chance.random() < 0.5
    if kind.is_integral:
        return chance.randint(*integral_range(kind))
    if kind.is_decimal:
        return _scaled(chance.randint(-(10**kind.precision) + 1, 10**kind.precision - 1), kind)
    if kind.is_floating:
        number = chance.choice([chance.gauss(0, 1), chance.uniform(-1, 1) * 10.0 ** chance.randint(-38, 38)])
        return float(np.float32(number)) if kind == FLOAT else number
    if kind == DATE:
        return chance.randint(-1_000_000, 4_000_000)
    if kind.is_datetime:
        return chance.randint(-(2**62), 2**62) // chance.choice([1, _DAY, 2**40])
    points = chance.choices(["a", "b", "é", "\ud7ff", "\ue000", "\uffff", "\U0001f41f", "\0"], k=chance.randint(0, 9))
    return "".join(points) if kind == STRING else bytes(chance.choices(b"ab\0\x7f\x80\xff", k=chance.randint(0, 9)))


def near(chance: random.Random, value: Any, kind: Type) -> Any:
    """The next value, or the one before, or one that begins or ends alike."""
    step = chance.choice([-1, 1])
    if kind == BOOLEAN:
        return not value
    if kind.is_integral or kind.is_datetime:
        low, high = integral_range(kind if kind.is_integral else INT if kind == DATE else BIGINT)
        return max(low, min(high, value + step))
    if kind.is_decimal:
        most = 10**kind.precision - 1
        number = int(value.scaleb(kind.scale, _WIDE)) + step
        return _scaled(max(-most, min(most, number)), kind)
    if kind.is_floating:
        size = np.float32 if kind == FLOAT else np.float64
        with np.errstate(over="ignore", under="ignore"):
            return float(np.nextafter(size(value), size(step * math.inf)))
    ends = ["a", "\0", "\U0010ffff"] if kind == STRING else [b"a", b"\0", b"\xff"]
    place = chance.randint(0, len(value))
    return chance.choice([value + chance.choice(ends), value[:-1], value[:place], value[place:], value[:64], value * 2])


def _column(chance: random.Random, field: Field, rows: int, huge: bool) -> list[Any]:
    """Of one file: lying anywhere, close together, all one value, or all NULL."""
    kind, pool = field.kind, field.pool
    centre = chance.choice([chance.choice(pool), anywhere(chance, kind)])
    few = [centre, *(near(chance, centre, kind) for _ in range(2))]
    shape = chance.randrange(9)
    values = [
        None if shape == 0
        else centre if shape == 1
        else chance.choice(few) if shape <= 4
        else chance.choice(pool) if shape <= 6
        else anywhere(chance, kind)
        for _ in range(rows)
    ]  # fmt: skip
    if huge and rows and kind in (STRING, BINARY):
        values[0] = "a" * _HUGE + chance.choice(["", "b", "\U0010ffff"]) if kind == STRING else b"\xff" * _HUGE
    nulls = chance.choice([0.0, 0.0, 0.2, 0.9])
    return [None if chance.random() < nulls else value for value in values]


_STORED = {"date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}


def array_of(kind: Type, values: list[Any]) -> pa.Array:
    plain = {"string": pa.string(), "binary": pa.binary()}
    array = pa.array(values, plain.get(kind.name) or physical_type(kind))
    return array.view(_STORED[kind.name]) if kind.is_datetime else array


def _batch(chance: random.Random, rows: int, huge: bool) -> pa.RecordBatch:
    flat = {field.path: array_of(field.kind, _column(chance, field, rows, huge)) for field in FIELDS}

    def absent(share: float) -> pa.Array:
        return pa.array([chance.random() < share for _ in range(rows)], pa.bool_())

    share = chance.choice([0.0, 0.3, 1.0])
    inner = pa.StructArray.from_arrays(
        [flat.pop(("st", "in", "s")), flat.pop(("st", "in", "x"))], ["s", "x"], mask=absent(share)
    )
    outer = pa.StructArray.from_arrays([flat.pop(("st", "a")), inner], ["a", "in"], mask=absent(share / 2))
    return pa.record_batch([*flat.values(), outer], names=[*(path[0] for path in flat), "st"])


@dataclass(frozen=True)
class Files:
    """The rows of a table by the files that they lie in, and all of them together."""

    parts: tuple[pa.RecordBatch, ...]

    @cached_property
    def whole(self) -> pa.RecordBatch:
        return pa.Table.from_batches(self.parts).combine_chunks().to_batches(max_chunksize=1 << 40)[0]

    @cached_property
    def owners(self) -> npt.NDArray[np.int64]:
        """The file of each row."""
        return np.repeat(np.arange(len(self.parts)), [part.num_rows for part in self.parts])

    @cached_property
    def values(self) -> dict[tuple[str, ...], list[Any]]:
        """What occurs in each column, in its physical form."""
        found = {}
        for field in FIELDS:
            array = column_at(self.whole, field.path).drop_null()
            if field.kind.is_datetime:
                array = array.view(physical_type(field.kind))
            found[field.path] = array.to_pylist()
        return found

    def matching(self, truth: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Of each file the rows that match, and all of them."""
        files = len(self.parts)
        return np.bincount(self.owners[truth], minlength=files), np.bincount(self.owners, minlength=files)


def column_at(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    top = batch.column(path[0])
    return pc.struct_field(top, list(path[1:])) if len(path) > 1 else top


def files_of(chance: random.Random, count: int, huge: bool = False) -> Files:
    """`huge`: text of 1 MB in one file of eight."""
    sizes = [chance.choice([0, 1, 2, 3, 8, 8, 20, 30]) for _ in range(count)]
    sizes[0] = 30
    return Files(tuple(_batch(chance, size, huge and place % 8 == 0) for place, size in enumerate(sizes)))


_OTHERWISE: dict[str, list[pa.DataType]] = {
    "string": [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    "binary": [pa.large_binary(), pa.binary_view()],
    "timestamp": [pa.timestamp("us", "America/New_York")],
    "bigint": [pa.int32()],
    "int": [pa.int16()],
    "double": [pa.float32()],
    "decimal": [pa.decimal128(9, 2)],
}


def as_read(chance: random.Random, part: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The rows of a file as a task may get them: in several batches, sliced, narrower or encoded in another way."""
    columns = []
    for array in part.columns:
        wanted = chance.choice([None, *_OTHERWISE.get(from_arrow(array.type).name, [])])
        columns.append(array if wanted is None else _otherwise(array, wanted))
    stored = pa.record_batch(columns, names=part.schema.names)
    cuts = sorted(chance.randint(0, part.num_rows) for _ in range(chance.choice([0, 0, 1, 3])))
    ends = [0, *cuts, part.num_rows]
    return [stored.slice(start, stop - start) for start, stop in pairwise(ends)]


def _otherwise(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """In another type, where that says the same."""
    try:
        if pa.types.is_dictionary(wanted):
            return array.dictionary_encode().cast(wanted)
        made = array.cast(wanted)
    except pa.ArrowInvalid:
        return array
    return array if pa.types.is_floating(wanted) and not _same_numbers(made, array) else made


def _same_numbers(one: pa.Array, other: pa.Array) -> bool:
    left, right = (array.drop_null().to_numpy(zero_copy_only=False).astype(np.float64) for array in (one, other))
    return bool(np.array_equal(left, right, equal_nan=True))
