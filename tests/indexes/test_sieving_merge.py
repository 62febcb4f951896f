"""Sieves are merged from what they say: nothing is lost, and files that are gone can be left out."""

import numpy as np
import pytest

from grebe.indexes.sieving import blocks
from grebe.indexes.sieving.build import build
from tests.indexes.sieving_data import GREATEST, LEAST, Held, clustered, files_kept, held_by, late, lost, some_ranges


def _random(seed: int) -> Held:
    rng = np.random.default_rng(seed)
    scale = 10 ** int(rng.integers(1, 18))
    return Held.of(rng.integers(-scale, scale, 800), rng.integers(seed * 20, seed * 20 + 20, 800))


@pytest.mark.parametrize("budget", [0, 200, 1_000, 20_000])
@pytest.mark.parametrize("seed", range(6))
def test_a_merged_sieve_says_all_that_its_parts_say(seed: int, budget: int) -> None:
    rng = np.random.default_rng(seed)
    data = [_random(seed), _random(seed + 1), Held.of([LEAST, GREATEST], [1, 999])]
    said = [held_by(part.sieve(int(rng.choice([0, 150, 700, 10_000])))) for part in data]
    together = said[0] + said[1] + said[2]
    merged = together.sieve(budget)
    whole = data[0] + data[1] + data[2]
    assert lost(merged, together, some_ranges(together, rng, 30)) == []
    assert lost(merged, whole, some_ranges(whole, rng, 60)) == []
    assert len(merged.to_bytes()) <= max(budget, len(together.sieve(0).to_bytes()))


def test_a_sieve_made_of_a_sieve_says_the_same_where_it_fits() -> None:
    for held in (late(30_000, 30), clustered(30_000, 30)):
        sieve = held.sieve(2_400)
        again = held_by(sieve).sieve(50_000)
        asked = some_ranges(held, np.random.default_rng(0), 100)
        assert [again.files([one]).tolist() for one in asked] == [sieve.files([one]).tolist() for one in asked]


def test_files_that_are_gone_are_left_out() -> None:
    held = clustered(20_000, 40)
    lows, highs, files = held.sieve(1_600).triples()
    alive = files % 2 == 0
    kept = build(lows[alive], highs[alive], files[alive], 1_600)
    assert kept is not None
    assert kept.files([(LEAST, GREATEST)]).tolist() == list(range(0, 40, 2))
    rest = Held.of(held.lows[held.files % 2 == 0], held.files[held.files % 2 == 0])
    assert lost(kept, rest, some_ranges(rest, np.random.default_rng(0), 100)) == []


def test_one_sieve_a_file_prunes_like_one_for_all() -> None:
    """New files come with a few late keys each; that must not make them candidates for all keys since."""
    held = late(100_000, 50)
    parts = []
    for file in range(50):
        own = held.files == file
        parts.append(Held.of(held.lows[own], held.files[own]).sieve(int(own.sum()) * 8 // 100))
    merged = sum((held_by(part) for part in parts[1:]), held_by(parts[0])).sieve(len(held.lows) * 8 // 100)
    asked = np.random.default_rng(0).choice(held.lows, 200).tolist()
    apart = np.mean([sum(len(part.files([(key, key)])) for part in parts) for key in asked])
    truth, together = files_kept(merged, held, 200)
    assert apart <= 1.3 * truth
    assert together <= 1.3 * truth


@pytest.mark.parametrize("most", [blocks._MOST_PARTS, 3_000])
def test_stretches_that_cut_into_one_another_everywhere_stay_bounded(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_MOST_PARTS", most)
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, 2**60, (250, 2)), axis=1)
    stretches = Held(ends[:, 0], ends[:, 1], np.arange(250).astype(np.uint32))
    held = stretches + Held.of(rng.integers(0, 2**60, 300), [700] * 300)
    sieve = held.sieve(5_000)
    assert lost(sieve, held, some_ranges(held, rng, 60)) == []
    assert len(sieve.to_bytes()) <= 5_000
