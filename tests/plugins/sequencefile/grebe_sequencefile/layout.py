"""The bytes of a SequenceFile: its head, its records, its blocks, and Hadoop's way to write numbers and text.

A record is found by two numbers: a byte position and its number from there. In a file without blocks the position is that of the
record itself and the number 0; in one with blocks it is the byte behind the block's sync marker.
"""

import bz2
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grebe.errors import UnreadableFile, Unsupported

SYNC_BYTES = 16
_SYNC_MARK = -1
_INT = struct.Struct(">i")
_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "org.apache.hadoop.io.compress.DefaultCodec": zlib.decompress,
    "org.apache.hadoop.io.compress.GzipCodec": lambda data: zlib.decompress(data, wbits=31),
    "org.apache.hadoop.io.compress.BZip2Codec": bz2.decompress,
}


class Cursor:
    """Reads on from a place in some bytes, in Hadoop's encodings."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data = data
        self.place = place

    def take(self, length: int) -> bytes:
        if length < 0 or self.place + length > len(self.data):
            raise UnreadableFile("a SequenceFile ends in the middle of a record", detail="SEQUENCEFILE")
        self.place += length
        return self.data[self.place - length : self.place]

    def int32(self) -> int:
        (number,) = _INT.unpack(self.take(4))
        return int(number)

    def varint(self) -> int:
        first = struct.unpack("b", self.take(1))[0]
        if first >= -112:
            return int(first)
        negative = first < -120
        number = int.from_bytes(self.take(-120 - first if negative else -112 - first))
        return ~number if negative else number

    def text(self) -> str:
        return self.take(self.varint()).decode()

    def sized(self) -> bytes:
        return self.take(self.varint())


@dataclass(frozen=True)
class Head:
    key_class: str
    value_class: str
    by_record: bool
    by_block: bool
    decompress: Callable[[bytes], bytes]
    sync: bytes
    length: int


def head_of(data: bytes, uri: str) -> Head:
    cursor = Cursor(data)
    if cursor.take(3) != b"SEQ" or cursor.take(1) != b"\x06":
        raise UnreadableFile(f"{uri} is no SequenceFile of version 6", detail="SEQUENCEFILE")
    key_class, value_class = cursor.text(), cursor.text()
    compressed, by_block = cursor.take(1) == b"\x01", cursor.take(1) == b"\x01"
    decompress: Callable[[bytes], bytes] = bytes
    if compressed:
        codec = cursor.text()
        if codec not in _CODECS:
            raise Unsupported(f"{uri} is compressed by {codec}, which this reader lacks", detail="COMPRESSION")
        decompress = _CODECS[codec]
    for _ in range(cursor.int32()):
        cursor.text(), cursor.text()
    sync = cursor.take(SYNC_BYTES)
    return Head(key_class, value_class, compressed and not by_block, by_block, decompress, sync, cursor.place)


@dataclass(frozen=True)
class Pair:
    position: int
    number: int
    key: bytes
    value: bytes


def pairs(head: Head, data: bytes, start: int, stop: int | None = None) -> Iterator[Pair]:
    """The pairs from a position on, up to another one or the end."""
    cursor = Cursor(data, start)
    while cursor.place < (len(data) if stop is None else stop):
        if head.by_block:
            yield from _block(head, cursor)
        else:
            pair = _record(head, cursor)
            if pair is not None:
                yield pair


def _record(head: Head, cursor: Cursor) -> Pair | None:
    position = cursor.place
    length = cursor.int32()
    if length == _SYNC_MARK:
        _check_sync(head, cursor)
        return None
    key_length = cursor.int32()
    key, value = cursor.take(key_length), cursor.take(length - key_length)
    return Pair(position, 0, key, head.decompress(value) if head.by_record else value)


def _block(head: Head, cursor: Cursor) -> Iterator[Pair]:
    """At a sync marker, or right behind it where a locator points to."""
    if cursor.data[cursor.place : cursor.place + 4] == _INT.pack(_SYNC_MARK):
        cursor.int32()
        _check_sync(head, cursor)
    position = cursor.place
    count = cursor.varint()
    key_lengths, keys, value_lengths, values = (Cursor(head.decompress(cursor.sized())) for _ in range(4))
    for number in range(count):
        key = keys.take(key_lengths.varint())
        yield Pair(position, number, key, values.take(value_lengths.varint()))


def _check_sync(head: Head, cursor: Cursor) -> None:
    if cursor.take(SYNC_BYTES) != head.sync:
        raise UnreadableFile("a SequenceFile lacks a sync marker where one must be", detail="SEQUENCEFILE")
