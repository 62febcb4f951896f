"""Page maps as bytes.

A map is its schema and a body; many maps share their schemas (see `page_maps`). The body is nothing but varints: the
number of row groups, the rows of each, the length in bytes of the section of each, and the sections. A section is again
varints: where its first chunk starts; the ways in which its chunks are cut into pages, each a number of pages and the rows
of all but the last; then chunk by chunk

    facts   codec (4 bits), has a dictionary (1), which pages use it (2), starts elsewhere than where the chunk before
            ended (1), has gaps between pages (1), and the number of its way of being cut
    [the distance to the end of the chunk before, zigzag] [length of the dictionary page] [pages that use it]
    [values, of a repeated column] [gap before each page] size of each page

A chunk of Spark's takes one byte, two or three for its dictionary, and two or three a page.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import pyarrow as pa

from grebe.errors import CorruptIndex
from grebe.files.untrusted import FOREIGN, unzstd
from grebe.formats.parquet_pages.chunk import Chunk
from grebe.formats.parquet_pages.schema import FileSchema, schema_of
from grebe.formats.parquet_pages.thrift import binary, varint, varints, write_varint, write_varints

VERSION = 1
_AT_LEAST, _MOST_TIMES = 4 * 1024 * 1024, 256
"""A schema may unpack to so many bytes, or so many times its own."""
_NONE, _ALL, _UNKNOWN, _COUNTED = range(4)
_DICTIONARY, _ELSEWHERE, _SCATTERED = 1 << 4, 1 << 7, 1 << 8


def joined(schema: FileSchema, body: bytes) -> bytes:
    return b"".join((bytes((VERSION,)), pack_schema_blob(schema), body))


def split(data: bytes) -> tuple[FileSchema, bytes]:
    with corruption():
        check_version(data[0])
        schema, place = unpack_schema_blob(data, 1)
    return schema, data[place:]


@contextlib.contextmanager
def corruption() -> Iterator[None]:
    """What goes wrong inside is damage of the map."""
    try:
        yield
    except FOREIGN as error:
        raise CorruptIndex("a page map cannot be read; refresh with mode='full'", detail="PAGE_MAP") from error


def check_version(version: int) -> None:
    if version != VERSION:
        raise CorruptIndex(
            f"a page map is of version {version}, and this Grebe reads {VERSION}; upgrade Grebe, or refresh with mode='full'",
            detail="PAGE_MAP",
        )


def pack_schema_blob(schema: FileSchema) -> bytes:
    return write_varint(len(schema.blob)) + binary(pa.compress(schema.blob, "zstd", asbytes=True))


def unpack_schema_blob(data: bytes, place: int) -> tuple[FileSchema, int]:
    size, place = varint(data, place)
    length, place = varint(data, place)
    packed = data[place : place + length]
    return schema_of(unzstd(packed, size, max(_AT_LEAST, _MOST_TIMES * len(packed)))), place + length


def pack_body(counts: Sequence[int], sections: Sequence[bytes]) -> bytes:
    return b"".join((write_varints([len(counts), *counts, *map(len, sections)]), *sections))


def unpack_body(body: bytes) -> tuple[tuple[int, ...], tuple[bytes, ...]]:
    with corruption():
        groups, place = varint(body, 0)
        counts = []
        for _ in range(2 * groups):
            number, place = varint(body, place)
            counts.append(number)
        ends = list(accumulate(counts[groups:], initial=place))
        if ends[-1] != len(body):
            raise ValueError("another length than it says")
        return tuple(counts[:groups]), tuple(body[start:stop] for start, stop in pairwise(ends))


def pack_group(schema: FileSchema, chunks: Sequence[Chunk]) -> bytes:
    cuts = list(dict.fromkeys(chunk.first_rows for chunk in chunks))
    place = chunks[0].start if chunks else 0
    numbers = [place, len(cuts)]
    for cut in cuts:
        numbers += (len(cut), *(after - before for before, after in pairwise(cut)))
    for leaf, chunk in zip(schema.leaves, chunks, strict=True):
        numbers += _chunk_numbers(chunk, place, cuts.index(chunk.first_rows), leaf.max_repetition > 0)
        place = chunk.stop
    return write_varints(numbers)


def _chunk_numbers(chunk: Chunk, place: int, cut: int, repeated: bool) -> Iterator[int]:
    gaps = list(_gaps(chunk))
    use = _use(chunk)
    elsewhere, scattered = chunk.start != place, any(gaps)
    has_dictionary = chunk.dictionary_length > 0
    yield chunk.codec | has_dictionary << 4 | use << 5 | elsewhere << 7 | scattered << 8 | cut << 9
    if elsewhere:
        distance = chunk.start - place
        yield distance << 1 if distance >= 0 else (-distance << 1) - 1
    if has_dictionary:
        yield chunk.dictionary_length
    if use == _COUNTED:
        yield chunk.dictionary_pages or 0
    if repeated:
        yield chunk.values
    if scattered:
        yield from gaps
    yield from chunk.sizes


def _gaps(chunk: Chunk) -> Iterator[int]:
    place = chunk.start + chunk.dictionary_length
    for offset, size in zip(chunk.offsets, chunk.sizes, strict=True):
        yield offset - place
        place = offset + size


def _use(chunk: Chunk) -> int:
    if chunk.dictionary_pages is None:
        return _UNKNOWN
    if not chunk.dictionary_pages:
        return _NONE
    return _ALL if chunk.dictionary_pages >= len(chunk.sizes) else _COUNTED


def unpack_group(schema: FileSchema, rows: int, section: bytes) -> tuple[Chunk, ...]:
    with corruption():
        return tuple(_chunks(schema, rows, varints(section).tolist()))


def _chunks(schema: FileSchema, rows: int, numbers: list[int]) -> Iterator[Chunk]:
    place, cuts, at = numbers[0], [], 2
    for _ in range(numbers[1]):
        pages = numbers[at]
        cuts.append(tuple(accumulate(numbers[at + 1 : at + pages], initial=0)) if pages else ())
        at += max(pages, 1)
    for leaf in schema.leaves:
        facts = numbers[at]
        at += 1
        first_rows = cuts[facts >> 9]
        pages = len(first_rows)
        length, use, values = 0, facts >> 5 & 3, rows
        if facts & _ELSEWHERE:
            place += (numbers[at] >> 1) ^ -(numbers[at] & 1)
            at += 1
        if facts & _DICTIONARY:
            length = numbers[at]
            at += 1
        if use == _COUNTED:
            use_count: int | None = numbers[at]
            at += 1
        else:
            use_count = (0, pages, None)[use]
        if leaf.max_repetition:
            values = numbers[at]
            at += 1
        if place < 0:
            raise ValueError("a chunk before the file")
        start, place = place, place + length
        if facts & _SCATTERED:
            gaps, at = numbers[at : at + pages], at + pages
        else:
            gaps = []
        sizes = tuple(numbers[at : at + pages])
        at += pages
        offsets = tuple(_offsets(place, sizes, gaps))
        yield Chunk(facts & 15, start, length, use_count, values, first_rows, offsets, sizes)
        place = offsets[-1] + sizes[-1] if pages else place
    if at != len(numbers):
        raise ValueError("numbers left over")


def _offsets(place: int, sizes: tuple[int, ...], gaps: Sequence[int]) -> Iterable[int]:
    if not gaps:
        return accumulate(sizes[:-1], initial=place) if sizes else ()
    ends = accumulate(sizes, initial=place)
    return (end + gap for end, gap in zip(ends, accumulate(gaps), strict=False))
