"""Many small ranges of one object, read in few requests."""

import bisect
from collections.abc import Sequence

# Reading this many bytes for nothing takes about as long as one more request would.
_GAP = 128 * 1024
# A longer stretch is better read in parts, side by side.
_LONGEST = 8 * 1024 * 1024


def spans(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The (start, length) to ask a distant store for, in order and disjoint, that hold all of `ranges`."""
    joined: list[list[int]] = []
    for start, length in sorted(ranges):
        if not length:
            continue
        if joined and start <= joined[-1][1] + _GAP:
            joined[-1][1] = max(joined[-1][1], start + length)
        else:
            joined.append([start, start + length])
    return [(part, min(_LONGEST, stop - part)) for start, stop in joined for part in range(start, stop, _LONGEST)]


def cut(ranges: Sequence[tuple[int, int]], asked: Sequence[tuple[int, int]], read: Sequence[bytes]) -> list[bytes]:
    """The bytes of each of `ranges`, from what was read for its spans, which is less than asked for where the object ends."""
    starts = [start for start, _ in asked]

    def one(start: int, length: int) -> bytes:
        parts = []
        place = max(bisect.bisect_right(starts, start) - 1, 0)
        while length and place < len(starts):
            offset = start - starts[place]
            part = read[place][offset : offset + length]
            if not part:
                break
            parts.append(part)
            start, length, place = start + len(part), length - len(part), place + 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    return [one(start, length) for start, length in ranges]
