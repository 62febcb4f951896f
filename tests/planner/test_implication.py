"""A partial index may serve a query only if the query's conditions imply the index's: "yes" is never said wrongly."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate, Unsupported
from grebe.planner.implication import implies
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.parse import parse
from grebe.predicate.tree import (
    And,
    Column,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Operator,
    Or,
    Predicate,
    StartsWith,
)
from grebe.predicate.types import DOUBLE, INT, STRING, Type
from tests.predicate.generators import SCHEMA as ALL_TYPES
from tests.predicate.generators import predicates, tables

SCHEMA = pa.schema(
    [("a", pa.int32()), ("b", pa.int32()), ("d", pa.float64()), ("s", pa.string()), ("day", pa.date32())]
)


def implied(premise: str, consequence: str) -> bool:
    return implies(bind(parse(premise), SCHEMA), bind(parse(consequence), SCHEMA))


@pytest.mark.parametrize(
    ("premise", "consequence"),
    [
        ("a = 5", "a = 5"),
        ("a = 5 AND b = 6", "b = 6"),
        ("b < 3 AND a = 5", "a > 4 AND a < 6"),
        ("a > 5", "a > 5"),
        ("a > 5", "a >= 5"),
        ("a > 5", "a <> 5"),
        ("a >= 6", "a > 5"),
        ("a BETWEEN 3 AND 4", "a > 2 AND a < 5"),
        ("a IN (1, 2, 3)", "a < 4"),
        ("a IN (1, 2)", "a IN (1, 2, 3)"),
        ("a = 2", "a IN (1, 2, 3)"),
        ("a < 4", "a IS NOT NULL"),
        ("a < b", "b IS NOT NULL"),
        ("a NOT IN (1, 2)", "a IS NOT NULL"),
        ("s LIKE 'abc%'", "s LIKE 'ab%'"),
        ("s = 'abc'", "s LIKE 'ab%'"),
        ("s LIKE 'abc%'", "s IS NOT NULL"),
        ("a = 1 OR a = 2", "a < 3"),
        ("a = 1 OR (a > 7 AND b = 1)", "a <> 5"),
        ("a = 1", "a = 1 OR b = 2"),
        ("day >= DATE '1995-01-01' AND day < DATE '1996-01-01'", "day >= DATE '1994-01-01'"),
        ("d = double('NaN')", "d > 1e300"),
        ("a = 1 AND a = NULL", "b = 7"),
        ("d = 0.0", "d = -0.0"),
        ("a > 1", "TRUE"),
    ],
)
def test_what_follows_is_seen(premise: str, consequence: str) -> None:
    assert implied(premise, consequence)


@pytest.mark.parametrize(
    ("premise", "consequence"),
    [
        ("TRUE", "a = 5"),
        ("a >= 5", "a > 5"),
        ("a <= 5", "a < 5"),
        ("a > 5", "a > 6"),
        ("a < 5", "a < 4"),
        ("a <=> b", "a IS NOT NULL"),
        ("a <> 5", "a > 5"),
        ("a IN (1, 2, 9)", "a < 4"),
        ("a = 5", "b = 5"),
        ("a <=> NULL", "a IS NOT NULL"),
        ("a IS NOT NULL", "a > 1"),
        ("s LIKE 'ab%'", "s LIKE 'abc%'"),
        ("s LIKE '%abc'", "s LIKE 'abc%'"),
        ("a = 1 OR b = 2", "a = 1"),
        ("d > 1e300", "d < double('NaN')"),
        ("a < 5 AND b > 2", "a < b"),
        ("rand() < 0.5", "rand() < 0.5"),
    ],
)
def test_what_does_not_follow_or_is_not_understood_is_not_implied(premise: str, consequence: str) -> None:
    assert not implied(premise, consequence)


_POOLS: list[tuple[str, Type, list[object]]] = [
    ("a", INT, [-1, 0, 1, 2, 3]),
    ("d", DOUBLE, [-1.0, -0.0, 0.0, 1.5, float("nan"), float("inf")]),
    ("s", STRING, ["", "a", "ab", "abc", "b", "\uffff", "\U0001f426"]),
]
_OPERATORS: list[Operator] = ["=", "<=>", "<>", "<", "<=", ">", ">="]


@st.composite
def simple(draw: st.DrawFn, column: tuple[str, Type, list[object]]) -> Predicate:
    """About one column and few values, so that one predicate often implies another."""
    name, kind, pool = column
    term = Column((name,), kind)
    values = st.sampled_from(pool).map(lambda value: Literal(value, kind))  # type: ignore[arg-type]  # values of their type
    choices: list[st.SearchStrategy[Predicate]] = [
        st.builds(Compare, st.sampled_from(_OPERATORS), st.just(term), values),
        st.builds(Compare, st.sampled_from(_OPERATORS), st.just(term), values),
        st.lists(values, min_size=1, max_size=3).map(lambda items: In(term, tuple(items))),
        st.just(IsNotNull(term)),
        st.just(IsNull(term)),
    ]
    if kind == STRING:
        choices.append(st.sampled_from(["", "a", "ab"]).map(lambda text: StartsWith(term, text)))
    return draw(st.one_of(choices))


def combined(columns: st.SearchStrategy[tuple[str, Type, list[object]]]) -> st.SearchStrategy[Predicate]:
    def deeper(below: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(below, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(And), several.map(Or), below.map(lambda one: ~one))

    return st.recursive(columns.flatmap(simple), deeper, max_leaves=4)


ANY = combined(st.sampled_from(_POOLS))
OF_ONE_COLUMN = st.sampled_from(_POOLS).flatmap(
    lambda column: st.tuples(simple(column), simple(column)) | st.tuples(combined(st.just(column)), simple(column))
)


def every_row() -> pa.Table:
    """All combinations of the values of the pools and NULL."""
    rows = [
        {"a": a, "d": d, "s": s}
        for a in [*_POOLS[0][2], None]
        for d in [*_POOLS[1][2], None]
        for s in [*_POOLS[2][2], None]
    ]
    return pa.Table.from_pylist(rows, pa.schema([("a", pa.int32()), ("d", pa.float64()), ("s", pa.string())]))


ROWS = every_row()


def check(premise: Predicate, consequence: Predicate) -> None:
    follows = matches(ROWS.filter(matches(ROWS, premise)), consequence)
    assert pc.all(follows).as_py() is not False or not implies(premise, consequence)


@settings(max_examples=100, deadline=None)
@given(ANY, ANY)
def test_an_implication_holds_in_every_row(premise: Predicate, consequence: Predicate) -> None:
    check(premise, consequence)


@settings(max_examples=200, deadline=None)
@given(OF_ONE_COLUMN)
def test_an_implication_about_one_column_holds_in_every_row(both: tuple[Predicate, Predicate]) -> None:
    check(*both)


@settings(max_examples=80, deadline=None)
@given(tables(), predicates(), predicates(), st.booleans())
def test_an_implication_over_all_types_holds_in_every_row(
    data: pa.Table, one: Predicate, other: Predicate, together: bool
) -> None:
    """With the consequence among the premises it is often implied."""
    try:
        premise, consequence = bind(one, ALL_TYPES), bind(other, ALL_TYPES)
        premise = premise & consequence if together else premise
        follows = matches(data.filter(matches(data, premise)), consequence)
    except (InvalidPredicate, Unsupported):
        return  # a cast that does not fit, or what only Spark can evaluate
    assert pc.all(follows).as_py() is not False or not implies(premise, consequence)


@settings(max_examples=100, deadline=None)
@given(ANY)
def test_every_understood_predicate_implies_itself(predicate: Predicate) -> None:
    assert implies(predicate, predicate)
