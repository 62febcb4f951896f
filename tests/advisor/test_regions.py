"""Parts of a table that queries stay within."""

import random

import numpy as np
import pyarrow as pa
import pytest

from grebe.advisor.regions import regions, within
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Predicate
from grebe.predicate.types import Field, Type

SCHEMA = Type("struct", fields=(Field("day", Type("int")), Field("x", Type("double"))))
SAMPLE = pa.table({"day": pa.array(np.arange(1_000, dtype=np.int32)), "x": np.linspace(0.0, 1.0, 1_000)})


def meant(text: str) -> Predicate:
    return normalise(bind(parse(text), SCHEMA, case_sensitive=True))


def test_the_part_that_all_stay_within_comes_first_then_smaller_ones() -> None:
    chance = random.Random(3)
    asked = [(meant(f"day >= {chance.randrange(700, 990)} AND x > {chance.random()}"), 1.0) for _ in range(60)]
    found = regions(asked, {"day"}, SAMPLE, 0.5)
    assert found[0].asked == 1.0
    assert [one.asked for one in found] == sorted((one.asked for one in found), reverse=True)
    assert [one.rows for one in found] == sorted((one.rows for one in found), reverse=True)
    for one in found:
        assert one.asked == within(asked, one.predicate)
        assert one.rows == matches(SAMPLE, one.predicate).true_count / 1_000


def test_weights_count_and_so_do_equalities() -> None:
    asked = [(meant("day >= 900"), 1.0), (meant("day = 950"), 8.0), (meant("day >= 100"), 1.0)]
    assert [(to_sql(one.predicate), one.asked) for one in regions(asked, {"day"}, SAMPLE, 0.5)] == [("day >= 900", 0.9)]


@pytest.mark.parametrize("text", ["day IS NULL", "x > CAST('NaN' AS DOUBLE)", "day >= 0", "day > 5000", "x > 0.9"])
def test_what_is_no_end_or_too_much_or_nothing_is_no_region(text: str) -> None:
    assert regions([(meant(text), 1.0)], {"day"}, SAMPLE, 0.5) == []
    assert regions([], {"day"}, SAMPLE, 0.5) == []
    assert regions([(meant(text), 1.0)], {"day"}, SAMPLE.slice(0, 0), 0.5) == []
