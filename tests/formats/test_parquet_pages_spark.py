"""Files that Spark writes, read by their pages."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import Unsupported
from grebe.formats import DataFile
from grebe.formats.parquet import PARQUET
from grebe.formats.parquet_pages import (
    BloomFilters,
    PageMap,
    bloom_spans,
    decode_group,
    group_span,
    hashes_of,
    read_footer,
)
from tests.formats.page_tables import assert_same, fetched, full_read, taken
from tests.formats.reading_back import data_file, reading_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COUNT = 6_000
ROWS = f"""
SELECT id l, CAST(id % 100 AS tinyint) ti, CAST(id AS smallint) si, CAST(hash(id) AS int) i, CAST(id / 3 AS float) f, id / 7 d,
       CAST(id AS decimal(9, 2)) small, CAST(id AS decimal(18, 3)) middle, CAST(-id AS decimal(38, 10)) big, id % 7 < 2 b,
       'text ' || hash(id) s, 'word ' || (id % 40) w, uuid() u, CAST('b' || id AS binary) bi,
       date_add(DATE '2019-12-30', CAST(id % 3000 AS int)) da, TIMESTAMP '2020-03-08 01:59:59.123456' + make_dt_interval(0, id) ts,
       TIMESTAMP_NTZ '2020-03-08 02:30:00' + make_dt_interval(0, id) nt, IF(id % 3 = 0, NULL, id) n,
       IF(id < 5000, NULL, 'late') late, CAST(NULL AS int) nu, 'word ' || IF(id < 3000, id % 40, id) more,
       named_struct('x', id, 'y', named_struct('z', IF(id % 5 = 0, NULL, 's' || id))) st,
       IF(id % 11 = 0, NULL, transform(sequence(0, id % 4), x -> IF(x = 2, NULL, x + id))) ar, map('k', id, 'm' || id % 9, NULL) m,
       IF(id % 4 = 0, array(), array(named_struct('q', id, 'r', array('a', NULL)))) deep
