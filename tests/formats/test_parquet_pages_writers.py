"""Files of other writers than Arrow and Spark, read by their pages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from grebe.formats.parquet_pages import PageMap, decode_group, group_span, read_footer
from grebe.formats.parquet_pages.chunk import UNCOMPRESSED
from grebe.formats.parquet_pages.mini_file import PlacedChunk, frame_of
from grebe.formats.parquet_pages.picked import Picked
from grebe.formats.parquet_pages.projection import plain_page
from tests.formats.page_tables import assert_same, data_of, every_type, fetched, full_read, taken, written
from tests.formats.reading_back import data_file

COUNT = 5_000
QUERY = f"""
SELECT i::BIGINT l, (i % 100)::TINYINT ti, (i * 7919)::INTEGER n, i / 7 d, (i / 3)::FLOAT f, (i % 7) < 2 b, i::DECIMAL(9, 2) small,
       i::DECIMAL(18, 3) middle, -i::DECIMAL(38, 10) big, 'text ' || hash(i) s, 'word ' || (i % 40) w, md5(i::TEXT) u,
       i::TEXT::BLOB bi, DATE '2019-12-30' + (i % 3000)::INTEGER da, TIMESTAMP '2020-03-08 01:59:59.123456' + to_minutes(i) ts,
       IF(i % 3 = 0, NULL, i) nul, {{'x': i, 'y': {{'z': IF(i % 5 = 0, NULL, 's' || i)}}}} st, range(i % 5) ar,
       IF(i % 11 = 0, NULL, [[i], [NULL], []]) lol, MAP {{'k': i, 'm' || (i % 9): NULL}} m, uuid() uu
FROM range({COUNT}) t(i)
"""


def by_duckdb(path: Path, options: str) -> None:
    duckdb.connect().execute(f"COPY ({QUERY}) TO '{path}' (FORMAT parquet, {options})")


def by_polars(path: Path, **options: Any) -> None:
    table = every_type(COUNT, 1)
    odd = {"nothing", "pair", "map", "span", "decimal 38", "time", "date64", "local s", "fixed", "category"}
    frame = pl.DataFrame(table.drop([name for name in table.column_names if name in odd]))
    frame.write_parquet(path, **options)


WRITERS: dict[str, Callable[[Path], None]] = {
    "duckdb": lambda path: by_duckdb(path, "ROW_GROUP_SIZE 2048"),
    "duckdb zstd": lambda path: by_duckdb(path, "COMPRESSION zstd"),
    "duckdb version 2": lambda path: by_duckdb(path, "PARQUET_VERSION v2, COMPRESSION gzip"),
    "duckdb plain": lambda path: by_duckdb(path, "COMPRESSION uncompressed, DICTIONARY_SIZE_LIMIT 1"),
    "duckdb lz4": lambda path: by_duckdb(path, "COMPRESSION lz4_raw"),
    "polars": lambda path: by_polars(path),
    "polars small": lambda path: by_polars(path, row_group_size=1_000, data_page_size=2_000, compression="snappy"),
    "polars by arrow": lambda path: by_polars(path, use_pyarrow=True, pyarrow_options={"write_page_index": True}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_of_other_writers_are_those_of_a_full_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.parquet"
    WRITERS[name](path)
    file, expected = data_file(path), full_read(path.read_bytes())
    pages = PageMap.of(file)
    assert PageMap.from_bytes(pages.to_bytes()) == pages
    rng = np.random.default_rng(1)
    for rows in [[0], [COUNT - 1], *([row] for row in rng.integers(0, COUNT, 12).tolist())]:
        assert_same(fetched(pages, file, rows), taken(expected, rows))
    for size in (3, 60, 1_000):
        rows = sorted(rng.choice(COUNT, size, replace=False).tolist())
        assert_same(fetched(pages, file, rows), taken(expected, rows))
    batches = [decode_group(pages, group, file.read(*group_span(pages, group))) for group in range(len(pages.counts))]
    assert_same(pa.Table.from_batches(batches).combine_chunks(), expected.combine_chunks())


def test_rows_that_run_over_the_ends_of_pages_are_whole() -> None:
    """Pages of version 1 without a page index may end anywhere in a row; no writer at hand makes such, so one is made."""
    lists = [[1, None, 3, 4], [], None, [5], [6, 7, 8, 9, 10], None, [11]]
    schema = read_footer(data_of(written(pa.table({"l": pa.array(lists)})))).schema
    (leaf,) = schema.leaves
    repetition = np.array([0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0], np.int32)
    definition = np.array([3, 2, 3, 3, 1, 0, 3, 3, 3, 3, 3, 3, 0, 3], np.int32)
    values = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    pages, taken_values = [], 0
    for start, stop in ((0, 2), (2, 3), (3, 8), (8, 14)):
        levels = definition[start:stop]
        count = int((levels == 3).sum())
        part = np.array(values[taken_values : taken_values + count], np.int64).tobytes()
        taken_values += count
        pages.append(plain_page(leaf, Picked(stop - start, repetition[start:stop], levels, part)))
    chunk = PlacedChunk(leaf, UNCOMPRESSED, len(repetition), 0, 0, sum(map(len, pages)))
    content = frame_of(schema, [0]).around(pages, [chunk], len(lists))
    expected = full_read(content)
    assert expected.to_pydict() == {"l": lists}
    file = data_of(content)
    for rows in ([0], [1], [3], [4], [6], [0, 2, 4], list(range(7))):
        assert_same(fetched(PageMap.of(file), file, rows), taken(expected, rows))


def test_headers_of_pages_may_be_long() -> None:
    """Statistics of long texts are in them."""
    table = pa.table({"t": [f"{i}" * 1_500 for i in range(40)]})
    content = written(table, use_dictionary=False, data_page_size=3_000, write_batch_size=1)
    file = data_of(content)
    pages = PageMap.of(file)
    assert len(pages.chunks(0)[0].offsets) > 5
    for rows in ([0], [39], list(range(40))):
        assert_same(fetched(pages, file, rows), taken(table, rows))
