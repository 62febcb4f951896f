"""The normal form means the same in every row, and is one form for many ways of writing."""

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import evaluate
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import (
    And,
    Cast,
    Column,
    Compare,
    Constant,
    Holds,
    In,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
    opaque_terms,
    walk,
)
from grebe.predicate.types import INTEGRAL_BITS
from tests.predicate.generators import SCHEMA as ALL_TYPES
from tests.predicate.generators import predicates, tables

SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("b", pa.int32()),
        ("t", pa.int8()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("p", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def normal(text: str, time_zone: str = "America/New_York") -> str:
    return to_sql(normalise(bind(parse(text), SCHEMA, time_zone=time_zone)))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        # NOT vanishes where it can
        ("NOT a < 1", "a >= 1"),
        ("NOT a = 1", "a <> 1"),
        ("NOT NOT a = 1", "a = 1"),
        ("NOT (a = 1 AND b = 2)", "a <> 1 OR b <> 2"),
        ("NOT (a = 1 OR b IS NULL)", "a <> 1 AND b IS NOT NULL"),
        ("NOT a <=> 1", "NOT (a <=> 1)"),
        ("NOT a IN (1, 2)", "NOT (a IN (1, 2))"),
        ("a NOT IN (1)", "a <> 1"),
        ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
        ("NOT s LIKE 'x%'", "NOT (startswith(s, 'x'))"),
        ("NOT flag", "flag = FALSE"),
        ("flag", "flag = TRUE"),
        ("flag <> TRUE", "flag = FALSE"),
        ("NOT f(a)", "NOT ((f(a)))"),
        # AND and OR are flat, in order, without repetition
        ("b = 1 AND (a = 1 AND s = 'x')", "a = 1 AND b = 1 AND s = 'x'"),
        ("a = 1 OR b = 1 OR a = 1", "a = 1 OR b = 1"),
        ("a = 1 AND a = 1", "a = 1"),
        # constants
        ("a = 1 AND TRUE", "a = 1"),
        ("a = 1 AND FALSE", "FALSE"),
        ("a = 1 OR TRUE", "TRUE"),
        ("a = 1 OR FALSE", "a = 1"),
        ("a = 1 AND NULL", "NULL AND a = 1"),
        ("NOT (a = 1 AND NULL)", "NULL OR a <> 1"),
        ("1 = 2", "FALSE"),
        ("1 < 2.5", "TRUE"),
        ("a = NULL", "NULL"),
        ("a <=> NULL", "a IS NULL"),
        ("NOT a <=> NULL", "a IS NOT NULL"),
        ("NULL IS NULL", "TRUE"),
        ("'abc' LIKE NULL", "NULL"),
        ("1 IN (2, NULL)", "NULL"),
        ("1 IN (1, NULL)", "TRUE"),
        # the literal on the right, columns in order
        ("1 < a", "a > 1"),
        ("b > a", "a < b"),
        ("b <=> a", "a <=> b"),
        # lists
        ("a IN (3, 1, 2, 1)", "a IN (1, 2, 3)"),
        ("a IN (1, NULL, NULL)", "a IN (1, CAST(NULL AS int))"),
        ("a IN (1)", "a = 1"),
        ("a IN (NULL)", "NULL"),
        ("a NOT IN (NULL)", "NULL"),
        # patterns
        ("s LIKE 'x%'", "startswith(s, 'x')"),
        ("s LIKE '%x'", "endswith(s, 'x')"),
        ("s LIKE '%x%'", "contains(s, 'x')"),
        ("s LIKE '%%x%%'", "contains(s, 'x')"),
        ("s LIKE 'x'", "s = 'x'"),
        ("s LIKE ''", "s = ''"),
        ("s LIKE '%'", "startswith(s, '')"),
        (r"s LIKE 'x\\_%'", "startswith(s, 'x_')"),
        ("s LIKE 'x!%%' ESCAPE '!'", "startswith(s, 'x%')"),
        ("s LIKE 'x_y%'", "s LIKE 'x_y%'"),
        ("s LIKE 'a!_%b' ESCAPE '!'", r"s LIKE 'a\\_%b'"),
        # columns freed from casts
        ("a = 1L", "a = 1"),
        ("t < 100", "t < 100Y"),
        ("t < 1000", "t <= 127Y"),
        ("t > 1000", "t > 127Y"),
        ("t < -1000", "NULL AND t IS NULL"),
        ("t > -1000", "NULL OR t IS NOT NULL"),
        ("t <=> 1000", "FALSE"),
        ("t <> 1000", "NULL OR t IS NOT NULL"),
        ("t IN (1, 1000)", "t = 1Y"),
        ("t IN (1000, 2000)", "NULL AND t IS NULL"),
        ("a = 1.0", "a = 1"),
        ("a = 1.5", "NULL AND a IS NULL"),
        ("a < 1.5", "a < 2"),
        ("a >= 1.5", "a >= 2"),
        ("a < 1.5D", "a <= 1"),
        ("a < 'NaN'::double", "a <= 2147483647"),
        ("l = 5.0D", "l = 5L"),
        ("l < 1e18D", "CAST(l AS double) < 1e+18D"),
        ("f = 0.5D", "f = 0.5F"),
        ("f = 0.1D", "NULL AND f IS NULL"),
        ("f > 0.1D", "f > 0.09999999403953552F"),
        ("f < 1e308D", "f <= 3.4028234663852886e+38F"),
        ("p = 1.5", "p = CAST(1.50BD AS decimal(10,2))"),
        ("p < 1.555", "p <= CAST(1.55BD AS decimal(10,2))"),
        ("p < 1e20BD", "p <= 99999999.99BD"),
        ("day < TIMESTAMP '2020-01-02 00:00:00'", "day < DATE '2020-01-02'"),
        ("day < TIMESTAMP '2020-01-02 00:00:01'", "day <= DATE '2020-01-02'"),
        ("day = TIMESTAMP '2020-01-02 00:00:01'", "NULL AND day IS NULL"),
        ("day < TIMESTAMP_NTZ '2020-01-02 12:00:00'", "day <= DATE '2020-01-02'"),
        # comparisons as values
        ("(a = 1) = TRUE", "a = 1"),
        ("(a = 1) <> TRUE", "a <> 1"),
        ("(1 = 1) IS NULL", "FALSE"),
        ("(NOT a < 1) IS NULL", "(a >= 1) IS NULL"),
    ],
)
def test_each_rule(text: str, form: str) -> None:
    assert normal(text) == form


