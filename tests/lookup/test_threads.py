"""Many lookups at once on one table, from threads and from asyncio, within the bound of the cache."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import grebe
from grebe.formats.byte_cache import shared_cache

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("lookup")]


def test_sixty_four_threads_share_a_table(lake: Path, table: pa.Table) -> None:
    opened = grebe.open(str(lake / "t"), config=grebe.Config(cache_bytes=3_000_000))
    rows = [row for row in range(0, 30_000, 47) if table["id"][row].is_valid]

    def get(row: int) -> list[int]:
        name = ("id", "text", "amount", "at")[row % 4]
        found: list[int] = opened.get(name, table[name][row].as_py(), columns=["number"])["number"].to_pylist()
        return found

    with ThreadPoolExecutor(64) as pool:
        assert all(row in found for row, found in zip(rows, pool.map(get, rows), strict=True))
    assert 0 < shared_cache(3_000_000).nbytes <= 3_000_000


def test_lookups_may_be_awaited(lake: Path, table: pa.Table) -> None:
    opened = grebe.open(str(lake / "t"))
    rows = [3, 5_000, 29_000]

    async def all_of_them() -> list[pa.Table]:
        return await asyncio.gather(*(asyncio.to_thread(opened.get, "id", table["id"][row].as_py()) for row in rows))

    assert [found["number"].to_pylist() for found in asyncio.run(all_of_them())] == [[row] for row in rows]


def test_without_room_nothing_is_kept_and_answers_are_the_same(lake: Path, table: pa.Table) -> None:
    opened = grebe.open(str(lake / "t"), config=grebe.Config(cache_bytes=0))
    for row in (3, 5_000):
        assert opened.get("id", table["id"][row].as_py())["number"].to_pylist() == [row]
    assert shared_cache(0).nbytes == 0


def test_what_is_pinned_stays(lake: Path, table: pa.Table) -> None:
    bound = 400_000
    opened = grebe.open(str(lake / "t"), config=grebe.Config(cache_bytes=bound))
    opened.warm("by_id", pin=True)
    for name in ("text", "amount", "at", "large"):
        opened.warm(f"by_{name}")
    before = opened.counts().by_call["get_ranges"]
    opened.files(grebe.col("id") == table["id"][3].as_py())
    assert opened.counts().by_call["get_ranges"] == before + 1, "the chunk alone"
