"""Queries in the shape of TPC-H over tables of its sizes: which indexes are taken, and what they save."""

import pytest

from grebe.config import Config
from grebe.planner.choose import choose
from grebe.planner.decision import Decision
from grebe.planner.query import Settings
from tests.planner.lake import NO_BROADCAST, SETTINGS, picked
from tests.planner.tpch import QUERIES, asked

BOTH = pytest.mark.parametrize("settings", [SETTINGS, NO_BROADCAST], ids=["broadcast", "no broadcast"])


def decided(name: str, settings: Settings, *, buckets: int = 8) -> tuple[Decision, dict[str, str]]:
    query, tables = asked(name, settings, buckets=buckets)
    decision = choose(query, tables, Config())
    return decision, {relation: text.split("/")[0] for relation, text in picked(decision).items()}


@BOTH
@pytest.mark.parametrize("name", QUERIES)
def test_every_query_gains_and_moves_less(name: str, settings: Settings) -> None:
    decision, indexes = decided(name, settings)
    assert indexes
    assert decision.after.milliseconds < decision.before.milliseconds
    assert decision.after.shuffles < decision.before.shuffles
    assert decision.after.shuffle_bytes < decision.before.shuffle_bytes


@BOTH
def test_q3_joins_lineitem_by_the_order(settings: Settings) -> None:
    decision, indexes = decided("q3", settings)
    assert indexes["lineitem#2"] == "l_by_order"
    assert decision.before.shuffles - decision.after.shuffles >= 1


def test_q5_with_broadcasts_joins_lineitem_as_it_lies_with_the_orders_of_a_year() -> None:
    decision, indexes = decided("q5", SETTINGS)
    assert indexes == {"orders#1": "o_by_date", "lineitem#2": "l_by_order"}
    assert set(picked(decision).values()) == {"o_by_date/0", "l_by_order/8s"}
    # What is left is the shuffle of few orders, that of a few groups, and that of the final sort.
    assert (decision.after.shuffles, decision.after.sorts) == (3, 2)


def test_q5_without_broadcasts_uses_an_index_on_every_large_table() -> None:
    decision, indexes = decided("q5", NO_BROADCAST)
    assert {"customer#0", "orders#1", "lineitem#2"} <= indexes.keys()
    assert decision.after.shuffles <= decision.before.shuffles - 4


def test_q9_without_broadcasts_joins_part_and_lineitem_by_the_part() -> None:
    decision, indexes = decided("q9", NO_BROADCAST)
    assert (indexes["part#0"], indexes["lineitem#1"], indexes["orders#4"]) == ("p_by_part", "l_by_part", "o_by_order")
    assert indexes["partsupp#3"] in ("ps_by_part", "ps_by_supp")
    assert decision.after.shuffles <= decision.before.shuffles // 2


def test_q17_without_broadcasts_reads_lineitem_twice_by_the_part() -> None:
    decision, indexes = decided("q17", NO_BROADCAST)
    assert indexes["lineitem#0"] == indexes["lineitem#2"] == "l_by_part"
    assert decision.used[0] == "l_by_part"
    assert decision.before.milliseconds / decision.after.milliseconds > 1.8


def test_q17_with_broadcasts_groups_lineitem_by_the_part() -> None:
    decision, indexes = decided("q17", SETTINGS)
    assert indexes["lineitem#2"] == "l_by_part"
    assert decision.after.broadcasts >= 1


@BOTH
def test_bucket_counts_beyond_the_cores_are_used_all_the_same(settings: Settings) -> None:
    decision, indexes = decided("q5", settings, buckets=64)
    assert indexes["lineitem#2"] == "l_by_order"
    assert decision.after.milliseconds < decision.before.milliseconds
