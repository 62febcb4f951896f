"""Cutting text into records, against the plain definition, whatever the size of the chunks."""

import bz2
import gzip
import re
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import SourceChanged, UnreadableFile, Unsupported
from grebe.formats import DataFile, text_records
from grebe.formats.text_records import fetched, line_breaks, records
from grebe.store.memory import MemoryStore
from tests.formats.reading_back import data_file


def stored(data: bytes, name: str = "f.txt") -> DataFile:
    store = MemoryStore()
    store.put(name, data)
    return DataFile(store, name, len(data))


def by_definition(data: bytes, separator: bytes) -> list[tuple[int, bytes]]:
    mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    start, found = mark, []
    for match in re.compile(re.escape(separator) if separator else rb"\r\n|\r|\n").finditer(data, mark):
        found.append((start, data[start : match.start()]))
        start = match.end()
    return found + [(start, data[start:])] * (start < len(data))


@given(
    st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b";", b"|", b"||", b"\xef\xbb\xbf", b"\xc3\xbc"])).map(
        b"".join
    ),
    st.sampled_from([b"", b"\n", b";", b"||"]),
    st.integers(1, 9),
)
@settings(deadline=None, max_examples=300)
def test_records_and_offsets_are_those_of_the_definition(data: bytes, separator: bytes, chunk_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_records, "_CHUNK_BYTES", chunk_bytes)
        file = stored(data)
        parts = list(records(file, line_breaks(separator)))
    cut = [(int(o), v.as_py()) for part in parts for o, v in zip(part.offsets, part.values, strict=True)]
    assert cut == by_definition(data, separator)
    for part in parts:
        again = fetched(file, part.locators())
        assert again.values.to_pylist() == part.values.to_pylist()


@pytest.mark.parametrize(
    ("suffix", "compressed"),
    [
        (".gz", gzip.compress(b"ab\ncd\n")),
        (".bz2", bz2.compress(b"ab\ncd\n")),
        (".zst", zstandard.compress(b"ab\ncd\n")),
    ],
    ids=["gz", "bz2", "zst"],  # all workers must give a test the same name, and gzip writes the time
)
def test_offsets_of_compressed_text_count_uncompressed_bytes(suffix: str, compressed: bytes) -> None:
    file = stored(compressed, f"f.txt{suffix}")
    (part,) = records(file, line_breaks(b""))
    assert part.offsets.tolist() == [0, 3]
    assert fetched(file, part.locators().slice(1)).values.to_pylist() == [b"cd"]


def test_a_compression_without_a_reader_is_refused_and_a_damaged_one_is_unreadable() -> None:
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_COMPRESSION\].*snappy"):
        list(records(stored(b"x", "f.txt.snappy"), line_breaks(b"")))
    with pytest.raises(UnreadableFile, match=r"\[UNREADABLE_FILE_COMPRESSION\].*gzip"):
        list(records(stored(b"no gzip at all", "f.txt.gz"), line_breaks(b"")))


def test_a_file_that_vanished_or_shrank_after_the_listing_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(b"one\ntwo\n")
    file = data_file(path)
    path.write_bytes(b"one\n")
    with pytest.raises(SourceChanged, match=r"\[SOURCE_CHANGED_FILE_CHANGED\].*shorter"):
        list(records(file, line_breaks(b"")))
    path.unlink()
    with pytest.raises(SourceChanged, match=r"\[SOURCE_CHANGED_FILE_GONE\].*gone"):
        list(records(file, line_breaks(b"")))
