"""The ways to read one copy: what each brings to a plan, and what it costs beside the others."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from grebe.config import Config
from grebe.planner.candidates import Candidate, asked_of, candidate
from grebe.planner.cost import Meter
from grebe.planner.options import Option, StandInOptions, Wanted, plain_option
from grebe.planner.profile import profile
from grebe.planner.query import Settings
from grebe.planner.shapes import Attributes
from tests.planner.lake import MB, NO_BROADCAST, Ask, Source, covering

TABLE = Source("t", {"k": "long", "g": "long", "v": "double"}, 5_000_000, 200 * MB)


def options(
    index: Any,
    wanted: Iterable[str] = ("k",),
    ordered: Iterable[str] = ("k",),
    where: str = "",
    counts: frozenset[int] = frozenset(),
    settings: Settings = NO_BROADCAST,
) -> list[Option]:
    ask = Ask(settings)
    scan = ask.scan(TABLE, ["k", "g", "v"], where)
    query = ask.query(scan.node)
    asked = asked_of(query.relations[0])
    found = candidate(asked, TABLE.known, index, query, Config())
    assert isinstance(found, Candidate)
    meter = Meter(settings)
    known = profile(asked, [found], TABLE.known, frozenset())
    every = StandInOptions(found, known, Attributes(query), meter).options(
        Wanted(frozenset(scan.ids[name] for name in wanted), frozenset(scan.ids[name] for name in ordered)), counts
    )
    assert all(option.cost > 0 for option in [*every, plain_option(known, meter)])
    return every


def by_k(buckets: int = 16, **more: Any) -> Any:
    return covering(TABLE, "by_k", ["k"], ["g", "v"], buckets=buckets, bytes=150 * MB, **more)


def shown(found: list[Option]) -> list[str]:
    return [f"{option.buckets}{'s' if option.ordered else ''}" for option in found]


def test_a_copy_is_read_as_files_as_written_in_order_or_with_fewer_partitions() -> None:
    assert shown(options(by_k())) == ["0", "16", "16s", "8"]


def test_what_no_node_can_use_is_not_offered() -> None:
    assert shown(options(by_k(), wanted=())) == ["0"]
    assert shown(options(by_k(), ordered=())) == ["0", "16", "8"]
    assert shown(options(by_k(), settings=replace(NO_BROADCAST, bucketing=False))) == ["0"]
    assert shown(options(by_k(0))) == ["0"]


def test_the_counts_of_other_copies_are_offered_as_far_as_they_divide() -> None:
    assert shown(options(by_k(24), counts=frozenset({24, 16, 7}))) == ["0", "24", "24s", "8", "8s"]


def test_an_order_is_free_only_for_one_run_read_as_written() -> None:
    def price(index: Any, counts: frozenset[int] = frozenset(), buckets: int = 16) -> float:
        costs = {(option.buckets, option.ordered): option.cost for option in options(index, counts=counts)}
        return costs[buckets, True] - costs[buckets, False]

    assert price(by_k()) == pytest.approx(0, abs=1e-3)
    assert price(by_k(runs=3)) > 10
    assert price(by_k(24), frozenset({16}), 8) > 10
    assert price(by_k(covered=range(7))) > 10


def test_only_runs_that_are_read_are_merged() -> None:
    bounded = by_k(0, runs=2, between=(0, 1_600_000))
    [option] = options(bounded, where="k < 50000")
    assert option.files == 2


def test_a_hybrid_read_in_buckets_shuffles_the_rows_read_directly() -> None:
    plain, *bucketed = options(by_k(covered=range(7)))
    assert plain.shuffled_bytes == 0
    assert all(option.shuffled_bytes > 0 for option in bucketed)
    assert [option.sorts for option in bucketed if option.ordered] == [1]


def test_a_pruned_bucket_leaves_few_tasks() -> None:
    found = options(by_k(), where="k = 5")
    assert {option.tasks for option in found if option.buckets} == {1}
    assert {option.files for option in found} == {1}


def test_dropping_rows_by_lineage_is_paid_for() -> None:
    clean, dirty = options(by_k()), options(by_k(covered=[*range(8), 100]))
    assert all(one.cost < other.cost for one, other in zip(clean, dirty, strict=True))
