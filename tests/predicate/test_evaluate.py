"""Edges of evaluation, one by one. That the answers are Spark's is shown in test_against_spark."""

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.bind import bind
from grebe.predicate.builder import col
from grebe.predicate.evaluate import evaluate, matches
from grebe.predicate.parse import parse
from grebe.predicate.tree import Predicate
from grebe.predicate.types import INT, struct

NAN, INF = math.nan, math.inf


def answers(text: str, ansi: bool = True, time_zone: str = "UTC", **columns: Any) -> list[bool | None]:
    table = pa.table(columns)
    answer: list[bool | None] = evaluate(
        table, bind(parse(text), table.schema, ansi=ansi, time_zone=time_zone)
    ).to_pylist()
    return answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d = 'NaN'::double", [False, False, False, True, None]),
        ("d < 'NaN'::double", [True, True, True, False, None]),
        ("d > 1e308D", [False, False, True, True, None]),
        ("d >= 'Infinity'::double", [False, False, True, True, None]),
        ("d <> 'NaN'::double", [True, True, True, False, None]),
        ("d <= 'NaN'::double", [True, True, True, True, None]),
        ("d = 0.0D", [True, False, False, False, None]),
        ("d < 0.0D", [False, True, False, False, None]),
        ("d IN (0.0D, 'NaN')", [True, False, False, True, None]),
        ("d <=> 'NaN'::double", [False, False, False, True, False]),
        ("d = d", [True, True, True, True, None]),
        ("isnan(d)", [False, False, False, True, False]),
    ],
)
def test_nan_is_equal_to_itself_and_greatest_and_zero_has_no_sign(text: str, expected: list[bool | None]) -> None:
    assert answers(text, d=[-0.0, -1.0, INF, NAN, None]) == expected


def test_nan_of_any_bits_is_the_same() -> None:
    bits = pa.array([0x7FF8000000000000, 0x7FF8000000000001, -1], pa.int64()).view(pa.float64())
    assert answers("d IN ('NaN', 1)", d=bits) == [True, True, True]
    assert answers("d = 'NaN'", d=bits) == [True, True, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a AND b", [True, False, None, False, False, False, None, False, None]),
        ("a OR b", [True, True, True, True, False, None, True, None, None]),
        ("NOT a", [False, False, False, True, True, True, None, None, None]),
        ("a = b", [True, False, None, False, True, None, None, None, None]),
        ("a <=> b", [True, False, False, False, True, False, False, False, True]),
        ("a < b", [False, False, None, True, False, None, None, None, None]),
        ("a IS NULL", [False] * 6 + [True] * 3),
        ("(a AND b) IS NULL", [False, False, True, False, False, False, True, False, True]),
        ("a IN (b)", [True, False, None, False, True, None, None, None, None]),
        ("a IN (TRUE, NULL)", [True] * 3 + [None] * 6),
        ("NULL OR a", [True] * 3 + [None] * 6),
    ],
)
def test_truth_has_three_values(text: str, expected: list[bool | None]) -> None:
    values = [True, False, None]
    assert answers(text, a=[a for a in values for _ in values], b=values * 3) == expected


def test_strings_compare_by_their_bytes() -> None:
    # U+FFFF sorts after U+1F426 in UTF-16, as Java's own strings do, but before it in UTF-8, as Spark does.
    assert answers("s < '\U0001f426'", s=["\uffff", "a", "\U0001f427"]) == [True, True, False]
    assert answers("s = 'e\u0301'", s=["é", "e\u0301"]) == [False, True]
    assert answers("s = 'a'", s=["a", "a ", "A"]) == [True, False, False]
    assert answers("b < X'80'", b=[b"\x7f", b"\xff", b""]) == [True, False, True]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a%", [True, True, False, True, False]),
        ("a_b", [False, True, False, True, False]),
        ("_", [False, False, True, False, False]),
        ("%b", [False, True, False, True, False]),
        ("", [False, False, False, False, True]),
        ("%", [True, True, True, True, True]),
        ("a(b)*", [False, False, False, False, False]),
    ],
)
def test_like_spans_lines_and_counts_characters_not_bytes(pattern: str, expected: list[bool]) -> None:
    assert answers(f"s LIKE '{pattern}'", s=["axxc", "a\nb", "\U0001f426", "aäb", ""]) == expected


