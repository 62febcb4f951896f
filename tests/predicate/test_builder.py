"""Predicates written in Python are the trees that the same SQL gives."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from grebe.errors import InvalidPredicate
from grebe.predicate.builder import Col, col, term_of
from grebe.predicate.parse import parse
from grebe.predicate.tree import FALSE, Cast, Column, Compare, In, Literal, Predicate, Term
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
    decimal,
)

A = col("a")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (A == 1, "a = 1"),
        (A != 1, "a <> 1"),
        (A < 1, "a < 1"),
        (A <= 1, "a <= 1"),
        (A > 1, "a > 1"),
        (A >= 1, "a >= 1"),
        (col("b") == A, "b = a"),
        (A.eq_null_safe(None), "a <=> NULL"),
        (A.isin([1, 2]), "a IN (1, 2)"),
        (A.between(1, 2), "a BETWEEN 1 AND 2"),
        (A.like("x%"), "a LIKE 'x%'"),
        (A.like("x!%", "!"), "a LIKE 'x!%' ESCAPE '!'"),
        (A.startswith("x"), "startswith(a, 'x')"),
        (A.endswith("x"), "endswith(a, 'x')"),
        (A.contains("x"), "contains(a, 'x')"),
        (A.is_null(), "a IS NULL"),
        (A.is_not_null(), "a IS NOT NULL"),
        (A.holds(), "a"),
        (A.cast("decimal(10, 2)") == Decimal("1.5"), "CAST(a AS decimal(10,2)) = 1.5"),
        (A.try_cast("int") == 1, "TRY_CAST(a AS int) = 1"),
        ((A == 1) & (col("b") == 2), "a = 1 AND b = 2"),
        ((A == 1) | ~(col("b") == 2), "a = 1 OR NOT b = 2"),
        ((A == 1) | (A == 2) | (A == 3), "a = 1 OR a = 2 OR a = 3"),
        ((col("b") == 1) == A, "a = (b = 1)"),
        (col("a.b.c") == 1, "a.b.c = 1"),
        (col("`a.b`.c") == 1, "`a.b`.c = 1"),
        (col("`a``b`") == 1, "`a``b` = 1"),
        (col("größe") == 1, "`größe` = 1"),
    ],
)
def test_each_method_has_its_sql(built: Predicate, text: str) -> None:
    assert built == parse(text)


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (None, Literal(None, VOID)),
        (True, Literal(True, BOOLEAN)),
        (7, Literal(7, INT)),
        (2**40, Literal(2**40, BIGINT)),
        (2**70, Literal(Decimal(2**70), decimal(22, 0))),
        (1.5, Literal(1.5, DOUBLE)),
        (Decimal("1.50"), Literal(Decimal("1.50"), decimal(3, 2))),
        (Decimal("1E+3"), Literal(Decimal(1000), decimal(4, 0))),
        ("x", Literal("x", STRING)),
        (b"x", Literal(b"x", BINARY)),
        (bytearray(b"x"), Literal(b"x", BINARY)),
        (date(1970, 1, 2), Literal(1, DATE)),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), Literal(1_000_000, TIMESTAMP)),
        (datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=1))), Literal(-3_600_000_000, TIMESTAMP)),
        (datetime(1970, 1, 1, 0, 0, 0, 1), Cast(Literal(1, TIMESTAMP_NTZ), TIMESTAMP)),
        (np.int8(7), Literal(7, TINYINT)),
        (np.uint8(7), Literal(7, SMALLINT)),
        (np.int64(7), Literal(7, BIGINT)),
        (np.float32(1.5), Literal(1.5, FLOAT)),
        (np.bool_(True), Literal(True, BOOLEAN)),
        (np.str_("x"), Literal("x", STRING)),
        (np.datetime64("1970-01-02"), Literal(1, DATE)),
        (np.datetime64("1970-01-01T00:00:01", "ns"), Cast(Literal(1_000_000, TIMESTAMP_NTZ), TIMESTAMP)),
        (pa.scalar(7, pa.int16()), Literal(7, SMALLINT)),
        (pa.scalar(None, pa.int16()), Literal(None, SMALLINT)),
        (pa.scalar(Decimal("1.5"), pa.decimal128(10, 2)), Literal(Decimal("1.50"), decimal(10, 2))),
        (pa.scalar(5_000, pa.timestamp("ns", "UTC")), Literal(5, TIMESTAMP)),
        (pa.scalar(5, pa.timestamp("s")), Literal(5_000_000, TIMESTAMP_NTZ)),
        (pa.scalar("x", pa.large_string()), Literal("x", STRING)),
    ],
)
def test_values_have_the_types_that_spark_gives_them(value: object, term: Term) -> None:
    assert term_of(value) == term


def test_many_keys_come_from_arrow_or_numpy_as_they_are() -> None:
    expected = In(Column(("a",)), (Literal(1, BIGINT), Literal(2, BIGINT)))
    assert A.isin(pa.array([1, 2])) == expected
    assert A.isin(pa.chunked_array([[1], [2]])) == expected
    assert A.isin(np.array([1, 2])) == expected


def test_equal_to_one_of_nothing_is_false() -> None:
    assert A.isin([]) == FALSE
    assert A.isin(pa.array([], pa.int32())) == FALSE


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, 1j, np.array([1j]), pa.scalar([1])])
def test_a_value_that_no_column_can_be_compared_with_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(InvalidPredicate, match="cannot be compared"):
        term_of(value)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1e50")])
def test_a_decimal_beyond_spark_s_is_refused(value: Decimal) -> None:
    with pytest.raises(InvalidPredicate):
        term_of(value)


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "`a", "a`b`", "``"])
def test_a_name_that_names_no_column_is_refused(name: str) -> None:
    with pytest.raises(InvalidPredicate, match=r"\[INVALID_PREDICATE_COLUMN_NAME\].*names no column"):
        col(name)


def test_a_cast_needs_a_scalar_type() -> None:
    with pytest.raises(InvalidPredicate, match=r"\[INVALID_PREDICATE_TYPE\].*no scalar type"):
        A.cast("array<int>")


def test_python_s_own_and_or_not_are_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match=r"write & \| ~ instead"):
        bool(A == 1)
    with pytest.raises(TypeError, match="between"):
        assert 1 < A < 2
    with pytest.raises(TypeError, match="holds"):
        bool(A)
    with pytest.raises(TypeError):
        _ = (A == 1) & True  # type: ignore[operator]  # what must not work


def test_a_column_is_no_key_of_a_dictionary() -> None:
    with pytest.raises(TypeError):
        hash(A)
    assert isinstance(A, Col)
    assert Compare("=", Column(("a",)), Literal(1, INT)) in {A == 1}
