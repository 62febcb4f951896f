"""Aggregates that are answered without a scan, and only where the answer is exact."""

import re
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from grebe.files import FileIds
from grebe.planner.decision import FromMetadata
from grebe.planner.query import Aggregate, Answerable, Filter, Limit, Node, Project
from grebe.planner.reasons import Code
from grebe.planner.tables import KnownIndex
from grebe.predicate.tree import TRUE
from tests.planner.lake import MB, Ask, Scanned, Source, content, covering

TABLE = Source("t", {"a": "long", "b": "long", "day": "date", "x": "double"}, 1_600, 8 * MB)


def index(on: str = "a", **changes: Any) -> KnownIndex:
    """Two files: values 5 to 9 and 20 to 30, one row in ten is NULL."""
    made = covering(TABLE, "i", [on], [name for name in TABLE.columns if name != on], buckets=0)
    assert made.copy is not None
    table = content([10, 10], [100, 200], [-1, -1], [(5, 9), (20, 30)], [10, 20])
    return replace(made, copy=replace(made.copy, **{"content": table, "runs": (), **changes}))


def answerable(text: str) -> Answerable | None:
    """Read what Spark's side says of a function: nothing but `count(1)`, and the three functions of one column."""
    found = re.fullmatch(r"(count|min|max)\(#(\d+)\)", text)
    return Answerable("count") if text == "count(1)" else Answerable(found[1], int(found[2])) if found else None


def answer(
    made: KnownIndex, *functions: str, where: str = "", wrap: Any = None, **facts: Any
) -> tuple[object, ...] | None:
    """`{a}` in a function stands for the attribute of that column."""
    ask = Ask()
    scan = ask.scan(TABLE.having(made), list(TABLE.columns), where, **facts)
    node = wrap(ask, scan) if wrap else scan.node
    texts = tuple(
        function.format(**{name: f"#{number}" for name, number in scan.ids.items()}) for function in functions
    )
    decision = ask.decide(Aggregate(node, (), {}, texts, tuple(map(answerable, texts))))
    found = [choice for choice in decision.choices if isinstance(choice, FromMetadata)]
    if not found:
        return None
    [choice] = found
    assert (choice.relation, choice.index, choice.table) == (0, "i", TABLE.uri)
    assert decision.used == ("i",)
    assert decision.after.files == 0
    assert decision.after.milliseconds < decision.before.milliseconds
    return choice.values


def test_rows_are_counted() -> None:
    assert answer(index(), "count(1)") == (300,)


def test_bounds_and_counts_of_the_first_column_are_known() -> None:
    assert answer(index(), "max({a})", "count(1)", "min({a})", "count({a})") == (30, 300, 5, 270)


def test_one_function_that_is_not_known_spoils_the_answer() -> None:
    assert answer(index(), "count(1)", "sum({a})") is None
    assert answer(index(), "count(1)", "max({b})") is None
    assert answer(index(), "count(DISTINCT {a})") is None
    assert answer(index(), "min(1)") is None


def test_the_text_of_a_function_answers_nothing() -> None:
    """A text may look like a function of the list and be of more arguments."""
    ask = Ask()
    scan = ask.scan(TABLE.having(index()), ["a"])
    for known in ((), (None,), (Answerable("count"), None), (Answerable("sum", scan.ids["a"]),), (Answerable("min"),)):
        texts = tuple("count(1)" for _ in known) or ("count(1)",)
        assert not any(
            isinstance(one, FromMetadata) for one in ask.decide(Aggregate(scan.node, (), {}, texts, known)).choices
        )


def test_a_date_is_answered_as_its_days() -> None:
    table = content([10], [100], [-1], [(date(1970, 1, 2), date(1971, 1, 1))], [0], pa.date32())
    assert answer(index("day", content=table), "min({day})", "max({day})") == (1, 365)


def test_bounds_of_floating_point_numbers_are_not_trusted() -> None:
    table = content([10], [100], [-1], [(1.0, 2.0)], [0], pa.float64())
    assert answer(index("x", content=table), "min({x})") is None
    assert answer(index("x", content=table), "count({x})") == (100,)


def test_a_column_of_nothing_but_null_has_no_least_value() -> None:
    table = content([10], [100], [-1], [(None, None)], [100])
    assert answer(index(content=table), "min({a})", "count({a})", "count(1)") == (None, 0, 100)


def test_bounds_must_be_known_of_every_file() -> None:
    table = content([10, 10], [100, 100], [-1, -1], [(1, 2), (None, None)], [0, None])
    assert answer(index(content=table), "min({a})") is None
    assert answer(index(content=table), "count({a})") is None
    assert answer(index(content=table), "count(1)") == (200,)


def test_other_names_of_a_column_are_the_column() -> None:
    ask = Ask()
    scan = ask.scan(TABLE.having(index()), ["a"])
    first, second = ask.fresh(), ask.fresh()
    renamed = Project(Project(scan.node, {first: scan.ids["a"]}), {second: first})
    [choice] = ask.decide(Aggregate(renamed, (), {}, ("max",), (Answerable("max", second),))).choices
    assert isinstance(choice, FromMetadata)
    assert choice.values == (30,)


def filtered(ask: Ask, scan: Scanned) -> Node:
    return Filter(scan.node, 1)


def limited(ask: Ask, scan: Scanned) -> Node:
    return Limit(scan.node, 5)


@pytest.mark.parametrize("wrap", [filtered, limited])
def test_anything_between_the_aggregate_and_the_scan_needs_the_rows(wrap: Any) -> None:
    assert answer(index(), "count(1)", wrap=wrap) is None


def test_a_condition_needs_the_rows() -> None:
    assert answer(index(), "count(1)", where="b = 1") is None


def test_only_an_index_of_exactly_the_files_can_answer() -> None:
    assert answer(index(covered=FileIds.of(range(7))), "count(1)") is None
    assert answer(index(covered=FileIds.of([*range(8), 9])), "count(1)") is None
    assert answer(index(), "count(1)", unregistered_files=1, unregistered_bytes=1) is None
    assert answer(index(), "count(1)", listed=FileIds.of(range(7)), listed_bytes=7 * MB) is None


def test_a_partial_index_or_one_of_deletable_rows_cannot_answer() -> None:
    assert answer(index(where=TRUE), "count(1)") is None
    assert answer(index(rows_numbered=True), "count(1)") is None


def test_a_grouping_is_not_answered() -> None:
    ask = Ask()
    scan = ask.scan(TABLE.having(index()), ["a"])
    decision = ask.decide(Aggregate(scan.node, (scan["a"],), {}, ("count(1)",), (Answerable("count"),)))
    assert not any(isinstance(choice, FromMetadata) for choice in decision.choices)


def test_other_indexes_of_the_table_are_told_why_they_are_not_used() -> None:
    ask = Ask()
    scan = ask.scan(TABLE.having(index(), replace(index("b"), name="z", state="DELETED")), [])
    decision = ask.decide(Aggregate(scan.node, (), {}, ("count(1)",), (Answerable("count"),)))
    assert [(reason.index, reason.code) for reason in decision.reasons] == [("z", Code.NOT_ACTIVE)]
