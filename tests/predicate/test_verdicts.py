"""Verdicts over whole units never rule out a row that matches, and never promise one that does not."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.predicate.bind import bind
from grebe.predicate.evaluate import evaluate
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import FALSE, NULL, TRUE, And, Column, Compare, IsNull, Literal, Not, Or, Predicate
from grebe.predicate.types import INT
from grebe.predicate.verdicts import Verdict, Verdicts, both, either, judge, must_read, opposite, same

NO, MAYBE, ALL = Verdict.CANNOT_MATCH, Verdict.MUST_READ, Verdict.ALL_MATCH
EVERY = np.array([NO, MAYBE, ALL], np.int8)


@pytest.mark.parametrize(("one", "row"), [(NO, [NO, NO, NO]), (MAYBE, [NO, MAYBE, MAYBE]), (ALL, [NO, MAYBE, ALL])])
def test_and_takes_the_lesser(one: Verdict, row: list[Verdict]) -> None:
    assert both(same(one, 3), EVERY).tolist() == row


@pytest.mark.parametrize(("one", "row"), [(NO, [NO, MAYBE, ALL]), (MAYBE, [MAYBE, MAYBE, ALL]), (ALL, [ALL, ALL, ALL])])
def test_or_takes_the_greater(one: Verdict, row: list[Verdict]) -> None:
    assert either(same(one, 3), EVERY).tolist() == row


def test_not_knows_nothing_of_rows_that_may_be_null() -> None:
    assert opposite(EVERY).tolist() == [MAYBE, MAYBE, NO]


def test_only_what_cannot_match_need_not_be_read() -> None:
    assert must_read(EVERY).tolist() == [False, True, True]


@pytest.mark.parametrize(("constant", "verdict"), [(TRUE, ALL), (FALSE, NO), (NULL, NO)])
def test_constants_are_judged_without_an_index(constant: Predicate, verdict: Verdict) -> None:
    assert judge(constant, 2, lambda _: None).tolist() == [verdict, verdict]


def test_what_no_index_knows_must_be_read() -> None:
    unknown = Compare("=", Column(("a",)), Literal(1, INT))
    assert judge(unknown, 2, lambda _: None).tolist() == [MAYBE, MAYBE]
    assert judge(And((unknown, FALSE)), 2, lambda _: None).tolist() == [NO, NO]
    assert judge(Or((unknown, TRUE)), 2, lambda _: None).tolist() == [ALL, ALL]


def test_a_leaf_may_answer_a_not_itself() -> None:
    question = Not(IsNull(Column(("a",))))
    assert judge(question, 1, lambda p: same(ALL, 1) if isinstance(p, Not) else None).tolist() == [ALL]
    assert judge(question, 1, lambda p: same(ALL, 1) if isinstance(p, IsNull) else None).tolist() == [NO]


def test_the_example_of_the_documentation() -> None:
    low, high = np.array([1, 7, 10]), np.array([5, 20, 30])
    nulls = np.array([False, True, False])

    def leaf(predicate: Predicate) -> Verdicts | None:
        if isinstance(predicate, Compare):
            return np.select([high < 10, (low >= 10) & ~nulls], [NO, ALL], MAYBE).astype(np.int8)
        return np.where(nulls, MAYBE, ALL).astype(np.int8)

    question = normalise(bind(parse("NOT (a < 10 OR a IS NULL)"), pa.schema([("a", pa.int32())])))
    assert judge(question, 3, leaf).tolist() == [NO, MAYBE, ALL]


TEXTS = [
    "a < 2",
    "a = 1",
    "a IS NULL",
    "NOT (a = 1)",
    "b > a",
    "a IN (1, NULL)",
    "NOT (a IN (1, NULL))",
    "b <=> 1",
    "NULL",
]


@st.composite
def questions(draw: st.DrawFn) -> str:
    leaves = st.sampled_from(TEXTS)
    deeper = st.recursive(
        leaves,
        lambda below: st.one_of(
            st.builds("({} AND {})".format, below, below),
            st.builds("({} OR {})".format, below, below),
            st.builds("(NOT {})".format, below),
        ),
        max_leaves=6,
    )
    return draw(deeper)


@settings(max_examples=300, deadline=None)
@given(
    questions(), st.lists(st.tuples(*[st.sampled_from([None, 1, 2, 3])] * 2), min_size=12, max_size=12), st.randoms()
)
def test_verdicts_agree_with_the_rows(text: str, rows: list[tuple[int | None, int | None]], random: object) -> None:
    table = pa.table({"a": pa.array([a for a, _ in rows], pa.int32()), "b": pa.array([b for _, b in rows], pa.int32())})
    units = [table.slice(start, 3) for start in range(0, 12, 3)]

    def leaf(predicate: Predicate) -> Verdicts:
        """The best verdict there is for each unit, sometimes withheld."""
        answers = [evaluate(unit, predicate).to_pylist() for unit in units]
        best = [ALL if all(v is True for v in answer) else NO if not any(answer) else MAYBE for answer in answers]
        return np.array([MAYBE if random.random() < 0.3 else verdict for verdict in best], np.int8)  # type: ignore[attr-defined]

    bound = bind(parse(text), table.schema)
    for question in (bound, normalise(bound)):
        verdicts = judge(question, len(units), leaf)
        for unit, verdict in zip(units, verdicts, strict=True):
            matching = [value is True for value in evaluate(unit, bound).to_pylist()]
            assert verdict != NO or not any(matching)
            assert verdict != ALL or all(matching)
