"""What a build has written is looked at before the log names it."""

from dataclasses import replace

import pytest

from grebe.errors import CorruptIndex
from grebe.formats import Column, Reading
from grebe.indexes.content.directory import describe
from grebe.indexes.covering.spec import Covering
from grebe.store.memory import MemoryStore


def test_a_file_that_cannot_be_read_back_is_no_content() -> None:
    reading = Reading.of("parquet", {}, [Column("a", "long")], "UTC", local_times=False)
    spec = Covering("i", on="a").spec(reading, False)
    arranged = replace(spec, properties={**spec.properties, "layout": {"buckets": 0}})
    store = MemoryStore("lake")
    store.put("data/i/0/part-0_00000.gix", b"no Parquet")
    with pytest.raises(CorruptIndex, match=r"memory://lake/data/i/0/part-0_00000\.gix .*; .*build it again") as damaged:
        describe("i", arranged, "data/i/0", store)
    assert damaged.value.code == "CORRUPT_INDEX_CONTENT"
