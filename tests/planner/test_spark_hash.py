"""Buckets are those that Spark puts rows into."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from grebe.planner.spark_hash import bucket_of, hash_of
from grebe.predicate.tree import Literal
from grebe.predicate.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    Type,
    decimal,
)
from tests.predicate.generators import column_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WIDE = 10**30
VALUES: list[tuple[Type, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (TINYINT, [0, -1, 127, -128]),
    (SMALLINT, [0, -1, 32767]),
    (INT, [0, 1, -1, 2**31 - 1, -(2**31), 123456]),
    (BIGINT, [0, 1, -1, 2**63 - 1, -(2**63), 2**32, 987654321987]),
    (STRING, ["", "a", "abcd", "abcde", "grebe", "ä", "\U0001f426", "€uro and more"]),
    (BINARY, [b"", b"\x00", b"\xff\xfe\xfd", b"12345678\x80"]),
    (DATE, [0, -1, 19000]),
    (TIMESTAMP, [0, -1, 1_700_000_000_123_456]),
    (decimal(9, 2), [Decimal("0.00"), Decimal("-1.25"), Decimal("1234567.89")]),
    (decimal(18, 0), [Decimal(10**17), Decimal(-1)]),
    (decimal(38, 4), [Decimal(value) / 10000 for value in (0, 1, -1, 127, 128, -128, -129, 255, 65536, -32768, _WIDE)]),
]


@pytest.mark.spark
def test_a_hash_is_that_of_spark(spark: "SparkSession") -> None:
    for kind, values in VALUES:
        table = pa.table({"v": column_of(kind, values)})
        rows = spark.createDataFrame(table).selectExpr("hash(v) AS h").collect()
        assert [row.h for row in rows] == [hash_of(Literal(value, kind)) for value in values], kind


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (Literal(1, INT), -559580957),
        (Literal(1, BIGINT), -1712319331),
        (Literal("abc", STRING), 1322437556),
        (Literal("ä", STRING), 1085608887),
    ],
)
def test_some_hashes_that_spark_gave(literal: Literal, expected: int) -> None:
    assert hash_of(literal) == expected


def test_null_is_hashed_to_the_seed() -> None:
    assert bucket_of(Literal(None, VOID), 8) == 42 % 8


def test_a_bucket_is_never_negative() -> None:
    assert {bucket_of(Literal(value, BIGINT), 4) for value in range(100)} == {0, 1, 2, 3}


def test_the_bucket_of_a_floating_point_number_is_not_guessed() -> None:
    assert bucket_of(Literal(1.5, DOUBLE), 8) is None
