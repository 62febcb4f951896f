"""Joins with a small side: when its keys are looked up in an index of the other side."""

from dataclasses import replace

import pytest

from grebe.config import Config
from grebe.planner.choose import choose
from grebe.planner.decision import ByKeys, Decision, Narrow
from grebe.planner.explain import Explanation
from grebe.planner.query import Join, Leaf, Node, Project, Settings
from grebe.planner.reasons import Code
from grebe.planner.tables import KnownIndex
from tests.planner.lake import MB, NO_BROADCAST, SETTINGS, Ask, Source
from tests.planner.pruners import Asked, asked, pruning

BIG = Source("big", {"id": "long", "other": "long", "text": "string"}, 50_000_000, 2_000 * MB, files=10_000)
BY_ID = pruning(BIG, "by_id", "id", [])
FEW = Leaf("LocalRelation", 4_000)
MANY = Leaf("LocalRelation", 9 * MB)


def decided(
    small: Node,
    kind: str = "Inner",
    left: bool = True,
    column: str = "id",
    where: str = "",
    settings: Settings = SETTINGS,
    index: KnownIndex = BY_ID,
    source: Source = BIG,
) -> tuple[Decision, int]:
    ask = Ask(settings)
    scan = ask.scan(source.having(index), ["id", "other", "text"], where)
    key, other = scan[column], ask.fresh()
    big: Node = Project(scan.node, {})
    sides = (big, small, (key,), (other,)) if left else (small, big, (other,), (key,))
    query = ask.query(Join(kind, *sides))
    assert key is not None
    return choose(query, ask.tables, Config(), inquiry=Asked()), key


def by_keys(decision: Decision) -> ByKeys:
    [choice] = decision.choices
    assert isinstance(choice, ByKeys)
    return choice


@pytest.mark.parametrize("left", [True, False])
def test_the_keys_of_a_small_side_are_looked_up(left: bool) -> None:
    decision, key = decided(FEW, left=left)
    choice = by_keys(decision)
    assert (choice.index, choice.left, choice.key, choice.column, choice.path) == ("by_id", left, key, key, ("id",))
    assert choice.broadcast
    assert decision.used == ("by_id",)
    assert asked(BY_ID) == []


@pytest.mark.parametrize(
    ("kind", "left", "used"),
    [
        ("LeftSemi", True, True),
        ("LeftSemi", False, True),
        ("LeftOuter", True, False),
        ("LeftOuter", False, True),
        ("RightOuter", True, True),
        ("RightOuter", False, False),
        ("FullOuter", True, False),
        ("LeftAnti", True, False),
        ("LeftAnti", False, True),
        ("ExistenceJoin", True, False),
    ],
)
def test_only_rows_without_a_partner_may_be_left_out(kind: str, left: bool, used: bool) -> None:
    assert bool(decided(FEW, kind, left)[0].choices) == used


def test_a_side_that_is_not_broadcast_is_run_for_its_keys_where_that_pays() -> None:
    assert not by_keys(decided(FEW, settings=NO_BROADCAST)[0]).broadcast


def test_a_broadcast_of_the_big_side_brings_no_keys() -> None:
    small = replace(BIG, bytes=5 * MB, rows=100_000)
    assert not by_keys(decided(FEW, "RightOuter", source=small)[0]).broadcast


def test_many_keys_are_not_looked_up() -> None:
    decision, _ = decided(MANY)
    assert decision.choices == ()
    [reason] = decision.reasons
    assert reason.code == Code.TOO_MANY_KEYS
    assert reason.arguments["column"] == "id"
    assert "the join on id" in reason.sentence


def test_a_join_by_another_column_is_not_looked_up() -> None:
    decision, _ = decided(FEW, column="other")
    assert decision.choices == ()
    assert [reason.code for reason in decision.reasons] == [Code.NO_FIRST_INDEXED_COL_COND]


def test_a_name_for_the_column_is_followed_down_to_the_scan() -> None:
    ask = Ask()
    scan = ask.scan(BIG.having(BY_ID), ["id", "text"])
    renamed, other = ask.fresh(), ask.fresh()
    column = scan["id"]
    assert column is not None
    query = ask.query(Join("Inner", Project(scan.node, {renamed: column}), FEW, (renamed,), (other,)))
    choice = by_keys(choose(query, ask.tables, Config(), inquiry=Asked()))
    assert (choice.key, choice.column) == (renamed, column)


def test_files_that_a_condition_leaves_are_narrowed_again_by_keys() -> None:
    by_id = pruning(BIG, "by_id", "id", range(2_000))
    decision, _ = decided(FEW, where="id > 7", index=by_id)
    assert [type(choice) for choice in decision.choices] == [Narrow, ByKeys]
    assert decision.used == ("by_id",)


def test_a_scan_that_costs_little_is_not_worth_a_lookup() -> None:
    small = replace(BIG, rows=1_000, bytes=50_000, files=1)
    decision, _ = decided(FEW, source=small, index=pruning(small, "by_id", "id", []))
    assert [reason.code for reason in decision.reasons] == [Code.SCAN_IS_CHEAP]


def test_an_explanation_says_what_will_be_looked_up() -> None:
    explanation = Explanation(decided(FEW)[0])
    assert "  big: by_id, only the files where the join finds its keys of id, up to 100,000" in str(explanation)
    [choice] = explanation.to_dict()["choices"]
    assert choice == {
        "relation": "big",
        "table": BIG.uri,
        "index": "by_id",
        "older_versions": {},
        "how": "keys",
        "column": "id",
        "most_keys": 100_000,
    }
