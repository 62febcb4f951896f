"""No flipped bit in index data gives a wrong answer, in Spark or without it; none fails a query twice."""

import logging
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.indexes.content.directory import NAME, parse_directory
from grebe.spark.content import checksum_lines
from tests.spark.flips import (
    QUERIES,
    Flip,
    create,
    files_of,
    flips,
    forget,
    local_answer,
    outcome,
    regions_of,
    rows,
)
from tests.spark.served import Served, serving, write
from tests.spark.streams import stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark flips")]
UNCACHED = grebe.Config(hybrid_max_appended=1.0, hybrid_max_deleted=1.0, cache_bytes=0)


@pytest.fixture(scope="module")
def served(spark: "SparkSession", folder: Path) -> Iterator[Served]:
    with serving(spark, UNCACHED) as made:
        create(made, folder)
        yield made


@pytest.fixture(scope="module")
def expected(served: Served) -> dict[str, Counter[str]]:
    found = {}
    for index, queries in QUERIES.items():
        for query in queries:
            with served.lake.only(index):
                seen = served.same_rows(query)
            assert seen.used == [index], (query, seen.used, served.reasons(query))
            found[query] = seen.rows
    return found


def in_spark(served: Served, folder: Path, expected: dict[str, Counter[str]], seed: int, count: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number, flip in enumerate(flips(folder, seed, count)):
        query = QUERIES[flip.index][number % 5 == 4]
        with flip.done():
            forget(served)
            try:
                found = outcome(served, query, expected[query], flip.index)
            except AssertionError as problem:
                raise AssertionError(f"{flip} in {query}") from problem
        seen[found] += 1
        seen[f"{found} after a flip in {flip.region} of {flip.index}"] += 1
    forget(served)
    return seen


def test_no_flipped_bit_gives_a_wrong_answer_in_spark_or_fails_a_query_twice(
    served: Served, folder: Path, expected: dict[str, Counter[str]]
) -> None:
    seen = in_spark(served, folder, expected, seed=1, count=45)
    assert seen["error"] > 5, "flips must be met"
    assert seen["right"] > 5, seen


def test_no_flipped_bit_gives_a_wrong_answer_without_spark(served: Served, folder: Path) -> None:
    right = {index: local_answer(folder, index) for index in QUERIES}
    for flip in flips(folder, 2, 90):
        with flip.done():
            assert local_answer(folder, flip.index) == right[flip.index], flip


@pytest.mark.soak
def test_five_hundred_flipped_bits(served: Served, folder: Path, expected: dict[str, Counter[str]]) -> None:
    seen = in_spark(served, folder, expected, seed=3, count=500)
    right = {index: local_answer(folder, index) for index in QUERIES}
    for flip in flips(folder, 4, 500):
        with flip.done():
            assert local_answer(folder, flip.index) == right[flip.index], flip
    assert seen["right"] + seen["error"] == 500
    assert seen["error"] > 50, seen
    for index in ("bucketed", "sorted", "curve", "laid", "view"):
        met = sum(
            count for how, count in seen.items() if how.startswith("error after") and how.endswith(f" of {index}")
        )
        assert met, (index, seen)
    logging.getLogger(__name__).warning("500 flips in Spark: %s", dict(seen))


def test_whatever_is_read_of_a_file_in_any_order_is_what_it_holds(served: Served, folder: Path) -> None:
    chance = random.Random(5)
    (directory,) = [file for file in files_of(folder, "curve") if file.name == NAME]
    table = parse_directory(directory.read_bytes(), str(directory))
    for line in checksum_lines(table, directory.parent.as_uri()).splitlines():
        file = directory.parent / line.rpartition("/")[2]
        content = file.read_bytes()
        assert len(content) > 2 * 65_536, "more than what is kept of its end"
        stream = stream_of(served, line, verified=True)
        for _ in range(40):
            start = chance.randrange(len(content))
            length = min(len(content) - start, int(2 ** chance.uniform(0, 18)))
            stream.seek(start)
            assert stream.readNBytes(length) == content[start : start + length], (start, length)
        stream.close()


def test_every_file_with_rows_has_the_checksums_of_its_blocks(served: Served, folder: Path) -> None:
    import pyarrow.parquet as pq

    for index in QUERIES:
        for file in files_of(folder, index):
            if file.name.startswith("part-"):
                assert b"grebe.blocks" in pq.read_metadata(file).metadata, file


def test_damage_is_found_by_verify_and_never_written_anew(served: Served, tmp_path: Path) -> None:
    """Or it would get a checksum of its own."""
    write(tmp_path / "t", rows(0))
    table = served.lake.table(str(tmp_path / "t"))
    table.create(grebe.Covering("by_k", on="k", include=["v", "s"], buckets=1))
    write(tmp_path / "t", rows(1).slice(0, 100))
    table.refresh()
    largest = max(files_of(tmp_path, "by_k"), key=lambda file: file.stat().st_size)
    ((start, _), *_) = regions_of(largest)["page header"]
    with Flip("by_k", largest, "page header", start + 1, 3).done():
        assert [fault.path for fault in table.verify(deep=True).findings] == [
            str(largest.relative_to(tmp_path / "_grebe" / "t"))
        ]
        with pytest.raises(grebe.CorruptIndex, match="of index by_k is damaged"):
            table.optimize(mode="full")
    assert table.optimize(mode="full")
    assert table.verify(deep=True).ok
