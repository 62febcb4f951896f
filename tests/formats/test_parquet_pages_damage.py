"""Damaged bytes end in an error of ours, and never in rows where the damage can be told."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from grebe.errors import GrebeError, UnreadableFile, Unsupported
from grebe.formats import DataFile
from grebe.formats.parquet_pages import PageMap, decode_group, group_span, want
from grebe.formats.parquet_pages.chunk import HIDDEN
from tests.formats.page_tables import data_of, every_type, fetched, written

TABLE = every_type(120, 5)


def flips(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies in which one byte is another."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        place = int(rng.integers(0, len(data)))
        yield data[:place] + bytes((data[place] ^ int(rng.integers(1, 256)),)) + data[place + 1 :]


def test_a_file_cut_short_is_unreadable() -> None:
    whole = written(TABLE, write_page_index=True)
    for size in (0, 3, 7, 8, 12, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        with pytest.raises(UnreadableFile):
            PageMap.of(data_of(whole[:size]))


@pytest.mark.parametrize("index", [True, False], ids=["page index", "no page index"])
def test_a_damaged_file_never_ends_in_a_foreign_error(index: bool) -> None:
    whole = written(TABLE, write_page_index=index, row_group_size=50)
    for content in flips(whole, 150, 1):
        try:
            file = data_of(content)
            fetched(PageMap.of(file), file, [3, 77])
        except GrebeError:
            continue


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
def test_damaged_pages_never_end_in_a_foreign_error(codec: str, version: str, dictionary: bool) -> None:
    content = written(
        TABLE, compression=codec, data_page_version=version, use_dictionary=dictionary, write_page_index=True
    )
    file = data_of(content)
    ask = want(PageMap.of(file), np.array([0, 60, 119]))
    parts = file.read_spans(ask.spans)
    for number, part in enumerate(parts):
        for damaged in flips(part, 2, number):
            changed = [*parts]
            changed[number] = damaged
            try:
                ask.table(changed)
            except GrebeError:
                continue


def test_parts_of_another_length_are_unreadable() -> None:
    file = data_of(written(TABLE, write_page_index=True))
    ask = want(PageMap.of(file), np.array([5]))
    parts = file.read_spans(ask.spans)
    for changed in (parts[:-1], [*parts[:-1], parts[-1][:-1]], [*parts[:-1], parts[-1] + b"x"], []):
        with pytest.raises(UnreadableFile, match=r"\[UNREADABLE_FILE_PARQUET\].*another length"):
            ask.table(changed)


def test_pages_of_another_place_are_unreadable() -> None:
    """As a stale map would have them."""
    content = written(TABLE, compression="zstd", write_page_index=True, data_page_size=100)
    file = data_of(content)
    ask = want(PageMap.of(file), np.array([5]))
    for shift in (-1, 1, 7):
        with pytest.raises(UnreadableFile):
            ask.table(file.read_spans([(start + shift, length) for start, length in ask.spans]))


def test_pages_of_another_file_are_unreadable() -> None:
    one = data_of(written(pa.table({"a": np.arange(5_000)}), use_dictionary=False, write_page_index=True))
    other = data_of(written(pa.table({"a": np.arange(4_000)}), use_dictionary=False, write_page_index=True))
    ask = want(PageMap.of(one), np.array([5]))
    with pytest.raises(UnreadableFile):
        ask.table(other.read_spans(want(PageMap.of(other), np.array([5])).spans))


def marked(content: bytes, old: bytes, new: bytes) -> DataFile:
    assert content.count(old) >= 1
    return data_of(content.replace(old, new))


def test_an_encrypted_footer_is_left_to_row_groups() -> None:
    content = written(pa.table({"a": [1]}))
    with pytest.raises(Unsupported, match="encrypted") as refusal:
        PageMap.of(data_of(content[:-4] + b"PARE"))
    assert refusal.value.code == "UNSUPPORTED_PAGES"


@pytest.mark.parametrize(("codec", "number"), [("lzo", 3), ("lz4 of Hadoop", 5), ("unknown", 11)])
def test_a_codec_that_is_not_read_here_is_left_to_row_groups(codec: str, number: int) -> None:
    """Only its own column: the others are read."""
    table = pa.table({"a": np.arange(100), "b": np.arange(100)})
    content = written(table, compression={"a": "zstd", "b": "gzip"}, use_dictionary=False, write_page_index=True)
    # The field of the codec follows the path of the column; codecs are zigzag: ZSTD is 6.
    file = marked(content, b"\x19\x18\x01a\x15\x0c", b"\x19\x18\x01a\x15" + bytes((number << 1,)))
    pages = PageMap.of(file)
    assert fetched(pages, file, [7], ["b"]).to_pydict() == {"b": [7]}
    with pytest.raises(Unsupported) as refusal:
        fetched(pages, file, [7], ["a"])
    assert refusal.value.code == "UNSUPPORTED_PAGES"


def test_a_column_in_another_file_is_left_to_row_groups() -> None:
    pages = PageMap.of(data_of(written(pa.table({"a": [1]}), write_page_index=True)))
    (chunk,) = pages.chunks(0)
    hidden = type(chunk)(HIDDEN, 0, 0, 0, 0, (), (), ())
    pages._unpacked[0] = (hidden,)
    with pytest.raises(Unsupported, match="encrypted, or in another file"):
        want(pages, np.array([0]))
    with pytest.raises(Unsupported, match="in another file"):
        decode_group(pages, 0, b"")
    assert group_span(pages, 0) == (0, 0)


def test_an_encoding_that_is_not_known_is_left_to_row_groups() -> None:
    table = pa.table({"a": pa.array([1.5, 2.5, 3.5])})
    content = written(
        table,
        use_dictionary=False,
        compression="none",
        write_page_index=True,
        write_statistics=False,
        store_schema=False,
    )
    # The header of the page: 3 values, PLAIN, RLE, RLE.
    file = marked(content, b"\x15\x06\x15\x00\x15\x06\x15\x06\x00\x00", b"\x15\x06\x15\x1e\x15\x06\x15\x06\x00\x00")
    with pytest.raises(Unsupported, match="encoding 15") as refusal:
        fetched(PageMap.of(file), file, [1])
    assert refusal.value.code == "UNSUPPORTED_PAGES"


def test_texts_that_go_on_from_page_to_page_are_left_to_row_groups() -> None:
    table = pa.table({"a": [f"https://example.org/{i}" for i in range(50)]})
    content = written(
        table,
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY"},
        write_page_index=True,
        store_schema=False,
    )
    writer = b"parquet-cpp-arrow version"
    file = marked(content, writer, b"parquet-mr version 1.6.0 ")
    with pytest.raises(Unsupported, match="from one page to the next"):
        fetched(PageMap.of(file), file, [1])
