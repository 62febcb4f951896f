"""Scans of fewer files: which indexes are asked, what they leave out together, and when reading all is cheaper."""

from dataclasses import replace

import pytest

from grebe.config import Config
from grebe.files import FileIds
from grebe.planner.choose import choose
from grebe.planner.decision import Decision, Narrow, StandIn
from grebe.planner.explain import Explanation
from grebe.planner.query import Filter
from grebe.planner.reasons import Code, Reason
from grebe.planner.tables import KnownIndex
from tests.planner.lake import MB, Ask, Source, covering
from tests.planner.pruners import Asked, asked, pruning

EVENTS = Source(
    "events",
    {"id": "long", "customer": "long", "day": "date", "amount": "double", "text": "string"},
    20_000_000,
    1_000 * MB,
    files=1_000,
)
SMALL = replace(EVENTS, rows=100, bytes=10_000, files=1)
COLUMNS = ["id", "customer", "amount", "text"]


def decided(
    *indexes: KnownIndex,
    where: str = "id = 7",
    source: Source = EVENTS,
    columns: list[str] = COLUMNS,
    config: Config | None = None,
    inquiry: Asked | None = None,
    **facts: object,
) -> Decision:
    ask = Ask()
    scan = ask.scan(source.having(*indexes), columns, where, **facts)
    query = ask.query(Filter(scan.node, 1))
    return choose(query, ask.tables, config or Config(), inquiry=inquiry or Asked())


def narrow(decision: Decision) -> Narrow:
    [choice] = decision.choices
    assert isinstance(choice, Narrow)
    return choice


def codes(reasons: tuple[Reason, ...]) -> dict[str, str]:
    return {reason.index: reason.code for reason in reasons}


def test_only_the_files_with_entries_are_read() -> None:
    by_id = pruning(EVENTS, "by_id", "id", [17, 17, 400])
    decision = decided(by_id)
    choice = narrow(decision)
    assert choice.without == FileIds.of(range(1_000)) - FileIds.of([17, 400])
    assert (choice.index, choice.files, choice.files_of, choice.uncovered) == ("by_id", 2, 1_000, 0)
    assert decision.used == ("by_id",)
    assert decision.after.files == 2
    assert decision.after.bytes < decision.before.bytes / 400
    assert decision.after.milliseconds < decision.before.milliseconds / 100


def test_a_value_that_is_nowhere_leaves_no_file() -> None:
    assert narrow(decided(pruning(EVENTS, "by_id", "id", []))).files == 0


def test_files_that_the_index_does_not_know_are_read() -> None:
    by_id = pruning(EVENTS, "by_id", "id", [17], covered=range(990))
    choice = narrow(decided(by_id, unregistered_files=3, unregistered_bytes=3 * MB))
    assert choice.without == FileIds.of(range(990)) - FileIds.of([17])
    assert (choice.files, choice.files_of, choice.uncovered) == (14, 1_003, 13)


def test_entries_of_files_that_are_gone_count_for_nothing() -> None:
    listed = FileIds.of(range(500))
    choice = narrow(decided(pruning(EVENTS, "by_id", "id", [17, 700]), listed=listed, listed_bytes=500 * MB))
    assert choice.without == listed - FileIds.of([17])
    assert choice.files == 1


def test_conditions_on_several_columns_leave_what_all_of_their_indexes_leave() -> None:
    by_id = pruning(EVENTS, "by_id", "id", range(50))
    by_customer = pruning(EVENTS, "by_customer", "customer", range(40, 140))
    choice = narrow(decided(by_id, by_customer, where="id > 7 AND customer = 3"))
    assert choice.without == FileIds.of(range(1_000)) - FileIds.of(range(40, 50))
    assert (choice.index, choice.others) == ("by_id", ("by_customer",))


def test_a_second_index_is_not_asked_for_its_entries_where_one_file_is_left() -> None:
    by_id = pruning(EVENTS, "by_id", "id", [3])
    by_customer = pruning(EVENTS, "by_customer", "customer", range(100))
    decision = decided(by_id, by_customer, where="id = 7 AND customer = 3")
    assert decision.used == ("by_id",)
    assert asked(by_customer) == ["hits"]
    assert codes(decision.reasons) == {"by_customer": Code.ANOTHER_INDEX_APPLIED}


@pytest.mark.parametrize("files", [1, 10, 100])
def test_a_few_files_are_worth_it(files: int) -> None:
    assert decided(pruning(EVENTS, "by_id", "id", range(files))).used == ("by_id",)


def test_nearly_all_files_are_not_worth_it() -> None:
    decision = decided(pruning(EVENTS, "by_id", "id", range(990)))
    assert decision.choices == ()
    [reason] = decision.reasons
    assert reason.code == Code.NOT_CHEAPER
    assert reason.arguments["with_ms"] > 0.85 * reason.arguments["without_ms"]
    assert decision.before == decision.after


def test_more_rows_than_pay_are_not_looked_up() -> None:
    by_id = pruning(EVENTS, "by_id", "id", [1], most=19_000_000)
    decision = decided(by_id)
    assert asked(by_id) == ["hits"]
    assert codes(decision.reasons) == {"by_id": Code.TOO_MANY_ROWS}
    assert "19,000,000 rows of events" in decision.reasons[0].sentence


