"""Snappy's pages, whole and their beginnings, as Arrow reads them."""

import numpy as np
import pyarrow as pa
import pytest

from grebe.formats.parquet_pages import PageMap, snappy
from grebe.formats.parquet_pages.failures import Damaged
from tests.formats.page_tables import assert_same, data_of, fetched, taken, written

RNG = np.random.default_rng(1)
PAGES = {
    "repeating": b"the same again " * 40_000,
    "random": RNG.bytes(300_000),
    "mixed": b"".join(RNG.bytes(int(size)) + b"abc" * 50 for size in RNG.integers(0, 3_000, 300)),
    "numbers": (np.arange(50_000) * 37).tobytes(),
    "texts": "".join(f"text {i} of {i * 7} " for i in RNG.integers(0, 10**9, 20_000).tolist()).encode(),
    "short": b"x",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_and_its_beginnings_are_those_of_arrow(name: str) -> None:
    page = PAGES[name]
    packed = memoryview(pa.compress(page, "snappy", asbytes=True))
    assert snappy.inflate(packed, len(page), None) == page
    for share in (0.001, 0.1, 0.5, 0.9, 0.999):
        needed = int(len(page) * share)
        beginning = snappy.inflate(packed, len(page), needed)
        assert needed <= len(beginning) <= len(page)
        assert beginning == page[: len(beginning)]


def test_damaged_pages_are_found() -> None:
    page = PAGES["texts"]
    packed = pa.compress(page, "snappy", asbytes=True)
    with pytest.raises(Damaged, match="another size"):
        snappy.inflate(memoryview(packed), len(page) + 1, None)
    with pytest.raises(Damaged, match="cannot be decompressed"):
        snappy.inflate(memoryview(packed[: len(packed) // 2]), len(page), None)


def test_rows_of_its_pages_are_those_of_a_full_read() -> None:
    count = 25_000
    table = pa.table(
        {
            "text": [f"text {i} and {i * 7}" for i in RNG.integers(0, 10**9, count).tolist()],
            "uuid": [f"{i:036x}" for i in RNG.integers(0, 2**62, count).tolist()],
            "growing": ["x" * (i // 500) for i in range(count)],
            "some": pa.array([i if i % 3 else None for i in range(count)]),
            "price": np.round(RNG.random(count) * 1_000, 2),
        }
    )
    file = data_of(written(table, compression="snappy", use_dictionary=False, write_page_index=True))
    pages = PageMap.of(file)
    for rows in ([0], [19_999], [20_000], [count - 1], [5, 12_345], *([row] for row in range(100, count, 1_777))):
        assert_same(fetched(pages, file, rows), taken(table, rows))
