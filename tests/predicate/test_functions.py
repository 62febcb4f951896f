"""Functions of a column: done away with where that is exact, weakened where it is not, opaque where they are not known."""

import numpy as np
import pyarrow as pa
import pytest

from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.about import about
from grebe.predicate.bind import bind
from grebe.predicate.bounds import Bounds, bounds_of, by_bounds
from grebe.predicate.evaluate import evaluate
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import TRUE, Call, Not, Opaque, Predicate, opaque_terms
from grebe.predicate.verdicts import Verdict, judge
from grebe.predicate.weaker import weaker

SCHEMA = pa.schema(
    [
        ("a", pa.int32()),
        ("t", pa.int8()),
        ("b", pa.int64()),
        ("p", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(38, 2)),
        ("f", pa.float64()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("s", pa.string()),
        ("bin", pa.binary()),
    ]
)
NO, MAYBE, ALL = Verdict.CANNOT_MATCH, Verdict.MUST_READ, Verdict.ALL_MATCH


def normal(text: str, time_zone: str = "UTC", ansi: bool = True) -> Predicate:
    return normalise(bind(parse(text), SCHEMA, time_zone=time_zone, ansi=ansi))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("year(d) = 2020", "d < DATE '2021-01-01' AND d >= DATE '2020-01-01'"),
        ("year(d) <> 2020", "d < DATE '2020-01-01' OR d >= DATE '2021-01-01'"),
        ("2020 <= year(d)", "d >= DATE '2020-01-01'"),
        ("year(d) > 2020L", "d >= DATE '2021-01-01'"),
        ("year(d) <=> 2020", "d < DATE '2021-01-01' AND d >= DATE '2020-01-01' AND d IS NOT NULL"),
        ("year(d) IN (-9999999, 2021)", "(NULL AND d IS NULL) OR (d < DATE '2022-01-01' AND d >= DATE '2021-01-01')"),
        ("year(d) = 99999999", "NULL AND d IS NULL"),
        ("year(d) < 5881580", "d < DATE '+5881580-01-01'"),
        ("year(d) <= 5881580", "NULL OR d IS NOT NULL"),
        ("year(d) + 1 = 2020", "d < DATE '2020-01-01' AND d >= DATE '2019-01-01'"),
        ("year(d) IS NULL", "d IS NULL"),
        ("year(ts) = 1970", "ts < TIMESTAMP '1971-01-01 00:00:00Z' AND ts >= TIMESTAMP '1970-01-01 00:00:00Z'"),
        ("year(n) < 1970", "n < TIMESTAMP_NTZ '1970-01-01 00:00:00'"),
        ("to_date(ts) = '2020-03-08'", "ts < TIMESTAMP '2020-03-09 00:00:00Z' AND ts >= TIMESTAMP '2020-03-08 00:00:00Z'"),
        ("date(n) <= DATE '2020-03-08'", "n < TIMESTAMP_NTZ '2020-03-09 00:00:00'"),
        ("to_date(d) = DATE '2020-03-08'", "d = DATE '2020-03-08'"),
        ("unix_millis(ts) >= 5", "ts >= TIMESTAMP '1970-01-01 00:00:00.005000Z'"),
        ("CAST(ts AS bigint) = -1", "ts < TIMESTAMP '1970-01-01 00:00:00Z' AND ts >= TIMESTAMP '1969-12-31 23:59:59Z'"),
        # integers that cannot overflow, as their type is wider than the column's
        ("t + 1 = 5", "t = 4Y"),
        ("5 - t < 2", "t > 3Y"),
        ("-CAST(t AS int) >= 5", "t <= -5Y"),
        ("t * 2 = 7", "NULL AND t IS NULL"),
        ("t * 2 < 7", "t < 4Y"),
        ("t * -2 < 7", "t >= -3Y"),
        ("t + 1 > 500", "t > 127Y"),
        ("CAST(a AS bigint) + 1 IN (5, 6)", "a IN (4, 5)"),
        ("(t + 1) * 2 = 10", "t = 4Y"),
        # decimals that Spark does not round
        ("p + 1.5 > 3", "p > CAST(1.50BD AS decimal(9,2))"),
        ("p * 2.5 >= 1", "p >= CAST(0.40BD AS decimal(9,2))"),
        ("1 - p = 0.5", "p = CAST(0.50BD AS decimal(9,2))"),
        ("-p < 1", "p > CAST(-1.00BD AS decimal(9,2))"),
        # prefixes
        ("left(s, 3) = 'abc'", "startswith(s, 'abc')"),
        ("substring(s, 1, 3) = 'ab'", "s = 'ab'"),
        ("substr(s, 0, 3) = 'abcd'", "NULL AND s IS NULL"),
        ("left(s, 3) <> 'abc'", "NOT (startswith(s, 'abc'))"),
        ("left(s, 3) >= 'abc'", "s >= 'abc'"),
        ("left(s, 3) > 'abc'", "NOT (startswith(s, 'abc')) AND s > 'abc'"),
        ("left(s, 3) <= 'abcd'", "s < 'abc' OR startswith(s, 'abc')"),
        ("left(s, 3) IN ('abc', 'x', 'abcd')", "s = 'x' OR startswith(s, 'abc')"),
        ("left(s, 3) LIKE 'ab%'", "startswith(s, 'ab')"),
        ("left(s, 3) LIKE 'abcd%'", "NULL AND s IS NULL"),
    ],
)  # fmt: skip
def test_a_function_that_can_be_turned_round_exactly_is_gone(text: str, form: str) -> None:
    made = normal(text)
    assert to_sql(made) == form
    assert normalise(made) == made


