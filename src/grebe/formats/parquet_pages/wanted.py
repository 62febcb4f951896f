"""Which bytes of a file hold some rows, and the rows once those bytes are there. Nothing is read here: whoever fetches
the bytes decides how, and how many files at once."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats.parquet_pages.chunk import HIDDEN, Chunk
from grebe.formats.parquet_pages.dictionary import Dictionaries, Dictionary, read_dictionary
from grebe.formats.parquet_pages.failures import Damaged, NoPages, naming
from grebe.formats.parquet_pages.headers import DATA, DATA_V2, DELTA_BYTE_ARRAY, DICTIONARY_ENCODINGS, read_header
from grebe.formats.parquet_pages.page_map import PageMap
from grebe.formats.parquet_pages.picked import Picked, merged, pick_rows, pick_rows_of_many
from grebe.formats.parquet_pages.projection import Projection, projection_of
from grebe.formats.parquet_pages.schema import Leaf
from grebe.formats.protocol import without_columns

Rows = npt.NDArray[np.int64]
PageRows = list[tuple[int, list[int]]]
"""Pages by number, and which rows of each, counted from its first."""
Part = bytes | memoryview

# With less to decode a second thread does not pay.
_MUCH = 512 * 1024
_PAGE_COST = 16 * 1024


class MoreNeeded(Exception):
    """The writer misled about which pages need a dictionary. Fetch the spans of `wanted` and ask it instead; it never
    raises this again."""

    def __init__(self, wanted: "Wanted") -> None:
        super().__init__("the pages need a dictionary that was not expected")
        self.wanted = wanted


class _Stretch(NamedTuple):
    """Rows of one column chunk."""

    chunk: Chunk
    row_count: int
    pages: PageRows
    first_part: int
    """The number of the first page's bytes among the parts."""
    dictionary_part: int | None
    dictionary: Dictionary | None
    """As it was kept."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Made by `want`. `table` takes the bytes of `spans`, in that order."""

    spans: list[tuple[int, int]]
    """(start, length), in no order, never overlapping; dictionaries that are needed and not kept among them."""
    _pages: PageMap
    _rows: Rows
    _projection: Projection
    _stretches: dict[int, list[_Stretch]]
    _uri: str
    _dictionaries: Dictionaries | None

    def table(self, parts: Sequence[Part], helper: Executor | None = None) -> pa.Table:
        """The rows in the order in which they were asked for, with the columns in the types that the file's reader gives
        them. Half of much work is given to `helper`, if it is free for it. May raise `MoreNeeded`."""
        count = len(self._rows)
        if not self._projection.tops:
            return pa.Table.from_batches([without_columns(count)])
        if not count:
            return self._projection.target.empty_table()
        try:
            with naming(self._uri):
                self._check(parts)
                return self._projection.table(self._picked_by_two(parts, helper), count)
        except _NoDictionary as signal:
            more = _wanted(
                self._pages, self._rows, self._projection, self._uri, self._dictionaries, all_dictionaries=True
            )
            raise MoreNeeded(more) from signal

    def _picked_by_two(self, parts: Sequence[Part], helper: Executor | None) -> dict[int, Picked]:
        leaves = self._projection.leaves
        if helper is None or sum(length for _, length in self.spans) < _MUCH:
            return self._picked(leaves, parts)
        ours, theirs = self._halves(leaves)
        help_given = helper.submit(self._picked, theirs, parts)
        picked = self._picked(ours, parts)
        # What the helper has not begun by now is done sooner here, and nobody ever waits for a helper who waits too.
        return picked | (self._picked(theirs, parts) if help_given.cancel() else help_given.result())

    def _halves(self, leaves: Sequence[int]) -> tuple[list[int], list[int]]:
        """Of about as many bytes each."""
        costs = {leaf: sum(map(_stretch_cost, self._stretches[leaf])) for leaf in leaves}
        halves: tuple[list[int], list[int]] = ([], [])
        ahead = 0
        for leaf in sorted(leaves, key=costs.__getitem__, reverse=True):
            halves[ahead > 0].append(leaf)
            ahead += costs[leaf] if ahead <= 0 else -costs[leaf]
        return halves

    def _check(self, parts: Sequence[Part]) -> None:
        if [len(part) for part in parts] != [length for _, length in self.spans]:
            raise Damaged("what was read of it has another length than what was asked for")

    def _picked(self, leaves: Sequence[int], parts: Sequence[Part]) -> dict[int, Picked]:
        return {number: self._picked_leaf(self._pages.schema.leaves[number], number, parts) for number in leaves}

    def _picked_leaf(self, leaf: Leaf, number: int, parts: Sequence[Part]) -> Picked:
        picked: list[Picked] = []
        for stretch in self._stretches[number]:
            picked += self._of_stretch(leaf, stretch, parts)
        return merged(leaf, picked)

    def _of_stretch(self, leaf: Leaf, stretch: _Stretch, parts: Sequence[Part]) -> Iterator[Picked]:
        chunk, dictionary = stretch.chunk, stretch.dictionary
        for number, (page, rows) in enumerate(stretch.pages, stretch.first_part):
            part = memoryview(parts[number])
            header = read_header(part)
            if header.kind not in (DATA, DATA_V2) or header.entries > chunk.values:
                raise Damaged("a data page is none, or has more values than its column chunk")
            if header.encoding in DICTIONARY_ENCODINGS and dictionary is None:
                dictionary = self._dictionary(leaf, stretch, parts)
            if header.encoding == DELTA_BYTE_ARRAY and self._pages.schema.delta_strings_cross_pages:
                raise NoPages("its writer let texts go on from one page to the next")
            first = chunk.first_rows[page]
            stop = chunk.first_rows[page + 1] if page + 1 < len(chunk.first_rows) else stretch.row_count
            size = header.length + header.stored
            if size == len(part):
                yield pick_rows(leaf, chunk.codec, header, part[header.length :], rows, stop - first, dictionary)
            elif size < len(part) and leaf.max_repetition:
                yield from pick_rows_of_many(leaf, chunk.codec, part, rows, stop - first, dictionary)
            else:
                raise Damaged("a page has another size than the page index says")

    def _dictionary(self, leaf: Leaf, stretch: _Stretch, parts: Sequence[Part]) -> Dictionary:
        if stretch.dictionary_part is None:
            if stretch.chunk.dictionary_length:
                raise _NoDictionary
            raise Damaged("a page needs a dictionary and its chunk has none")
        dictionary = read_dictionary(leaf, stretch.chunk.codec, memoryview(parts[stretch.dictionary_part]))
        if self._dictionaries is not None:
            self._dictionaries.put(stretch.chunk.start, dictionary)
        return dictionary


