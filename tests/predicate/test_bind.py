"""Binding finds the columns, inserts Spark's casts and computes constants."""

import pyarrow as pa
import pytest

from grebe.errors import InvalidPredicate
from grebe.predicate.bind import bind
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Cast, Column, Compare, Literal, opaque_terms
from grebe.predicate.types import BIGINT, INT, STRING, TIMESTAMP, struct

SCHEMA = pa.schema(
    [
        ("Id", pa.int32()),
        ("small", pa.int8()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(38, 0)),
        ("ratio", pa.float64()),
        ("single", pa.float32()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("who", pa.struct([("First", pa.string()), ("age", pa.int16())])),
        ("tags", pa.list_(pa.string())),
        ("a.b", pa.int32()),
        ("twice", pa.int32()),
        ("Twice", pa.int32()),
    ]
)


def bound(text: str, ansi: bool = True, time_zone: str = "UTC") -> str:
    return to_sql(bind(parse(text), SCHEMA, ansi=ansi, time_zone=time_zone))


@pytest.mark.parametrize(
    ("text", "ansi", "legacy"),
    [
        ("ID = 1", "Id = 1", "Id = 1"),
        ("who.first = 'x'", "who.First = 'x'", "who.First = 'x'"),
        ("`a.b` = 1", "`a.b` = 1", "`a.b` = 1"),
        ("small = 1", "CAST(small AS int) = 1", "CAST(small AS int) = 1"),
        ("Id = 1L", "CAST(Id AS bigint) = 1L", "CAST(Id AS bigint) = 1L"),
        ("Id = '1'", "CAST(Id AS bigint) = 1L", "Id = 1"),
        ("name = 1", "CAST(name AS bigint) = 1L", "CAST(name AS int) = 1"),
        ("name = 1.5", "CAST(name AS double) = 1.5D", "CAST(name AS double) = 1.5D"),
        ("price = 1", "price = CAST(1.00BD AS decimal(10,2))", "price = CAST(1.00BD AS decimal(10,2))"),
        ("Id < 1.5", "CAST(Id AS bigint) < 2L", "CAST(Id AS bigint) < 2L"),
        ("1.5 < Id", "CAST(Id AS bigint) > 1L", "CAST(Id AS bigint) > 1L"),
        ("Id <= 1e30BD", "TRUE", "TRUE"),
        ("Id > 1e30BD", "FALSE", "FALSE"),
        ("ratio = 1", "ratio = 1.0D", "ratio = 1.0D"),
        ("single = 1", "CAST(single AS double) = 1.0D", "single = 1.0F"),
        ("day = '2020-01-01'", "day = DATE '2020-01-01'", "day = DATE '2020-01-01'"),
        ("day < at", "CAST(day AS timestamp) < at", "CAST(day AS timestamp) < at"),
        ("local < at", "CAST(local AS timestamp) < at", "CAST(local AS timestamp) < at"),
        ("flag = 'yes'", "flag = TRUE", "flag = TRUE"),
        ("Id IN (1, '2')", "CAST(Id AS bigint) IN (1L, 2L)", "CAST(Id AS string) IN ('1', '2')"),
        ("Id IN (1, NULL)", "Id IN (1, CAST(NULL AS int))", "Id IN (1, CAST(NULL AS int))"),
        ("Id IN (small, 2)", "Id = CAST(small AS int) OR Id = 2", "Id = CAST(small AS int) OR Id = 2"),
        ("Id = NULL", "Id = CAST(NULL AS int)", "Id = CAST(NULL AS int)"),
        ("Id LIKE '1%'", "CAST(Id AS string) LIKE '1%'", "CAST(Id AS string) LIKE '1%'"),
        ("ratio = 1 + 0.5 * 2", "ratio = 2.0D", "ratio = 2.0D"),
        ("Id = 7 DIV 2", "CAST(Id AS bigint) = 3L", "CAST(Id AS bigint) = 3L"),
        ("Id = -7 % 4", "Id = -3", "Id = -3"),
        ("ratio = 1 / 4", "ratio = 0.25D", "ratio = 0.25D"),
        ("NULL AND flag", "NULL AND flag", "NULL AND flag"),
    ],
)
def test_casts_are_those_of_spark(text: str, ansi: str, legacy: str) -> None:
    assert bound(text) == ansi
    assert bound(text, ansi=False) == legacy


def test_times_without_a_zone_are_in_the_session_s() -> None:
    assert bound("at = '1970-01-01 00:00:00'", time_zone="Asia/Kathmandu") == "at = TIMESTAMP '1969-12-31 18:30:00Z'"
    assert bound("at = TIMESTAMP '1970-01-01'", time_zone="America/New_York") == "at = TIMESTAMP '1970-01-01 05:00:00Z'"
    cast = bind(parse("day < at"), SCHEMA, time_zone="Europe/Berlin")
    assert isinstance(cast, Compare)
    assert cast.left == Cast(Column(("day",), cast.left.term.type), TIMESTAMP, "ansi", "Europe/Berlin")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "wide = 1.5",  # needs 39 digits: Spark 3 overflows, Spark 4 rounds
        "wide IN (1.5, 2)",
        "who = who",
        "tags = tags",
        "tags.x = 'a'",
        "day = 'today'",
        "at > '12:30:00'",
        "Id = 2147483647 + 1",
        "Id = 1 / 0",
        "Id = 1 DIV 0",
        "local > TIMESTAMP 'now'",
    ],
)
def test_what_spark_s_versions_disagree_about_or_the_day_decides_is_opaque(text: str) -> None:
    assert opaque_terms(bind(parse(text), SCHEMA))


