"""Into how many partitions the rows of an index are written, and how large their files may become."""

import math

_MB = 1024 * 1024
# Up to so many bytes, so many parts; above, parts of 64 to 128 MB. Always a power of two: the buckets of two tables fit together.
_SMALL = ((_MB // 4, 1), (_MB, 2), (4 * _MB, 4))
LEAST = 8
_PART_BYTES = 128 * _MB
_MOST_PARTS = 65_536
_FILE_BYTES = 512 * _MB
_FEWEST_ROWS_PER_FILE = 1_000_000


def parts_for(expected_bytes: int) -> int:
    for limit, parts in _SMALL:
        if expected_bytes <= limit:
            return parts
    return min(_MOST_PARTS, max(LEAST, 1 << max(0, math.ceil(math.log2(max(1, expected_bytes) / _PART_BYTES)))))


def rows_per_file(expected_bytes: int, rows: int) -> int:
    """Cuts partitions that come out far too large."""
    width = max(1.0, expected_bytes / max(1, rows))
    return max(_FEWEST_ROWS_PER_FILE, int(_FILE_BYTES / width))
