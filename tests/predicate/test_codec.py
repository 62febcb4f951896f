"""Predicates that are written down come back as they were, with all that binding has put into them."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate
from grebe.predicate.bind import bind
from grebe.predicate.codec import from_json, to_json
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import Column, Compare, Holds, In, Literal, Opaque, Predicate
from grebe.predicate.types import BINARY, DOUBLE, FLOAT, STRING, TIMESTAMP, decimal, parse_type, struct
from tests.predicate.generators import SCHEMA, predicates


@settings(max_examples=300, deadline=None)
@given(predicates(), st.booleans())
def test_any_bound_predicate_comes_back(predicate: Predicate, ansi: bool) -> None:
    try:
        bound = normalise(bind(predicate, SCHEMA, ansi=ansi, time_zone="America/New_York"))
    except InvalidPredicate:  # a pair of types that cannot be compared
        assume(False)
    for one in (predicate, bound):
        text = to_json(one)
        assert text.isascii()
        assert from_json(text) == one


@pytest.mark.parametrize(
    "literal",
    [
        Literal(math.nan, DOUBLE),
        Literal(-math.inf, FLOAT),
        Literal(-0.0, DOUBLE),
        Literal(0.1, DOUBLE),
        Literal(Decimal("1.10"), decimal(38, 2)),
        Literal(Decimal("-1E+5"), decimal(38, 0)),
        Literal(253402300799999999, TIMESTAMP),
        Literal(b"\x00\xff", BINARY),
        Literal("\ud800 \N{BIRD} '", STRING),
        Literal(None, STRING),
    ],
)
def test_values_come_back_to_the_last_bit(literal: Literal) -> None:
    predicate = Compare("<=>", Column(("a", "b.c"), struct(("x", DOUBLE))), literal)
    assert from_json(to_json(predicate)) == predicate


@pytest.mark.parametrize(
    "text",
    [
        "year(d) = 2020 AND substring(s, 1, 2) = 'ab'",
        "upper(s) = 'X' OR s RLIKE 'y+'",
        "ST_Within(ST_Point(x, y), ST_GeomFromText('POLYGON ((0 0, 1 0, 1 1, 0 0))'))",
        "a + 1 > 2 AND -b < 3 AND (a = 1) IS NULL AND CAST(a AS string) LIKE '1%'",
    ],
)
def test_what_is_called_or_not_understood_comes_back(text: str) -> None:
    known = {"a": "int", "b": "int", "s": "string", "x": "double", "y": "double", "d": "date"}
    parsed = parse(text)
    kinds = struct(*((name, parse_type(kind)) for name, kind in known.items()))
    for one in (parsed, bind(parsed, kinds, time_zone="UTC")):
        assert from_json(to_json(one)) == one


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "7",
        "[]",
        '["Compare","="]',
        '["Type","int",0,0,[""]]',
        '["LaterThan",1]',
        '["Holds",{"decimal":"x"}]',
        '["Holds",{"float":1}]',
        '["Holds",["Literal",{"float":"0x1p99999"},["Type","double",0,0,[""]]]]',
        '["Holds",["Literal",{"decimal":"1e999999999"},["Type","decimal",38,0,[""]]]]',
        '["Holds",["Literal",{"decimal":"1e99999999999999999999"},["Type","decimal",38,0,[""]]]]',
        "[" * 100_000,
    ],
)
def test_what_was_not_written_here_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        from_json(text)
    assert refused.value.code == "INVALID_PREDICATE_RECORDED"


def test_the_classes_of_nodes_are_told_apart() -> None:
    opaque = Opaque("f(a)", (("a",),))
    assert from_json(to_json(Holds(opaque))) == Holds(opaque)
    assert json.loads(to_json(In(opaque, ())))[0] == "In"
