"""Where in an ORC file the stripes lie, and in a stripe the bytes of each column: read from its own metadata (protobuf).

Arrow's reader does not tell, and reads a column in many small pieces, one after another. Knowing the bytes beforehand, they are
read at once, and the reader finds them at hand.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import cramjam
import numpy as np
import numpy.typing as npt

from grebe.errors import UnreadableFile
from grebe.files.untrusted import FOREIGN
from grebe.formats.protocol import DataFile

Span = tuple[int, int]
Message = bytes | memoryview
# Numbers of fields in the messages of ORC.
_TAIL_POSTSCRIPT, _TAIL_FOOTER = 1, 2
_POSTSCRIPT_COMPRESSION, _POSTSCRIPT_BLOCK = 2, 3
_FOOTER_STRIPES, _FOOTER_TYPES = 3, 4
_STRIPE_OFFSET, _STRIPE_INDEX, _STRIPE_DATA, _STRIPE_FOOTER, _STRIPE_ROWS = 1, 2, 3, 4, 5
_TYPE_SUBTYPES, _TYPE_NAMES = 2, 3
_STREAMS, _STREAM_KIND, _STREAM_COLUMN, _STREAM_LENGTH = 1, 1, 2, 3
# Streams of row indexes and Bloom filters, which a read of a whole stripe leaves alone.
_OF_INDEXES = (6, 7, 8)
_CHUNK_HEADER = 3
_MOST_ROWS = 1 << 40
_LONGEST_VARINT = 70
"""In bits: groups of seven."""
_USUAL_BLOCK = 256 * 1024
# How a value is written in a message.
_VARINT, _BYTES, _FIXED = 0, 2, {1: 8, 5: 4}


@dataclass(frozen=True, slots=True)
class Stripe:
    offset: int
    footer: Span
    rows: int

    def within(self, size: int) -> bool:
        """Whether it lies in a file of that size, and has no more rows than any could have."""
        return sum(self.footer) <= size and self.rows < _MOST_ROWS


@dataclass(frozen=True, slots=True)
class Layout:
    """Of one file. `ids` has for each column of the top level the first of its type ids and the one behind its last."""

    stripes: tuple[Stripe, ...]
    ids: dict[str, tuple[int, int]]
    compression: int
    block: int
    nbytes: int
    """What it takes in memory, roughly."""

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """The number of the row behind each stripe."""
        return np.cumsum([stripe.rows for stripe in self.stripes], dtype=np.int64)

    def spans(self, file: DataFile, stripes: Sequence[int], names: Sequence[str]) -> list[Span]:
        """The bytes that a read of these columns in these stripes takes; nothing where that cannot be told."""
        wanted = np.zeros(max((last for _, last in self.ids.values()), default=0) + 1, np.bool_)
        wanted[0] = True
        for name in names:
            wanted[slice(*self.ids[name])] = True
        chosen = [self.stripes[number] for number in stripes]
        footers = file.read_spans([stripe.footer for stripe in chosen]) if self.compression in _CODECS else []
        try:
            read = [self._streams(*each, wanted) for each in zip(chosen, footers, strict=bool(footers))]
            if any(start + length > file.size for spans in read for start, length in spans):
                return []
        except (*FOREIGN, cramjam.DecompressionError):
            return []  # damaged: the reader will say how
        return [span for spans in read for span in spans]

    def _streams(self, stripe: Stripe, footer: bytes, wanted: npt.NDArray[np.bool_]) -> list[Span]:
        spans, place = [stripe.footer], stripe.offset
        for stream in map(_numbers, _parts(_inflated(footer, _CODECS[self.compression], self.block), _STREAMS)):
            length = stream.get(_STREAM_LENGTH, 0)
            if length and wanted[stream.get(_STREAM_COLUMN, 0)] and stream.get(_STREAM_KIND, 0) not in _OF_INDEXES:
                spans.append((place, length))
            place += length
        return spans


def layout_of(tail: bytes, file: DataFile) -> Layout:
    """From the file's tail as Arrow serialises it."""
    try:
        (postscript,), (footer,) = (_parts(tail, number) for number in (_TAIL_POSTSCRIPT, _TAIL_FOOTER))
        stripes = tuple(_stripe(_numbers(one)) for one in _parts(footer, _FOOTER_STRIPES))
        ids = _top_level(_parts(footer, _FOOTER_TYPES))
        if any(not stripe.within(file.size) for stripe in stripes):
            raise ValueError("a stripe lies outside the file")
    except FOREIGN as error:
        raise UnreadableFile(f"the footer of {file.uri} is damaged", detail="ORC") from error
    told = _numbers(postscript)
    return Layout(
        stripes, ids, told.get(_POSTSCRIPT_COMPRESSION, 0), told.get(_POSTSCRIPT_BLOCK, _USUAL_BLOCK), len(tail)
    )


