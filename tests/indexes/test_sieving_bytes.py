"""The bytes of a sieve are all of it, and damage to them is told."""

import zlib

import numpy as np
import pytest

from grebe.errors import CorruptIndex
from grebe.indexes.sieving.sieve import Sieve
from tests.indexes.sieving_data import Held, clustered, late

_SIEVES = {
    "exact": late(5_000, 10).sieve(50_000),
    "approximate": clustered(20_000, 200).sieve(1_600),
    "least": clustered(2_000, 300).sieve(0),
    "one key": Held.of([7], [2**32 - 1]).sieve(100),
    "random": Held.of(np.random.default_rng(0).integers(0, 2**50, 9_000), np.arange(9_000) % 90).sieve(4_000),
}


@pytest.mark.parametrize("name", _SIEVES)
def test_a_stored_sieve_is_the_same(name: str) -> None:
    sieve = _SIEVES[name]
    again = Sieve.from_bytes(sieve.to_bytes())
    assert (again.low, again.high, again.exact, again.nbytes) == (sieve.low, sieve.high, sieve.exact, sieve.nbytes)
    assert [array.tolist() for array in again.triples()] == [array.tolist() for array in sieve.triples()]
    assert again.to_bytes() == sieve.to_bytes()


def test_sieves_are_of_both_forms() -> None:
    assert [sieve.exact for sieve in _SIEVES.values()] == [True, False, False, True, False]


def test_the_memory_of_a_sieve_is_known() -> None:
    sieve = _SIEVES["approximate"]
    assert sieve.nbytes >= sieve.starts.nbytes + sieve.ends.nbytes + len(sieve.to_bytes())
    assert sieve.nbytes > _SIEVES["one key"].nbytes


@pytest.mark.parametrize("name", _SIEVES)
def test_bytes_cut_short_are_told(name: str) -> None:
    data = _SIEVES[name].to_bytes()
    for length in {*range(0, 40), *np.linspace(0, len(data) - 1, 60).astype(int).tolist()}:
        if length < len(data):
            with pytest.raises(CorruptIndex) as told:
                Sieve.from_bytes(data[:length])
            assert told.value.code == "CORRUPT_INDEX_SIEVE"


@pytest.mark.parametrize("name", _SIEVES)
def test_any_flipped_bit_and_any_byte_more_are_told(name: str) -> None:
    data = bytearray(_SIEVES[name].to_bytes())
    for at in {*range(30), *np.random.default_rng(0).integers(0, len(data), 300).tolist()}:
        data[at] ^= 1 << at % 8
        with pytest.raises(CorruptIndex):
            Sieve.from_bytes(bytes(data))
        data[at] ^= 1 << at % 8
    with pytest.raises(CorruptIndex):
        Sieve.from_bytes(bytes(data) + b"\0")


def test_another_version_is_told_by_its_number() -> None:
    data = _SIEVES["exact"].to_bytes()
    newer = bytes([data[4] + 1]) + data[5:]
    with pytest.raises(CorruptIndex, match="version 2"):
        Sieve.from_bytes(zlib.crc32(newer).to_bytes(4, "little") + newer)
