"""Scans with conditions: what is read instead of the table, how much of it, and when the table itself is cheaper."""

from dataclasses import replace

import pytest

from grebe.config import Config
from grebe.files import FileIds
from grebe.planner.choose import MOST_CANDIDATES, choose
from grebe.planner.decision import StandIn
from grebe.planner.query import Aggregate, Filter, Limit, Project, Sort
from grebe.planner.reasons import Code, Reason
from grebe.planner.spark_hash import bucket_of
from grebe.predicate.tree import Literal
from grebe.predicate.types import BIGINT
from tests.planner.lake import MB, Ask, Source, covering, picked

EVENTS = Source(
    "events",
    {"id": "long", "customer": "long", "day": "date", "amount": "double", "country": "string", "text": "string"},
    20_000_000,
    1_000 * MB,
    files=20,
)
BY_DAY = covering(
    EVENTS, "by_day", ["day"], ["amount", "customer"], buckets=0, bytes=300 * MB, between=(10_000, 11_600)
)
BY_USER = covering(EVENTS, "by_user", ["customer"], ["amount", "day"], buckets=16, bytes=320 * MB)


def codes(reasons: tuple[Reason, ...]) -> dict[str, str]:
    return {reason.index: reason.code for reason in reasons}


def test_a_range_is_read_from_the_files_that_it_falls_into() -> None:
    ask = Ask()
    scan = ask.scan(EVENTS.having(BY_DAY), ["day", "amount"], "day >= DATE '1997-05-20' AND day < DATE '1997-06-20'")
    decision = ask.decide(Filter(scan.node, 2))
    assert picked(decision) == {"events#0": "by_day/0"}
    [choice] = decision.choices
    assert isinstance(choice, StandIn)
    assert choice.content == (0,)
    assert decision.after.milliseconds < decision.before.milliseconds / 10
    assert decision.after.bytes < decision.before.bytes / 10


def test_a_point_is_read_from_its_bucket() -> None:
    ask = Ask()
    scan = ask.scan(EVENTS.having(BY_USER), ["customer", "amount"], "customer = 4711")
    decision = ask.decide(scan.node)
    [choice] = decision.choices
    assert isinstance(choice, StandIn)
    assert choice.content == (bucket_of(Literal(4711, BIGINT), 16),)
    assert choice.buckets == 0
    assert not choice.ordered


def test_of_two_indexes_the_one_that_helps_more_is_taken() -> None:
    ask = Ask()
    scan = ask.scan(
        EVENTS.having(BY_DAY, BY_USER), ["customer", "day", "amount"], "customer = 4711 AND day > DATE '1998-01-01'"
    )
    decision = ask.decide(scan.node)
    assert picked(decision) == {"events#0": "by_user/0"}
    assert codes(decision.reasons) == {"by_day": Code.ANOTHER_INDEX_APPLIED}
    assert decision.reasons[0].arguments == {"applied": "by_user"}


def test_a_copy_that_is_no_better_than_the_table_is_not_taken() -> None:
    same = covering(EVENTS, "same", EVENTS.columns, buckets=0, bytes=EVENTS.bytes)
    ask = Ask()
    scan = ask.scan(EVENTS.having(same), EVENTS.columns, "amount > 3")
    decision = ask.decide(scan.node)
    assert decision.choices == ()
    assert decision.before == decision.after
    assert codes(decision.reasons) == {"same": Code.NO_FIRST_INDEXED_COL_COND}


def test_an_index_that_does_not_pay_says_what_it_would_have_cost() -> None:
    others = EVENTS.columns.keys() - {"day"}
    slow = covering(EVENTS, "slow", ["day"], others, buckets=0, bytes=3 * EVENTS.bytes, between=(9_000, 9_600))
    ask = Ask()
    scan = ask.scan(EVENTS.having(slow), EVENTS.columns, "day >= DATE '1990-01-01'")
    [reason] = ask.decide(scan.node).reasons
    assert reason.code == Code.NOT_CHEAPER
    assert reason.arguments["with_ms"] > reason.arguments["without_ms"] > 0


def test_of_copies_that_cost_the_same_the_smaller_is_taken() -> None:
    wide = covering(EVENTS, "a_wide", ["customer"], ["amount", "day"], buckets=16, bytes=320 * MB + 1_600)
    ask = Ask()
    scan = ask.scan(EVENTS.having(wide, BY_USER), ["customer"], "customer = 4711")
    assert picked(ask.decide(scan.node)) == {"events#0": "by_user/0"}


def test_a_copy_of_text_files_pays_by_itself() -> None:
    text = replace(EVENTS, format="csv", bytes=2_000 * MB)
    copied = covering(text, "copied", ["country"], ["amount"], bytes=150 * MB)
    ask = Ask()
    scan = ask.scan(text.having(copied), ["country", "amount"])
    decision = ask.decide(Aggregate(scan.node, (None,), {}, ("sum(amount)",)))
    assert picked(decision) == {"events#0": "copied/0"}


