"""Headers of pages, and the numbers that Parquet gives to kinds of pages and to encodings."""

import re
from typing import NamedTuple

from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.thrift import read_struct

DATA, INDEX, DICTIONARY, DATA_V2 = range(4)
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED = 0, 2, 3, 4
DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, RLE_DICTIONARY, BYTE_STREAM_SPLIT = 5, 6, 7, 8, 9
DICTIONARY_ENCODINGS = (PLAIN_DICTIONARY, RLE_DICTIONARY)
_COMMON_LENGTH = 256


class Header(NamedTuple):
    kind: int
    """Of page."""
    length: int
    """Of the header itself, in bytes."""
    size: int
    """Of what follows, uncompressed."""
    stored: int
    """Of what follows, as it is stored."""
    entries: int
    """Levels: values, nulls and empty lists; of a dictionary its values."""
    encoding: int
    rows: int
    """Only version 2 says how many; otherwise 0."""
    repetition: int
    definition: int
    """Of the levels: in version 1 their encoding, in version 2 their length."""
    compressed: bool


# A header of version 1 with nothing but what it must have and perhaps a checksum, as nearly all are: matched as a whole it
# costs half of what reading it field by field does.
_NUMBER = rb"([\x80-\xff]*[\x00-\x7f])"
_BARE_V1 = re.compile(
    rb"\x15\x00\x15%b\x15%b(?:\x15[\x80-\xff]*[\x00-\x7f]\x1c|\x2c)\x15%b\x15([\x00-\x7f])\x15([\x00-\x7f])\x15([\x00-\x7f])\x00\x00"
    % (_NUMBER, _NUMBER, _NUMBER)
)


def read_header(data: memoryview, place: int = 0) -> Header:
    beginning = bytes(data[place : place + _COMMON_LENGTH])
    bare = _BARE_V1.match(beginning)
    if bare is not None:
        size, stored, entries, encoding, definition, repetition = bare.groups()
        if not (size[0] | stored[0] | entries[0]) & 1:
            sizes = _number(size), _number(stored), _number(entries)
            return Header(DATA, bare.end(), *sizes, encoding[0] >> 1, 0, repetition[0] >> 1, definition[0] >> 1, True)
    try:
        return _any_header(beginning)
    except IndexError:
        return _any_header(bytes(data[place:]))


def _number(octets: bytes) -> int:
    """A zigzag varint that is not negative."""
    value = 0
    for octet in reversed(octets):
        value = value << 7 | octet & 127
    return value >> 1


def _any_header(data: bytes) -> Header:
    header, length = read_struct(data)
    kind, size, stored = header[1], header[2], header[3]
    if kind == DATA:
        page = header[5]
        found = Header(kind, length, size, stored, page[1], page[2], 0, page[4], page[3], True)
    elif kind == DATA_V2:
        page = header[8]
        entries, rows, encoding, definition, repetition = page[1], page[3], page[4], page[5], page[6]
        found = Header(kind, length, size, stored, entries, encoding, rows, repetition, definition, page.get(7, True))
    else:
        page = header.get(7, {})
        found = Header(kind, length, size, stored, page.get(1, 0), page.get(2, PLAIN), 0, 0, 0, True)
    if min(size, stored, found.entries, found.rows, found.repetition, found.definition) < 0:
        raise Damaged("a page has a negative size")
    return found
