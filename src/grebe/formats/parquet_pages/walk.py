"""The pages of files without a page index, found by going from page header to page header."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from grebe.formats.parquet_pages import levels
from grebe.formats.parquet_pages.failures import Damaged, NoPages, naming
from grebe.formats.parquet_pages.headers import DATA, DATA_V2, read_header
from grebe.formats.parquet_pages.page import open_page
from grebe.formats.parquet_pages.picked import data_pages
from grebe.formats.parquet_pages.schema import Leaf
from grebe.formats.protocol import DataFile

Location = tuple[int, int, int]
"""Of a data page: offset, size with header, first row."""

_FIRST_LOOK = 512


@dataclass(slots=True)
class Walk:
    """Along one column chunk."""

    leaf: Leaf
    codec: int
    values: int
    """Values and nulls of all its pages."""
    start: int
    stop: int
    place: int = 0
    look: int = _FIRST_LOOK
    rows: int = 0
    found: list[Location] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = self.start


def walk(file: DataFile, walks: Sequence[Walk]) -> None:
    """Finds all pages of all chunks, side by side: a round of small reads for every page of the longest."""
    going = [each for each in walks if each.place < each.stop]
    counting: list[Walk] = []
    while going:
        looks = file.read_spans([(each.place, min(each.look, each.stop - each.place)) for each in going])
        with naming(file.uri):
            counting += [each for each, data in zip(going, looks, strict=True) if _step(each, data)]
        going = [each for each in going if each.place < each.stop]
    for each in counting:
        data = memoryview(file.read(each.start, each.stop - each.start))
        with naming(file.uri):
            each.found = _counted(each, data)


def _step(walk: Walk, data: bytes) -> bool:
    """Past one page; whether its rows can only be counted in all of its bytes."""
    try:
        header = read_header(memoryview(data))
    except IndexError:
        if len(data) < walk.look:
            raise
        walk.look *= 8
        return False
    walk.look = _FIRST_LOOK
    size = header.length + header.stored
    if header.kind == DATA and walk.leaf.max_repetition:
        walk.place = walk.stop
        return True
    if header.kind in (DATA, DATA_V2):
        walk.found.append((walk.place, size, walk.rows))
        walk.rows += header.rows if header.kind == DATA_V2 else header.entries
    walk.place += size
    if walk.place > walk.stop:
        # Some very old writers forgot to count a header: their files are sound.
        raise NoPages("a column chunk is shorter than its pages")
    return False


def _counted(walk: Walk, data: memoryview) -> list[Location]:
    """Pages of version 1 do not say how many rows they have, nor need they end where a row ends."""
    found: list[Location] = []
    rows, aligned = 0, True
    width = walk.leaf.max_repetition.bit_length()
    for header, body, place in data_pages(data):
        if header.entries > walk.values:
            raise Damaged("a page has more values than its column chunk")
        sections = open_page(walk.leaf, walk.codec, body, header)
        repetition = levels.expand(sections.repetition, width, header.entries)
        aligned = aligned and (not len(repetition) or not repetition[0])
        found.append((walk.start + place, header.length + header.stored, rows))
        rows += int(np.count_nonzero(repetition == 0))
    if aligned or not found:
        return found
    return [(found[0][0], walk.stop - found[0][0], 0)]