@pytest.mark.parametrize(
    ("text", "implied"),
    [
        ("a + 1 = 5", "a = 4 OR a > 2147483646"),
        ("b - 1 < 5", "b < -9223372036854775807L OR b < 6L"),
        ("5 - a > 1", "a < -2147483642 OR a < 4"),
        ("-a = 3", "a < -2147483647 OR a = -3"),
        ("a * 2 = 7", "a < -1073741824 OR a > 1073741823"),
        ("a + 1 IS NULL", "a > 2147483646 OR a IS NULL"),
        ("a + 1 IN (5, 6, NULL)", "a > 2147483646 OR a IN (4, 5, CAST(NULL AS int))"),
        ("(a + 1) * 2 = 10", "a < -1073741825 OR a = 4 OR a > 1073741822 OR a > 2147483646"),
        ("d + 5 < DATE '2020-01-01'", "d < DATE '2019-12-27' OR d > DATE '+5881580-07-06'"),
        ("trunc(d, 'MM') = DATE '2020-03-01'", "d < DATE '-5877639-08-31' OR (d < DATE '2020-04-01' AND d >= DATE '2020-03-01')"),
        ("trunc(ts, 'MM') = DATE '2020-03-02'", "FALSE"),
        ("s LIKE 'abc%def'", "endswith(s, 'def') AND startswith(s, 'abc')"),
        ("s LIKE '%x%y%'", "contains(s, 'x') AND contains(s, 'y')"),
        ("s LIKE 'a_c%'", "contains(s, 'c') AND startswith(s, 'a')"),
        ("s LIKE '%abc'", "contains(s, 'abc')"),
        ("s LIKE 'abc%'", "contains(s, 'abc')"),
    ],
)  # fmt: skip
def test_one_that_cannot_has_a_weaker_form(text: str, implied: str) -> None:
    found = weaker(normal(text))
    assert found is not None
    assert to_sql(normalise(found)) == implied


@pytest.mark.parametrize("zone", ["America/New_York", "EST", "Asia/Tokyo"])
def test_a_zone_that_may_have_had_another_is_not(zone: str) -> None:
    assert "CAST" in to_sql(normal("year(ts) = 2020", zone))


def test_the_beginning_of_time_is_never_ruled_out_by_a_unit_that_begins_before_it() -> None:
    found = weaker(normal("date_trunc('month', ts) > '2020-03-01'"))
    start = "ts < TIMESTAMP '-290305-03-01 19:59:05.224192Z'"
    assert found is not None
    assert to_sql(found) == f"{start} OR ts >= TIMESTAMP '2020-04-01 00:00:00Z'"


def test_in_a_zone_whose_clocks_change_no_rule_of_the_zone_is_relied_upon() -> None:
    form = normal("CAST(ts AS DATE) = DATE '2020-03-08'", "America/New_York")
    assert to_sql(form) == "CAST(ts AS date) = DATE '2020-03-08'"
    found = weaker(form)
    assert found is not None
    assert to_sql(found) == "ts < TIMESTAMP '2020-03-09 18:00:00Z' AND ts >= TIMESTAMP '2020-03-07 06:00:00Z'"