def test_an_index_whose_rows_lie_everywhere_says_so() -> None:
    assert codes(decided(pruning(EVENTS, "by_id", "id", range(1_000))).reasons) == {"by_id": Code.NOTHING_LEFT_OUT}


def test_nothing_is_read_of_an_index_for_a_scan_that_costs_next_to_nothing() -> None:
    by_id = pruning(SMALL, "by_id", "id", [])
    decision = decided(by_id, source=SMALL)
    assert codes(decision.reasons) == {"by_id": Code.SCAN_IS_CHEAP}
    assert asked(by_id) == []


def test_an_index_of_a_column_without_a_condition_is_not_asked() -> None:
    by_customer = pruning(EVENTS, "by_customer", "customer", [])
    decision = decided(by_customer)
    assert asked(by_customer) == []
    assert codes(decision.reasons) == {"by_customer": Code.NO_FIRST_INDEXED_COL_COND}


def test_the_same_question_is_not_asked_twice() -> None:
    by_id = pruning(EVENTS, "by_id", "id", [3])
    inquiry = Asked()
    assert decided(by_id, inquiry=inquiry) == decided(by_id, inquiry=inquiry)
    assert asked(by_id) == ["hits", "entries", "hits"]


def test_a_damaged_index_is_reported_and_another_one_serves() -> None:
    broken, by_customer = (
        pruning(EVENTS, "broken", "id", [], damaged=True),
        pruning(EVENTS, "by_customer", "customer", [5]),
    )
    inquiry = Asked()
    decision = decided(broken, by_customer, where="id = 7 AND customer = 3", inquiry=inquiry)
    assert inquiry.failed == ["broken"]
    assert decision.used == ("by_customer",)


def test_a_copy_that_answers_the_query_competes_with_files() -> None:
    by_id = pruning(EVENTS, "by_id", "id", range(200))
    copy = covering(EVENTS, "copy", ["id"], ["amount"], buckets=0, bytes=100 * MB, between=(0, 10**9))
    decision = decided(by_id, copy, columns=["id", "amount"])
    [choice] = decision.choices
    assert isinstance(choice, StandIn)
    assert codes(decision.reasons) == {"by_id": Code.ANOTHER_INDEX_APPLIED}
    assert decided(by_id, copy, columns=COLUMNS).used == ("by_id",)


def test_files_are_left_out_also_where_the_query_asks_for_their_names() -> None:
    obstacle = Reason(Code.USES_FILE_METADATA, "", {}, "events")
    assert decided(pruning(EVENTS, "by_id", "id", [3]), obstacle=obstacle).used == ("by_id",)


def test_other_obstacles_hold() -> None:
    obstacle = Reason(Code.UNSUPPORTED_RELATION, "", {"what": "x"}, "events")
    decision = decided(pruning(EVENTS, "by_id", "id", [3]), obstacle=obstacle)
    assert codes(decision.reasons) == {"by_id": Code.UNSUPPORTED_RELATION}


@pytest.mark.parametrize(
    ("index", "config", "code"),
    [
        (pruning(EVENTS, "i", "id", [3], set_aside="x"), Config(), Code.SET_ASIDE),
        (pruning(EVENTS, "i", "id", [3], covered=[5_000]), Config(), Code.NO_COMMON_FILES),
        (pruning(EVENTS, "i", "id", [3], covered=range(500)), Config(hybrid=False), Code.HYBRID_OFF),
        (pruning(replace(EVENTS, format="csv"), "i", "id", [3]), Config(), Code.READ_DIFFERENTLY),
        (
            pruning(replace(EVENTS, columns={**EVENTS.columns, "id": "int"}), "i", "id", [3]),
            Config(),
            Code.COL_SCHEMA_MISMATCH,
        ),
    ],
)
def test_what_rules_an_index_out_is_said(index: KnownIndex, config: Config, code: str) -> None:
    decision = decided(index, config=config)
    assert codes(decision.reasons) == {"i": code}
    assert asked(index) == []


def test_an_index_that_is_excluded_is_not_asked() -> None:
    ask = Ask()
    by_id = pruning(EVENTS, "by_id", "id", [3])
    scan = ask.scan(EVENTS.having(by_id), COLUMNS, "id = 7")
    query = ask.query(scan.node, without=frozenset({"BY_ID"}))
    decision = choose(query, ask.tables, Config(), inquiry=Asked())
    assert codes(decision.reasons) == {"by_id": Code.EXCLUDED}
    assert asked(by_id) == []


def test_an_explanation_names_indexes_and_files() -> None:
    by_id = pruning(EVENTS, "by_id", "id", range(50), covered=range(990))
    by_customer = pruning(EVENTS, "by_customer", "customer", range(40, 140), covered=range(990))
    explanation = Explanation(decided(by_id, by_customer, where="id > 7 AND customer = 3"))
    for line in (
        "  events: by_id and by_customer, 20 of 1,000 files of the table\n    by_id rules out 940\n",
        "    by_customer rules out 890\n    10 of them are not covered",
    ):
        assert line in str(explanation)
    assert explanation.to_dict()["choices"] == [
        {
            "relation": "events",
            "table": EVENTS.uri,
            "index": "by_id",
            "older_versions": {},
            "how": "files",
            "indexes": ["by_id", "by_customer"],
            "files": 20,
            "files_of": 1_000,
            "files_not_covered": 10,
            "files_in_part": 0,
            "left_out": {"by_id": 940, "by_customer": 890},
            "chosen": {},
        }
    ]
