"""The rows asked for of one leaf: their levels and values, taken out of its pages and put together."""

import contextlib
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.formats.parquet_pages import levels
from grebe.formats.parquet_pages.dictionary import Dictionary
from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.headers import DATA, DATA_V2, Header, read_header
from grebe.formats.parquet_pages.levels import Numbers
from grebe.formats.parquet_pages.page import Sections, needed_bytes, open_page
from grebe.formats.parquet_pages.schema import BYTE_ARRAY, Leaf
from grebe.formats.parquet_pages.values import Values, no_values, take

Entries = npt.NDArray[np.int64]
"""Positions of levels in a page."""

# What taking values from the beginning of a page ends in where that is too short.
_TOO_SHORT = (Damaged, OSError, pa.ArrowInvalid, struct.error)


class Picked(NamedTuple):
    entries: int
    """Levels: values, nulls and empty lists."""
    repetition: Numbers | None
    """None for a column that is not repeated."""
    definition: Numbers | None
    """None if all values are there."""
    values: Values


def merged(leaf: Leaf, parts: Sequence[Picked]) -> Picked:
    if len(parts) == 1:
        return parts[0]
    repetition = definition = None
    if leaf.max_repetition:
        repetition = np.concatenate([part.repetition for part in parts if part.repetition is not None])
    if any(part.definition is not None for part in parts):
        definition = np.concatenate([_levels_of(part, leaf.max_definition) for part in parts])
    values: Values
    if leaf.physical == BYTE_ARRAY:
        values = [value for part in parts for value in part.values if isinstance(value, bytes)]
    else:
        values = b"".join(part.values for part in parts if isinstance(part.values, bytes))
    return Picked(sum(part.entries for part in parts), repetition, definition, values)


def _levels_of(part: Picked, top: int) -> Numbers:
    return part.definition if part.definition is not None else np.full(part.entries, top, np.int32)


def pick_rows(
    leaf: Leaf,
    codec: int,
    header: Header,
    body: memoryview,
    rows: Sequence[int],
    row_count: int,
    dictionary: Dictionary | None,
) -> Picked:
    """The rows with these ascending numbers in a page that has `row_count`, from the bytes behind its header."""
    if leaf.max_repetition:
        sections = open_page(leaf, codec, body, header)
        repetition = levels.expand(sections.repetition, leaf.max_repetition.bit_length(), header.entries)
        entries = _entries_of_rows(repetition, rows, row_count)
        return _pick_entries(leaf, header, sections, repetition, entries, dictionary)
    if header.entries != row_count:
        raise Damaged(f"a page has {header.entries} rows and the page index says {row_count}")
    needed = needed_bytes(leaf, header, rows[-1])
    if needed is not None:
        # Too short a beginning is no damage: then all of the page is opened.
        with contextlib.suppress(*_TOO_SHORT):
            return _pick_flat(leaf, header, open_page(leaf, codec, body, header, needed), rows, dictionary)
    return _pick_flat(leaf, header, open_page(leaf, codec, body, header), rows, dictionary)


def _pick_flat(
    leaf: Leaf, header: Header, sections: Sections, rows: Sequence[int], dictionary: Dictionary | None
) -> Picked:
    top = leaf.max_definition
    if not top or levels.is_one_run(sections.definition, top, header.entries):
        return Picked(len(rows), None, None, take(leaf, header.encoding, sections.values, rows, dictionary))
    found, before = levels.ranks(sections.definition, top.bit_length(), top, rows)
    positions = [rank for level, rank in zip(found, before, strict=True) if level == top]
    return Picked(
        len(rows), None, _checked(np.array(found, np.int32), top), _taken(leaf, header, sections, positions, dictionary)
    )


def _pick_entries(
    leaf: Leaf,
    header: Header,
    sections: Sections,
    repetition: Numbers,
    entries: Entries,
    dictionary: Dictionary | None,
) -> Picked:
    top = leaf.max_definition
    definition = levels.expand(sections.definition, top.bit_length(), header.entries)
    present = definition == top
    before = np.cumsum(present) - 1
    positions = before[entries][present[entries]].tolist()
    values = _taken(leaf, header, sections, positions, dictionary)
    return Picked(len(entries), repetition[entries], _checked(definition[entries], top), values)


def _taken(
    leaf: Leaf, header: Header, sections: Sections, positions: Sequence[int], dictionary: Dictionary | None
) -> Values:
    if not positions:
        return no_values(leaf)
    return take(leaf, header.encoding, sections.values, positions, dictionary)


def _checked(definition: Numbers, top: int) -> Numbers:
    if len(definition) and definition.max() > top:
        raise Damaged("a level is higher than its column has any")
    return definition


def _entries_of_rows(repetition: Numbers, rows: Sequence[int], row_count: int) -> Entries:
    starts = np.append(np.flatnonzero(repetition == 0), len(repetition))
    if len(starts) - 1 != row_count or starts[0]:
        raise Damaged(f"a page has {len(starts) - 1} rows and the page index says {row_count}")
    return np.concatenate([np.arange(starts[row], starts[row + 1]) for row in rows])


def data_pages(part: memoryview) -> Iterator[tuple[Header, memoryview, int]]:
    """The data pages that lie one after the other: header, the bytes behind it, and the place of the page."""
    place = 0
    while place < len(part):
        header = read_header(part, place)
        start = place + header.length
        stop = start + header.stored
        if stop > len(part):
            raise Damaged("a page is cut short")
        if header.kind in (DATA, DATA_V2):
            yield header, part[start:stop], place
        place = stop


def pick_rows_of_many(
    leaf: Leaf, codec: int, part: memoryview, rows: Sequence[int], row_count: int, dictionary: Dictionary | None
) -> list[Picked]:
    """As `pick_rows`, from several pages over whose ends rows may run."""
    opened = [(header, open_page(leaf, codec, body, header)) for header, body, _ in data_pages(part)]
    width = leaf.max_repetition.bit_length()
    repetitions = [levels.expand(sections.repetition, width, header.entries) for header, sections in opened]
    entries = _entries_of_rows(np.concatenate(repetitions), rows, row_count)
    picked, start = [], 0
    for (header, sections), repetition in zip(opened, repetitions, strict=True):
        low, high = np.searchsorted(entries, (start, start + len(repetition)))
        if low < high:
            inside = entries[low:high] - start
            picked.append(_pick_entries(leaf, header, sections, repetition, inside, dictionary))
        start += len(repetition)
    return picked