FROM range(0, {COUNT}, 1, 1)
"""
PAGES = {"parquet.page.row.count.limit": "700"}
LAYOUTS: dict[str, dict[str, str]] = {
    "default": {},
    "small pages": PAGES,
    "version 2": {**PAGES, "parquet.writer.version": "v2"},
    "row groups": {**PAGES, "parquet.block.row.count.limit": "1500", "compression": "zstd"},
    "plain": {**PAGES, "parquet.enable.dictionary": "false", "compression": "gzip"},
    "dictionary gives up": {
        "parquet.dictionary.page.size": "3000",
        "parquet.page.size": "4000",
        "compression": "lz4_raw",
    },
    "version 2 of zstd": {**PAGES, "parquet.writer.version": "PARQUET_2_0", "compression": "zstd"},
    "no compression": {**PAGES, "compression": "none"},
    "hadoop lz4": {**PAGES, "compression": "lz4"},
}
OLD = {"spark.sql.parquet.outputTimestampType": "INT96", "spark.sql.parquet.writeLegacyFormat": "true"}


@pytest.fixture(scope="module")
def files(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    frame = spark.sql(ROWS).cache()

    def write(name: str, options: dict[str, str]) -> Path:
        frame.write.options(**options).parquet(str(folder / name))
        (path,) = (folder / name).glob("*.parquet")
        return path

    found = {name: write(name, options) for name, options in LAYOUTS.items()}
    for key, value in OLD.items():
        spark.conf.set(key, value)
    try:
        found["old types"] = write("old types", PAGES)
    finally:
        for key in OLD:
            spark.conf.unset(key)
    frame.unpersist()
    return found


@pytest.mark.parametrize("name", [*(name for name in LAYOUTS if name != "hadoop lz4"), "old types"])
def test_rows_of_sparks_files_are_those_of_a_full_read(files: dict[str, Path], name: str) -> None:
    path = files[name]
    file, expected = data_file(path), full_read(path.read_bytes())
    pages = PageMap.of(file)
    rng = np.random.default_rng(1)
    edges = [0, COUNT - 1, *np.cumsum(pages.counts[:-1]).tolist(), 699, 700, 1_499, 1_500]
    for rows in [[row] for row in {*edges, *rng.integers(0, COUNT, 20).tolist()}]:
        assert_same(fetched(pages, file, rows), taken(expected, rows))
    for size in (3, 60, 2_000):
        rows = sorted(rng.choice(COUNT, size, replace=False).tolist())
        assert_same(fetched(pages, file, rows), taken(expected, rows))
    start = 0
    for group, count in enumerate(pages.counts):
        found = decode_group(pages, group, file.read(*group_span(pages, group)))
        assert found.equals(expected.slice(start, count).combine_chunks().to_batches()[0])
        start += count


def test_a_codec_that_pages_are_not_read_of_is_read_by_row_groups(files: dict[str, Path]) -> None:
    path = files["hadoop lz4"]
    file, expected = data_file(path), pq.read_table(path, columns=["l", "s"])
    with pytest.raises(Unsupported, match="codec 5") as refusal:
        fetched(PageMap.of(file), file, [7])
    assert refusal.value.code == "UNSUPPORTED_PAGES"
    locators = pa.record_batch([pa.array([4_321, 7])], schema=PARQUET.locator.schema)
    found = PARQUET.fetch(file, reading_of(PARQUET, file), locators, ["l", "s"])
    assert found.to_pylist() == taken(expected, [4_321, 7]).to_pylist()


def test_the_files_are_as_different_as_they_should_be(files: dict[str, Path]) -> None:
    kinds = {column.path: column.physical_type for column in _columns(files["old types"])}
    assert kinds["ts"] == "INT96"
    assert "DELTA_BINARY_PACKED" in _encodings(files["version 2"], "l")
    assert "RLE" in _encodings(files["version 2"], "b")
    dictionary = {"PLAIN", "RLE_DICTIONARY", "PLAIN_DICTIONARY"} & set(_encodings(files["dictionary gives up"], "more"))
    assert len(dictionary) > 1


def _columns(path: Path) -> list[pq.ColumnSchema]:
    schema = pq.ParquetFile(path).schema
    return [schema.column(i) for i in range(len(schema))]


def _encodings(path: Path, name: str) -> tuple[str, ...]:
    number = [column.path for column in _columns(path)].index(name)
    found: tuple[str, ...] = pq.ParquetFile(path).metadata.row_group(0).column(number).encodings
    return found


BLOOMED = {
    "i": "CAST(hash(id) AS int)",
    "l": "xxhash64(id)",
    "s": "'text ' || id",
    "da": "date_add(DATE '1990-01-01', CAST(id AS int))",
    "ts": "TIMESTAMP '2020-03-08 01:59:59.123456' + make_dt_interval(0, 0, id)",
    "small": "CAST(id AS decimal(9, 2))",
    "middle": "CAST(-id AS decimal(18, 3))",
    "big": "CAST(id - 2000 AS decimal(38, 10))",
    "d": "id / 7",
    "bi": "CAST('b' || id AS binary)",
}


@pytest.fixture(scope="module")
def bloomed(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> DataFile:
    folder = tmp_path_factory.mktemp("bloom") / "t"
    columns = ", ".join(f"{expression} {name}" for name, expression in BLOOMED.items())
    options = {f"parquet.bloom.filter.enabled#{name}": "true" for name in BLOOMED}
    distinct = {f"parquet.bloom.filter.expected.ndv#{name}": "1500" for name in BLOOMED}
    frame = spark.sql(f"SELECT {columns} FROM range(0, 4000, 1, 1)")
    layout = {"parquet.block.row.count.limit": "1500", "parquet.enable.dictionary": "false"}
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        frame.write.options(**options, **distinct, **layout).parquet(str(folder))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    (path,) = folder.glob("*.parquet")
    return data_file(path)


@pytest.mark.parametrize("name", BLOOMED)
def test_sparks_bloom_filters_deny_nothing_that_is_there(bloomed: DataFile, name: str) -> None:
    footer = read_footer(bloomed)
    leaf = list(BLOOMED).index(name)
    spans = bloom_spans(footer, leaf)
    filters = BloomFilters.of([bloomed.read(*span) for span in spans if span is not None])
    assert len(filters) == len(footer.groups) == 3
    file = PageMap.of(bloomed)
    values = fetched(file, bloomed, list(range(4_000)), [name]).column(0).combine_chunks()
    hashes = hashes_of(footer.schema.leaves[leaf], values)
    for group, (start, stop) in enumerate([(0, 1_500), (1_500, 3_000), (3_000, 4_000)]):
        assert filters.may_hold_any(group, hashes[start:stop]).all()
        assert filters.may_hold_any(group, np.delete(hashes, np.s_[start:stop])).mean() < 0.05
    assert all(filters.may_hold(int(hashes[at]))[group] for at, group in ((0, 0), (2_999, 1), (3_000, 2)))
