"""Where bytes of a store become objects: what their reading may end in, and how much of them is unpacked.

Whoever can write to a store can seal what it wrote: a checksum finds damage, not forgery. So sizes are checked before anything is
allocated, and an error of a library never leaves the place that reads the bytes.
"""

import contextlib
import struct
import zlib
from collections.abc import Callable, Iterator

import pyarrow as pa

from grebe.errors import GrebeError

FOREIGN = (
    ArithmeticError,
    AttributeError,
    BufferError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    SystemError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zlib.error,
)
"""What libraries raise over bytes that are not what they should be. A value may lack, lie beyond the end, or be of any type."""
MOST_BYTES = 1 << 30
"""Of an object that is read whole, where nothing smaller is known."""
_STEP = 1024 * 1024
_PIECE = 64 * 1024
_MOST_MEMBERS = 1_000


@contextlib.contextmanager
def decoding(refused: Callable[[str], GrebeError]) -> Iterator[None]:
    """Turn what goes wrong inside into the error that `refused` makes of its description. Errors of ours pass. Read nothing from a
    store inside: that fails in other ways."""
    try:
        yield
    except FOREIGN as problem:
        raise refused(f"{type(problem).__name__}: {str(problem).partition(chr(10))[0][:200]}") from problem


def gunzip(data: bytes, most: int) -> bytes:
    """Unpack gzip of one member or several, up to `most` bytes. Raises `ValueError` where there are more, and `zlib.error` or
    `EOFError` for what is no gzip or is cut short."""
    made: list[bytes] = []
    view, place, left, members = memoryview(data), 0, most, 0
    while place < len(data):
        members += 1
        if members > _MOST_MEMBERS:
            raise ValueError(f"gzip of more than {_MOST_MEMBERS} members")
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        while not unpacker.eof:
            # Small pieces: what a call leaves of its input is copied.
            piece = view[place : place + _PIECE]
            part = unpacker.decompress(piece, min(left + 1, _STEP))
            place += len(piece) - len(unpacker.unconsumed_tail or unpacker.unused_data)
            left -= len(part)
            if left < 0:
                raise ValueError(f"it unpacks to more than {most} bytes")
            made.append(part)
            if not part and not piece and not unpacker.eof:
                raise EOFError("compressed data is cut short")
    return b"".join(made)


def unzstd(data: bytes, size: int, most: int) -> bytes:
    """Unpack zstd to exactly `size` bytes, which must be no more than `most`."""
    if not 0 <= size <= most:
        raise ValueError(f"{len(data)} bytes that say they unpack to {size}; {most} are the most")
    made: bytes = pa.decompress(data, size, "zstd", asbytes=True)
    return made


def validated(table: pa.Table) -> pa.Table:
    """The table, once all that it says of itself is checked: lengths, offsets, numbers of dictionaries, text. Where
    these are forged, Arrow would read beyond its buffers."""
    table.validate(full=True)
    return table


def validated_but_text(table: pa.Table) -> pa.Table:
    """The table, once all is checked but that text is UTF-8: data files may hold other bytes, as Spark reads them."""
    for column in table.columns:
        table_type = _without_text(column.type)
        for chunk in column.chunks:
            chunk.validate()
            (chunk if table_type == chunk.type else chunk.view(table_type)).validate(full=True)
    table.validate()
    return table


def _without_text(kind: pa.DataType) -> pa.DataType:
    """The type with the same buffers, and binary for text."""
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_without_text(one.type)) for one in kind])
    if pa.types.is_map(kind):
        key, item = (one.with_type(_without_text(one.type)) for one in (kind.key_field, kind.item_field))
        return pa.map_(key, item)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_text(kind.value_type)))
    return kind
