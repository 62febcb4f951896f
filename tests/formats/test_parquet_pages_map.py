"""Page maps: what they cost to make, how small they are, and that they come back from their bytes as they were."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import CorruptIndex, UnreadableFile, Unsupported
from grebe.formats import DataFile
from grebe.formats.parquet_pages import MapDirectory, PageMap, PageMaps, pack_maps, read_footer, want
from grebe.formats.parquet_pages.chunk import Chunk
from grebe.formats.parquet_pages.map_bytes import pack_group, unpack_group
from grebe.store.counting import Counting
from tests.formats.page_tables import assert_same, data_of, every_type, fetched, full_read, taken, written


def wide(count: int, columns: int = 26, **options: object) -> bytes:
    rng = np.random.default_rng(count)
    table = pa.table({f"c{i}": rng.integers(0, 2**62, count) for i in range(columns)})
    return written(table, use_dictionary=False, write_page_index=True, store_schema=False, **options)


def requests(file: DataFile) -> int:
    assert isinstance(file.store, Counting)
    return file.store.counts.requests


def test_a_map_is_read_in_one_request_or_two() -> None:
    near = data_of(written(every_type(500, 1), write_page_index=True))
    PageMap.of(near)
    assert requests(near) == 1
    far = data_of(written(every_type(500, 1), write_page_index=True))
    footer = read_footer(far, 100)
    PageMap.of(far, far.size - footer.start)
    assert requests(far) == 2 + 2


def test_a_map_without_a_page_index_costs_a_round_for_every_page_of_the_longest_chunk() -> None:
    table = pa.table({"a": np.arange(10_000), "b": np.arange(10_000)})
    file = data_of(written(table, use_dictionary=False, max_rows_per_page=2_500))
    pages = PageMap.of(file, 1_000)
    assert [len(chunk.offsets) for chunk in pages.chunks(0)] == [4, 4]
    assert requests(file) == 1 + 4 * 2
    indexed = data_of(written(table, use_dictionary=False, max_rows_per_page=2_500, write_page_index=True))
    assert [chunk.first_rows for chunk in PageMap.of(indexed).chunks(0)] == [
        chunk.first_rows for chunk in pages.chunks(0)
    ]


def test_a_map_comes_back_from_its_bytes() -> None:
    for count, options in ((0, {}), (1, {}), (300, {"row_group_size": 70, "data_page_size": 200})):
        content = written(every_type(count, 1), write_page_index=True, **options)
        file = data_of(content)
        pages = PageMap.of(file)
        again = PageMap.from_bytes(pages.to_bytes())
        assert again == pages
        assert hash(again) == hash(pages)
        assert again.schema is pages.schema
        assert [again.chunks(group) for group in range(len(pages.counts))] == [
            pages.chunks(group) for group in range(len(pages.counts))
        ]
        assert_same(fetched(again, file, list(range(count))), full_read(content))


@st.composite
def chunks(draw: st.DrawFn, rows: int) -> Chunk:
    """Anywhere in a file, with pages that need not touch."""
    start = draw(st.integers(0, 2**40))
    dictionary = draw(st.integers(0, 2**20))
    sizes = draw(st.lists(st.integers(1, 2**24), min_size=1, max_size=5))
    gaps = draw(st.lists(st.sampled_from((0, 0, 0, 9)), min_size=len(sizes), max_size=len(sizes)))
    ends = accumulate(size + gap for size, gap in zip(sizes, gaps, strict=True))
    offsets = [start + dictionary + end - size for end, size in zip(ends, sizes, strict=True)]
    firsts = sorted(draw(st.lists(st.integers(0, rows), min_size=len(sizes) - 1, max_size=len(sizes) - 1)))
    use = draw(st.none() | st.integers(0, len(sizes)))
    codec = draw(st.integers(0, 15))
    return Chunk(codec, start, dictionary, use, rows, (0, *firsts), tuple(offsets), tuple(sizes))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6).flatmap(lambda rows: st.tuples(st.just(rows), st.lists(chunks(rows), max_size=6))))
def test_any_row_group_comes_back_from_its_bytes(group: tuple[int, list[Chunk]]) -> None:
    rows, parts = group
    names = pa.table({f"c{i}": pa.array([], pa.int64()) for i in range(len(parts))})
    schema = read_footer(data_of(written(names))).schema
    assert list(unpack_group(schema, rows, pack_group(schema, parts))) == parts


def test_a_map_takes_less_than_four_bytes_a_page_and_column() -> None:
    file = data_of(wide(100_000, max_rows_per_page=20_000))
    pages = PageMap.of(file)
    assert [len(chunk.offsets) for chunk in pages.chunks(0)] == [5] * 26
    assert sum(map(len, pages.sections)) < 4 * 5 * 26
    assert pages.nbytes > len(pages.to_bytes())


def test_maps_of_many_files_share_their_schemas() -> None:
    maps = [PageMap.of(data_of(wide(count))) for count in range(1, 40)]
    other = PageMap.of(data_of(written(every_type(10, 1))))
    alone = len(maps[0].to_bytes())
    packed = pack_maps([*maps, None, other])
    assert len(packed) < 40 * 110 + alone + len(other.to_bytes()) + 200
    found = PageMaps.from_bytes(packed)
    assert len(found) == 41
    assert list(found) == [*maps, None, other]
    assert found[7] == maps[7]
    with pytest.raises(IndexError, match="41 page maps"):
        found[41]
    assert found.nbytes > len(packed)


def test_one_map_of_many_is_read_alone() -> None:
    maps = [PageMap.of(data_of(wide(count))) for count in (10, 20, 30)]
    packed = pack_maps(maps)
    length = MapDirectory.length(packed[:5])
    directory = MapDirectory.from_bytes(packed[:length])
    start, size = directory.span(1)
    assert directory.map(1, packed[start : start + size]) == maps[1]


def test_no_maps_are_packed_as_well() -> None:
    assert list(PageMaps.from_bytes(pack_maps([]))) == []
    assert list(PageMaps.from_bytes(pack_maps([None]))) == [None]


def test_damaged_maps_are_corrupt() -> None:
    pages = PageMap.of(data_of(wide(100)))
    data, packed = pages.to_bytes(), pack_maps([pages, pages])
    for length in range(len(data)):
        with pytest.raises(CorruptIndex):
            PageMap.from_bytes(data[:length]).chunks(0)
    for length in range(len(packed)):
        with pytest.raises(CorruptIndex):
            PageMaps.from_bytes(packed[:length])
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        place, octet = int(rng.integers(0, len(data))), int(rng.integers(0, 256))
        try:
            changed = PageMap.from_bytes(data[:place] + bytes((octet,)) + data[place + 1 :])
            [changed.chunks(group) for group in range(len(changed.counts))]
        except (CorruptIndex, Unsupported):
            continue


def test_maps_of_another_version_say_so() -> None:
    data = PageMap.of(data_of(wide(1))).to_bytes()
    for read in (PageMap.from_bytes, PageMaps.from_bytes):
        with pytest.raises(CorruptIndex, match=r"\[CORRUPT_INDEX_PAGE_MAP\].*version 9"):
            read(b"\x09" + data[1:])


def test_a_helper_shares_the_work_and_need_not_be_free() -> None:
    rng = np.random.default_rng(1)
    columns = {f"c{i}": pa.array([f"text {n}" for n in rng.integers(0, 10**9, 20_000)]) for i in range(6)}
    table = pa.table({**columns, "n": np.arange(20_000)})
    file = data_of(written(table, use_dictionary=False, write_page_index=True))
    ask = want(PageMap.of(file), np.array([5, 19_998]))
    parts = file.read_spans(ask.spans)
    with ThreadPoolExecutor(1) as helper:
        assert_same(ask.table(parts, helper), taken(table, [5, 19_998]))
        begun, over = threading.Event(), threading.Event()

        def busy() -> None:
            begun.set()
            over.wait()

        helper.submit(busy)
        begun.wait()
        assert_same(ask.table(parts, helper), taken(table, [5, 19_998]))
        over.set()
        damaged = [part[:100] + bytes(len(part) - 100) for part in parts]
        with pytest.raises(UnreadableFile):
            ask.table(damaged, helper)


def test_many_threads_fetch_from_one_map() -> None:
    content = written(every_type(400, 3), write_page_index=True, data_page_size=500, row_group_size=150)
    expected, file = full_read(content), data_of(content)
    pages = PageMap.from_bytes(PageMap.of(file).to_bytes())
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(4):
                rows = sorted(set(rng.integers(0, 400, 3).tolist()))
                names = [str(name) for name in rng.choice(expected.column_names, 5, replace=False)]
                assert_same(fetched(pages, file, rows, names), taken(expected.select(names), rows))
        except BaseException as failure:  # noqa: BLE001 - whatever it is, the test has to see it
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