def test_decimals_of_different_scale_compare_exactly() -> None:
    price = pa.array([Decimal("1.10"), Decimal("-99999999.99"), None], pa.decimal128(10, 2))
    weight = pa.array([Decimal("1.1"), Decimal("9999.99999"), Decimal(0)], pa.decimal128(20, 5))
    assert answers("p = w", p=price, w=weight) == [True, False, None]
    assert answers("p = 1.1", p=price) == [True, False, None]
    assert answers("p < 1.1000000000000001", p=price) == [True, True, None]
    assert answers("p = 1.1D", p=price) == [True, False, None]


def test_large_integers_lose_their_last_digits_beside_a_double_as_in_spark() -> None:
    assert answers("l = 9007199254740992D", l=[2**53, 2**53 + 1]) == [True, True]
    assert answers("l = 9007199254740992", l=[2**53, 2**53 + 1]) == [True, False]


def test_a_field_of_a_null_struct_is_null() -> None:
    structs = pa.StructArray.from_arrays([pa.array([1, 2, None])], ["x"], mask=pa.array([False, True, False]))
    assert answers("s.x = 1", s=structs) == [True, None, None]
    assert answers("s.x IS NULL", s=structs) == [False, True, True]
    assert answers("s IS NULL", s=structs) == [False, True, False]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["x", "y", None]).dictionary_encode(),
        pa.array(["x", "y", None], pa.large_string()),
        pa.array(["x", "y", None], pa.string_view()),
        pa.chunked_array([["x"], [], ["y", None]]),
    ],
    ids=lambda array: str(array.type),
)
def test_the_encoding_of_strings_does_not_matter(array: Any) -> None:
    assert answers("s = 'x'", s=array) == [True, False, None]
    assert answers("s LIKE '_'", s=array) == [True, True, None]
    assert answers("s IN ('y', 'z')", s=array) == [False, True, None]


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array([200], pa.uint8()), "a = 200"),
        (pa.array([2**32 - 1], pa.uint32()), "a = 4294967295"),
        (pa.array([2**64 - 1], pa.uint64()), "a = 18446744073709551615"),
        (pa.array([1.5], pa.float16()), "a = 1.5D"),
        (pa.array([Decimal("1.5")], pa.decimal256(10, 1)), "a = 1.5"),
        (pa.array([b"ab"], pa.binary(2)), "a = 'ab'"),
        (pa.array([date(2020, 1, 1)], pa.date64()), "a = '2020-01-01'"),
        (pa.array([datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp("s")), "a = TIMESTAMP_NTZ '1969-12-31 23:59:59'"),
        (pa.array([-1_500], pa.timestamp("ns")), "a = TIMESTAMP_NTZ '1969-12-31 23:59:59.999998'"),
        (pa.nulls(1), "a IS NULL"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_types_that_spark_does_not_have_are_read_as_it_reads_them(array: pa.Array, text: str) -> None:
    assert answers(text, a=array) == [True]


def test_times_depend_on_the_session_s_zone() -> None:
    at = pa.array([0, 18_000_000_000], pa.timestamp("us", "UTC"))
    day = pa.array([0, 0], pa.int32()).view(pa.date32())
    assert answers("at = day", at=at, day=day) == [True, False]
    assert answers("at = day", time_zone="America/New_York", at=at, day=day) == [False, True]
    assert answers("CAST(at AS date) = DATE '1969-12-31'", time_zone="America/New_York", at=at) == [True, False]


def test_a_day_starts_late_where_midnight_was_skipped() -> None:
    # São Paulo, 4 November 2018: the clock went from 00:00 to 01:00.
    day = pa.array([17839], pa.int32()).view(pa.date32())
    text = "day = TIMESTAMP '2018-11-04 03:00:00Z'"
    assert answers(text, time_zone="America/Sao_Paulo", day=day) == [True]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("length(s) = 1", "UNSUPPORTED_OPAQUE_TERM"),
        ("i = 1 AND s RLIKE 'x'", "UNSUPPORTED_OPAQUE_TERM"),
        ("CAST(d AS string) = '1.5'", "UNSUPPORTED_CAST"),
        ("CAST(d AS decimal(10,2)) = 1.5", "UNSUPPORTED_CAST"),
        ("l = l", "UNSUPPORTED_OPAQUE_TERM"),
        ("n = n", "UNSUPPORTED_OPAQUE_TERM"),
        ("CAST(n AS string) = 'x'", "UNSUPPORTED_CAST"),
    ],
)
def test_what_cannot_be_evaluated_exactly_is_refused(text: str, code: str) -> None:
    table = pa.table({"i": [1], "s": ["x"], "d": [1.5], "l": [[1]], "n": pa.array([{"a": 1}])})
    with pytest.raises(Unsupported) as refused:
        evaluate(table, bind(parse(text), table.schema))
    assert refused.value.code == code


