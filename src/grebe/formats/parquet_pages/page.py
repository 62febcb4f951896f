"""The sections of a data page: levels of repetition and of definition, and values."""

from typing import NamedTuple

from grebe.formats.parquet_pages.compression import inflate
from grebe.formats.parquet_pages.failures import Damaged, NoPages
from grebe.formats.parquet_pages.headers import DATA_V2, PLAIN, RLE, Header
from grebe.formats.parquet_pages.schema import BYTE_ARRAY, Leaf

_NOTHING = memoryview(b"")


class Sections(NamedTuple):
    repetition: memoryview
    definition: memoryview
    values: memoryview
    """Perhaps only the beginning."""


def needed_bytes(leaf: Leaf, header: Header, position: int) -> int | None:
    """How much of the values must be there to find those up to this position; a guess for texts; None for all."""
    if leaf.max_repetition or header.encoding != PLAIN:
        return None
    if leaf.width:
        return (position + 1) * leaf.width
    if leaf.physical == BYTE_ARRAY and header.entries:
        return header.size * (position + 1) // header.entries * 9 // 8 + 8192
    return None


def open_page(leaf: Leaf, codec: int, body: memoryview, header: Header, needed: int | None = None) -> Sections:
    """The sections of a page from the bytes behind its header; `needed` as from `needed_bytes`."""
    if header.kind == DATA_V2:
        return _open_v2(codec, body, header, needed)
    return _open_v1(leaf, codec, body, header, needed)


def _open_v2(codec: int, body: memoryview, header: Header, needed: int | None) -> Sections:
    definition, repetition = header.definition, header.repetition
    levels = definition + repetition
    if min(definition, repetition) < 0 or levels > min(header.size, header.stored):
        raise Damaged("levels are longer than their page")
    values = body[levels:]
    size = header.size - levels
    if header.compressed:
        values = inflate(codec, values, size, needed)
    return Sections(body[:repetition], body[repetition:levels], values)


def _open_v1(leaf: Leaf, codec: int, body: memoryview, header: Header, needed: int | None) -> Sections:
    if needed is not None:
        # Levels come first: at most two bits for each bit of a level, and the lengths.
        needed += 64 + header.entries * leaf.max_definition.bit_length() // 4
    body = inflate(codec, body, header.size, needed)
    repetition, place = _levels(body, 0, leaf.max_repetition, header.repetition)
    definition, place = _levels(body, place, leaf.max_definition, header.definition)
    return Sections(repetition, definition, body[place:])


def _levels(body: memoryview, place: int, top: int, encoding: int) -> tuple[memoryview, int]:
    if not top:
        return _NOTHING, place
    if encoding != RLE:
        raise NoPages(f"its levels have encoding {encoding}")
    start = place + 4
    stop = start + int.from_bytes(body[place:start], "little")
    if stop > len(body):
        raise Damaged("levels are longer than their page")
    return body[start:stop], stop
