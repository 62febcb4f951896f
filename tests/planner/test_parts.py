"""Ranges of bytes that hold certain records."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.formats import DataFile, Reading
from grebe.formats.parquet_pages import PageMap
from grebe.formats.reading import Column
from grebe.indexes.kind import Entries
from grebe.planner.parts import Parts, parts_of
from grebe.store.opening import open_store

FILES = np.array([4], np.int64)
SIZES = np.full(5, 10_000_000, np.int64)


def reading(format: str, **options: str) -> Reading:
    return Reading.of(format, options, [Column("k", "long")], "UTC", local_times=False)


def lines(offsets: list[int], format: str = "csv", length: int = 10, **options: str) -> Parts:
    places = pa.table(
        {"offset": pa.array(offsets, pa.int64()), "length": pa.array([length] * len(offsets), pa.int64())}
    )
    entries = Entries(np.full(len(offsets), 4, np.int64), places, None)
    return parts_of(entries, FILES, reading(format, **options), {}, SIZES)


@pytest.mark.parametrize(
    ("offsets", "ranges"),
    [
        ([500], (499, 1)),
        ([0], (0, 1)),
        ([3], (0, 3)),
        ([4], (3, 1)),
        ([500, 510, 520], (499, 21)),
        ([520, 500], (499, 21)),
        ([500, 1_000_000], (499, 1, 999_999, 1)),
        ([0, 9_000_000], (0, 1, 8_999_999, 1)),
    ],
)
def test_a_range_holds_the_starts_of_its_lines_and_the_byte_before(offsets: list[int], ranges: tuple[int, ...]) -> None:
    assert lines(offsets) == {4: ranges}


def test_lines_that_follow_each_other_are_never_cut_apart() -> None:
    assert lines([100, 1_000_100], length=1_000_000) == {4: (99, 1_000_001)}


@pytest.mark.parametrize("options", [{"linesep": "||"}, {"encoding": "UTF-16"}, {"charset": "ISO-8859-1"}])
def test_lines_that_end_otherwise_are_not_cut(options: dict[str, str]) -> None:
    assert lines([500], "csv", 10, **options) == {}


def test_a_file_with_too_many_ranges_is_read_as_a_whole() -> None:
    places = [1_000 + 400_000 * number for number in range(65)]
    assert lines(places) == {}
    assert len(lines(places[:20])[4]) == 40


def test_without_locators_files_are_read_as_a_whole() -> None:
    assert parts_of(Entries(FILES, None, None), FILES, reading("csv"), {}, SIZES) == {}
    row = pa.table({"row": pa.array([3], pa.int64())})
    assert parts_of(Entries(FILES, row, None), FILES, reading("orc"), {}, SIZES) == {}
    assert parts_of(Entries(FILES, row, None), FILES, reading("parquet"), {}, SIZES) == {}


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> tuple[PageMap, Any, int]:
    """Of ten groups with 100 rows each: the map, Arrow's own metadata, the size."""
    folder: Path = tmp_path_factory.mktemp("groups")
    table = pa.table({"k": np.arange(1_000), "s": [f"s{number}" for number in range(1_000)]})
    pq.write_table(table, folder / "f.parquet", row_group_size=100)
    size = (folder / "f.parquet").stat().st_size
    file = DataFile(open_store(str(folder)), "f.parquet", size)
    return PageMap.of(file), pq.ParquetFile(folder / "f.parquet").metadata, size


@pytest.mark.parametrize("wanted", [[0], [9], [3, 4, 5], [0, 5, 9], [1, 2, 7, 9]])
def test_ranges_hold_the_middles_of_just_the_row_groups_with_rows(
    groups: tuple[PageMap, Any, int], wanted: list[int]
) -> None:
    pages, metadata, size = groups
    rows = pa.table({"row": pa.array([100 * group + 7 for group in wanted] * 2, pa.int64())})
    sizes = np.full(5, size, np.int64)
    entries = Entries(np.full(len(rows), 4, np.int64), rows, None)
    ranges = parts_of(entries, FILES, reading("parquet"), {4: pages}, sizes)[4]
    spans = list(zip(ranges[::2], ranges[1::2], strict=True))
    held = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(place) for place in range(group.num_columns)]
        begins = [column.dictionary_page_offset or column.data_page_offset for column in columns]
        middle = min(begins) + sum(column.total_compressed_size for column in columns) // 2
        held += [number for start, length in spans if start <= middle < start + length]
    assert held == wanted


def test_a_file_whose_groups_all_hold_rows_is_read_as_a_whole(groups: tuple[PageMap, Any, int]) -> None:
    pages, _, size = groups
    rows = pa.table({"row": pa.array(range(0, 1_000, 100), pa.int64())})
    entries = Entries(np.full(10, 4, np.int64), rows, None)
    assert parts_of(entries, FILES, reading("parquet"), {4: pages}, np.full(5, size, np.int64)) == {}
