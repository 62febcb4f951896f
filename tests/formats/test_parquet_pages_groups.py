"""Whole row groups, from one run of bytes."""

import numpy as np
import pyarrow as pa
import pytest

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.parquet_pages import PageMap, decode_group, group_span
from tests.formats.page_tables import assert_same, data_of, every_type, full_read, written


@pytest.mark.parametrize("index", [True, False], ids=["page index", "no page index"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_a_row_group_is_decoded_from_its_bytes(codec: str, index: bool) -> None:
    content = written(
        every_type(300, 1), compression=codec, row_group_size=120, data_page_size=300, write_page_index=index
    )
    file, expected = data_of(content), full_read(content)
    pages = PageMap.of(file)
    assert pages.counts == (120, 120, 60)
    for group in range(3):
        part = expected.slice(group * 120, 120).combine_chunks()
        found = decode_group(pages, group, file.read(*group_span(pages, group)))
        assert_same(pa.Table.from_batches([found]), part)
        names = ["map", "uuid", "int32"]
        start, length = group_span(pages, group, names)
        found = decode_group(pages, group, file.read(start, length), names)
        assert_same(pa.Table.from_batches([found]), part.select(names))
        found = decode_group(pages, group, content, names, start=0)
        assert_same(pa.Table.from_batches([found]), part.select(names))


def test_keys_in_every_encoding_of_an_index_are_decoded() -> None:
    rng = np.random.default_rng(1)
    keys = np.sort(rng.integers(0, 2**62, 20_000))
    table = pa.table(
        {"key": keys, "file": pa.array(rng.integers(0, 64, 20_000), pa.int32()), "row": rng.integers(0, 10**5, 20_000)}
    )
    for encoding in ("DELTA_BINARY_PACKED", "PLAIN"):
        content = written(
            table,
            use_dictionary=False,
            column_encoding=dict.fromkeys(table.column_names, encoding),
            compression="zstd",
            data_page_version="2.0",
            row_group_size=6_700,
            write_page_index=True,
        )
        pages = PageMap.of(data_of(content))
        start, length = group_span(pages, 1)
        found = decode_group(pages, 1, memoryview(content)[start : start + length])
        assert found.equals(table.slice(6_700, 6_700).combine_chunks().to_batches()[0])


def test_a_row_group_of_no_columns_or_no_rows_is_decoded() -> None:
    file = data_of(written(pa.table({"a": [1, 2, 3]})))
    pages = PageMap.of(file)
    assert group_span(pages, 0, []) == (0, 0)
    assert decode_group(pages, 0, b"", []).num_rows == 3
    empty = PageMap.of(data_of(written(pa.table({"a": pa.array([], pa.int8())}))))
    if empty.counts:
        assert decode_group(empty, 0, b"").schema.names == ["a"]


def test_bytes_that_are_too_few_or_damaged_are_unreadable() -> None:
    content = written(pa.table({"a": np.arange(1_000)}), compression="zstd")
    pages = PageMap.of(data_of(content))
    start, length = group_span(pages, 0)
    data = content[start : start + length]
    for cut in (data[:-1], data[1:], b""):
        with pytest.raises(UnreadableFile):
            decode_group(pages, 0, cut)
    with pytest.raises(UnreadableFile):
        decode_group(pages, 0, b"\xff" * length)
    with pytest.raises(Unsupported, match="no column b"):
        group_span(pages, 0, ["b"])
