"""Keys follow Spark's order: of two values, the greater one never has the smaller code."""

import math
import pickle
import struct
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import CorruptIndex
from grebe.indexes.sieving.keys import Keys, keys_for, pack_separators, separators_of, unpack_separators
from grebe.predicate.types import (
    ARRAY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    OTHER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    Type,
    decimal,
)

_EXACT = Context(prec=80)
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def _keys(kind: Type, separators: pa.Array | None = None) -> Keys:
    keys = keys_for(kind, separators)
    assert keys is not None
    return keys


def _unscaled(numbers: list[int], scale: int) -> list[Decimal]:
    return [Decimal(number).scaleb(-scale, _EXACT) for number in numbers]


_NAN_WITH_OTHER_BITS = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
_DOUBLES = [-math.inf, -1e308, -1.5, -5e-324, 0.0, 5e-324, 1.0, math.nextafter(1.0, 2.0), 1e308, math.inf, math.nan]
_WIDE = [
    -(10**38) + 1,
    -(10**37),
    -(2**64),
    -(2**57) - 1,
    -(2**57),
    -101,
    -100,
    -1,
    0,
    1,
    2**57,
    2**63,
    2**64,
    10**38 - 1,
]

# Ascending in Spark's order, all different.
_ASCENDING: list[tuple[Type, pa.DataType, list[Any]]] = [
    (BOOLEAN, pa.bool_(), [False, True]),
    (TINYINT, pa.int8(), [-128, -1, 0, 1, 127]),
    (SMALLINT, pa.uint8(), [0, 1, 255]),
    (INT, pa.int32(), [-(2**31), 0, 2**31 - 1]),
    (BIGINT, pa.int64(), [_LEAST, _LEAST + 1, -1, 0, 1, _GREATEST - 1, _GREATEST]),
    (DATE, pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
    (
        TIMESTAMP,
        pa.timestamp("us", "UTC"),
        [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(9999, 1, 1)],
    ),
    (TIMESTAMP_NTZ, pa.timestamp("ms"), [datetime(1900, 1, 1), datetime(1970, 1, 1), datetime(2262, 4, 12)]),
    (decimal(18, 4), pa.decimal128(18, 4), _unscaled([1 - 10**18, -10001, -10000, 0, 1, 10**18 - 1], 4)),
    (DOUBLE, pa.float64(), _DOUBLES),
    (FLOAT, pa.float32(), [-math.inf, -3.0, -1e-45, 0.0, 1e-45, 2.5, math.inf, math.nan]),
]


@pytest.mark.parametrize(("kind", "stored", "values"), _ASCENDING, ids=[str(kind) for kind, _, _ in _ASCENDING])
def test_every_value_has_a_code_of_its_own_in_order(kind: Type, stored: pa.DataType, values: list[Any]) -> None:
    codes = _keys(kind).codes(pa.array(values, stored))
    assert _keys(kind).exact
    assert (codes[1:] > codes[:-1]).all()


@pytest.mark.parametrize(("kind", "stored", "values"), _ASCENDING, ids=[str(kind) for kind, _, _ in _ASCENDING])
def test_a_literal_has_the_code_of_its_column(kind: Type, stored: pa.DataType, values: list[Any]) -> None:
    keys = _keys(kind)
    column = pa.array(values, stored)
    physical = column
    if kind.is_datetime:
        physical = column.cast(pa.timestamp("us") if "timestamp" in kind.name else stored).view(
            pa.int64() if "timestamp" in kind.name else pa.int32()
        )
    assert keys.codes(physical).tolist() == keys.codes(column).tolist()
    assert [keys.code(value) for value in physical.to_pylist()] == keys.codes(column).tolist()


def test_zeros_are_one_and_so_are_all_nans() -> None:
    keys = _keys(DOUBLE)
    codes = keys.codes(pa.array([-0.0, 0.0, math.nan, _NAN_WITH_OTHER_BITS]))
    assert codes[0] == codes[1] == keys.code(-0.0) == keys.code(0)
    assert codes[2] == codes[3] == keys.code(math.nan) > keys.code(math.inf)


def test_wide_decimals_are_rounded_down_on_both_sides_of_zero() -> None:
    keys = _keys(decimal(38, 10))
    column = pa.array(_unscaled(_WIDE, 10), pa.decimal128(38, 10))
    codes = keys.codes(column)
    assert not keys.exact
    assert (codes[1:] > codes[:-1]).all()
    assert [keys.code(value) for value in column.to_pylist()] == codes.tolist()
    assert keys.codes(column[3:]).tolist() == codes[3:].tolist()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1 - 10**38, 10**38 - 1), min_size=2))
def test_wide_decimals_keep_their_order(numbers: list[int]) -> None:
    column = pa.array(_unscaled(sorted(numbers), 7), pa.decimal128(38, 7))
    codes = _keys(decimal(38, 7)).codes(column)
    assert (codes[1:] >= codes[:-1]).all()
    assert codes.tolist() == [_keys(decimal(38, 7)).code(value) for value in column.to_pylist()]


def test_a_literal_between_two_decimals_has_the_code_of_the_lower() -> None:
    keys = _keys(decimal(9, 2))
    assert keys.code(Decimal("1.239")) == keys.code(Decimal("1.23"))
    assert keys.code(Decimal("-1.231")) == keys.code(Decimal("-1.24"))


def test_small_decimals_in_wide_columns_are_told_apart() -> None:
    cents = pa.array(_unscaled([10**16 + 1, 10**16 + 2, 10**16 + 3], 18), pa.decimal128(38, 18))
    assert len(set(_keys(decimal(38, 18)).codes(cents).tolist())) == 3