def test_a_cast_of_a_constant_that_does_not_fit_waits_for_evaluation() -> None:
    assert bound("Id = 'x'") == "CAST(Id AS bigint) = CAST('x' AS bigint)"
    assert bound("Id = 'x'", ansi=False) == "Id = CAST(NULL AS int)"
    assert bound("Id = TRY_CAST('x' AS int)") == "Id = CAST(NULL AS int)"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("idd = 1", "INVALID_PREDICATE_UNKNOWN_COLUMN", "column idd is not there; did you mean Id?"),
        ("who.fist = 'x'", "INVALID_PREDICATE_UNKNOWN_COLUMN", "column who.fist is not there; did you mean who.First?"),
        ("Id.x = 1", "INVALID_PREDICATE_UNKNOWN_COLUMN", "Id is a int, not a struct"),
        ("zzzzzz = 1", "INVALID_PREDICATE_UNKNOWN_COLUMN", "there are Id, small"),
        ("TWICE = 1", "INVALID_PREDICATE_AMBIGUOUS_COLUMN", "it may be any of twice, Twice"),
        ("flag = 1", "INVALID_PREDICATE_TYPE_MISMATCH", "cannot compare boolean with int"),
        ("day = 1", "INVALID_PREDICATE_TYPE_MISMATCH", "cannot compare date with int"),
        ("Id", "INVALID_PREDICATE_TYPE_MISMATCH", "Id is int, not boolean"),
        ("NOT name", "INVALID_PREDICATE_TYPE_MISMATCH", "name is string, not boolean"),
        ("Id IN (1, flag)", "INVALID_PREDICATE_TYPE_MISMATCH", "cannot compare"),
    ],
)
def test_what_makes_no_sense_for_the_schema_is_refused(text: str, code: str, message: str) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        bind(parse(text), SCHEMA)
    assert refused.value.code == code
    assert message in str(refused.value)


def test_case_matters_if_asked_for() -> None:
    assert to_sql(bind(parse("Twice = 1"), SCHEMA, case_sensitive=True)) == "Twice = 1"
    with pytest.raises(InvalidPredicate, match="did you mean Id"):
        bind(parse("id = 1"), SCHEMA, case_sensitive=True)


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(InvalidPredicate, match=r"\[INVALID_PREDICATE_TIME_ZONE\].*unknown time zone 'Mars/Olympus'"):
        bind(parse("Id = 1"), SCHEMA, time_zone="Mars/Olympus")


def test_a_schema_of_our_own_types_serves_too() -> None:
    schema = struct(("a", INT), ("s", struct(("b", STRING))))
    assert bind(parse("A = 1L"), schema) == Compare(
        "=", Cast(Column(("a",), INT), BIGINT, "ansi", "UTC"), Literal(1, BIGINT)
    )
    assert bind(parse("s.B = 'x'"), schema) == Compare("=", Column(("s", "b"), STRING), Literal("x", STRING))


def test_boolean_and_number_compare_for_equality_only_outside_ansi_mode() -> None:
    assert bound("flag = 1", ansi=False) == "CAST(flag AS int) = 1"
    with pytest.raises(InvalidPredicate, match="cannot compare boolean with int"):
        bound("flag < 1", ansi=False)


_UNKNOWN = "f(id)"
for _ in range(40):
    _UNKNOWN = f"(f(id) = {_UNKNOWN})"
NESTED = {
    "signs": "- " * 150 + "id = 1",
    "signs and brackets": "-(" * 60 + "id" + ")" * 60 + " = 1",
    "calls that nobody knows": _UNKNOWN,
    "sums": "id = 1" + " + 1" * 150,
    "casts": "id" + "::int::bigint" * 60 + " = 1",
    "denials": "NOT " * 150 + "id = 1",
}
"""To bind a level twice would take for ever, since it multiplies with every level."""


@pytest.mark.parametrize("how", NESTED)
def test_every_level_of_a_predicate_is_bound_once(how: str) -> None:
    assert bound(NESTED[how])


@pytest.mark.parametrize(
    "text",
    [
        "- " * 5_000 + "id = 1",
        "id = 1" + " + 1" * 20_000,
        "id" + "::int" * 20_000 + " = 1",
        " = ".join(["id"] * 20_000),
        "NOT " * 250 + "id = 1",
    ],
    ids=["signs", "sums", "casts", "comparisons", "denials"],
)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate):
        parse(text)
    deep = parse("id = 1")
    for _ in range(1_000):
        deep = ~deep
    with pytest.raises(InvalidPredicate, match="nested more than 200 deep"):
        bind(deep, SCHEMA)


def test_long_chains_that_are_flat_are_bound() -> None:
    assert bound(" OR ".join(f"id = {number}" for number in range(3_000)))
    assert bound("name = " + " || ".join(["name"] * 1_000))
