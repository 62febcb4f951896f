"""Groupings, windows and sorts: rows that lie together already need not be moved."""

from dataclasses import replace

import pytest

from grebe.planner.query import Aggregate, Filter, Join, Node, Other, Project, Sort, Window
from grebe.planner.reasons import Code
from grebe.planner.tables import KnownIndex
from tests.planner.lake import MB, NO_BROADCAST, Ask, Scanned, Source, covering, picked

EVENTS = Source("events", {"user_id": "long", "at": "timestamp", "v": "double", "page": "string"}, 20_000_000, 800 * MB)


def by_user(*more: str, hashed: int | None = 1) -> KnownIndex:
    include = [column for column in ("at", "v") if column not in more]
    return covering(EVENTS, "by_user", ["user_id", *more], include, buckets=16, hashed=hashed, bytes=600 * MB)


def scanned(index: KnownIndex) -> tuple[Ask, Scanned]:
    ask = Ask(NO_BROADCAST)
    return ask, ask.scan(EVENTS.having(index), ["user_id", "at", "v"])


def grouped(ask: Ask, child: Node, *keys: int | None, functions: tuple[str, ...] = ("sum(v)",)) -> Aggregate:
    return Aggregate(child, keys, {ask.fresh(): key for key in keys if key is not None}, functions)


@pytest.mark.parametrize("functions", [("sum(v)",), ()])
def test_a_grouping_or_distinct_by_the_key_needs_no_shuffle(functions: tuple[str, ...]) -> None:
    ask, scan = scanned(by_user("at"))
    decision = ask.decide(grouped(ask, scan.node, scan["user_id"], functions=functions))
    assert [text.split("/")[0] for text in picked(decision).values()] == ["by_user"]
    assert (decision.before.shuffles, decision.after.shuffles) == (1, 0)


def test_nobody_asks_for_an_order_that_nobody_needs() -> None:
    ask, scan = scanned(by_user("at"))
    [text] = picked(ask.decide(grouped(ask, scan.node, scan["user_id"]))).values()
    assert not text.endswith("s")


def test_a_grouping_by_more_than_the_key_needs_no_shuffle() -> None:
    ask, scan = scanned(by_user("at"))
    assert ask.decide(grouped(ask, scan.node, scan["at"], scan["user_id"])).after.shuffles == 0
    assert ask.decide(grouped(ask, scan.node, None, scan["user_id"])).after.shuffles == 0


def test_a_grouping_by_less_than_the_hashed_columns_is_shuffled() -> None:
    ask, scan = scanned(by_user("at", hashed=2))
    decision = ask.decide(grouped(ask, scan.node, scan["user_id"]))
    assert decision.after.shuffles == 1
    assert [reason.code for reason in decision.reasons] == [Code.MISSING_INDEXED_COL]


def test_a_grouping_of_few_groups_is_not_worth_an_index() -> None:
    """What is shuffled is one row a group and task."""
    few = replace(EVENTS, columns={**EVENTS.columns, "page": "boolean"})
    flags = covering(few, "by_page", ["page"], ["v"], buckets=16, bytes=700 * MB)
    ask = Ask(NO_BROADCAST)
    scan = ask.scan(few.having(flags), ["page", "v"])
    decision = ask.decide(grouped(ask, scan.node, scan["page"]))
    assert decision.choices == ()
    assert [reason.code for reason in decision.reasons] == [Code.NOT_CHEAPER]


def test_a_window_in_the_order_of_the_index_needs_neither_shuffle_nor_sort() -> None:
    ask, scan = scanned(by_user("at"))
    decision = ask.decide(Window(scan.node, (scan["user_id"],), (scan["at"],)))
    assert picked(decision) == {"events#0": "by_user/16s"}
    assert (decision.before.shuffles, decision.before.sorts) == (1, 1)
    assert (decision.after.shuffles, decision.after.sorts) == (0, 0)


def test_a_window_in_another_order_is_sorted_but_not_shuffled() -> None:
    ask, scan = scanned(by_user("at"))
    decision = ask.decide(Window(scan.node, (scan["user_id"],), (scan["v"],)))
    assert (decision.after.shuffles, decision.after.sorts) == (0, 1)
    by_expression = ask.decide(Window(scan.node, (scan["user_id"],), (None,)))
    assert (by_expression.after.shuffles, by_expression.after.sorts) == (0, 1)


