"""Thrift's compact protocol, as far as Parquet's metadata goes: structs become dicts by field number, and the few kinds
of fields that we write ourselves are put together by hand.

Damage shows as IndexError, ValueError or RecursionError; whoever knows the file turns it into an error of ours.
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Struct = dict[int, Any]
Spans = dict[int, tuple[int, int]]

INTEGERS, LONGS, BINARIES, STRUCTS = 5, 6, 8, 12
STOP = b"\0"
_MOST_BITS = 64
_MOST_FIELDS = 1 << 15


class Items(list[Any]):
    """A list with the kind that its head states for all its items."""

    __slots__ = ("kind",)
    kind: int


def require_kinds(fields: Struct, kinds: Mapping[int, Collection[int]]) -> None:
    """Raise `ValueError` where a list has items of another kind than these, by the number of its field. Other readers of such bytes
    take the items for what they should be, whatever the head of the list states, and lose their way."""
    for number, expected in kinds.items():
        items = fields.get(number)
        if items and isinstance(items, Items) and items.kind not in expected:
            raise ValueError(f"a list of items of kind {items.kind}")


def varint(data: bytes | memoryview, place: int) -> tuple[int, int]:
    """The number at this place, and the place behind it."""
    value = data[place]
    place += 1
    if value < 128:
        return value, place
    value &= 127
    shift = 7
    while True:
        byte = data[place]
        place += 1
        if byte < 128:
            if shift + byte.bit_length() > _MOST_BITS:
                raise ValueError("a number of more than 64 bits")
            return value | byte << shift, place
        value |= (byte & 127) << shift
        shift += 7
        if shift > _MOST_BITS:
            raise ValueError("a number of more than 64 bits")


def varints(data: bytes | memoryview) -> npt.NDArray[np.uint64]:
    """All numbers of bytes that hold nothing else."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 128)
    if not len(ends):
        return np.empty(0, np.uint64)
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts
    values = (octets[starts] & 127).astype(np.uint64)
    for further in range(1, int(lengths.max()) + 1):
        longer = np.flatnonzero(lengths >= further)
        values[longer] |= (octets[starts[longer] + further] & 127).astype(np.uint64) << np.uint64(7 * further)
    return values


def read_struct(data: bytes, place: int = 0, spans: Spans | None = None) -> tuple[Struct, int]:
    """The fields by number, and the place behind the struct; `spans` collects where the bytes of each field lie.

    A field that is there twice, or whose number is of more than 16 bits, is damage: other readers of such bytes merge both, or cut
    the number, and would see other fields than this one."""
    fields: Struct = {}
    number = 0
    while True:
        head = data[place]
        place += 1
        if not head:
            return fields, place
        if head >> 4:
            number += head >> 4
        else:
            zigzag, place = varint(data, place)
            number = (zigzag >> 1) ^ -(zigzag & 1)
        if number in fields or not 0 < number < _MOST_FIELDS:
            raise ValueError(f"a field {number} that is there twice, or none")
        start = place
        fields[number], place = _value(data, place, head & 15)
        if spans is not None:
            spans[number] = (start, place)


def read_field(data: bytes, place: int, wanted: int) -> Any:
    """Return one field of the struct at this place without reading what lies behind it. Raises `KeyError` if there is none."""
    number = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            zigzag, place = varint(data, place)
            number = (zigzag >> 1) ^ -(zigzag & 1)
        value, place = _value(data, place, head & 15)
        if number == wanted:
            return value
    raise KeyError(wanted)


def field_kinds(data: bytes, place: int) -> dict[int, int]:
    """Return how the fields of the struct at this place are written, by number. Arrow passes over a field that is written otherwise
    than it expects, where `read_struct` takes any number for a number."""
    kinds: dict[int, int] = {}
    number = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            zigzag, place = varint(data, place)
            number = (zigzag >> 1) ^ -(zigzag & 1)
        kinds[number] = head & 15
        _, place = _value(data, place, head & 15)
    return kinds


def _value(data: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in (4, 5, 6):
        zigzag, place = varint(data, place)
        return (zigzag >> 1) ^ -(zigzag & 1), place
    if kind == STRUCTS:
        return read_struct(data, place)
    if kind == BINARIES:
        length, place = varint(data, place)
        return _exactly(data, place, length), place + length
    if kind in (9, 10):
        return _list(data, place)
    if kind in (1, 2):
        return kind == 1, place
    if kind == 3:
        return data[place], place + 1
    if kind == 7:
        return struct.unpack("<d", _exactly(data, place, 8))[0], place + 8
    raise ValueError(f"a field of kind {kind}")


def _exactly(data: bytes, place: int, length: int) -> bytes:
    part = data[place : place + length]
    if len(part) != length:
        raise IndexError("a value beyond the end")
    return part


def list_head(data: bytes, place: int) -> tuple[int, int, int]:
    """How many items the list at this place has, of which kind, and the place of the first."""
    head = data[place]
    if head >> 4 < 15:
        return head >> 4, head & 15, place + 1
    count, place = varint(data, place + 1)
    return count, head & 15, place


def _list(data: bytes, place: int) -> tuple[Items, int]:
    count, kind, place = list_head(data, place)
    items = Items()
    items.kind = kind
    if kind in (1, 2):
        items += [flag == 1 for flag in _exactly(data, place, count)]
        return items, place + count
    for _ in range(count):
        item, place = _value(data, place, kind)
        items.append(item)
    return items, place


def write_varint(value: int) -> bytes:
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_varints(values: Sequence[int]) -> bytes:
    return b"".join(map(write_varint, values))


@lru_cache(maxsize=4096)
def i32(step: int, value: int) -> bytes:
    """A field of a whole number that is not negative, `step` numbers after the field before it."""
    return bytes((step << 4 | 5,)) + write_varint(value << 1)


@lru_cache(maxsize=4096)
def i64(step: int, value: int) -> bytes:
    return bytes((step << 4 | 6,)) + write_varint(value << 1)


def binary(text: bytes) -> bytes:
    return write_varint(len(text)) + text


def write_list_head(count: int, kind: int) -> bytes:
    return bytes((count << 4 | kind,)) if count < 15 else bytes((0xF0 | kind,)) + write_varint(count)
