"""Blocks of manifests of Iceberg are unpacked to what pyiceberg's own codecs give, and to no more than a block may hold."""

import bz2
import tracemalloc
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.avro import file
from pyiceberg.avro.codecs import KNOWN_CODECS

from grebe.sources.avro_codecs import CODECS, MOST, TooLarge
from grebe.sources.avro_decoder import checked_decoder


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def snapped(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "deflate": deflated,
    "bzip2": bz2.compress,
    "zstandard": lambda data: pa.compress(data, "zstd", asbytes=True),
    "snappy": snapped,
}


def test_every_codec_of_pyiceberg_has_a_bounded_one() -> None:
    assert CODECS.keys() == KNOWN_CODECS.keys()
    assert PACKERS.keys() == CODECS.keys() - {"null"}
    assert CODECS["null"] is None


@pytest.mark.parametrize("name", PACKERS)
@given(st.binary(max_size=2_000))
def test_a_block_is_unpacked_to_what_was_packed(name: str, data: bytes) -> None:
    assert CODECS[name].decompress(PACKERS[name](data)) == data


@pytest.mark.parametrize("name", ["deflate", "bzip2", "zstandard"])
@given(st.binary(max_size=2_000))
def test_a_block_that_pyiceberg_packed_is_unpacked(name: str, data: bytes) -> None:
    codec = KNOWN_CODECS[name]  # type: ignore[index]  # one of its names
    assert codec is not None
    assert CODECS[name].decompress(codec.compress(data)[0]) == data


@pytest.mark.parametrize("name", PACKERS)
def test_a_block_may_be_as_long_as_the_limit_and_no_longer(name: str) -> None:
    assert len(CODECS[name].decompress(PACKERS[name](bytes(MOST)))) == MOST
    with pytest.raises(TooLarge, match="unpacks to more than"):
        CODECS[name].decompress(PACKERS[name](bytes(MOST + 1)))


def test_a_size_that_is_a_lie_takes_no_memory() -> None:
    lie = b"\xff\xff\xff\xff\x0f" + b"\0" * 8
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            CODECS["snappy"].decompress(lie)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", PACKERS)
def test_a_block_that_is_cut_short_is_no_end_of_the_file(name: str) -> None:
    """pyiceberg takes `EOFError` for the end of a manifest, and would leave out the files in the rest of it."""
    whole = PACKERS[name](bytes(range(256)) * 20)
    for length in (0, 1, 4, len(whole) // 2, len(whole) - 1):
        with pytest.raises((ValueError, OSError, zlib.error)):
            CODECS[name].decompress(whole[:length])


def test_pyiceberg_has_its_own_codecs_back_once_all_readers_are_done() -> None:
    own = file.KNOWN_CODECS  # type: ignore[attr-defined]  # imported there by name
    with checked_decoder():
        with checked_decoder():
            assert file.KNOWN_CODECS is CODECS  # type: ignore[attr-defined]
        assert file.KNOWN_CODECS is CODECS  # type: ignore[attr-defined]
    assert file.KNOWN_CODECS is own  # type: ignore[attr-defined]