def test_what_a_node_above_could_use_does_not_serve_the_node_between() -> None:
    ask, scan = scanned(by_user("at"))
    window = Window(scan.node, (scan["v"],), ())
    decision = ask.decide(grouped(ask, window, scan["user_id"]))
    assert decision.after.shuffles == 2


def test_a_sort_within_partitions_is_spared_by_the_order_of_the_index() -> None:
    ask, scan = scanned(by_user("at"))
    by_key = Sort(scan.node, (scan["user_id"], scan["at"]), False)
    decision = ask.decide(Window(by_key, (scan["user_id"],), ()))
    assert (decision.after.shuffles, decision.after.sorts) == (0, 0)


def test_a_global_sort_always_shuffles() -> None:
    ask, scan = scanned(by_user("at"))
    decision = ask.decide(Sort(scan.node, (scan["user_id"],), True))
    assert (decision.after.shuffles, decision.after.sorts) == (1, 1)


def test_a_join_and_the_grouping_above_it_share_the_buckets() -> None:
    users = Source("users", {"user_id": "long", "name": "string"}, 5_000_000, 150 * MB)
    ask, scan = scanned(by_user())
    other = ask.scan(users, ["user_id", "name"])
    join = Join("Inner", scan.node, other.node, (scan["user_id"],), (other["user_id"],))
    decision = ask.decide(grouped(ask, Project(join, {}), other["user_id"]))
    assert decision.after.shuffles == 1


@pytest.mark.parametrize(("kind", "key", "shuffles"), [("LeftOuter", 0, 1), ("LeftOuter", 1, 2), ("FullOuter", 0, 2)])
def test_above_an_outer_join_only_the_keys_of_the_preserved_side_lie_together(
    kind: str, key: int, shuffles: int
) -> None:
    users = Source("users", {"user_id": "long", "name": "string"}, 5_000_000, 150 * MB)
    ask, scan = scanned(by_user())
    other = ask.scan(users, ["user_id", "name"])
    join = Join(kind, scan.node, other.node, (scan["user_id"],), (other["user_id"],))
    keys = scan["user_id"], other["user_id"]
    assert ask.decide(grouped(ask, join, keys[key])).after.shuffles == shuffles


def test_what_keeps_rows_where_they_are_keeps_their_partitioning() -> None:
    ask, scan = scanned(by_user())
    kept = Other("Generate", (Filter(scan.node, 1),), keeps=True)
    moved = Other("RepartitionByExpression", (scan.node,))
    assert ask.decide(grouped(ask, kept, scan["user_id"])).after.shuffles == 0
    assert ask.decide(grouped(ask, moved, scan["user_id"])).after.shuffles == 1


def test_groups_of_groups_need_one_shuffle_at_most() -> None:
    ask, scan = scanned(by_user("at"))
    inner = grouped(ask, scan.node, scan["user_id"], scan["at"])
    outer = grouped(ask, inner, next(iter(inner.outputs)))
    assert ask.decide(outer).after.shuffles == 0


def test_a_part_that_occurs_twice_is_run_once_if_it_is_shuffled() -> None:
    """Spark reuses the shuffle; without one, both occurrences are run."""
    ask = Ask(NO_BROADCAST)
    scans = [ask.scan(EVENTS, ["user_id", "v"], "v > 1") for _ in range(2)]
    once, twice = (
        [Project(grouped(ask, scan.node, scan["user_id"]), {}) for scan in scans[:count]] for count in (1, 2)
    )
    [alone] = once
    cost_of_one = ask.decide(Aggregate(alone, (), {}, ("max(x)",))).before.milliseconds
    cost_of_two = ask.decide(*(Aggregate(node, (), {}, ("max(x)",)) for node in twice)).before.milliseconds
    assert cost_of_two < 1.2 * cost_of_one


def test_subqueries_are_decided_together_with_the_query() -> None:
    ask = Ask(NO_BROADCAST)
    source = EVENTS.having(by_user("at"))
    one, other = ask.scan(source, ["user_id", "v"]), ask.scan(source, ["user_id", "at"], "user_id = 5")
    decision = ask.decide(grouped(ask, one.node, one["user_id"]), other.node)
    assert set(picked(decision)) == {"events#0", "events#1"}
