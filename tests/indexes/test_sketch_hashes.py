"""Values that Spark calls equal have equal hashes, wherever and however they lie in an array; others have different ones."""

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grebe.indexes.sketches.hashes import hash_of, hashes_of
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.types import BIGINT, DOUBLE, FLOAT, INT, Type, decimal
from tests.indexes.sketch_cases import FIELDS, Field, anywhere

SCALARS = list({field.kind: field for field in FIELDS}.values())


def nan_of(bits: int) -> float:
    return float(np.array([bits], np.uint64).view(np.float64)[0])


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_zeros_are_one_value_and_so_are_all_that_are_no_number(kind: pa.DataType) -> None:
    assert hash_of(0.0, kind) == hash_of(-0.0, kind)
    odd = [nan_of(bits) for bits in (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF800000000BEEF, 0xFFFFFFFFFFFFFFFF)]
    assert len(set(hashes_of(pa.array(np.array(odd), pa.float64()).cast(kind)).tolist())) == 1
    assert hash_of(float("nan"), kind) != hash_of(float("inf"), kind)


def test_a_number_has_the_hash_of_its_value_not_of_its_width() -> None:
    for value in (0, 1, -1, 127, -128):
        widths = [hash_of(value, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())]
        assert len(set(widths)) == 1
    assert hash_of(0.5, pa.float32()) == hash_of(0.5, pa.float64())


def test_a_decimal_has_the_hash_of_its_value_not_of_its_precision() -> None:
    for value in ("0", "0.10", "-0.10", "9999999.99", "-9999999.99"):
        assert hash_of(Decimal(value), pa.decimal128(9, 2)) == hash_of(Decimal(value), pa.decimal128(38, 2))
    assert hash_of(Decimal("0.1"), pa.decimal128(9, 2)) == hash_of(Decimal("0.10"), pa.decimal128(9, 2))
    high = [Decimal(one * 2**64) for one in range(1, 50)]
    assert len(set(hashes_of(pa.array(high, pa.decimal128(38, 0))).tolist())) == len(high)


@pytest.mark.parametrize("field", SCALARS, ids=lambda field: str(field.kind))
def test_a_hash_does_not_depend_on_what_lies_around_the_value(field: Field) -> None:
    chance = random.Random(str(field.kind))
    kind = physical_type(field.kind)
    values: list[Any] = [*field.pool, *(anywhere(chance, field.kind) for _ in range(50)), *field.pool[:3]]
    chance.shuffle(values)
    whole = hashes_of(pa.array(values, kind))
    assert whole.tolist() == [hash_of(value, kind) for value in values]
    start, stop = sorted(chance.sample(range(len(values)), 2))
    assert hashes_of(pa.array(values, kind)[start:stop]).tolist() == whole[start:stop].tolist()
    with_nulls = pa.array([one for value in values for one in (None, value)], kind)
    assert hashes_of(with_nulls.drop_null()).tolist() == whole.tolist()
    assert len(hashes_of(pa.nulls(3, kind).drop_null())) == 0


def test_text_and_bytes_are_the_same_and_lengths_count() -> None:
    texts = [
        "",
        "\0",
        "\0\0",
        *("a" * n for n in range(1, 20)),
        *("a" * n + "\0" for n in range(20)),
        "a" * 256,
        "a" * 257,
    ]
    hashes = hashes_of(pa.array(texts, pa.large_string())).tolist()
    assert hashes == hashes_of(pa.array([text.encode() for text in texts], pa.large_binary())).tolist()
    assert len(set(hashes)) == len(set(texts))


@pytest.mark.parametrize("kind", [INT, BIGINT, FLOAT, DOUBLE, decimal(38, 2)], ids=str)
def test_different_values_have_different_hashes(kind: Type) -> None:
    chance = random.Random(7)
    values = {anywhere(chance, kind) for _ in range(2_000)} - {-0.0}
    hashes = hashes_of(pa.array(list(values), physical_type(kind)))
    assert len(np.unique(hashes)) == len(values)
    assert all(0.45 < ((hashes >> np.uint64(bit)) & np.uint64(1)).mean() < 0.55 for bit in range(64)), "bits are even"