def _stretch_cost(stretch: _Stretch) -> int:
    """In bytes, and what a page costs besides."""
    return sum(stretch.chunk.sizes[page] + _PAGE_COST for page, _ in stretch.pages)


class _NoDictionary(Exception):
    """A page needs one that was not asked for."""


def want(
    pages: PageMap,
    rows: Rows,
    names: Sequence[str] | None = None,
    *,
    uri: str = "the file",
    dictionaries: Dictionaries | None = None,
) -> Wanted:
    """What to read for these rows, ascending and distinct, and these columns (None: all), nested ones by their top name.
    `uri` is for errors; `dictionaries` are those kept of this file."""
    with naming(uri):
        projection = projection_of(pages.schema, None if names is None else tuple(names))
        return _wanted(pages, rows, projection, uri, dictionaries)


def _wanted(
    pages: PageMap,
    rows: Rows,
    projection: Projection,
    uri: str,
    dictionaries: Dictionaries | None,
    *,
    all_dictionaries: bool = False,
) -> Wanted:
    spans: list[tuple[int, int]] = []
    stretches: dict[int, list[_Stretch]] = {leaf: [] for leaf in projection.leaves}
    for group, inside in by_group(pages, rows, uri):
        chunks = pages.chunks(group)
        found: dict[int, PageRows] = {}
        for leaf in projection.leaves:
            chunk = chunks[leaf]
            if chunk.codec == HIDDEN:
                raise NoPages("a column is encrypted, or in another file")
            # Chunks that are cut alike share the tuple.
            page_rows = found.get(id(chunk.first_rows))
            if page_rows is None:
                page_rows = found[id(chunk.first_rows)] = by_page(chunk.first_rows, inside)
            kept, part = None, None
            if chunk.dictionary_length and (all_dictionaries or _may_need_dictionary(chunk, page_rows)):
                kept = dictionaries.get(chunk.start) if dictionaries is not None else None
                if kept is None:
                    part = len(spans)
                    spans.append((chunk.start, chunk.dictionary_length))
            stretches[leaf].append(_Stretch(chunk, pages.counts[group], page_rows, len(spans), part, kept))
            spans += [(chunk.offsets[page], chunk.sizes[page]) for page, _ in page_rows]
    return Wanted(spans, pages, rows, projection, stretches, uri, dictionaries)


def _may_need_dictionary(chunk: Chunk, pages: PageRows) -> bool:
    return chunk.dictionary_pages is None or pages[0][0] < chunk.dictionary_pages


def by_group(pages: PageMap, rows: Rows, uri: str) -> Iterator[tuple[int, list[int]]]:
    """Row groups, and the rows in each, counted from its first."""
    starts = pages.starts
    wanted: list[int] = rows.tolist()
    if not wanted:
        return
    if wanted[0] < 0 or wanted[-1] >= starts[-1]:
        outside = wanted[0] if wanted[0] < 0 else wanted[-1]
        raise Unsupported(f"{uri} has {starts[-1]} rows, so none with number {outside}", detail="LOCATOR")
    if len(wanted) > 1 and not (np.diff(rows) > 0).all():
        raise Unsupported("rows are fetched in ascending order, each once; sort them first", detail="LOCATOR")
    yield from ((group, inside) for group, inside in by_page(starts, wanted))


def by_page(firsts: Sequence[int], rows: Sequence[int]) -> PageRows:
    """Splits ascending rows by the stretches that begin with `firsts`."""
    if len(rows) == 1:
        page = bisect_right(firsts, rows[0]) - 1
        return [(page, [rows[0] - firsts[page]])]
    split: PageRows = []
    at = 0
    while at < len(rows):
        page = bisect_right(firsts, rows[at]) - 1
        first = firsts[page]
        stop = bisect_left(rows, firsts[page + 1], at) if page + 1 < len(firsts) else len(rows)
        split.append((page, [row - first for row in rows[at:stop]]))
        at = stop
    return split