@pytest.mark.parametrize("zone", ["Z", "+05:30", "Etc/UTC", "Etc/GMT+3", "Zulu"])
def test_a_zone_that_has_but_one_offset_is_exact(zone: str) -> None:
    assert not opaque_terms(normal("year(ts) = 2020", zone))
    assert "CAST" not in to_sql(normal("year(ts) = 2020", zone))


@pytest.mark.parametrize(
    "text",
    [
        "a + b = 5",
        "f + 1 > 2",
        "a + 1.5D > 2",
        "a + '1' > 2",
        "wide * 1.5 > 2",
        "a * 0 = 0",
        "a + NULL = 1",
        "a % 2 = 0",
        "a / 2 = 1",
        "a div 2 = 1",
        "quarter(d) = 1",
        "month(d) = 1",
        "year(s) = 2020",
        "trunc(d, 'day') = d",
        "date_trunc('fortnight', ts) = ts",
        "date_trunc(s, ts) = ts",
        "substring(s, 2, 3) = 'abc'",
        "substring(s, -3, 3) = 'abc'",
        "left(s, 0) = ''",
        "left(s, a) = ''",
        "left(bin, 2) = X'00'",
        "left(a, 2) = '1'",
        "5 - d = 1",
        "d + 1L = d",
        "d + a = d",
        "ts + INTERVAL '1' DAY > ts",
        "year(DATE '2020-01-01') = 2020",
        "date_add(DAY, 5, d) = d",
        "substring(s FROM 2) = 'abc'",
        "extract(month FROM d) = 2",
    ],
)
def test_what_is_not_on_the_list_stays_opaque_and_rules_nothing_out(text: str) -> None:
    form = normal(text)
    assert [type(term) for term in opaque_terms(form)] == [Opaque]
    assert weaker(form) is None
    assert about(form, [(name,) for name in SCHEMA.names]) == TRUE
    with pytest.raises(Unsupported):
        evaluate(SCHEMA.empty_table(), form)


def test_one_function_written_in_different_ways_is_one() -> None:
    assert normal("a + 1 = 5") == normal("5 = 1 + a") == normal("a - -1 = 5")
    assert normal("-a = 5") == normal("0 - a = 5") == normal("a * -1 = 5")
    assert (
        normal("d + 5 = '2020-01-01'")
        == normal("date_add(d, 5) = '2020-01-01'")
        == normal("date_sub(d, -5) = '2020-01-01'")
    )
    assert normal("date_trunc('MON', ts) = ts") == normal("date_trunc('month', ts) = ts")
    assert normal("extract(year FROM d) = 2020") == normal("year(d) = 2020")
    assert normal("substring(s FROM 1 FOR 3) = 'abc'") == normal("left(s, 3) = 'abc'")
    assert normal("date_trunc('MON', ts) = ts") != normal("date_trunc('month', ts) = ts", "America/New_York")


def test_a_call_is_opaque_to_whoever_does_not_know_it() -> None:
    form = normal("a + 1 = 5")
    assert opaque_terms(form) == (call := form.left,)  # type: ignore[attr-defined]  # a comparison
    assert isinstance(call, Call)
    assert call.columns == (("a",),)
    assert parse(to_sql(form)) == parse("(a + 1) = 5")


# Units: two rows each, bounds of column `a`.
LOW, HIGH = [0, 10, 2_147_483_600], [5, 20, 2_147_483_647]


def bounds(name: str, low: pa.Array, high: pa.Array, nulls: list[int]) -> Bounds:
    made = bounds_of((name,), low, high, np.full(len(low), 2), np.array(nulls))
    assert made is not None
    return made


def of_a(nulls: list[int]) -> Bounds:
    return bounds("a", pa.array(LOW, pa.int32()), pa.array(HIGH, pa.int32()), nulls)


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("a + 1 > 15", [NO, MAYBE, MAYBE]),
        ("a + 1 > 0", [MAYBE, MAYBE, MAYBE]),  # true for all of the first two, which is not to be known
        ("a + 1 <= 0", [NO, NO, MAYBE]),  # the last may hold the greatest number, for which Spark raises
        ("a * 2 = 7", [NO, NO, MAYBE]),
        ("NOT (a + 1 = 5)", [MAYBE, MAYBE, MAYBE]),
        ("CAST(a AS bigint) + 1 > 0", [ALL, ALL, ALL]),  # exact, so it is
        ("a + 1 = 5 OR a < 3", [MAYBE, NO, MAYBE]),
        ("a + 1 = 5 AND a >= 10", [NO, NO, MAYBE]),
    ],
)
def test_a_weaker_form_rules_out_and_does_no_more(text: str, verdicts: list[Verdict]) -> None:
    of_units = of_a([0, 0, 0])
    assert judge(normal(text), 3, lambda one: by_bounds(of_units, one)).tolist() == verdicts