def _stripe(known: dict[int, int]) -> Stripe:
    offset = known.get(_STRIPE_OFFSET, 0)
    before = known.get(_STRIPE_INDEX, 0) + known.get(_STRIPE_DATA, 0)
    return Stripe(offset, (offset + before, known.get(_STRIPE_FOOTER, 0)), known.get(_STRIPE_ROWS, 0))


def _top_level(types: Sequence[memoryview]) -> dict[str, tuple[int, int]]:
    """Types are numbered from the root down, each before what lies in it."""
    names = [bytes(name).decode() for name in _parts(types[0], _TYPE_NAMES)]
    packed = [value for part in _parts(types[0], _TYPE_SUBTYPES) for value in _varints(part)]
    loose = (value for number, value in _fields(types[0]) if number == _TYPE_SUBTYPES and isinstance(value, int))
    first = packed or list(loose)
    return dict(zip(names, zip(first, [*first[1:], len(types)], strict=True), strict=True))


def _numbers(data: Message) -> dict[int, int]:
    return {number: value for number, value in _fields(data) if isinstance(value, int)}


def _parts(data: Message, wanted: int) -> list[memoryview]:
    return [value for number, value in _fields(data) if number == wanted and not isinstance(value, int)]


def _fields(data: Message) -> Iterator[tuple[int, int | memoryview]]:
    """The numbers and values of a message: numbers as such, everything else as bytes."""
    view, place = memoryview(data), 0
    while place < len(view):
        key, place = _varint(view, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(view, place)
            yield key >> 3, value
            continue
        length, place = _varint(view, place) if kind == _BYTES else (_FIXED[kind], place)
        yield key >> 3, view[place : place + length]
        place += length


def _varints(data: memoryview) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = _varint(data, place)
        yield value


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift >= _LONGEST_VARINT:
            raise ValueError("a number of more than 64 bits")


def _inflated(data: bytes, inflate: Callable[[bytes, int], bytes], block: int) -> bytes:
    """Metadata comes in chunks, each with its length and whether it is stored as it is."""
    if inflate is _as_it_is:
        return data
    parts, place = [], 0
    while place + _CHUNK_HEADER <= len(data):
        header = int.from_bytes(data[place : place + _CHUNK_HEADER], "little")
        place += _CHUNK_HEADER
        chunk = data[place : place + (header >> 1)]
        parts.append(chunk if header & 1 else inflate(chunk, block))
        place += header >> 1
    return b"".join(parts)


def _as_it_is(chunk: bytes, block: int) -> bytes:
    return chunk


# By ORC's numbers of compressions. There are more (LZO); what is in them is read piece by piece.
_CODECS: dict[int, Callable[[bytes, int], bytes]] = {
    0: _as_it_is,
    1: lambda chunk, block: zlib.decompress(chunk, -zlib.MAX_WBITS),
    2: lambda chunk, block: bytes(cramjam.snappy.decompress_raw(chunk)),
    4: lambda chunk, block: bytes(cramjam.lz4.decompress_block(chunk, output_len=block)),
    5: lambda chunk, block: bytes(cramjam.zstd.decompress(chunk)),
}