def test_widest_unsigned_integers_are_decimals_to_spark() -> None:
    codes = _keys(decimal(20, 0)).codes(pa.array([0, 2**63, 2**64 - 1], pa.uint64()))
    assert (codes[1:] > codes[:-1]).all()


def test_nanoseconds_before_1970_are_rounded_down() -> None:
    nanos = pa.array([-1, 0, 999, 1000], pa.int64()).view(pa.timestamp("ns", "UTC"))
    assert _keys(TIMESTAMP).codes(nanos).tolist() == [-1, 0, 0, 1]


_TEXTS = [
    "",
    "\0",
    "\0a",
    "a",
    "a\0",
    "aa",
    "b" * 1_000_000,
    "b" * 1_000_000 + "c",
    "https://example.org/" + "x" * 40,
    "https://example.org/" + "x" * 40 + "y",
    "z",
    "é",
    "\uffff",
    "𐀀",  # behind the last of the basic plane in bytes, before it in UTF-16
    "😀",
]


@pytest.mark.parametrize(
    "sample", [[], ["a"], _TEXTS, _TEXTS[::2], ["https://example.org/" + "x" * 40, "https://example.org/z"]]
)
def test_texts_are_in_the_order_of_their_bytes(sample: list[str]) -> None:
    keys = _keys(STRING, separators_of(pa.array(sample, pa.string())))
    codes = keys.codes(pa.array(_TEXTS, pa.large_string()))
    assert not keys.exact
    assert sorted(_TEXTS, key=str.encode) == _TEXTS
    assert (codes[1:] >= codes[:-1]).all()
    assert [keys.code(text) for text in _TEXTS] == codes.tolist()


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_texts_and_separators_keep_the_order(data: st.DataObject) -> None:
    text = st.one_of(st.text(max_size=12), st.text("ab\0", max_size=12).map(lambda end: "the same beginning " + end))
    binaries = st.lists(text.map(str.encode), max_size=40)
    separators = separators_of(pa.array(data.draw(binaries), pa.binary()), data.draw(st.integers(3, 20)))
    values = sorted(data.draw(binaries))
    codes = _keys(BINARY, separators).codes(pa.array(values, pa.binary()))
    assert (codes[1:] >= codes[:-1]).all()


def test_separators_tell_texts_apart_behind_a_long_common_beginning() -> None:
    texts = pa.array([f"https://example.org/some/long/path/{number:08d}" for number in range(5_000)])
    keys = _keys(STRING, separators_of(texts.take(pa.array(range(0, 5_000, 50)))))
    assert len(np.unique(keys.codes(texts))) == 5_000


def test_texts_come_in_any_arrow_form() -> None:
    keys = _keys(STRING, separators_of(pa.array(["b", "k"])))
    texts = pa.array(["x", "a", "k", "c"])
    expected = keys.codes(texts).tolist()
    for form in (texts.dictionary_encode(), texts.cast(pa.large_string()), texts.cast(pa.string_view())):
        assert keys.codes(form).tolist() == expected
    assert keys.codes(texts[1:3]).tolist() == expected[1:3]


def test_half_a_character_is_a_question_mark_as_in_java() -> None:
    keys = _keys(STRING, separators_of(pa.array(["?", "a"])))
    assert keys.code("\ud800") == keys.code("?")


def test_separators_are_few_distinct_and_short() -> None:
    sample = pa.array(["b" * 1_000_000 + str(i % 5) for i in range(10)] + [f"{i:06d}" for i in range(1_000)])
    separators = separators_of(sample, 64)
    texts = separators.to_pylist()
    assert len(texts) <= 64
    assert texts == sorted(set(texts))
    assert max(map(len, texts)) <= 1024


@pytest.mark.parametrize("kind", [STRING, BINARY])
def test_separators_survive_storage(kind: Type) -> None:
    separators = separators_of(pa.array(["", "a", "\0", "😀" * 30, "zz"] * 3, pa.string()).cast(pa.binary()))
    assert unpack_separators(pack_separators(separators), kind).equals(separators)
    none = separators_of(pa.array([], pa.string()))
    assert len(unpack_separators(pack_separators(none), kind)) == 0


def test_damaged_separators_are_told() -> None:
    packed = pack_separators(separators_of(pa.array([f"{i}" for i in range(100)])))
    for damaged in (b"", packed[:5], packed[:-3], struct.pack("<II", 3, 2) + packed[8:]):
        with pytest.raises(CorruptIndex) as told:
            unpack_separators(damaged, STRING)
        assert told.value.code == "CORRUPT_INDEX_SIEVE"


@pytest.mark.parametrize(("kind", "stored", "values"), _ASCENDING, ids=[str(kind) for kind, _, _ in _ASCENDING])
def test_no_values_have_no_codes(kind: Type, stored: pa.DataType, values: list[Any]) -> None:
    assert _keys(kind).codes(pa.array(values, stored)[:0]).tolist() == []
    assert _keys(STRING, separators_of(pa.array(["m"]))).codes(pa.array([], pa.string())).tolist() == []
    assert _keys(decimal(38, 2)).codes(pa.array([], pa.decimal128(38, 2))).tolist() == []


def test_keys_can_be_sent_to_where_the_data_is() -> None:
    keys = _keys(STRING, separators_of(pa.array(["b", "k", "q"])))
    texts = pa.array(["a", "k", "z"])
    assert pickle.loads(pickle.dumps(keys)).codes(texts).tolist() == keys.codes(texts).tolist()


def test_what_has_no_order_has_no_keys() -> None:
    assert [keys_for(kind) for kind in (VOID, ARRAY, OTHER)] == [None, None, None]
