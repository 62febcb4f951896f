"""Parquet files of a few rows, put together in memory: how Arrow is asked to decode what it decodes best."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.formats.parquet_pages.chunk import UNCOMPRESSED
from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.headers import DATA, DICTIONARY, PLAIN, RLE, RLE_DICTIONARY
from grebe.formats.parquet_pages.schema import ARROW_SCHEMA, FIXED, INT32, FileSchema, Leaf
from grebe.formats.parquet_pages.thrift import BINARIES, INTEGERS, STOP, STRUCTS, binary, i32, i64, write_list_head

_MAGIC = b"PAR1"
_NUMBER = Leaf((b"x",), INT32, 4, 0, 0)
# Heads of fields: one after the field before, and its kind.
_NEXT_LIST, _NEXT_STRUCT, _NEXT_BINARY = b"\x19", b"\x1c", b"\x18"


class PlacedChunk(NamedTuple):
    """A column chunk among the pieces of a small file."""

    leaf: Leaf
    codec: int
    values: int
    start: int
    dictionary_length: int
    length: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The constant parts of the footer of files with the same columns."""

    head: bytes
    tail: bytes

    def around(self, pieces: Iterable[bytes | memoryview], chunks: Sequence[PlacedChunk], rows: int) -> bytes:
        """A file of one row group, whose chunks lie in `pieces`."""
        columns = b"".join(map(_column, chunks))
        size = sum(chunk.length for chunk in chunks)
        group = b"".join((_NEXT_LIST, write_list_head(len(chunks), STRUCTS), columns, i64(1, size), i64(1, rows), STOP))
        footer = b"".join((self.head, i64(1, rows), _NEXT_LIST, write_list_head(1, STRUCTS), group, self.tail))
        return b"".join((_MAGIC, *pieces, footer, len(footer).to_bytes(4, "little"), _MAGIC))


def frame_of(schema: FileSchema, tops: Sequence[int], *, arrow: bool = True) -> Frame:
    """For some columns of a file, that keep all their meaning: schema, Arrow's own schema (unless it is not wanted), and
    the writer, since readers work around what some writers did wrong."""
    elements = sum(schema.tops[top].element_count for top in tops)
    root = _root(len(tops), elements) + b"".join(schema.tops[top].elements for top in tops)
    pairs = b""
    if arrow and schema.arrow is not None:
        stored = base64.b64encode(pa.schema([schema.arrow.field(top) for top in tops]).serialize())
        pair = b"".join((_NEXT_BINARY, binary(ARROW_SCHEMA), _NEXT_BINARY, binary(stored), STOP))
        pairs = _NEXT_LIST + write_list_head(1, STRUCTS) + pair
    writer = (_NEXT_BINARY if pairs else b"\x28") + binary(schema.created_by)
    return Frame(root, pairs + writer + STOP)


def _root(columns: int, elements: int) -> bytes:
    head = write_list_head(elements + 1, STRUCTS)
    return b"".join((i32(1, 2), _NEXT_LIST, head, b"\x48", binary(b"root"), i32(1, columns), STOP))


def _column(chunk: PlacedChunk) -> bytes:
    # Readers take an offset of 0 for none, so the first chunk must not lie there.
    start = len(_MAGIC) + chunk.start
    return b"".join(
        (
            _column_head(chunk.leaf, chunk.codec),
            i64(1, chunk.values),
            i64(1, chunk.length),
            i64(1, chunk.length),
            i64(2, start + chunk.dictionary_length),
            i64(2, start) if chunk.dictionary_length else b"",
            STOP,
            STOP,
        )
    )


@lru_cache(maxsize=4096)
def _column_head(leaf: Leaf, codec: int) -> bytes:
    encodings = write_list_head(2, INTEGERS) + bytes((PLAIN << 1, RLE << 1))
    path = write_list_head(len(leaf.path), BINARIES) + b"".join(map(binary, leaf.path))
    facts = (i32(1, leaf.physical), _NEXT_LIST, encodings, _NEXT_LIST, path, i32(1, codec))
    return b"".join((i64(2, 0), _NEXT_STRUCT, *facts))


@lru_cache(maxsize=4096)
def data_page_header(count: int, encoding: int, size: int) -> bytes:
    """Of version 1, not compressed, levels in RLE."""
    page = b"".join((i32(1, count), i32(1, encoding), i32(1, RLE), i32(1, RLE)))
    return b"".join((i32(1, DATA), i32(1, size), i32(1, size), b"\x2c", page, STOP, STOP))


def decode(data: bytes) -> pa.Table:
    """All of a small file; instants of INT96 as everywhere in Grebe."""
    file = pq.ParquetFile(
        pa.BufferReader(data), pre_buffer=False, coerce_int96_timestamp_unit="us", page_checksum_verification=True
    )
    return file.read_row_group(0, use_threads=False)


def arrow_schema(frame: Frame) -> pa.Schema:
    """The schema that Arrow makes of the columns of a frame."""
    return pq.ParquetFile(pa.BufferReader(frame.around((), (), 0)), coerce_int96_timestamp_unit="us").schema_arrow


def decode_values(leaf: Leaf, encoding: int, count: int, section: bytes | memoryview) -> pa.Array:
    """The first `count` values of a page's section of values, as Arrow's type for the physical one."""
    header = data_page_header(count, encoding, len(section))
    bare = Leaf((b"x",), leaf.physical, leaf.width, 0, 0)
    chunk = PlacedChunk(bare, UNCOMPRESSED, count, 0, 0, len(header) + len(section))
    column = decode(_bare_frame(leaf.physical, leaf.width).around((header, section), [chunk], count)).column(0)
    if len(column) != count:
        raise Damaged(f"a page has {len(column)} of the {count} values it says")
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def decode_numbers(section: bytes | memoryview, width: int, count: int) -> npt.NDArray[np.int32]:
    """The first `count` numbers of so many bits (few), in Parquet's hybrid of runs: for Arrow they are the places of values in
    a dictionary, here one in which every number stands at its own place."""
    dictionary = _every_number(width)
    header = data_page_header(count, RLE_DICTIONARY, len(section) + 1)
    length = len(dictionary) + len(header) + 1 + len(section)
    chunk = PlacedChunk(_NUMBER, UNCOMPRESSED, count, 0, len(dictionary), length)
    pieces = (dictionary, header, bytes((width,)), section)
    column = decode(_bare_frame(INT32, 4).around(pieces, [chunk], count)).column(0)
    if len(column) != count:
        raise Damaged(f"a page has {len(column)} of the {count} levels it says")
    numbers: npt.NDArray[np.int32] = column.to_numpy()
    return numbers


@lru_cache(maxsize=16)
def _every_number(width: int) -> bytes:
    """A dictionary page."""
    values = np.arange(1 << width, dtype="<i4").tobytes()
    size = len(values)
    page = b"".join((i32(1, 1 << width), i32(1, PLAIN), STOP))
    return b"".join((i32(1, DICTIONARY), i32(1, size), i32(1, size), b"\x4c", page, STOP, values))


@lru_cache(maxsize=64)
def _bare_frame(physical: int, width: int) -> Frame:
    """For one column of values that are never NULL."""
    kind = (i32(1, physical), i32(1, width), i32(1, 0)) if physical == FIXED else (i32(1, physical), i32(2, 0))
    return Frame(b"".join((_root(1, 1), *kind, _NEXT_BINARY, binary(b"x"), STOP)), STOP)