def test_a_cast_stays_where_a_zone_skipped_a_whole_day() -> None:
    # Samoa went from 29 to 31 December 2011: the 30th, which never was, starts when the 31st does.
    assert normal("day = TIMESTAMP '2011-12-31 00:00:00'", "Pacific/Apia").startswith("CAST(day AS timestamp) = ")
    assert normal("day = TIMESTAMP '2012-01-31 00:00:00'", "Pacific/Apia") == "day = DATE '2012-01-31'"


@settings(max_examples=60, deadline=None)
@given(tables(rows=12), st.lists(predicates(), min_size=12, max_size=12), st.booleans())
def test_it_means_the_same_in_every_row_and_is_stable(table: pa.Table, asked: list[Predicate], ansi: bool) -> None:
    for predicate in asked:
        try:
            bound = bind(predicate, table.schema, ansi=ansi, time_zone="America/New_York")
            form = normalise(bound)
            assert normalise(form) == form
            expected = evaluate(table, bound)
        except (InvalidPredicate, Unsupported):
            continue
        assert evaluate(table, form).equals(expected), to_sql(predicate)


@settings(max_examples=250, deadline=None)
@given(predicates())
def test_it_has_the_shape_that_indexes_rely_on(predicate: Predicate) -> None:
    try:
        form = normalise(bind(predicate, ALL_TYPES, ansi=True))
    except InvalidPredicate:
        assume(False)
    for node in walk(form):
        match node:
            case Not(inner):
                assert not isinstance(inner, And | Or | Not | Constant)
                assert not isinstance(inner, Compare) or inner.operator == "<=>"
            case And(below):
                assert len(below) > 1
                assert not any(isinstance(part, And) for part in below)
            case Or(below):
                assert len(below) > 1
                assert not any(isinstance(part, Or) for part in below)
            case Compare(_, Literal(), right):
                assert isinstance(right, Literal)
            case Compare(_, Cast(Column(_, kind), to), Literal()) if (
                kind is not None and kind.is_integral and to.is_integral
            ):
                assert INTEGRAL_BITS[to.name] < INTEGRAL_BITS[kind.name], "a widened integer is compared bare"
            case In(_, values) if not opaque_terms(node):
                assert len(set(values)) == len(values) > 1
            case Holds(term):
                assert not isinstance(term, Column)
            case Like(_, pattern):
                assert "_" in pattern or "%" in pattern.strip("%")


def test_prefixes_of_nothing_keep_null() -> None:
    table = pa.table({"s": ["", None, "x"]})
    form = normalise(bind(parse("s LIKE '%'"), table.schema))
    assert isinstance(form, StartsWith)
    assert evaluate(table, form).to_pylist() == [True, None, True]
