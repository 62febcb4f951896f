"""Which bytes of a file Spark has to be given so that it reads certain records, and few others.

Of Parquet, Spark reads the row groups whose middle lies in a range. Of text it reads the lines that begin after the start of a
range and not after its end; so a range begins with the last byte before its first line.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from grebe.formats import Reading
from grebe.formats.parquet_pages import PageMap
from grebe.indexes.kind import Entries
from grebe.predicate.bounds import Numbers

Parts = Mapping[int, tuple[int, ...]]
"""By id of the file: start and length of each range, one after the other. A file that is not there is read as a whole."""

_LINES = frozenset({"csv", "json", "text"})
_OTHER_LINES = ("linesep", "encoding", "charset")
"""Options by which a line may end otherwise than with a line break of one byte."""
_MOST_ENTRIES = 100_000
_MOST_FILES = 1_000
_MOST_RANGES = 64
"""Of one file: each is opened by itself."""
_NEAR = 256 * 1024
"""Lines that lie so near to each other are read with what is between them."""
_MARK = 3
"""Bytes that may stand before the first line, to tell how the text is written."""


def parts_of(entries: Entries, files: Numbers, reading: Reading, maps: Mapping[int, Any], sizes: Numbers) -> Parts:
    """Of these files (ids) the ranges that hold the records. `maps`: where records lie, of files where that is known; `sizes`: of
    all files by their ids."""
    places = entries.locators
    if places is None or len(entries.files) > _MOST_ENTRIES or not 0 < len(files) <= _MOST_FILES:
        return {}
    of_lines = reading.format in _LINES and {"offset", "length"} <= set(places.column_names)
    of_rows = reading.format == "parquet" and "row" in places.column_names
    if not (of_rows and maps) and not (of_lines and _is_plain(reading)):
        return {}
    order = np.argsort(entries.files, kind="stable")
    sorted_files = entries.files[order]
    starts, stops = np.searchsorted(sorted_files, files), np.searchsorted(sorted_files, files, "right")
    columns = [places[name].to_numpy()[order] for name in (("row",) if of_rows else ("offset", "length"))]
    found: dict[int, tuple[int, ...]] = {}
    for file, start, stop in zip(files.tolist(), starts.tolist(), stops.tolist(), strict=True):
        own = [column[start:stop] for column in columns]
        size = int(sizes[file])
        ranges = _groups(own[0], maps.get(file), size) if of_rows else _lines(own[0], own[1])
        if ranges is not None and 0 < len(ranges) <= _MOST_RANGES and sum(length for _, length in ranges) < size:
            found[file] = tuple(number for one in ranges for number in one)
    return found


def _is_plain(reading: Reading) -> bool:
    options = {name.lower(): value.lower() for name, value in reading.options if value}
    return all(options.get(name, "utf-8") in ("utf-8", "utf8") for name in _OTHER_LINES)


def _groups(rows: Numbers, pages: Any, size: int) -> list[tuple[int, int]] | None:
    """Row groups that follow each other are one range."""
    if not isinstance(pages, PageMap) or len(pages.counts) < 2:
        return None
    groups = np.unique(np.searchsorted(pages.starts, rows, "right") - 1).tolist()
    first_bytes = [min(chunk.start for chunk in pages.chunks(group)) for group in range(len(pages.counts))]
    ends = [0, *first_bytes[1:], size]
    if ends != sorted(ends) or not groups or groups[-1] >= len(pages.counts):
        return None
    return [(ends[first], ends[last + 1] - ends[first]) for first, last in _together(groups)]


def _together(groups: list[int]) -> Iterator[tuple[int, int]]:
    first = last = groups[0]
    for group in groups[1:]:
        if group > last + 1:
            yield first, last
            first = group
        last = group
    yield first, last


def _lines(offsets: Numbers, lengths: Numbers) -> list[tuple[int, int]]:
    order = np.argsort(offsets, kind="stable")
    begins, ends = offsets[order], np.maximum.accumulate((offsets + lengths)[order])
    apart = np.flatnonzero(begins[1:] - ends[:-1] > _NEAR) + 1
    firsts, lasts = begins[np.r_[0, apart]].tolist(), begins[np.r_[apart - 1, len(begins) - 1]].tolist()
    ranges = []
    for first, last in zip(firsts, lasts, strict=True):
        start = 0 if first <= _MARK else first - 1
        ranges.append((start, max(1, last - start)))
    return ranges
