"""Predicates written as SQL parse to the same tree again."""

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import And, Column, Compare, Holds, IsNull, Literal, Not, Opaque, Or, Predicate
from grebe.predicate.types import BINARY, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, decimal
from tests.predicate.generators import SCHEMA, predicates

A = Column(("a",))


@settings(max_examples=400, deadline=None)
@given(predicates())
def test_any_predicate_comes_back_from_its_text(predicate: Predicate) -> None:
    assert parse(to_sql(predicate)) == predicate


@settings(max_examples=300, deadline=None)
@given(predicates(), st.booleans())
def test_a_normal_form_binds_to_itself_again(predicate: Predicate, ansi: bool) -> None:
    try:
        normal = normalise(bind(predicate, SCHEMA, ansi=ansi, time_zone="America/New_York"))
    except InvalidPredicate:  # a pair of types that cannot be compared
        assume(False)
    again = bind(parse(to_sql(normal)), SCHEMA, ansi=ansi, time_zone="America/New_York")
    assert to_sql(normalise(again)) == to_sql(normal)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_string_comes_back(text: str) -> None:
    assert parse(to_sql(Compare("=", A, Literal(text, STRING)))) == Compare("=", A, Literal(text, STRING))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_any_name_comes_back(path: list[str]) -> None:
    assert parse(to_sql(IsNull(Column(tuple(path))))) == IsNull(Column(tuple(path)))


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, INT, "1"),
        (Decimal("1.50"), decimal(3, 2), "1.50BD"),
        (Decimal("1.50"), decimal(10, 2), "CAST(1.50BD AS decimal(10,2))"),
        (1e300, DOUBLE, "1e+300D"),
        (0.10000000149011612, FLOAT, "0.10000000149011612F"),
        (math.nan, DOUBLE, "CAST('NaN' AS double)"),
        (-math.inf, FLOAT, "CAST('-Infinity' AS float)"),
        (None, INT, "CAST(NULL AS int)"),
        (b"\x00\xff", BINARY, "X'00FF'"),
        (0, DATE, "DATE '1970-01-01'"),
        (-719_529, DATE, "DATE '-0001-12-31'"),
        (2_932_897, DATE, "DATE '+10000-01-01'"),
        (1, TIMESTAMP, "TIMESTAMP '1970-01-01 00:00:00.000001Z'"),
        (-1_000_000, TIMESTAMP_NTZ, "TIMESTAMP_NTZ '1969-12-31 23:59:59'"),
        ("it's\n", STRING, r"'it\'s\n'"),
    ],
)
def test_literals_keep_their_type_in_the_text(value: object, kind: Type, text: str) -> None:
    assert to_sql(Literal(value, kind)) == text  # type: ignore[arg-type]  # the table mixes types of values


def test_grouping_is_kept_by_parentheses() -> None:
    a, b, c = (Holds(Column((name,))) for name in "abc")
    assert to_sql(Or((And((a, b)), Not(c)))) == "(a AND b) OR NOT (c)"
    assert to_sql(And((Or((a, b)), c))) == "(a OR b) AND c"
    assert to_sql(Holds(Opaque("f(a)", (("a",),)))) == "(f(a))"
    assert to_sql(Holds(Column(("order by", "date")))) == "`order by`.`date`"
