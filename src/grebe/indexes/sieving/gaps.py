"""The wide gaps between keys, in which nothing is held.

Within a stretch that has the same files all over, nothing else tells where keys are missing. It matters most for some files of
many: where one of them holds a few late keys, the others hold those between. Gaps are kept to the unit that the narrowest of them
asks for: a little less than the gap, and two bytes each.
"""

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length
from grebe.indexes.sieving.packing import pack, pack_numbers, unpack_numbers
from grebe.indexes.sieving.stretches import require_order

SECTIONS = 3
_WIDE = 8.0  # times the mean of those that are not
_ROUNDS = 8
_FINE = 5  # bits of the length of the narrowest
_MOST_UNIT = 63
_BYTES = 2  # that a gap takes at least
NO_GAPS = [b"\0", pack_numbers(np.zeros(0, np.uint64)), pack_numbers(np.zeros(0, np.uint64))]


def gap_sections(low: int, before: NDArray[np.uint64], behind: NDArray[np.uint64], room: int) -> list[bytes]:
    """The widest of the gaps between the keys `before` and `behind`, in order, as many as go into so many bytes."""
    length = behind - before
    wide = _wide(length)
    wide = wide[np.argsort(length[wide])[::-1]][: max(room, 0) // _BYTES]
    while len(wide):
        kept = np.sort(wide)
        sections = _packed(low, before[kept], behind[kept])
        size = len(pack(sections))
        if size <= room:
            return sections
        wide = wide[: int(len(wide) * min(room / size, 0.95))]
    return NO_GAPS


def filled(sections: list[bytes], low: int, high: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The stretches before, between and behind the gaps."""
    if sections[0][0] > _MOST_UNIT:
        raise ValueError("gaps in a unit of more than 64 bits")
    unit = np.uint64(sections[0][0])
    length = unpack_numbers(sections[2])
    distance = unpack_numbers(sections[1], len(length))
    behind = ((np.uint64(low) >> unit) + np.cumsum(distance + length)) << unit
    starts = np.append(np.uint64(low), behind)
    ends = np.append(behind - (length << unit) - np.uint64(1), np.uint64(high))
    require_order(starts, ends)
    return starts, ends


def _wide(length: NDArray[np.uint64]) -> NDArray[np.int64]:
    """What is wide raises the mean, so that it is sought again without."""
    numbers = length.astype(np.float64)
    narrow = np.ones(len(numbers), np.bool_)
    for _ in range(_ROUNDS):
        if not narrow.any():
            break
        bound = _WIDE * numbers[narrow].mean()
        if numbers[narrow].max() <= bound:
            break
        narrow &= numbers <= bound
    return np.flatnonzero(~narrow)


def _packed(low: int, before: NDArray[np.uint64], behind: NDArray[np.uint64]) -> list[bytes]:
    """In units, how far each begins from the end of the one before, and its length."""
    shortest = (behind - before).min(keepdims=True)
    unit = np.uint64(max(int(bit_length(shortest)[0]) - _FINE, 0))
    begin, end = (before >> unit) + np.uint64(1), behind >> unit
    distance = begin - np.append(np.uint64(low) >> unit, end[:-1])
    return [bytes([int(unit)]), pack_numbers(distance), pack_numbers(end - begin)]
