"""The comparison of answers: what it lets pass, and that it finds what it should."""

from decimal import Decimal

import pytest

from testbed.answers import Answer, Order, differences, order_of, same, without_limit

UNORDERED = Order((), True, None)


def answer(*rows: tuple[object, ...]) -> Answer:
    return Answer(("k", "v"), rows)


def test_rows_are_a_multiset_where_no_order_is_asked_for() -> None:
    assert differences(answer((1, "a"), (2, "b")), answer((2, "b"), (1, "a")), UNORDERED) == []
    assert differences(answer((1, "a"), (1, "a")), answer((1, "a"), (1, "b")), UNORDERED)
    assert differences(answer((1, "a"), (1, "a"), (2, "b")), answer((1, "a"), (2, "b"), (2, "b")), UNORDERED)


def test_a_missing_row_and_a_missing_column_are_differences() -> None:
    assert differences(answer((1, "a")), answer(), UNORDERED) == ["1 rows, not 0"]
    assert differences(Answer(("k",), ()), answer(), UNORDERED) == ["1 columns, not 2"]


def test_the_order_that_is_asked_for_counts_and_ties_may_come_as_they_like() -> None:
    by_k = Order(("k",), True, None)
    assert differences(answer((2, "b"), (1, "a")), answer((1, "a"), (2, "b")), by_k)
    assert differences(answer((1, "a"), (1, "b")), answer((1, "b"), (1, "a")), by_k) == []
    assert differences(answer((1, "a"), (1, "b")), answer((1, "b"), (1, "c")), by_k)


def test_a_limit_may_choose_among_the_rows_that_tie_with_the_last_one() -> None:
    cut = Order(("k",), True, 2)
    assert differences(answer((1, "a"), (2, "b")), answer((1, "a"), (2, "c")), cut) == []
    assert differences(answer((1, "a"), (2, "b")), answer((1, "x"), (2, "b")), cut)
    assert differences(answer((1, "a"), (2, "b")), answer((1, "a"), (2, "c")), Order(("k",), True, 3)), (
        "nothing was cut off"
    )


def test_null_is_a_value_of_its_own() -> None:
    assert differences(answer((1, None), (1, "a")), answer((1, "a"), (1, None)), UNORDERED) == []
    assert differences(answer((1, None)), answer((1, "")), UNORDERED)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (Decimal("1.10"), Decimal("1.1"), True),
        (Decimal("1.10"), Decimal("1.11"), False),
        (Decimal("0.333333"), 1 / 3, True),
        (Decimal("0.333335"), 1 / 3, False),
        (7, Decimal("7.00"), True),
        (0.1 + 0.2, 0.3, True),
        (0.3000001, 0.3, False),
        (float("nan"), float("nan"), True),
        (float("nan"), None, False),
        ("a", "a ", False),
    ],
)
def test_values_are_compared_exactly_unless_one_is_a_float(a: object, b: object, equal: bool) -> None:
    assert same(a, b) is equal
    assert same(b, a) is equal


def test_a_tolerance_does_not_pair_the_wrong_rows() -> None:
    ours = answer(("a", 1.0), ("b", 1.0 - 1e-12))
    assert differences(ours, answer(("b", 1.0), ("a", 1.0)), UNORDERED) == []
    assert differences(ours, answer(("b", 1.0), ("b", 1.0)), UNORDERED)


@pytest.mark.parametrize(
    ("sql", "order"),
    [
        ("SELECT a, x AS b FROM t ORDER BY b DESC, a LIMIT 3", Order(("b", "a"), True, 3)),
        ("SELECT a, b FROM t ORDER BY 2, a + b, a", Order(("b",), False, None)),
        ("SELECT a, b FROM t ORDER BY z", Order((), False, None)),
        ("SELECT * FROM t ORDER BY B", Order(("b",), True, None)),
        ("WITH t AS (SELECT 1 AS a ORDER BY a LIMIT 1) SELECT a, b FROM t", UNORDERED),
        ("SELECT a, b FROM t UNION ALL SELECT a, b FROM u ORDER BY t.a LIMIT 5", Order(("a",), True, 5)),
    ],
)
def test_what_an_order_promises_is_read_from_the_query(sql: str, order: Order) -> None:
    assert order_of(sql, ["a", "b"]) == order


def test_only_the_last_limit_of_a_query_is_taken_away() -> None:
    inner = "SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 3)"
    assert without_limit(f"{inner}\nORDER BY a\n  limit 10 ;\n") == f"{inner}\nORDER BY a"
    assert without_limit(inner) == inner
