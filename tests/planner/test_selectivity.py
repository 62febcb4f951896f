"""Guesses of how many rows pass: measured against known bounds, else by rule of thumb, and always a share."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from grebe.errors import InvalidPredicate
from grebe.planner.selectivity import EQUAL, LEAST, OPEN_RANGE, Statistics, places_of, share_of, share_within
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import Path, Predicate
from tests.predicate.generators import SCHEMA as ALL_TYPES
from tests.predicate.generators import predicates

SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.int64()), ("x", pa.float64()), ("day", pa.date32()), ("s", pa.string())]
)
KNOWN = Statistics({("a",): (0, 99), ("day",): (10_000, 10_999), ("x",): (0.0, 1.0)}, {("a",): 100.0})


def normal(text: str) -> Predicate:
    return normalise(bind(parse(text), SCHEMA))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("TRUE", 1.0),
        ("a < 50", 0.51),
        ("a >= 90", 0.1),
        ("a BETWEEN 10 AND 19", 0.1),
        ("a > 1000", LEAST),
        ("a < 1000", 1.0),
        ("a = 5", 0.01),
        ("a IN (5, 6)", 0.02),
        ("a <> 5", 0.99),
        ("x < 0.25", 0.25),
        ("day < DATE '1998-10-03'", 0.503),
        ("b = 5", EQUAL),
        ("b < 5", OPEN_RANGE),
        ("b < 5 AND b > 1", OPEN_RANGE**2),
        ("a IS NOT NULL", 1.0),
        ("b = 5 OR b = 6", 1 - (1 - EQUAL) ** 2),
    ],
)
def test_a_guess(text: str, share: float) -> None:
    assert share_of(normal(text), KNOWN) == pytest.approx(share, rel=1e-3)


def test_conditions_together_let_less_through_but_not_by_their_product() -> None:
    one, both = (share_of(normal(text), KNOWN) for text in ("a = 5", "a = 5 AND b = 6"))
    assert one * EQUAL < both < one


def test_a_column_is_judged_by_its_own_conditions_alone() -> None:
    predicate = normal("a BETWEEN 10 AND 19 AND b = 5 AND a < x")
    assert share_within(predicate, frozenset({("a",)}), KNOWN) == pytest.approx(0.1)
    assert share_within(predicate, frozenset({("s",)}), KNOWN) == 1.0


@settings(max_examples=150, deadline=None)
@given(predicates())
def test_every_guess_is_a_share(predicate: Predicate) -> None:
    try:
        bound = normalise(bind(predicate, ALL_TYPES))
    except InvalidPredicate:
        return  # not a predicate of this schema
    ranges: dict[Path, tuple[Any, Any]] = {
        ("int",): (-5, 100),
        ("d",): (0.0, 1.0),
        ("dt",): (0, 20_000),
        ("dec_9_2",): (0, 7),
    }
    assert LEAST <= share_of(bound, Statistics(ranges)) <= 1.0


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a = 1", 1),
        ("a IN (1, 2, 3)", 3),
        ("a IN (1, 2, 3) OR a = 9", 4),
        ("a IN (1, 2, 3) AND a > 1", 1),
        ("a IN (1, 2, 3) AND b IN (1, 2)", 3),
        ("b = 1", 1),
        ("a BETWEEN 1 AND 9", 1),
    ],
)
def test_values_of_a_sorted_column_lie_in_so_many_places(text: str, places: int) -> None:
    assert places_of(normal(text), ("a",)) == places
