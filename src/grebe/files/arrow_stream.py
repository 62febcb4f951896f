"""Arrow IPC streams from a store: their frames are walked before Arrow reads them.

Arrow believes what a stream says of itself: it allocates what a compressed buffer says that it unpacks to, and reads buffers where
they are said to lie. So the messages, little tables of flatbuffers, are looked at first, and the table is validated afterwards.
"""

import struct
from collections.abc import Iterator

import pyarrow as pa

from grebe.files.untrusted import validated, validated_but_text

_CONTINUES = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_DICTIONARY_DATA = 1
_ROWS, _BUFFERS, _COMPRESSION = 0, 2, 3
_PREFIX = 8
_AT_LEAST = 64 * 1024 * 1024
_TIMES = 64
"""A stream may unpack to so many bytes, or so many times its own."""


def read_stream(data: bytes | memoryview, any_text: bool = False) -> pa.Table:
    """The table of a stream, validated; with `any_text`, text need not be UTF-8. Raises what `untrusted.decoding` turns into an
    error of ours."""
    most = max(_AT_LEAST, _TIMES * len(data))
    unpacked = 0
    for metadata, body in _messages(memoryview(data)):
        unpacked += _check_message(metadata, body, most)
        if unpacked > most:
            raise ValueError(f"a stream of {len(data)} bytes unpacks to more than {most}")
    table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    return validated_but_text(table) if any_text else validated(table)


def _messages(data: memoryview) -> Iterator[tuple["_Table", memoryview]]:
    place = 0
    while place < len(data):
        mark, length = struct.unpack_from("<Ii", data, place)
        if mark != _CONTINUES:
            raise ValueError("a message does not begin as one")
        place += 8
        if not length:
            return
        if length < 0 or length > len(data) - place:
            raise ValueError("a message is longer than its stream")
        metadata = data[place : place + length]
        message = _Table(metadata, struct.unpack_from("<I", metadata)[0])
        place += length
        body = message.number(_BODY_LENGTH, "<q")
        if body < 0 or body > len(data) - place:
            raise ValueError("the body of a message is longer than its stream")
        yield message, data[place : place + body]
        place += body


def _check_message(message: "_Table", body: memoryview, most: int) -> int:
    """How many bytes the buffers of a message unpack to."""
    kind, header = message.number(_HEADER_TYPE, "<B"), message.table(_HEADER)
    if kind == _DICTIONARY and header is not None:
        header = header.table(_DICTIONARY_DATA)
    if kind not in (_DICTIONARY, _RECORDS) or header is None:
        return 0
    if not 0 <= header.number(_ROWS, "<q") <= most:
        raise ValueError("a batch of more rows than its stream has bytes")
    packed, total = header.table(_COMPRESSION) is not None, 0
    for offset, length in header.pairs(_BUFFERS):
        if offset < 0 or length < 0 or offset + length > len(body):
            raise ValueError("a buffer lies outside its message")
        if packed and length >= _PREFIX:
            stated = struct.unpack_from("<q", body, offset)[0]
            if stated < -1 or stated > most:
                raise ValueError(f"a buffer of {length} bytes that says it unpacks to {stated}")
            total += max(stated, 0)
        total += length
    return total


class _Table:
    """A table of flatbuffers, as far as it is needed here."""

    def __init__(self, data: memoryview, place: int) -> None:
        self._data, self._place = data, place
        shape = place - struct.unpack_from("<i", data, place)[0]
        size = struct.unpack_from("<H", data, shape)[0] if shape >= 0 else 0
        if size < 4 or size % 2:
            raise ValueError("a table without a shape")
        self._fields = struct.unpack_from(f"<{size // 2 - 2}H", data, shape + 4)

    def number(self, field: int, kind: str) -> int:
        """A field, or 0 where it is left out."""
        place = self._place_of(field)
        return int(struct.unpack_from(kind, self._data, place)[0]) if place else 0

    def table(self, field: int) -> "_Table | None":
        place = self._place_of(field)
        return _Table(self._data, place + struct.unpack_from("<I", self._data, place)[0]) if place else None

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A vector of structs of two long numbers each."""
        place = self._place_of(field)
        if not place:
            return []
        place += struct.unpack_from("<I", self._data, place)[0]
        count = struct.unpack_from("<I", self._data, place)[0]
        if place + 4 + 16 * count > len(self._data):
            raise ValueError("a list that is longer than its message")
        numbers = struct.unpack_from(f"<{2 * count}q", self._data, place + 4)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def _place_of(self, field: int) -> int:
        offset = self._fields[field] if field < len(self._fields) else 0
        return self._place + offset if offset else 0
