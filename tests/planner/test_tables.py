"""What is known of a table: the bytes of any set of its files."""

import numpy as np

from grebe.files import FileIds
from grebe.planner.tables import KnownTable

TABLE = KnownTable("file:///t", 1, (), np.arange(1000, dtype=np.int64))


def test_bytes_are_summed_over_few_ranges_and_over_many_alike() -> None:
    few, many = FileIds.of_ranges([(0, 10), (500, 1000)]), FileIds.of(range(0, 1000, 3))
    assert TABLE.bytes_of(few) == sum(few)
    assert TABLE.bytes_of(many) == sum(many)
    assert TABLE.bytes_of(FileIds.of([])) == 0
