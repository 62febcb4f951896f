"""Joins: which shuffles and sorts indexes save, and when only one side needs one."""

from dataclasses import replace

import pytest

from grebe.planner.decision import Decision
from grebe.planner.query import Join, Project, Settings, Union
from grebe.planner.reasons import Code
from grebe.planner.tables import KnownIndex
from tests.planner.lake import MB, NO_BROADCAST, SETTINGS, Ask, Scanned, Source, covering, picked

COLUMNS = {"k": "long", "g": "long", "v": "double", "w": "string"}
LEFT = Source("left", COLUMNS, 20_000_000, 800 * MB)
RIGHT = Source("right", COLUMNS, 5_000_000, 200 * MB)
SMALL = Source("small", COLUMNS, 10_000, 400_000, files=1)


def by_key(source: Source, buckets: int = 16, **more: object) -> KnownIndex:
    return covering(source, "by_k", ["k"], ["g", "v"], buckets=buckets, bytes=source.bytes * 2 // 3, **more)  # type: ignore[arg-type]  # passed on


def joined(
    left: Source,
    right: Source,
    keys: tuple[str, ...] = ("k",),
    kind: str = "Inner",
    hint: str | None = None,
    settings: Settings = NO_BROADCAST,
) -> Decision:
    ask = Ask(settings)
    one, other = ask.scan(left, ["k", "g", "v"]), ask.scan(right, ["k", "g", "v"])
    return ask.decide(join(one, other, keys, kind, hint))


def join(
    one: Scanned, other: Scanned, keys: tuple[str, ...] = ("k",), kind: str = "Inner", hint: str | None = None
) -> Join:
    return Join(kind, one.node, other.node, tuple(one[k] for k in keys), tuple(other[k] for k in keys), hint)


def test_two_indexes_alike_leave_nothing_to_shuffle_or_sort() -> None:
    decision = joined(LEFT.having(by_key(LEFT)), RIGHT.having(by_key(RIGHT)))
    assert picked(decision) == {"left#0": "by_k/16s", "right#1": "by_k/16s"}
    assert (decision.before.shuffles, decision.before.sorts) == (2, 2)
    assert (decision.after.shuffles, decision.after.sorts) == (0, 0)
    assert decision.reasons == ()


def test_one_index_is_enough_for_only_the_other_side_to_move() -> None:
    decision = joined(LEFT.having(by_key(LEFT)), RIGHT)
    assert picked(decision) == {"left#0": "by_k/16s"}
    assert (decision.after.shuffles, decision.after.sorts) == (1, 1)


def test_different_bucket_counts_meet_at_their_common_divisor() -> None:
    decision = joined(LEFT.having(by_key(LEFT, 24)), RIGHT.having(by_key(RIGHT, 16)))
    assert {text.rstrip("s") for text in picked(decision).values()} == {"by_k/8"}
    assert decision.after.shuffles == 0


def test_bucket_counts_without_a_common_divisor_are_no_pair() -> None:
    decision = joined(LEFT.having(by_key(LEFT, 16)), RIGHT.having(replace(by_key(RIGHT, 9), name="nine")))
    assert decision.after.shuffles == 1
    [reason] = decision.reasons
    assert reason.code == Code.NO_COMPATIBLE_JOIN_INDEX_PAIR
    assert reason.arguments["buckets"] * reason.arguments["pair_buckets"] == 16 * 9


def test_a_join_on_more_columns_than_the_buckets_needs_no_shuffle_but_sorts() -> None:
    decision = joined(LEFT.having(by_key(LEFT)), RIGHT.having(by_key(RIGHT)), ("g", "k"))
    assert set(picked(decision)) == {"left#0", "right#1"}
    assert (decision.after.shuffles, decision.after.sorts) == (0, 2)


def by_both(source: Source, *columns: str, hashed: int | None = None) -> KnownIndex:
    return covering(source, "by_both", columns, ["v"], buckets=16, hashed=hashed, bytes=source.bytes // 2)


@pytest.mark.parametrize("keys", [("k", "g"), ("g", "k")])
@pytest.mark.parametrize("hashed", [1, 2])
def test_composite_keys_serve_in_any_order(keys: tuple[str, ...], hashed: int) -> None:
    left, right = (source.having(by_both(source, "g", "k", hashed=hashed)) for source in (LEFT, RIGHT))
    decision = joined(left, right, keys)
    assert picked(decision) == {"left#0": "by_both/16s", "right#1": "by_both/16s"}
    assert (decision.after.shuffles, decision.after.sorts) == (0, 0)


def test_sides_that_are_hashed_alike_but_sorted_otherwise_sort_one() -> None:
    right = covering(RIGHT, "by_k", ["k"], ["g", "v"], buckets=16, bytes=100 * MB)
    decision = joined(LEFT.having(by_both(LEFT, "k", "g", hashed=1)), RIGHT.having(right), ("k", "g"))
    assert (decision.after.shuffles, decision.after.sorts) == (0, 1)


def test_an_index_hashed_by_more_columns_than_the_join_has_saves_nothing() -> None:
    decision = joined(LEFT.having(by_both(LEFT, "k", "g")), RIGHT)
    [reason] = decision.reasons
    assert decision.choices == ()
    assert (reason.code, reason.arguments) == (Code.MISSING_INDEXED_COL, {"columns": ["g"]})


def test_a_small_side_is_broadcast_and_the_index_has_nothing_to_save() -> None:
    decision = joined(LEFT.having(by_key(LEFT)), SMALL, settings=SETTINGS)
    assert decision.choices == ()
    assert decision.before.broadcasts == 1
    assert [reason.code for reason in decision.reasons] == [Code.BROADCAST_INSTEAD]


def test_the_preserved_side_of_an_outer_join_is_not_broadcast() -> None:
    assert joined(LEFT, SMALL, kind="RightOuter", settings=SETTINGS).before.broadcasts == 0
    assert joined(LEFT, SMALL, kind="LeftOuter", settings=SETTINGS).before.broadcasts == 1
    assert joined(SMALL, LEFT, kind="LeftSemi", settings=SETTINGS).before.broadcasts == 0


def test_hints_decide_over_sizes() -> None:
    assert joined(LEFT, SMALL, hint="merge", settings=SETTINGS).before.broadcasts == 0
    assert joined(LEFT, RIGHT, hint="right").before.broadcasts == 1
    hashed = joined(LEFT, RIGHT, hint="hash").before
    assert (hashed.shuffles, hashed.sorts) == (2, 0)


def test_adaptive_execution_spares_the_sorts_beside_a_side_that_turns_out_small() -> None:
    ask = Ask(replace(NO_BROADCAST, adaptive_broadcast_bytes=10 * MB))
    one = ask.scan(LEFT, ["k", "v"])
    other = ask.scan(RIGHT, ["k", "g", "v"], "g = 1 AND v = 2 AND w = 'x' AND k IS NOT NULL")
    decision = ask.decide(join(one, other))
    assert (decision.before.shuffles, decision.before.sorts) == (2, 0)


def test_an_index_may_make_a_side_small_enough_for_a_broadcast() -> None:
    slim = covering(RIGHT, "slim", ["g"], ["k"], buckets=0, bytes=40 * MB, between=(0, 16_000_000))
    ask = Ask(SETTINGS)
    one, other = ask.scan(LEFT, ["k", "v"]), ask.scan(RIGHT.having(slim), ["k", "g"], "g < 1000000")
    decision = ask.decide(join(one, other))
    assert decision.before.broadcasts == 0
    assert picked(decision) == {"right#1": "slim/0"}
    assert decision.after.broadcasts == 1


@pytest.mark.parametrize("kind", ["LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti"])
def test_every_kind_of_equi_join_is_served(kind: str) -> None:
    decision = joined(LEFT.having(by_key(LEFT)), RIGHT.having(by_key(RIGHT)), kind=kind)
    assert (decision.after.shuffles, decision.after.sorts) == (0, 0)


def test_a_join_without_equality_is_not_served() -> None:
    ask = Ask(NO_BROADCAST)
    one, other = ask.scan(LEFT.having(by_key(LEFT)), ["k", "v"]), ask.scan(SMALL, ["k", "v"])
    decision = ask.decide(Join("Inner", one.node, other.node, (None,), (None,)))
    assert decision.choices == ()
    assert [reason.code for reason in decision.reasons] == [Code.NOT_ELIGIBLE_JOIN]
    assert ask.decide(Join("Cross", one.node, other.node, (), ())).before.shuffles == 0


def test_other_names_of_a_column_are_the_column() -> None:
    ask = Ask(NO_BROADCAST)
    one, other = ask.scan(LEFT.having(by_key(LEFT)), ["k", "v"]), ask.scan(RIGHT.having(by_key(RIGHT)), ["k", "v"])
    alias = ask.fresh()
    renamed = Project(one.node, {alias: one.ids["k"]})
    decision = ask.decide(Join("Inner", renamed, other.node, (alias,), (other["k"],)))
    assert (decision.after.shuffles, decision.after.sorts) == (0, 0)


def test_a_union_keeps_no_partitioning() -> None:
    ask = Ask(NO_BROADCAST)
    source = LEFT.having(by_key(LEFT))
    one, two, other = ask.scan(source, ["k", "v"]), ask.scan(source, ["k", "v"]), ask.scan(RIGHT, ["k", "v"])
    both = Union((one.node, two.node))
    decision = ask.decide(Join("Inner", both, other.node, (one["k"],), (other["k"],)))
    assert decision.after.shuffles == 2


def test_three_tables_on_one_key_share_their_buckets() -> None:
    third = replace(RIGHT, name="third")
    ask = Ask(NO_BROADCAST)
    scans = [ask.scan(source.having(by_key(source)), ["k", "v"]) for source in (LEFT, RIGHT, third)]
    two = join(scans[0], scans[1])
    decision = ask.decide(Join("Inner", two, scans[2].node, (scans[1]["k"],), (scans[2]["k"],)))
    assert picked(decision) == {"left#0": "by_k/16s", "right#1": "by_k/16s", "third#2": "by_k/16s"}
    assert (decision.after.shuffles, decision.after.sorts) == (0, 0)


def test_both_sides_of_a_self_join_are_served() -> None:
    ask = Ask(NO_BROADCAST)
    source = LEFT.having(by_key(LEFT))
    one, other = ask.scan(source, ["k", "v"]), ask.scan(source, ["k", "g"])
    decision = ask.decide(join(one, other))
    assert picked(decision) == {"left#0": "by_k/16s", "left#1": "by_k/16s"}
    assert decision.used == ("by_k",)


def test_appended_files_cost_one_shuffle_of_their_rows() -> None:
    stale = by_key(LEFT, covered=range(7))
    decision = joined(LEFT.having(stale), RIGHT.having(by_key(RIGHT)))
    assert set(picked(decision)) == {"left#0", "right#1"}
    assert decision.after.shuffles == 1
    assert decision.after.shuffle_bytes < decision.before.shuffle_bytes / 5


def test_several_runs_are_merged_rather_than_sorted() -> None:
    decision = joined(LEFT.having(by_key(LEFT, runs=4)), RIGHT.having(by_key(RIGHT)))
    assert picked(decision) == {"left#0": "by_k/16s", "right#1": "by_k/16s"}
    fresh = joined(LEFT.having(by_key(LEFT)), RIGHT.having(by_key(RIGHT)))
    assert decision.after.milliseconds > fresh.after.milliseconds


def test_bucketing_can_be_off_in_spark() -> None:
    decision = joined(LEFT.having(by_key(LEFT)), RIGHT, settings=replace(NO_BROADCAST, bucketing=False))
    assert decision.choices == ()
    assert decision.after.shuffles == 2
    assert [reason.code for reason in decision.reasons] == [Code.BUCKETING_OFF]


def test_an_index_that_is_too_dear_alone_says_where_its_pair_is_missing() -> None:
    dear = covering(RIGHT, "by_k", ["k"], ["g", "v"], buckets=16, bytes=4 * RIGHT.bytes)
    ask = Ask(NO_BROADCAST)
    one = ask.scan(replace(LEFT, rows=50_000, bytes=2 * MB), ["k", "v"])
    other = ask.scan(RIGHT.having(dear), ["k", "g", "v"], "g = 1 AND v = 2")
    decision = ask.decide(join(one, other))
    [reason] = decision.reasons
    assert reason.code == Code.NO_AVAIL_JOIN_INDEX_PAIR
    assert reason.arguments["other"] == "left"
    assert reason.arguments["with_ms"] > reason.arguments["without_ms"]


def test_of_two_scans_the_one_where_an_index_came_closest_tells_why() -> None:
    ask = Ask(NO_BROADCAST)
    dear = covering(LEFT, "dear", ["v"], ["k"], buckets=0, bytes=4 * LEFT.bytes)
    one, other = ask.scan(LEFT.having(dear), ["k", "w"]), ask.scan(LEFT.having(dear), ["k", "v"], "v IS NOT NULL")
    for pair in ((one, other), (other, one)):
        [reason] = ask.decide(join(*pair)).reasons
        assert reason.code == Code.NOT_CHEAPER
