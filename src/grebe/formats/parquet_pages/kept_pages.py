"""Pages that are asked for again are decoded as a whole and kept: from then on a row of them is a row of an array.

Whoever keeps them decides which are worth it.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from grebe.formats.parquet_pages.chunk import HIDDEN, LZO, Chunk
from grebe.formats.parquet_pages.failures import Damaged, naming
from grebe.formats.parquet_pages.mini_file import PlacedChunk, decode
from grebe.formats.parquet_pages.page_map import PageMap
from grebe.formats.parquet_pages.projection import projection_of
from grebe.formats.parquet_pages.wanted import Rows, by_group, by_page

Span = tuple[int, int]
_MOST_ROWS = 256
_LARGEST = 2 * 1024 * 1024


class Keep(Protocol):
    """What is kept of one file. What was put may be gone at any time."""

    def get(self, what: Hashable) -> Any | None: ...

    def put(self, what: Hashable, value: Any, nbytes: int) -> None: ...

    def is_worth(self, what: Hashable, nbytes: int) -> bool:
        """Whether something of this size, asked for now, should be made and put."""
        ...


@dataclass(frozen=True, slots=True)
class _Page:
    """Rows asked for of one page of one column, counted from its first."""

    name: str
    leaf: int
    chunk: Chunk
    number: int
    count: int
    rows: list[int]

    @property
    def key(self) -> Hashable:
        return "page", self.chunk.offsets[self.number]

    @property
    def likely_bytes(self) -> int:
        return max(8 * self.count, 2 * self.chunk.sizes[self.number])

    @property
    def spans(self) -> list[Span]:
        """Of the dictionary, if there is one, and of the page."""
        chunk = self.chunk
        own = (chunk.offsets[self.number], chunk.sizes[self.number])
        return [(chunk.start, chunk.dictionary_length), own] if chunk.dictionary_length else [own]


def kept_columns(
    pages: PageMap,
    rows: Rows,
    names: Sequence[str],
    keep: Keep,
    read: Callable[[Sequence[Span]], Sequence[bytes]],
    uri: str,
) -> dict[str, pa.Array]:
    """These rows of those columns whose pages are all kept, or are worth it now; in the types that the file's reader gives."""
    if len(rows) > _MOST_ROWS:
        return {}
    groups = list(by_group(pages, rows, uri))
    columns: dict[str, list[_Page]] = {}
    arrays: dict[Hashable, pa.Array] = {}
    lacking: list[_Page] = []
    for name in names:
        asked = _pages_of(pages, name, groups)
        if not asked:
            continue
        kept = {page.key: keep.get(page.key) for page in asked}
        new = [page for page in asked if kept[page.key] is None]
        worth = [page for page in new if keep.is_worth(page.key, page.likely_bytes)]
        if len(worth) < len(new):
            continue
        columns[name] = asked
        arrays |= kept
        lacking += new
    if lacking:
        arrays |= _decoded(pages, lacking, keep, read, uri)
    return {name: _taken([(arrays[page.key], page.rows) for page in asked]) for name, asked in columns.items()}


def _pages_of(pages: PageMap, name: str, groups: Sequence[tuple[int, list[int]]]) -> list[_Page]:
    """Nothing for a column that is nested, hidden, or has large pages."""
    top = pages.schema.names.get(name)
    leaves = () if top is None else pages.schema.tops[top].leaves
    if (
        len(leaves) != 1
        or pages.schema.leaves[leaves[0]].max_repetition
        or len(pages.schema.leaves[leaves[0]].path) > 1
    ):
        return []
    asked = []
    for group, inside in groups:
        chunk = pages.chunks(group)[leaves[0]]
        if chunk.codec in (HIDDEN, LZO):
            return []
        for number, rows in by_page(chunk.first_rows, inside):
            ends = (*chunk.first_rows, pages.counts[group])
            if chunk.sizes[number] > _LARGEST:
                return []
            asked.append(_Page(name, leaves[0], chunk, number, ends[number + 1] - ends[number], rows))
    return asked


def _decoded(
    pages: PageMap,
    lacking: Sequence[_Page],
    keep: Keep,
    read: Callable[[Sequence[Span]], Sequence[bytes]],
    uri: str,
) -> dict[Hashable, pa.Array]:
    spans = list(dict.fromkeys(span for page in lacking for span in page.spans))
    parts = dict(zip(spans, read(spans), strict=True))
    arrays: dict[Hashable, pa.Array] = {}
    with naming(uri):
        for page in lacking:
            array = _array(pages, page, [parts[span] for span in page.spans])
            arrays[page.key] = array
            keep.put(page.key, array, int(array.nbytes))
    return arrays


def _array(pages: PageMap, page: _Page, parts: Sequence[bytes]) -> pa.Array:
    projection = projection_of(pages.schema, (page.name,))
    length = sum(map(len, parts))
    placed = PlacedChunk(
        pages.schema.leaves[page.leaf], page.chunk.codec, page.count, 0, page.chunk.dictionary_length, length
    )
    table = decode(projection.whole_frame.around(parts, [placed], page.count))
    if table.num_rows != page.count:
        raise Damaged(f"a page has {table.num_rows} rows and the page index says {page.count}")
    column = (table if table.schema == projection.target else table.cast(projection.target)).column(0)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _taken(parts: Sequence[tuple[pa.Array, list[int]]]) -> pa.Array:
    taken = [array.slice(rows[0], 1) if len(rows) == 1 else array.take(pa.array(rows)) for array, rows in parts]
    return taken[0] if len(taken) == 1 else pa.concat_arrays(taken)
