"""A sieve never leaves out a file that holds a key, whatever the keys, the files and the budget are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.indexes.sieving.build import build
from grebe.indexes.sieving.sieve import Sieve
from tests.indexes.sieving_data import GREATEST, LEAST, Held, clustered, files_kept, late, lost, some_ranges

_BUDGETS = [0, 60, 120, 300, 1_000, 10_000]


def _dense(rng: np.random.Generator) -> Held:
    return Held.of(rng.integers(0, 500, 2_000), rng.integers(0, 30, 2_000))


def _sparse(rng: np.random.Generator) -> Held:
    return Held.of(rng.integers(LEAST, GREATEST, 1_500, endpoint=True), rng.integers(0, 2**32, 1_500))


def _extreme(rng: np.random.Generator) -> Held:
    ends = np.concatenate(
        (rng.integers(LEAST, LEAST + 50, 300), rng.integers(GREATEST - 50, GREATEST, 300, endpoint=True))
    )
    return Held.of(np.concatenate((ends, [LEAST, -1, 0, GREATEST])), rng.integers(0, 9, 604))


def _magnitudes(rng: np.random.Generator) -> Held:
    keys = rng.normal(0, 1, 1_000) * 10.0 ** rng.integers(0, 18, 1_000)
    return Held.of(keys.astype(np.int64), rng.integers(5, 12, 1_000))


def _one_key(rng: np.random.Generator) -> Held:
    return Held.of([int(rng.integers(LEAST, GREATEST))] * 3, [7, 8, 7])


def _all_keys_equal_in_many_files(rng: np.random.Generator) -> Held:
    return Held.of(np.full(2_000, -3), rng.permutation(2_000))


def _many_files(rng: np.random.Generator) -> Held:
    return Held.of(rng.integers(0, 10**9, 3_000), rng.choice(2**32, 3_000, replace=False))


def _sorted(rng: np.random.Generator) -> Held:
    return Held.of(np.sort(rng.integers(0, 10**6, 3_000)), np.arange(3_000) // 100)


def _stretches(rng: np.random.Generator) -> Held:
    lows = rng.integers(-(10**6), 10**6, 400)
    return Held(lows, lows + rng.integers(0, 10 ** rng.integers(0, 6, 400)), rng.integers(0, 40, 400).astype(np.uint32))


def _stretches_over_everything(rng: np.random.Generator) -> Held:
    ends = np.sort(rng.integers(LEAST, GREATEST, (60, 2), endpoint=True), axis=1)
    return Held(ends[:, 0], ends[:, 1], rng.integers(0, 9, 60).astype(np.uint32)) + Held.of([LEAST, GREATEST], [1, 2])


_SHAPES = [
    _dense,
    _sparse,
    _extreme,
    _magnitudes,
    _one_key,
    _all_keys_equal_in_many_files,
    _many_files,
    _sorted,
    _stretches,
    _stretches_over_everything,
]


@pytest.mark.parametrize("budget", _BUDGETS)
@pytest.mark.parametrize("shape", _SHAPES, ids=lambda shape: shape.__name__.strip("_"))
def test_no_file_is_lost(shape: object, budget: int) -> None:
    assert callable(shape)
    rng = np.random.default_rng(budget)
    held = shape(rng)
    sieve = held.sieve(budget)
    assert lost(sieve, held, some_ranges(held, rng, 25)) == []
    assert (sieve.low, sieve.high) == (held.lows.min(), held.highs.max())
    assert set(sieve.files([(LEAST, GREATEST)]).tolist()) == set(held.files.tolist())


@pytest.mark.parametrize("budget", _BUDGETS)
@pytest.mark.parametrize("shape", _SHAPES, ids=lambda shape: shape.__name__.strip("_"))
def test_the_budget_is_kept(shape: object, budget: int) -> None:
    assert callable(shape)
    held = shape(np.random.default_rng(1))
    least = held.sieve(0)
    assert len(held.sieve(budget).to_bytes()) <= max(budget, len(least.to_bytes()))
    assert least.files([(least.low, least.low)]).tolist() == sorted(set(held.files.tolist()))


_KEYS = st.one_of(
    st.integers(-20, 20),
    st.integers(LEAST, GREATEST),
    st.integers(0, 40).map(lambda key: 2**62 + key),
    st.sampled_from([LEAST, GREATEST, 0, -1]),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(_KEYS, st.integers(0, 6)), min_size=1, max_size=60), st.sampled_from([0, 60, 90, 150, 500]))
def test_every_pair_is_found_by_point_and_by_range(pairs: list[tuple[int, int]], budget: int) -> None:
    keys, files = zip(*pairs, strict=True)
    held = Held.of(keys, files)
    ranges = [(low, high) for low in keys[:12] for high in keys[:12] if low <= high]
    assert lost(held.sieve(budget), held, [*((key, key) for key in keys), *ranges]) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(_KEYS, _KEYS, st.integers(0, 4)), min_size=1, max_size=25), st.sampled_from([0, 80, 150, 600])
)
def test_every_stretch_is_found_wherever_it_is_touched(stretches: list[tuple[int, int, int]], budget: int) -> None:
    ends = np.sort(np.array([stretch[:2] for stretch in stretches], np.int64), axis=1)
    held = Held(ends[:, 0], ends[:, 1], np.array([stretch[2] for stretch in stretches], np.uint32))
    middles = [(int(low) + int(high)) // 2 for low, high in ends.tolist()]
    places = [*ends.ravel().tolist(), *middles]
    assert lost(held.sieve(budget), held, [(place, place) for place in places]) == []


def test_nothing_makes_no_sieve() -> None:
    none = np.zeros(0, np.int64)
    assert build(none, none, none.astype(np.uint32), 1_000) is None


def test_the_order_of_pairs_and_repetitions_do_not_matter() -> None:
    held = late(5_000, 20)
    again = np.random.default_rng(0).choice(np.arange(5_000), 9_000)
    order = np.concatenate((again, np.random.default_rng(1).permutation(5_000)))
    shuffled = Held.of(held.lows[order], held.files[order])
    assert shuffled.sieve(400).to_bytes() == held.sieve(400).to_bytes()


def test_many_ranges_are_answered_as_their_union() -> None:
    held = clustered(20_000, 50)
    sieve = held.sieve(1_600)
    ranges = some_ranges(held, np.random.default_rng(0), 2_000)[:-1]
    backwards = (int(held.highs.max()), int(held.lows.min()))
    for part in (ranges[:2_000], ranges[2_000:2_040], [*ranges[:5], backwards]):
        each = [sieve.files([one]) for one in part]
        assert sieve.files(part).tolist() == np.unique(np.concatenate(each)).tolist()


def test_no_range_and_ranges_where_nothing_is_name_no_file() -> None:
    sieve = Held.of([10, 20], [1, 2]).sieve(1_000)
    assert [sieve.files(ranges).tolist() for ranges in ([], [(5, 4)], [(-9, 9), (21, 99)], [(11, 19)])] == [[]] * 4
    assert sieve.files([(-(2**70), 2**70)]).tolist() == [1, 2]


def test_what_fits_is_exact() -> None:
    held = late(20_000, 10)
    sieve = held.sieve(100_000)
    assert sieve.exact
    asked = np.random.default_rng(0).choice(held.lows, 200).tolist()
    assert all(set(sieve.files([(key, key)]).tolist()) == held.between(key, key) for key in asked)


def test_late_times_are_told_within_a_third_of_the_truth_at_a_hundredth_of_the_keys() -> None:
    held = late(200_000, 100)
    truth, kept = files_kept(held.sieve(len(held.lows) * 8 // 100), held, 150)
    assert kept <= 1.3 * truth


def test_overlapping_clusters_are_told_within_twice_the_truth_at_a_hundredth_of_the_keys() -> None:
    held = clustered(200_000, 100)
    truth, kept = files_kept(held.sieve(len(held.lows) * 8 // 100), held, 150)
    assert kept <= 2.0 * truth
    smaller = files_kept(held.sieve(len(held.lows) * 8 // 1_000), held, 150)[1]
    assert kept < smaller < 100


def test_keys_without_any_order_still_use_the_budget() -> None:
    rng = np.random.default_rng(0)
    held = Held.of(rng.integers(0, 2**40, 50_000), rng.integers(0, 50, 50_000))
    sieve = held.sieve(4_000)
    assert 3_000 < len(sieve.to_bytes()) <= 4_000
    assert files_kept(sieve, held, 100)[1] < 49


def test_weights_say_what_is_asked_for() -> None:
    rng = np.random.default_rng(0)
    held = Held.of(rng.integers(0, 2**30, 20_000), rng.integers(0, 8, 20_000))
    lower = held.lows < 2**29
    made = [build(held.lows, held.highs, held.files, 1_500, np.where(half, 100, 1)) for half in (lower, ~lower)]
    asked = [Held.of(held.lows[half], held.files[half]) for half in (lower, ~lower)]

    def kept(sieve: Sieve | None, keys: Held) -> float:
        assert sieve is not None
        return files_kept(sieve, keys, 100)[1]

    assert kept(made[0], asked[0]) < kept(made[1], asked[0])
    assert kept(made[1], asked[1]) < kept(made[0], asked[1])
