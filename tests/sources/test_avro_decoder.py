"""Manifests of Iceberg are decoded with all checks: the same values as pyiceberg's own decoder has, none beyond the end."""

import io
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.avro import file
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.encoder import BinaryEncoder

from grebe.sources.avro_decoder import CheckedDecoder, checked_decoder

LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    st.tuples(st.just("int"), LONGS),
    st.tuples(st.just("utf8"), st.text(max_size=20)),
    st.tuples(st.just("bytes"), st.binary(max_size=20)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
)


def encoded(values: list[tuple[str, Any]]) -> bytes:
    sink = io.BytesIO()
    encoder = BinaryEncoder(sink)
    for kind, value in values:
        getattr(encoder, f"write_{kind}")(value)
    return sink.getvalue()


@given(st.lists(VALUES, max_size=10), st.data())
def test_values_are_those_of_pyiceberg_and_bytes_that_lack_are_found_out(
    values: list[tuple[str, Any]], data: st.DataObject
) -> None:
    whole = encoded(values)
    decoder = CheckedDecoder(whole)
    assert [getattr(decoder, f"read_{kind}")() for kind, _ in values] == [value for _, value in values]
    assert decoder.tell() == len(whole)
    skipping = CheckedDecoder(whole)
    for kind, _ in values:
        getattr(skipping, f"skip_{kind}")()
    assert skipping.tell() == len(whole)
    if whole:
        short = CheckedDecoder(whole[: data.draw(st.integers(0, len(whole) - 1))])
        with pytest.raises((EOFError, ValueError)):
            _ = [getattr(short, f"read_{kind}")() for kind, _ in values]


@given(st.lists(LONGS, max_size=10), st.dictionaries(LONGS, st.binary(max_size=9), max_size=5))
def test_many_values_at_once_are_those_of_pyiceberg(numbers: list[int], pairs: dict[int, bytes]) -> None:
    flat: list[tuple[str, Any]] = [("int", number) for number in numbers]
    for key, value in pairs.items():
        flat += [("int", key), ("bytes", value)]
    for decoder in (CheckedDecoder(encoded(flat)), StreamingBinaryDecoder(encoded(flat))):
        found: dict[int, bytes] = {}
        assert decoder.read_ints(len(numbers)) == tuple(numbers)
        decoder.read_int_bytes_dict(len(pairs), found)
        assert found == pairs


@given(st.binary(max_size=30), st.lists(st.sampled_from(["int", "bytes", "utf8", "double", "boolean"]), max_size=8))
def test_any_bytes_end_in_values_or_in_an_error(data: bytes, kinds: list[str]) -> None:
    for verb in ("read", "skip"):
        decoder = CheckedDecoder(data)
        try:
            for kind in kinds:
                getattr(decoder, f"{verb}_{kind}")()
                assert decoder.tell() <= len(data)
        except (EOFError, ValueError):
            continue


def test_lengths_and_numbers_that_cannot_be_are_refused() -> None:
    for broken in (CheckedDecoder(b"\xff" * 20).read_int, CheckedDecoder(b"\x01").skip_bytes):
        with pytest.raises(ValueError, match=r"64 bits|negative"):
            broken()
    with pytest.raises(ValueError, match="negative"):
        CheckedDecoder(b"abc").read(-1)
    for count in (4, 2**62):
        with pytest.raises(ValueError, match="than bytes are left"):
            CheckedDecoder(b"\x02" * 3).read_ints(count)
        with pytest.raises(ValueError, match="than bytes are left"):
            CheckedDecoder(b"\x02" * 3).read_int_bytes_dict(count, {})
    assert CheckedDecoder(struct.pack("<f", 1.5)).read_float() == 1.5


def test_only_a_number_behind_the_last_byte_is_the_end_of_a_file() -> None:
    """pyiceberg ends there without an error: a block that was cut would be a manifest with fewer files."""
    with pytest.raises(EOFError):
        CheckedDecoder(b"").read_int()
    with pytest.raises(ValueError, match="missing"):
        CheckedDecoder(b"").read_bytes()
    with pytest.raises(ValueError, match="longer than what is left"):
        CheckedDecoder(b"x" * 15).read(16)
    with pytest.raises(ValueError, match="cut short"):
        CheckedDecoder(b"\xff").read_int()


def test_pyiceberg_has_its_own_decoder_back_once_all_readers_are_done() -> None:
    own = file.new_decoder  # type: ignore[attr-defined]  # imported there by name

    def read(_: int) -> bool:
        with checked_decoder():
            return isinstance(file.new_decoder(b""), CheckedDecoder)  # type: ignore[attr-defined]

    with checked_decoder(), ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(100)))
    assert file.new_decoder is own  # type: ignore[attr-defined]
