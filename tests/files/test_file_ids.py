"""A set of file ids behaves as a frozenset does, however it is kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import Unsupported
from grebe.files import FileIds

IDS = st.frozensets(st.integers(0, 40)) | st.frozensets(st.integers(0, 2**32 - 1), max_size=5)


@given(IDS, IDS)
@settings(deadline=None)
def test_the_algebra_is_that_of_sets(left: frozenset[int], right: frozenset[int]) -> None:
    a, b = FileIds.of(left), FileIds.of(right)
    assert list(a | b) == sorted(left | right)
    assert list(a & b) == sorted(left & right)
    assert list(a - b) == sorted(left - right)
    assert (a <= b) == (left <= right)
    assert a.isdisjoint(b) == left.isdisjoint(right)
    assert (a == b) == (left == right)
    assert a != b or hash(a) == hash(b)
    assert len(a) == len(left)
    assert bool(a) == bool(left)
    assert a.to_numpy().tolist() == sorted(left)
    assert [x in a for x in right] == [x in left for x in right]
    assert a.contains(np.array(sorted(right), np.uint32)).tolist() == [x in left for x in sorted(right)]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
@settings(deadline=None)
def test_ranges_are_kept_sorted_disjoint_and_apart(ranges: list[tuple[int, int]]) -> None:
    ids = FileIds.of_ranges(ranges)
    assert set(ids) == {x for start, stop in ranges for x in range(start, stop)}
    ends = [end for pair in ids.ranges for end in pair]
    assert ends == sorted(set(ends))
    assert FileIds.of_ranges(ids.ranges) == ids == FileIds.of(list(ids))


def test_a_million_ids_in_one_range_and_in_half_a_million() -> None:
    whole = FileIds.of(range(1_000_000))
    even = FileIds.of(np.arange(0, 1_000_000, 2))
    assert whole.ranges == ((0, 1_000_000),)
    assert len((whole - even).ranges) == 500_000
    assert (whole - even) | even == whole
    assert even <= whole
    assert 999_998 in even
    assert 999_999 not in even


@pytest.mark.parametrize("wrong", [[-1], [2**32]])
def test_an_id_takes_four_bytes(wrong: list[int]) -> None:
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_FILE_ID\].*file ids run from 0"):
        FileIds.of(wrong)