def test_a_refusal_names_the_term() -> None:
    table = pa.table({"s": ["x"]})
    with pytest.raises(Unsupported, match=r"length\(s\) cannot be evaluated") as refused:
        evaluate(table, bind(parse("s = 'x' AND length(s) = 1"), table.schema))
    assert refused.value.code == "UNSUPPORTED_OPAQUE_TERM"


def test_a_list_or_struct_can_be_asked_for_null() -> None:
    assert answers("l IS NULL", l=[[1], None]) == [False, True]


def test_an_ansi_cast_that_does_not_fit_raises_without_telling_the_value() -> None:
    with pytest.raises(InvalidPredicate) as refused:
        answers("s = 1", s=["1", "secret", None])
    assert refused.value.code == "INVALID_PREDICATE_CAST_FAILED"
    assert "1 of 3 rows" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "TRY_CAST" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ok AND s = 1", [True, False, None]),
        ("s = 1 AND ok", [True, False, None]),
        ("NOT (NOT ok OR s <> 1)", [True, False, None]),
        ("(s = 1 AND ok) IS NULL", [False, False, True]),
        ("TRY_CAST(s AS int) = 1", [True, None, None]),
        ("s = NULL", [None, None, None]),
    ],
)
def test_a_cast_that_does_not_fit_matters_only_where_the_answer_depends_on_it(
    text: str, expected: list[bool | None]
) -> None:
    assert answers(text, s=["1", "x", None], ok=[True, False, True]) == expected


@pytest.mark.parametrize(
    "text", ["ok OR s = 1", "(s = 1) IS NULL", "s <=> 1", "(s = 1) <=> ok", "s IN (1, 2)", "s < 5 AND NOT ok"]
)
def test_elsewhere_it_raises(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="does not fit 1 of 1 rows"):
        answers(text, s=["x"], ok=[False])


def test_outside_ansi_mode_it_is_null() -> None:
    assert answers("s = 1", ansi=False, s=["1", "1.9", "x"]) == [True, True, None]


def test_matches_counts_null_as_no() -> None:
    table = pa.table({"a": [1, 2, None]})
    kept = matches(table, bind(parse("a > 1"), table.schema))
    assert kept.to_pylist() == [False, True, False]
    assert kept.null_count == 0


def test_a_table_without_rows_or_batches_gives_no_answers() -> None:
    schema = pa.schema([("a", pa.int32())])
    bound = bind(parse("a = 1"), schema)
    assert len(evaluate(schema.empty_table(), bound)) == 0
    assert len(evaluate(pa.Table.from_batches([], schema), bound)) == 0
    assert evaluate(pa.record_batch({"a": pa.array([1], pa.int32())}), bound).to_pylist() == [True]


def test_a_file_may_store_a_column_narrower_than_the_table_s_type() -> None:
    bound = bind(parse("a = 1"), pa.schema([("a", pa.int64())]))
    assert evaluate(pa.table({"a": pa.array([1, None], pa.int16())}), bound).to_pylist() == [True, None]
    assert evaluate(pa.table({"a": pa.nulls(1)}), bound).to_pylist() == [None]


def test_a_column_that_is_not_in_the_data_is_named() -> None:
    with pytest.raises(InvalidPredicate, match="column a is not in the data"):
        evaluate(pa.table({"b": [1]}), bind(parse("a = 1"), struct(("a", INT))))


def test_a_predicate_must_be_bound_first() -> None:
    unbound: Predicate = col("a") == 1
    with pytest.raises(TypeError, match="not bound"):
        evaluate(pa.table({"a": [1]}), unbound)


def test_an_empty_list_from_python_is_false_even_for_null() -> None:
    table = pa.table({"a": [1, None]})
    assert evaluate(table, bind(col("a").isin([]), table.schema)).to_pylist() == [False, False]
