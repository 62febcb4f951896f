"""Finding the pages of every column chunk: from the offset index where the file has one, else from page to page."""

from collections.abc import Iterator, Sequence

import numpy as np

from grebe.formats.parquet_pages.chunk import HIDDEN, UNCOMPRESSED, Chunk
from grebe.formats.parquet_pages.failures import Damaged, naming
from grebe.formats.parquet_pages.footer import Footer
from grebe.formats.parquet_pages.headers import DATA, DATA_V2, DICTIONARY_ENCODINGS
from grebe.formats.parquet_pages.thrift import Struct, list_head, read_struct, varints
from grebe.formats.parquet_pages.walk import Location, Walk, walk
from grebe.formats.protocol import DataFile

# As much is read for nothing rather than asked for in another request.
_GAP = 64 * 1024
# Heads of the three fields of a location, and its end.
_HEADS = np.array([0x16, 0x15, 0x16, 0], np.uint64)
_MANY = 12

Place = tuple[int, int]
"""Row group and leaf."""


def chunks_of(file: DataFile, footer: Footer) -> list[list[Chunk]]:
    """By row group and leaf."""
    with naming(file.uri):
        places = [(number, leaf) for number, group in enumerate(footer.groups) for leaf in range(len(group[1]))]
        # What writers say of where the pages of no rows are is not always so.
        filled = [place for place in places if footer.groups[place[0]][3] and not _hidden(_column(footer, place))]
        indexed = {place: _index_span(_column(footer, place)) for place in filled if _column(footer, place).get(5)}
        walks = {place: _walk_of(footer, place) for place in filled if place not in indexed}
        if any(each.start < 0 or each.stop > file.size for each in walks.values()):
            raise Damaged("a column chunk lies outside the file")
    locations = _indexed_locations(file, footer, indexed)
    walk(file, list(walks.values()))
    locations.update({place: each.found for place, each in walks.items()})
    with naming(file.uri):
        return list(_built(file, footer, locations))


def _column(footer: Footer, place: Place) -> Struct:
    column: Struct = footer.groups[place[0]][1][place[1]]
    return column


def _hidden(column: Struct) -> bool:
    """Encrypted, or in another file."""
    return 3 not in column or 8 in column or bool(column.get(1))


def _index_span(column: Struct) -> tuple[int, int]:
    return column[4], column[5]


def _walk_of(footer: Footer, place: Place) -> Walk:
    meta = _column(footer, place)[3]
    start = _start(meta)
    return Walk(footer.schema.leaves[place[1]], meta[4], meta[5], start, start + meta[7])


def _start(meta: Struct) -> int:
    start: int = min(meta.get(11) or meta[9], meta[9])
    return start


def _indexed_locations(
    file: DataFile, footer: Footer, spans: dict[Place, tuple[int, int]]
) -> dict[Place, list[Location]]:
    with naming(file.uri):
        if any(start < 0 or length < 0 or start + length > file.size for start, length in spans.values()):
            raise Damaged("its page index lies outside the file")
        stretches = _stretches([span for span in spans.values() if footer.inside_tail(*span) is None])
    read = file.read_spans(stretches) if stretches else []

    def part(start: int, length: int) -> bytes:
        inside = footer.inside_tail(start, length)
        if inside is not None:
            return inside
        first, data = next(
            (stretch[0], data)
            for stretch, data in zip(stretches, read, strict=True)
            if stretch[0] <= start < stretch[0] + stretch[1]
        )
        return data[start - first : start - first + length]

    with naming(file.uri):
        return {place: parse_offset_index(part(*span)) for place, span in spans.items()}


def _stretches(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that hold all of these, as few as is sensible."""
    joined: list[tuple[int, int]] = []
    for start, length in sorted(spans):
        if joined and start <= sum(joined[-1]) + _GAP:
            first = joined[-1][0]
            joined[-1] = (first, max(sum(joined[-1]), start + length) - first)
        else:
            joined.append((start, length))
    return joined


def parse_offset_index(data: bytes) -> list[Location]:
    """`OffsetIndex`: a list of `PageLocation`, each an offset, a size and a first row."""
    if data[0] == 0x19:
        count, _, place = list_head(data, 1)
        if count >= _MANY:
            numbers = varints(data[place:])[: 7 * count]
            if len(numbers) == 7 * count and (numbers.reshape(count, 7)[:, ::2] == _HEADS).all():
                found = (numbers.reshape(count, 7)[:, 1::2] >> np.uint64(1)).astype(np.int64)
                return list(map(tuple, found.tolist()))
    index, _ = read_struct(data)
    return [(location[1], location[2], location[3]) for location in index[1]]


def _built(file: DataFile, footer: Footer, locations: dict[Place, list[Location]]) -> Iterator[list[Chunk]]:
    for number, group in enumerate(footer.groups):
        cuts: dict[tuple[int, ...], tuple[int, ...]] = {}
        chunks = []
        for leaf, column in enumerate(group[1]):
            found = locations.get((number, leaf))
            if found is None:
                codec = HIDDEN if _hidden(column) else UNCOMPRESSED
                chunks.append(Chunk(codec, 0, 0, 0, 0, cuts.setdefault((), ()), (), ()))
                continue
            _check(found, group[3], file.size)
            offsets, sizes, first_rows = zip(*found, strict=True)
            chunks.append(_chunk(column[3], offsets, sizes, cuts.setdefault(first_rows, first_rows)))
        yield chunks


def _check(locations: Sequence[Location], rows: int, size: int) -> None:
    if not locations or locations[0][2] != 0:
        raise Damaged("a page index does not begin with the first row")
    last = -1
    for offset, length, first_row in locations:
        if first_row < last or first_row > rows or offset < 0 or length <= 0 or offset + length > size:
            raise Damaged("a page index contradicts itself")
        last = first_row


def _chunk(meta: Struct, offsets: tuple[int, ...], sizes: tuple[int, ...], first_rows: tuple[int, ...]) -> Chunk:
    start = _start(meta)
    length = offsets[0] - start
    if length < 0:
        raise Damaged("a page lies before its column chunk")
    codec = meta[4] if 0 <= meta[4] < HIDDEN else HIDDEN
    return Chunk(codec, start, length, _dictionary_pages(meta), meta[5], first_rows, offsets, sizes)


def _dictionary_pages(meta: Struct) -> int | None:
    if 13 in meta:
        kinds = (DATA, DATA_V2)
        counts: list[int] = [each[3] for each in meta[13] if each[1] in kinds and each[2] in DICTIONARY_ENCODINGS]
        return sum(counts)
    return None if set(DICTIONARY_ENCODINGS) & set(meta[2]) else 0
