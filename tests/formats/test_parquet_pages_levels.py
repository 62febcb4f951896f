"""Runs and bit-packed numbers: one value, many and all of them are the same, however they were cut into runs."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.formats.parquet_pages import levels
from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.thrift import write_varint

runs = st.lists(
    st.tuples(st.booleans(), st.integers(1, 70), st.integers(1, 4), st.integers(0, 2**32 - 1)), min_size=1, max_size=8
)


def encoded(width: int, cuts: Sequence[tuple[bool, int, int, int]]) -> tuple[bytes, list[int]]:
    """Packed runs, some of them repeated, and runs of one value."""
    out, values = [], []
    for packed, size, repeat, seed in cuts:
        rng = np.random.default_rng(seed)
        if not packed:
            value = int(rng.integers(0, 2**width))
            out.append(write_varint(size << 1) + value.to_bytes((width + 7) // 8, "little"))
            values += [value] * size
            continue
        for _ in range(repeat):
            numbers = rng.integers(0, 2**width, 8 * size).tolist()
            bits = sum(number << width * place for place, number in enumerate(numbers))
            out.append(write_varint(size << 1 | 1) + bits.to_bytes(size * width, "little"))
            values += numbers
    return b"".join(out), values


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 20), runs, st.data())
def test_values_and_ranks_are_found_alone_and_together(
    width: int, cuts: list[tuple[bool, int, int, int]], data: st.DataObject
) -> None:
    content, values = encoded(width, cuts)
    view = memoryview(content)
    assert levels.expand(view, width, len(values)).tolist() == values
    top = data.draw(st.sampled_from(values))
    before = np.cumsum([0, *(value == top for value in values)]).tolist()
    few = sorted(data.draw(st.sets(st.integers(0, len(values) - 1), min_size=1, max_size=5)))
    for positions in (few, list(range(len(values)))):
        wanted = [values[position] for position in positions]
        assert levels.pick(view, width, positions) == wanted
        assert levels.ranks(view, width, top, positions) == (wanted, [before[position] for position in positions])


def test_values_of_no_bits_are_all_zero() -> None:
    assert levels.pick(memoryview(b""), 0, [0, 5]) == [0, 0]
    assert levels.expand(memoryview(b""), 0, 3).tolist() == [0, 0, 0]


def test_levels_are_packed_as_they_are_read() -> None:
    for top in (1, 2, 3, 7):
        numbers = np.random.default_rng(top).integers(0, top + 1, 1_000).astype(np.int32)
        packed = memoryview(levels.pack_levels(numbers, top))
        assert levels.expand(packed, top.bit_length(), 1_000).tolist() == numbers.tolist()
    assert levels.is_one_run(memoryview(levels.same_levels(1_000, 3)), 3, 1_000)
    assert not levels.is_one_run(memoryview(levels.same_levels(1_000, 2)), 3, 1_000)
    assert not levels.is_one_run(memoryview(levels.same_levels(999, 3)), 3, 1_000)


@pytest.mark.parametrize("positions", [[9], list(range(100))], ids=["one", "many"])
def test_runs_that_are_cut_short_are_damage(positions: list[int]) -> None:
    content, values = encoded(5, [(True, 20, 3, 1), (False, 50, 1, 2)])
    assert levels.pick(memoryview(content), 5, positions) == [values[position] for position in positions]
    for length in range(4):
        with pytest.raises((Damaged, IndexError)):
            levels.pick(memoryview(content[:length]), 5, positions)
