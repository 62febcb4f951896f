"""Rows fetched by their pages are those of a full read, whatever the file is like."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grebe.errors import Unsupported
from grebe.formats.parquet_pages import Dictionary, MoreNeeded, PageMap, want
from tests.formats.page_tables import assert_same, data_of, every_type, fetched, full_read, taken, written

CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")

layouts = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(CODECS),
        "data_page_version": st.sampled_from(("1.0", "2.0")),
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from((100, 1_000_000)),
        "data_page_size": st.sampled_from((64, 200, 1_000_000)),
        "max_rows_per_page": st.sampled_from((1, 7, 20_000)),
        "row_group_size": st.sampled_from((5, 20, 1_000)),
        "write_page_index": st.booleans(),
        "write_statistics": st.booleans(),
        "store_schema": st.booleans(),
        "write_page_checksum": st.booleans(),
    }
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(layouts, st.integers(0, 40), st.sampled_from((0.0, 0.1, 0.9, 1.0)), st.integers(0, 2**32 - 1), st.data())
def test_rows_are_those_of_a_full_read(
    layout: dict[str, Any], count: int, nulls: float, seed: int, data: st.DataObject
) -> None:
    table = every_type(count, seed, nulls)
    columns = data.draw(st.lists(st.sampled_from(table.column_names), unique=True, min_size=1, max_size=12))
    content = written(table.select(columns), **layout)
    file, expected = data_of(content), full_read(content)
    pages = PageMap.of(file)
    assert pages.rows == count
    rows = sorted(data.draw(st.sets(st.integers(0, count - 1)))) if count else []
    names = data.draw(st.none() | st.lists(st.sampled_from(expected.column_names), unique=True, min_size=1))
    assert_same(fetched(pages, file, rows, names), taken(expected.select(names or expected.column_names), rows))
    assert_same(fetched(PageMap.from_bytes(pages.to_bytes()), file, list(range(count))), expected)


@pytest.mark.parametrize("index", [True, False], ids=["page index", "no page index"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_and_page_version_is_read_in_pages_of_common_size(codec: str, version: str, index: bool) -> None:
    rng = np.random.default_rng(1)
    count = 30_000
    table = pa.table(
        {
            "number": rng.integers(0, 2**62, count),
            "some": pa.array([None if i % 3 else int(i) for i in rng.integers(0, 100, count)], pa.int32()),
            "few": pa.array([f"value {i}" for i in rng.integers(0, 300, count)]),
            "text": pa.array([f"text {i} and {i * 7}" for i in rng.integers(0, 10**9, count)]),
            "uuid": pa.array([f"{i:036x}" for i in rng.integers(0, 2**62, count)]),
            "sorted": np.arange(count) // 9,
            "flag": rng.random(count) < 0.5,
            "list": pa.array([[i, i + 1][: i % 3] for i in range(count)]),
        }
    )
    content = written(
        table,
        compression=codec,
        data_page_version=version,
        write_page_index=index,
        use_dictionary=["few", "sorted"],
        row_group_size=25_000,
        max_rows_per_page=20_000,
    )
    file = data_of(content)
    pages = PageMap.of(file)
    single = [[0], [count - 1], [24_999], [25_000], [19_999], [20_000], *([row] for row in (7, 399, 401, 12_345))]
    many = [sorted(rng.choice(count, size, replace=False).tolist()) for size in (2, 40, 100, 3_000)]
    for rows in [*single, *many]:
        assert_same(fetched(pages, file, rows), taken(table, rows))


ENCODED: dict[str, tuple[pa.Array, str]] = {
    "whole numbers in deltas": (pa.array(np.arange(3_000) * 7 % 1_000), "DELTA_BINARY_PACKED"),
    "small numbers in deltas": (pa.array(np.arange(3_000) % 77, pa.int32()), "DELTA_BINARY_PACKED"),
    "numbers and nulls in deltas": (pa.array([None if i % 3 else i for i in range(3_000)]), "DELTA_BINARY_PACKED"),
    "lengths in deltas": (pa.array([f"a{i}" * (i % 5) for i in range(3_000)]), "DELTA_LENGTH_BYTE_ARRAY"),
    "prefixes": (pa.array([f"https://example.org/{i}" for i in range(3_000)]), "DELTA_BYTE_ARRAY"),
    "prefixes of one width": (pa.array([f"{i:09}".encode() for i in range(3_000)], pa.binary(9)), "DELTA_BYTE_ARRAY"),
    "streams of doubles": (pa.array(np.random.default_rng(1).random(3_000)), "BYTE_STREAM_SPLIT"),
    "streams of numbers": (pa.array(np.arange(3_000) * 1_000_003), "BYTE_STREAM_SPLIT"),
    "streams of bytes": (pa.array([f"{i:05}".encode() for i in range(3_000)], pa.binary(5)), "BYTE_STREAM_SPLIT"),
    "runs of booleans": (pa.array([i % 9 > 3 for i in range(3_000)]), "RLE"),
    "plain booleans": (pa.array([i % 9 > 3 if i % 4 else None for i in range(3_000)]), "PLAIN"),
    "plain texts": (pa.array([f"{i}" * (i % 7) for i in range(3_000)]), "PLAIN"),
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", ENCODED)
def test_every_encoding_is_read(name: str, version: str) -> None:
    array, encoding = ENCODED[name]
    table = pa.table({"v": array})
    content = written(
        table,
        use_dictionary=False,
        column_encoding={"v": encoding},
        data_page_version=version,
        max_rows_per_page=1_100,
        write_page_index=True,
    )
    encodings = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(0).encodings
    assert encoding in encodings
    file = data_of(content)
    pages = PageMap.of(file)
    for rows in ([0], [1_099], [1_100], [2_999], [5, 600, 1_500, 2_998], list(range(3_000))):
        assert_same(fetched(pages, file, rows), taken(table, rows))


def test_old_timestamps_are_instants_also_inside_lists() -> None:
    moments = pa.array([0, None, 1_583_632_799_123_456, -62_135_596_800_000_000], pa.timestamp("us"))
    table = pa.table({"t": moments, "l": pa.array([[m] for m in moments.to_pylist()], pa.list_(pa.timestamp("us")))})
    content = written(table, use_deprecated_int96_timestamps=True, write_page_index=True)
    file, expected = data_of(content), full_read(content)
    assert expected.schema.field("t").type == pa.timestamp("us", "UTC")
    for rows in ([0], [1], [2], [3], [0, 1, 2, 3]):
        assert_same(fetched(PageMap.of(file), file, rows), taken(expected, rows))


def test_long_texts_are_read() -> None:
    table = pa.table({"long": ["x" * 2**20, "", None, "y" * (2**20 + 1)] * 3, "n": list(range(12))})
    for compression in ("none", "gzip", "zstd"):
        for dictionary in (True, False):
            file = data_of(written(table, compression=compression, use_dictionary=dictionary, write_page_index=True))
            pages = PageMap.of(file)
            for rows in ([3], [10], [11], list(range(12))):
                assert_same(fetched(pages, file, rows), taken(table, rows))


def test_a_file_without_rows_or_row_groups_has_its_columns() -> None:
    table = every_type(0, 1)
    out = pa.BufferOutputStream()
    pq.ParquetWriter(out, table.schema).close()
    for content in (written(table), out.getvalue().to_pybytes()):
        file = data_of(content)
        assert_same(fetched(PageMap.of(file), file, []), full_read(content))


def test_no_columns_have_rows_all_the_same() -> None:
    file = data_of(written(pa.table({"a": [1, 2, 3]})))
    assert fetched(PageMap.of(file), file, [0, 2], []).num_rows == 2
    bare = data_of(written(pa.table({"a": [1, 2, 3]}).select([])))
    pages = PageMap.of(bare)
    assert fetched(pages, bare, list(range(pages.rows))).num_columns == 0


def test_a_row_that_is_not_there_is_refused() -> None:
    file = data_of(written(pa.table({"a": [1, 2, 3]})))
    pages = PageMap.of(file)
    for rows in ([3], [-1], [0, 3]):
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_LOCATOR\].*has 3 rows, so none with number"):
            want(pages, np.array(rows))
    with pytest.raises(Unsupported, match="ascending order"):
        want(pages, np.array([1, 1]))


def test_a_column_that_is_not_there_or_there_twice_is_left_to_row_groups() -> None:
    doubled = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    file = data_of(written(doubled))
    for name in ("a", "c"):
        with pytest.raises(Unsupported, match=f"no column {name}, or several") as refusal:
            want(PageMap.of(file), np.array([0]), [name])
        assert refusal.value.code == "UNSUPPORTED_PAGES"
    assert fetched(PageMap.of(file), file, [0], ["b"]).to_pydict() == {"b": [3]}


class Kept:
    """Dictionaries in a dict."""

    def __init__(self) -> None:
        self.content: dict[int, Dictionary] = {}
        self.asked = 0

    def get(self, start: int) -> Dictionary | None:
        self.asked += 1
        return self.content.get(start)

    def put(self, start: int, dictionary: Dictionary) -> None:
        self.content[start] = dictionary


def test_a_dictionary_that_is_kept_is_not_asked_for_again() -> None:
    table = pa.table({"w": [f"word {i % 50}" for i in range(5_000)], "n": pa.array([i % 9 for i in range(5_000)])})
    file = data_of(written(table, write_page_index=True, row_group_size=2_500))
    pages, kept = PageMap.of(file), Kept()
    assert_same(fetched(pages, file, [7, 2_600], dictionaries=kept), taken(table, [7, 2_600]))
    assert len(kept.content) == 4
    assert all(50 < dictionary.nbytes < 2_000 for dictionary in kept.content.values())
    again = want(pages, np.array([2_499, 4_999]), dictionaries=kept)
    assert len(again.spans) == 4
    assert_same(again.table(file.read_spans(again.spans)), taken(table, [2_499, 4_999]))


def test_a_page_needs_its_dictionary_only_while_the_writer_uses_it() -> None:
    table = pa.table({"t": [f"text number {i}" for i in range(5_000)]})
    content = written(table, write_page_index=True, dictionary_pagesize_limit=5_000, data_page_size=2_000)
    file = data_of(content)
    pages = PageMap.of(file)
    chunk = pages.chunks(0)[0]
    assert chunk.dictionary_pages is not None
    assert 0 < chunk.dictionary_pages < len(chunk.sizes)
    assert len(want(pages, np.array([0])).spans) == 2
    assert len(want(pages, np.array([4_999])).spans) == 1
    for row in (0, 4_999):
        assert_same(fetched(pages, file, [row]), taken(table, [row]))


def test_a_dictionary_that_was_not_expected_is_asked_for() -> None:
    """Where the writer says that no page uses the dictionary, and one does."""
    table = pa.table({"w": [f"word {i % 50}" for i in range(5_000)], "n": np.arange(5_000)})
    file = data_of(written(table, write_page_index=True, use_dictionary=["w"]))
    pages = PageMap.of(file)
    word, number = pages.chunks(0)
    pages._unpacked[0] = (replace(word, dictionary_pages=0), number)
    ask = want(pages, np.array([7]))
    assert len(ask.spans) == 2
    with pytest.raises(MoreNeeded) as signal:
        ask.table(file.read_spans(ask.spans))
    more = signal.value.wanted
    assert (word.start, word.dictionary_length) in more.spans
    assert_same(more.table(file.read_spans(more.spans)), taken(table, [7]))


def test_only_the_pages_of_the_rows_are_asked_for() -> None:
    table = pa.table({"a": np.random.default_rng(1).random(100_000), "b": np.arange(100_000)})
    content = written(table, use_dictionary=False, max_rows_per_page=1_000, write_page_index=True)
    ask = want(PageMap.of(data_of(content)), np.array([5, 500, 77_777]), ["a"])
    assert len(ask.spans) == 2
    assert math.isclose(sum(length for _, length in ask.spans), 2 * 8_000, rel_tol=0.1)