def test_what_an_index_sees_of_a_pattern_is_its_pieces() -> None:
    asked: list[Predicate] = []
    judge(normal("s LIKE '%ab%cd'"), 1, lambda one: asked.append(one))
    assert [to_sql(one) for one in asked] == [
        "s LIKE '%ab%cd'",
        "contains(s, 'ab')",
        "endswith(s, 'cd')",
        "contains(s, 'cd')",
    ]
    asked.clear()
    judge(normal("NOT (s LIKE '%ab%cd')"), 1, lambda one: asked.append(one))
    assert asked[0] == Not(asked[1])  # nothing is known of a text by what it is not like


@pytest.mark.parametrize(
    ("text", "nulls", "verdicts"),
    [
        ("a NOT IN (7, 8)", [0, 0, 1], [ALL, ALL, MAYBE]),
        ("a NOT IN (3, 8)", [0, 0, 0], [MAYBE, ALL, ALL]),
        ("a NOT IN (3, NULL)", [0, 0, 0], [NO, NO, NO]),
        ("a IS DISTINCT FROM 7", [0, 1, 2], [ALL, ALL, ALL]),
        ("a IS DISTINCT FROM 3", [0, 0, 0], [MAYBE, ALL, ALL]),
    ],
)
def test_bounds_know_what_is_not_among_values(text: str, nulls: list[int], verdicts: list[Verdict]) -> None:
    of_units = of_a(nulls)
    assert judge(normal(text), 3, lambda one: by_bounds(of_units, one)).tolist() == verdicts


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("a IN (4, 5)", [ALL, MAYBE, NO]),
        ("a NOT IN (4, 5)", [NO, NO, ALL]),
        ("a NOT IN (6, 7)", [ALL, MAYBE, NO]),
        ("NOT (a <=> 4)", [NO, MAYBE, ALL]),
        ("a <> 4", [NO, NO, ALL]),
    ],
)
def test_units_of_one_value_are_known_by_it(text: str, verdicts: list[Verdict]) -> None:
    one_value = pa.array([4, 4, 6], pa.int32())
    of_units = bounds("a", one_value, one_value, [0, 1, 0])
    assert judge(normal(text), 3, lambda one: by_bounds(of_units, one)).tolist() == verdicts


def test_bounds_know_what_does_not_start_with_a_text() -> None:
    of_units = bounds("s", pa.array(["abc", "abc", "abd", None]), pa.array(["abcd", "abd", "x", None]), [1, 0, 0, 2])
    question = Not(normal("startswith(s, 'abc')"))
    assert judge(question, 4, lambda one: by_bounds(of_units, one)).tolist() == [NO, MAYBE, ALL, NO]


def test_overflow_is_an_error_in_ansi_mode_and_wraps_around_outside_it() -> None:
    table = pa.table({"a": pa.array([1, 2**31 - 1, None], pa.int32())})
    question = parse("a + 1 < 5")
    assert evaluate(table, bind(question, table.schema, ansi=False)).to_pylist() == [True, True, None]
    with pytest.raises(InvalidPredicate, match="does not fit 1 of 3 rows"):
        evaluate(table, bind(question, table.schema, ansi=True))
    assert evaluate(table, bind(parse("a + 1 < 5 OR a > 5"), table.schema)).to_pylist() == [True, True, None]


def test_many_values_of_a_function_are_weakened_to_their_ends() -> None:
    years = ", ".join(map(str, range(1900, 1990)))
    form = normal(f"year(d) IN ({years})")
    found = weaker(form)
    assert found is not None
    assert to_sql(found) == "d < DATE '1990-01-01' AND d >= DATE '1900-01-01'"
    assert to_sql(normal(f"t + 1 IN ({', '.join(map(str, range(-100, 100)))})")).count(",") == 199
