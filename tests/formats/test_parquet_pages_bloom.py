"""Parquet's Bloom filters: no value that is there is ever denied, and most that are not are."""

import os

import numpy as np
import pyarrow as pa
import pytest

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.parquet_pages import BloomFilters, Footer, bloom_spans, hash_one, hashes_of, read_footer
from grebe.formats.parquet_pages.xxh64 import hash_rows, hash_texts
from tests.formats.page_tables import data_of, written

COUNT = 3_000
RNG = np.random.default_rng(1)
COLUMNS: dict[str, pa.Array] = {
    "int": pa.array(np.arange(COUNT) * 3, pa.int32()),
    "short": pa.array(np.arange(COUNT) * 3 - 4_500, pa.int16()),
    "unsigned": pa.array(np.arange(COUNT) * 1_000_003, pa.uint32()),
    "long": pa.array(RNG.integers(-(2**62), 2**62, COUNT)),
    "float": pa.array(RNG.random(COUNT), pa.float32()),
    "double": pa.array(RNG.random(COUNT)),
    "text": pa.array([f"text {i}" * (i % 7 + 1) for i in range(COUNT)]),
    "uuid": pa.array([f"{i:036x}" for i in RNG.integers(0, 2**62, COUNT)]),
    "bytes": pa.array([f"b{i}".encode() for i in range(COUNT)], pa.binary()),
    "fixed": pa.array([f"{i:09}".encode() for i in range(COUNT)], pa.binary(9)),
    "date": pa.array(np.arange(COUNT), pa.int32()).cast(pa.date32()),
    "instant": pa.array(RNG.integers(0, 2**50, COUNT), pa.timestamp("us", "UTC")),
    "small decimal": pa.array(np.arange(COUNT) - 1_500, pa.int64())
    .cast(pa.decimal128(19, 0))
    .cast(pa.decimal128(20, 1)),
    "large decimal": pa.array(np.arange(COUNT) - 1_500, pa.int64()).cast(pa.decimal128(38, 2)),
}


def filters_of(content: bytes, column: str) -> tuple[Footer, BloomFilters]:
    file = data_of(content)
    footer = read_footer(file)
    leaf = [top.name for top in footer.schema.tops].index(column)
    spans = bloom_spans(footer, leaf)
    return footer, BloomFilters.of([None if span is None else file.read(*span) for span in spans])


def test_hashes_are_those_of_the_algorithm() -> None:
    known = {b"": 0xEF46DB3751D8E999, b"a": 0xD24EC4F1A98C6E5B, b"abc": 0x44BC2CF5AD770999}
    assert {text: hash_one(text) for text in known} == known
    # 39 bytes: one stripe, an eight is missing, a four and three bytes are there.
    assert hash_one(b"Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1


def test_one_hash_and_many_are_the_same() -> None:
    for length in (*range(70), 1_000):
        values = [os.urandom(length) for _ in range(3)]
        assert hash_texts(values).tolist() == [hash_one(value) for value in values]
    mixed = [b"x" * length for length in (5, 0, 36, 5)]
    assert hash_texts(mixed).tolist() == [hash_one(value) for value in mixed]
    rows = np.frombuffer(b"".join([b"12345678", b"abcdefgh"]), np.uint8).reshape(2, 8)
    assert hash_rows(rows).tolist() == [hash_one(b"12345678"), hash_one(b"abcdefgh")]


@pytest.mark.parametrize("column", COLUMNS)
def test_no_value_that_is_there_is_denied(column: str) -> None:
    values = COLUMNS[column]
    table = pa.table({"other": pa.nulls(COUNT, pa.int8()), column: values})
    content = written(table, row_group_size=1_000, bloom_filter_options={column: {"ndv": 1_000, "fpp": 0.01}})
    footer, filters = filters_of(content, column)
    assert len(filters) == 3
    hashes = hashes_of(footer.schema.leaves[1], values)
    for group in range(3):
        inside = hashes[group * 1_000 : (group + 1) * 1_000]
        assert filters.may_hold_any(group, inside).all()
        assert filters.may_hold_any(group, np.delete(hashes, np.s_[group * 1_000 : (group + 1) * 1_000])).mean() < 0.05
    for at in (0, 999, 1_000, COUNT - 1):
        assert filters.may_hold(int(hashes[at]))[at // 1_000]
    slices = hashes_of(footer.schema.leaves[1], values.slice(5, 7))
    assert slices.tolist() == hashes[5:12].tolist()


def test_what_has_no_filter_may_hold_everything() -> None:
    table = pa.table({"a": [1, 2], "b": [1, 2]})
    content = written(table, bloom_filter_options={"b": {"ndv": 10, "fpp": 0.01}})
    _, none = filters_of(content, "a")
    assert none.may_hold(123).tolist() == [True]
    assert none.may_hold_any(0, np.array([1, 2, 3], np.uint64)).tolist() == [True] * 3
    footer, one = filters_of(content, "b")
    file = data_of(content)
    (span,) = bloom_spans(footer, 1)
    assert span is not None
    mixed = BloomFilters.of([None, file.read(*span), None])
    absent = next(value for value in range(1_000) if not one.may_hold(value << 33 | value)[0])
    assert mixed.may_hold(absent << 33 | absent).tolist() == [True, False, True]


def test_a_filter_whose_length_is_not_said_reaches_to_what_comes_next() -> None:
    table = pa.table({"a": np.arange(1_000), "b": np.arange(1_000)})
    options = {name: {"ndv": 500, "fpp": 0.01} for name in ("a", "b")}
    content = written(table, row_group_size=500, bloom_filter_options=options, write_page_index=True)
    file = data_of(content)
    footer = read_footer(file)
    said = [bloom_spans(footer, leaf) for leaf in (0, 1)]
    for group in footer.groups:
        for column in group[1]:
            del column[3][15]
    for leaf in (0, 1):
        spans = bloom_spans(footer, leaf)
        for span, before in zip(spans, said[leaf], strict=True):
            assert span is not None
            assert before is not None
            assert span[0] == before[0]
            assert span[1] >= before[1]
        filters = BloomFilters.of([file.read(*span) for span in spans if span is not None])
        hashes = hashes_of(footer.schema.leaves[leaf], pa.array(np.arange(1_000)))
        assert filters.may_hold_any(0, hashes[:500]).all()
        assert filters.may_hold_any(1, hashes[500:]).all()


def test_damaged_filters_are_unreadable() -> None:
    content = written(pa.table({"a": [1, 2]}), bloom_filter_options={"a": {"ndv": 10, "fpp": 0.01}})
    file = data_of(content)
    (span,) = bloom_spans(read_footer(file), 0)
    assert span is not None
    data = file.read(*span)
    for part in (data[:-1], data[:3], b"\xff" * 40):
        with pytest.raises(UnreadableFile):
            BloomFilters.of([part])


def test_values_of_another_type_are_refused() -> None:
    footer = read_footer(data_of(written(pa.table({"a": [1, 2], "s": ["x", "y"]}))))
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_BLOOM\].*not asked about values of type float"):
        hashes_of(footer.schema.leaves[0], pa.array([1.5], pa.float32()))
    moment = pa.array([0], pa.timestamp("us"))
    old = read_footer(data_of(written(pa.table({"t": moment}), use_deprecated_int96_timestamps=True)))
    with pytest.raises(Unsupported, match="not asked about values of type timestamp"):
        hashes_of(old.schema.leaves[0], moment)
    with pytest.raises(Unsupported, match="not asked about values of type int64"):
        hashes_of(footer.schema.leaves[1], pa.array([1]))
