"""A whole row group at once, for files with small ones: Arrow decodes the chunks where they lie, in a file that has the
same bytes and a footer of ours."""

from collections.abc import Sequence

import pyarrow as pa

from grebe.formats.parquet_pages.chunk import HIDDEN, LZO, Chunk
from grebe.formats.parquet_pages.failures import Damaged, NoPages, naming
from grebe.formats.parquet_pages.mini_file import PlacedChunk, decode
from grebe.formats.parquet_pages.page_map import PageMap
from grebe.formats.parquet_pages.projection import projection_of
from grebe.formats.protocol import without_columns


def group_span(
    pages: PageMap, group: int, names: Sequence[str] | None = None, *, uri: str = "the file"
) -> tuple[int, int]:
    """(start, length) of the bytes from the first of these columns to the last (None: of all); (0, 0) if there is none."""
    with naming(uri):
        projection = projection_of(pages.schema, None if names is None else tuple(names))
    chunks = [pages.chunks(group)[leaf] for leaf in projection.leaves]
    if not chunks:
        return 0, 0
    start = min(chunk.start for chunk in chunks)
    return start, max(chunk.stop for chunk in chunks) - start


def decode_group(
    pages: PageMap,
    group: int,
    data: bytes | memoryview,
    names: Sequence[str] | None = None,
    *,
    start: int | None = None,
    uri: str = "the file",
) -> pa.RecordBatch:
    """All rows of a row group, with the columns in the types that the file's reader gives them. `data` is what
    `group_span` of the same names asks for, or begins at `start` of the file and holds all of them."""
    with naming(uri):
        projection = projection_of(pages.schema, None if names is None else tuple(names))
        rows = pages.counts[group]
        if not projection.tops:
            return without_columns(rows)
        if not rows:
            return pa.RecordBatch.from_pylist([], schema=projection.target)
        base = group_span(pages, group, names)[0] if start is None else start
        chunks = pages.chunks(group)
        placed = [_placed(pages, leaf, chunks[leaf], base, len(data)) for leaf in projection.leaves]
        table = decode(projection.whole_frame.around((data,), placed, rows))
        if table.num_rows != rows:
            raise Damaged(f"a row group has {table.num_rows} rows and not {rows}")
        if table.schema != projection.target:
            table = table.cast(projection.target)
        return pa.RecordBatch.from_arrays([_whole(column) for column in table.columns], schema=projection.target)


def _placed(pages: PageMap, leaf: int, chunk: Chunk, base: int, size: int) -> PlacedChunk:
    if chunk.codec in (HIDDEN, LZO):
        raise NoPages("a column is encrypted, in another file, or compressed with LZO")
    place, length = chunk.start - base, chunk.stop - chunk.start
    if place < 0 or place + length > size:
        raise Damaged("what was read of it does not hold the row group")
    return PlacedChunk(pages.schema.leaves[leaf], chunk.codec, chunk.values, place, chunk.dictionary_length, length)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
