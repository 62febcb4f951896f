"""Parquet's hybrid of run lengths and bit-packed numbers: levels, indices of a dictionary, booleans.

A run is a varint and what it says: an even one, half of it times the one value that follows in whole bytes; an odd one,
half of it times eight values, packed. Writers end a packed run after some 500 values, so a page has dozens of them, all
alike: those are passed in one step.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.mini_file import decode_numbers
from grebe.formats.parquet_pages.thrift import varint, write_varint

Numbers = npt.NDArray[np.int32]

# From so many on, taking all values at once beats hopping from run to run.
_MANY = 48
_WIDEST = 32
# Looking for runs alike pays from so many values in a run.
_LONG = 256
# Counting through many runs takes longer than decoding all of them in Arrow, which of few values it never does: after the
# first runs, more than so many times as many values must not be ahead.
_LOOK, _FAR = 8, 5
_FEW = 500
# In bits: levels are, indices of dictionaries need not be.
_NARROW = 6


def is_one_run(data: memoryview, value: int, count: int) -> bool:
    """Whether all `count` are this value, as they mostly are."""
    head, place = varint(data, 0)
    return not head & 1 and head >> 1 >= count and data[place] == value


def pick(data: memoryview, width: int, positions: Sequence[int]) -> list[int]:
    """The values at these ascending positions."""
    if not width:
        return [0] * len(positions)
    found = _hop(data, width, positions, None) if len(positions) < _MANY else None
    if found is not None:
        return found[0]
    many: list[int] = _gather(data, width, np.asarray(positions)).tolist()
    return many


def ranks(data: memoryview, width: int, top: int, positions: Sequence[int]) -> tuple[list[int], list[int]]:
    """The values at these ascending positions, and how many before each are `top`."""
    found = _hop(data, width, positions, top) if len(positions) < _MANY else None
    if found is not None:
        return found
    values = expand(data, width, positions[-1] + 1)
    tops = values == top
    if len(positions) == 1:
        return [int(values[-1])], [int(np.count_nonzero(tops[:-1]))]
    before = np.cumsum(tops) - tops
    return values[positions].tolist(), before[positions].tolist()


def _hop(data: memoryview, width: int, positions: Sequence[int], top: int | None) -> tuple[list[int], list[int]] | None:
    """From run to run: the values at the positions, and if asked how many before each are `top`; None if there are too many
    runs on the way.

    The one loop that runs for every run of every page, so what could be functions of their own is written out."""
    values, before = [], []
    mask = (1 << width) - 1
    start = stop = passed = place = following = 0
    packed = counted = 0
    for position in positions:
        while position >= stop:
            if top is not None and stop > start:
                passed += _tops(data, width, top, place, stop - start, packed)
                counted += 1
                if counted == _LOOK and stop * _FAR < position:
                    return None
            start = stop
            head = data[following]
            place = following + 1
            if head > 127:
                head, place = varint(data, following)
            packed = head & 1
            if not packed:
                stop = start + (head >> 1)
                following = place + (width + 7 >> 3)
                continue
            count = (head >> 1) * 8
            if count >= _LONG and position >= start + 2 * count:
                stride = place - following + (head >> 1) * width
                alike = _alike(data, following, place - following, stride, (position - start) // count)
                if top is not None:
                    passed += _tops_of_alike(data, width, top, following, place - following, stride, alike)
                start = stop = start + alike * count
                following += alike * stride
            else:
                stop = start + count
                following = place + (head >> 1) * width
        if packed:
            bit = (position - start) * width
            first, shift = place + (bit >> 3), bit & 7
            last = first + (shift + width + 7 >> 3)
        else:
            first, last, shift = place, following, 0
        if last > len(data):
            raise Damaged("a run of values is cut short")
        values.append(int.from_bytes(data[first:last], "little") >> shift & mask)
        if top is not None:
            before.append(passed + _tops(data, width, top, place, position - start, packed))
    return values, before


def _alike(data: memoryview, place: int, head: int, stride: int, most: int) -> int:
    """How many runs alike begin at this place, at least one: a head of so many bytes that is where the run before says,
    and is equal to its head, begins a run as long as that."""
    for octet in range(head):
        heads = bytes(data[place + octet : place + octet + most * stride : stride])
        most = len(heads) - len(heads.lstrip(heads[:1]))
    return most


def _tops(data: memoryview, width: int, top: int, place: int, count: int, packed: int) -> int:
    """How many of the first `count` values of a run are `top`."""
    if packed:
        return _tops_packed(data[place : place + (count * width + 7 >> 3)], width, top, count)
    return count if int.from_bytes(data[place : place + (width + 7 >> 3)], "little") == top else 0


def _tops_of_alike(data: memoryview, width: int, top: int, place: int, head: int, stride: int, alike: int) -> int:
    runs = np.frombuffer(data[place : place + alike * stride], np.uint8).reshape(alike, stride)
    return _tops_packed(runs[:, head:].tobytes(), width, top, alike * (stride - head) * 8 // width)


def _tops_packed(packed: bytes | memoryview, width: int, top: int, count: int) -> int:
    ones = _ones(width, count)
    # In `same` the bits of a value are all set where it is `top`; then they are folded onto the lowest.
    folded = same = ~(int.from_bytes(packed, "little") ^ ones * top)
    for shift in range(1, width):
        folded &= same >> shift
    return (folded & ones).bit_count()


@lru_cache(maxsize=128)
def _ones(width: int, count: int) -> int:
    """The lowest bit of each of `count` values."""
    return ((1 << width * count) - 1) // ((1 << width) - 1)


def expand(data: memoryview, width: int, count: int) -> Numbers:
    """All values."""
    if not width or not count:
        return np.zeros(count, np.int32)
    head, place = varint(data, 0)
    if not head & 1 and head >> 1 >= count:
        return np.full(count, int.from_bytes(data[place : place + (width + 7) // 8], "little"), np.int32)
    if width <= _NARROW and count >= _FEW:
        return decode_numbers(data, width, count)
    return _gather(data, width, np.arange(count))


def _gather(data: memoryview, width: int, positions: npt.NDArray[np.int64]) -> Numbers:
    """The values at ascending positions, all at once."""
    if width > _WIDEST:
        raise Damaged(f"values of {width} bits")
    starts, places, packed = _all_runs(data, width, int(positions[-1]))
    run = np.searchsorted(starts, positions, "right") - 1
    bits = np.where(packed[run], (positions - starts[run]) * width, 0)
    first, shift = places[run] + (bits >> 3), bits & 7
    octets = np.frombuffer(data, np.uint8)
    if (first + (shift + width + 7 >> 3)).max() > len(octets):
        raise Damaged("a run of values is cut short")
    found = np.zeros(len(positions), np.uint64)
    for further in range(width + 14 >> 3):
        # Beyond the end there is no bit of a value.
        part = octets[np.minimum(first + further, len(octets) - 1)].astype(np.uint64)
        found |= part << np.uint64(8 * further)
    found >>= shift.astype(np.uint64)
    return (found & np.uint64((1 << width) - 1)).astype(np.int32)


def _all_runs(
    data: memoryview, width: int, position: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Of each run up to the one that holds `position`: first position, place of the values, and whether packed."""
    starts, places, packed = [], [], []
    place = start = 0
    while start <= position:
        head, place = varint(data, place)
        starts.append(start)
        places.append(place)
        packed.append(bool(head & 1))
        start += (head >> 1) * 8 if head & 1 else head >> 1
        place += (head >> 1) * width if head & 1 else width + 7 >> 3
    return np.array(starts, np.int64), np.array(places, np.int64), np.array(packed, np.bool_)


def pack_levels(levels: Numbers, top: int) -> bytes:
    """One bit-packed run."""
    width = top.bit_length()
    eights = (len(levels) + 7) // 8
    padded = np.zeros(8 * eights, np.int32)
    padded[: len(levels)] = levels
    bits = (padded[:, None] >> np.arange(width) & 1).astype(np.uint8)
    return write_varint(eights << 1 | 1) + np.packbits(bits.reshape(-1), bitorder="little").tobytes()


@lru_cache(maxsize=4096)
def same_levels(count: int, level: int) -> bytes:
    return write_varint(count << 1) + bytes((level,))