@pytest.mark.parametrize("node", [lambda node: Limit(node, 10), lambda node: Limit(Limit(Project(node, {}), 10), 10)])
def test_a_few_rows_of_a_table_are_taken_from_the_table(node) -> None:  # type: ignore[no-untyped-def]  # a small lambda
    narrow = covering(EVENTS, "narrow", ["customer"], bytes=500 * MB, buckets=200)
    ask = Ask()
    scan = ask.scan(EVENTS.having(narrow), ["customer"])
    assert ask.decide(node(scan.node)).choices == ()


def test_a_condition_on_partitions_leaves_little_to_save() -> None:
    """Spark opens only the files of the partitions asked for."""
    daily = replace(EVENTS, files=200, partitions=("day",))
    index = covering(daily, "by_customer", ["customer"], ["amount", "day"], bytes=200 * MB)
    ask = Ask()
    everything = ask.scan(daily.having(index), ["customer", "amount"])
    one_day = ask.scan(daily.having(index), ["customer", "amount", "day"], "day = DATE '1997-05-20'")
    assert set(picked(ask.decide(everything.node, one_day.node))) == {"events#0"}


def test_the_first_rows_of_an_order_are_found_without_a_shuffle() -> None:
    ask = Ask()
    scan = ask.scan(EVENTS, ["customer", "amount"])
    ordered = Sort(scan.node, (scan["amount"],), True)
    assert ask.decide(ordered).before.shuffles == 1
    assert ask.decide(Limit(ordered, 10)).before.shuffles == 0
    assert ask.decide(Limit(Limit(ordered, 10), 10)).before.shuffles == 0


def test_appended_files_are_read_beside_the_copy() -> None:
    stale = covering(EVENTS, "stale", ["customer"], ["amount"], buckets=16, bytes=300 * MB, covered=range(19))
    ask = Ask()
    scan = ask.scan(EVENTS.having(stale), ["customer", "amount"], "customer = 4711")
    decision = ask.decide(scan.node)
    [choice] = decision.choices
    assert isinstance(choice, StandIn)
    assert choice.direct
    assert choice.appended == pytest.approx(0.05)
    assert choice.drop == FileIds.of([])
    assert decision.after.shuffles == 0


def test_rows_of_files_that_are_gone_are_dropped() -> None:
    ask = Ask()
    scan = ask.scan(
        EVENTS.having(BY_USER),
        ["customer", "amount"],
        "customer = 4711",
        listed=FileIds.of(range(18)),
        listed_bytes=900 * MB,
    )
    [choice] = ask.decide(scan.node).choices
    assert isinstance(choice, StandIn)
    assert choice.drop == FileIds.of([18, 19])
    assert not choice.direct
    assert choice.deleted == pytest.approx(0.1)


def test_a_setting_can_forbid_hybrid_scans() -> None:
    stale = covering(EVENTS, "stale", ["customer"], ["amount"], covered=range(19))
    ask = Ask()
    scan = ask.scan(EVENTS.having(stale), ["customer", "amount"], "customer = 4711")
    decision = ask.decide(scan.node, config=Config(hybrid=False))
    assert codes(decision.reasons) == {"stale": Code.HYBRID_OFF}


def test_no_row_can_match_so_that_nothing_is_read() -> None:
    ask = Ask()
    scan = ask.scan(EVENTS.having(BY_DAY), ["day"], "day = DATE '2040-01-01'")
    [choice] = ask.decide(scan.node).choices
    assert isinstance(choice, StandIn)
    assert choice.content == ()


def test_among_many_indexes_the_best_is_found() -> None:
    useless = [
        covering(EVENTS, f"x{number}", ["amount"], ["customer"], bytes=300 * MB + number)
        for number in range(3 * MOST_CANDIDATES)
    ]
    ask = Ask()
    scan = ask.scan(EVENTS.having(*useless, BY_USER), ["customer", "amount"], "customer = 4711")
    decision = ask.decide(scan.node)
    assert picked(decision) == {"events#0": "by_user/0"}
    assert len(decision.reasons) == len(useless)


def test_reasons_can_be_left_out() -> None:
    ask = Ask()
    scan = ask.scan(EVENTS.having(BY_DAY, BY_USER), ["customer", "text"], "customer = 4711")
    query = ask.query(scan.node)
    missing = dict.fromkeys(("by_day", "by_user"), Code.MISSING_REQUIRED_COL)
    assert codes(choose(query, ask.tables, Config()).reasons) == missing
    assert choose(query, ask.tables, Config(), why=False).reasons == ()


def test_a_scan_that_no_index_can_serve_says_so_even_without_indexes() -> None:
    obstacle = Reason(Code.STREAMING, "", {}, "events")
    ask = Ask()
    scan = ask.scan(EVENTS, ["customer"], obstacle=obstacle, table=None)
    decision = ask.decide(scan.node)
    assert decision.choices == ()
    assert decision.reasons == (obstacle,)


def test_a_table_that_nobody_knows_is_planned_all_the_same() -> None:
    """Of such a scan only the attributes and Spark's size are known."""
    ask = Ask()
    unknown = replace(EVENTS, columns={}).reading
    scan = ask.scan(EVENTS, ["customer"], table=None, reading=unknown, listed=FileIds.of([]), listed_bytes=5 * MB)
    decision = ask.decide(scan.node)
    assert decision.before.milliseconds > 0
    assert decision.choices == ()
