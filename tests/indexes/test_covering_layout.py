"""How the rows of a covering index shall lie: chosen by the size, the type and the values of the key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grebe.formats import Column, Reading
from grebe.indexes.content import ranges
from grebe.indexes.content.parts import parts_for
from grebe.indexes.content.shape import shape_of
from grebe.indexes.covering.layout import Distinct, Plan, plan
from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import Facts, Layout

MB = 1024 * 1024
TYPES = {"id": "long", "few": "integer", "day": "date", "price": "decimal(10,2)", "big": "decimal(20,0)", "x": "double"}


def planned(on: str | list[str], rows: int, sample: Distinct | None = None, buckets: int | None = None) -> Plan:
    reading = Reading.of("parquet", {}, [Column(n, t) for n, t in TYPES.items()], "UTC", local_times=False)
    shape = shape_of("i", Covering("i", on=on, buckets=buckets).spec(reading, False))
    facts = Facts(rows, {(name,): 10.0 for name in TYPES})

    def sampled() -> Distinct:
        assert sample is not None, "the choice does not hang on a sample"
        return sample

    return plan(shape, facts, sampled)


MANY = Distinct(rows=100_000, first=90_000, all=95_000)
FEW = Distinct(rows=100_000, first=7, all=60_000)


@pytest.mark.parametrize(
    ("size", "parts"),
    [(0, 1), (MB // 8, 1), (MB, 2), (3 * MB, 4), (5 * MB, 8), (1000 * MB, 8), (1025 * MB, 16), (10_000 * MB, 128)],
)
def test_the_number_of_parts_is_a_power_of_two_that_grows_with_the_size(size: int, parts: int) -> None:
    assert parts_for(size) == parts


def test_a_key_with_many_values_is_hashed_and_one_with_few_is_sorted() -> None:
    assert planned("id", 10**6, MANY).layout == Layout(8, ("id",), ("id",))
    few = planned("few", 10**6, FEW)
    assert few.layout == Layout(0, (), ("few",))
    assert few.reason == "sorted as a whole: few has few values (7 in 100,000 sampled rows)"
    assert planned("big", 10**6, MANY).layout.buckets == 8, "whole numbers are keys"


@pytest.mark.parametrize("on", ["day", "price", "x"])
def test_a_key_that_is_asked_for_by_range_is_sorted_without_looking(on: str) -> None:
    assert planned(on, 10**6).layout == Layout(0, (), (on,))


def test_what_is_asked_for_is_taken_as_it_is() -> None:
    assert planned("day", 10**6, buckets=12).layout == Layout(12, ("day",), ("day",))
    sorted_whole = planned("id", 10**6, buckets=0)
    assert (sorted_whole.layout, sorted_whole.parts) == (Layout(0, (), ("id",)), 8)


def test_buckets_are_by_as_few_columns_as_are_selective() -> None:
    assert planned(["id", "few"], 10**6, MANY).layout == Layout(8, ("id",), ("id", "few"))
    assert planned(["few", "id"], 10**6, FEW, buckets=8).layout == Layout(8, ("few", "id"), ("few", "id"))
    alike = Distinct(rows=100_000, first=7, all=8)
    assert planned(["few", "id"], 10**6, alike, buckets=8).layout.bucket_by == ("few",), "more columns would not help"


def test_a_small_table_of_unique_keys_is_hashed() -> None:
    assert planned("id", 25, Distinct(25, 25, 25)).layout == Layout(8, ("id",), ("id",))
    assert planned("id", 0, Distinct(0, 0, 0)).layout == Layout(8, ("id",), ("id",))


def test_files_are_cut_only_where_they_would_be_huge() -> None:
    assert planned("id", 10**6, MANY).rows_per_file > 10**6


def test_cuts_divide_a_sample_evenly() -> None:
    cuts = ranges.cuts_of([str(n) for n in range(100, 200)], 4)
    assert cuts == (ranges.Cut("125", 1, 1), ranges.Cut("150", 2, 2), ranges.Cut("175", 3, 3))
    assert not ranges.spreads(cuts)


def test_a_value_that_fills_several_parts_is_spread_over_them() -> None:
    cuts = ranges.cuts_of(["a"] + ["b"] * 98 + ["c"], 4)
    assert cuts == (ranges.Cut("b", 1, 3),)
    assert ranges.spreads(cuts)
    assert ranges.spreads(ranges.cuts_of([None] * 50 + ["a"] * 50, 4))


def test_nothing_sampled_means_nothing_to_cut() -> None:
    assert ranges.cuts_of([], 8) == ()
    assert ranges.cuts_of(["a"], 1) == ()


@given(st.integers(1, 2000))
def test_every_part_has_a_number_that_lands_there(parts: int) -> None:
    numbers = ranges.numbers_landing_in(parts)
    hashed = ranges.spark_hash(numbers.astype(np.int32)).astype(np.int64)
    assert (hashed % parts).tolist() == list(range(parts))
