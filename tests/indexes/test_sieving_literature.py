"""Mistakes that were made in learned sieves before, one test each: the answer here must be right where it was wrong there."""

import numpy as np
import pytest

from tests.indexes.sieving_data import GREATEST, LEAST, Held, clustered, late, lost


def test_set_changes_are_counted_not_keys() -> None:
    """A count of keys grows where nothing changes; then nothing is learnt, and size goes with the number of keys."""
    few = Held.of(np.arange(0, 10**6, 1_000), np.arange(1_000) // 100)
    many = Held.of(np.arange(10**6), np.arange(10**6) // 100_000)
    sieve = many.sieve(400)
    assert sieve.exact
    assert len(sieve.starts) == len(few.sieve(400).starts) == 10
    assert len(sieve.to_bytes()) <= 1.1 * len(few.sieve(400).to_bytes())
    assert all(sieve.files([(key, key)]).tolist() == [key // 100_000] for key in range(0, 10**6, 9_999))


def test_a_stretch_with_one_key_has_a_width() -> None:
    """A width of zero is nothing to divide by."""
    for key in (LEAST, -1, 0, 5, GREATEST):
        sieve = Held.of([key, key], [3, 4]).sieve(0)
        assert sieve.files([(key, key)]).tolist() == [3, 4]
    lonely = Held.of([*range(100), 2**40, 2**50], [*np.arange(100) % 7, 8, 9])
    for budget in (0, 60, 100, 200, 1_000):
        assert lost(lonely.sieve(budget), lonely, [(2**40, 2**40), (2**50, 2**50), (2**40, 2**50)]) == []


@pytest.mark.parametrize("last", [2**10 - 1, 2**10, 2**10 + 1, 10**9 + 7, GREATEST])
def test_the_last_key_of_a_stretch_falls_in_its_last_block(last: int) -> None:
    """Rounding up puts it one block further, where nothing is."""
    keys = last - np.arange(1_024)
    held = Held.of(keys, np.arange(1_024) % 11)
    for budget in (0, 80, 150, 400, 5_000):
        sieve = held.sieve(budget)
        assert (
            lost(sieve, held, [(last, last), (last - 1, last), (int(keys[-1]), int(keys[-1])), (last, GREATEST)]) == []
        )
        assert lost(sieve, held, [(end, end) for end in sieve.ends.tolist()]) == []


def test_a_range_reads_every_block_it_touches() -> None:
    """A loop that ended at the block whose end is behind the range lost files in most ranges."""
    held = clustered(30_000, 60)
    sieve = held.sieve(2_400)
    rng = np.random.default_rng(0)
    keys = np.sort(held.lows)
    begin = rng.integers(0, len(keys) - 400, 300)
    near = [(int(keys[at]), int(keys[at + step])) for at, step in zip(begin, rng.integers(1, 400, 300), strict=True)]
    edges = rng.integers(0, len(sieve.starts) - 5, 300)
    over_edges = [(int(sieve.starts[at]), int(sieve.starts[at + 4])) for at in edges]
    assert lost(sieve, held, near + over_edges) == []


def test_differences_of_keys_do_not_overflow() -> None:
    """Between the least and the greatest int64 lie more keys than an int64 can count."""
    rng = np.random.default_rng(0)
    inner = rng.integers(LEAST, GREATEST, 3_000, endpoint=True)
    held = Held.of(np.concatenate(([LEAST, LEAST + 1, GREATEST - 1, GREATEST], inner)), np.arange(3_004) % 13)
    points = [(int(key), int(key)) for key in held.lows[::10]]
    for budget in (0, 200, 1_000, 60_000):
        assert lost(held.sieve(budget), held, [*points, (LEAST, -1), (0, GREATEST), (GREATEST, GREATEST)]) == []
    whole = Held(np.array([LEAST]), np.array([GREATEST]), np.array([1], np.uint32)) + Held.of([0], [2])
    assert whole.sieve(1_000).files([(0, 0)]).tolist() == [1, 2]
    assert whole.sieve(1_000).files([(1, 1)]).tolist() == [1]


def test_keys_closer_than_a_float_can_tell_are_told_apart() -> None:
    """At 2^62 a float64 has steps of 1024."""
    held = Held.of(2**62 + np.arange(512), np.arange(512) % 64)
    sieve = held.sieve(10_000)
    assert all(sieve.files([(2**62 + key, 2**62 + key)]).tolist() == [key % 64] for key in range(512))
    far = Held.of(np.concatenate(([LEAST], 2**62 + np.arange(512))), np.concatenate(([70], np.arange(512) % 64)))
    for budget in (0, 150, 500, 10_000):
        assert lost(far.sieve(budget), far, [(2**62 + key, 2**62 + key) for key in range(512)]) == []


def test_a_key_in_a_wide_gap_is_in_no_file() -> None:
    """A line through both sides of a gap answers for what is between."""
    night = late(20_000, 20).sieve(1_600)
    noon, midnight = 100 * 86_400_000 + 12 * 3_600_000, 100 * 86_400_000
    assert night.files([(noon, noon + 3_600_000)]).size > 0
    assert night.files([(midnight - 3_600_000, midnight - 60_000)]).size <= 5
