"""What can be known of a table's rows before they are read: from the footers of some Parquet files, else by a guess from sizes.

Only layouts hang on it, never answers: a wrong guess makes buckets larger or smaller than they might be.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from grebe.errors import GrebeError
from grebe.files import FileList
from grebe.formats import DataFile, Reading
from grebe.formats.parquet_pages import Footer, naming
from grebe.formats.parquet_pages.chunk import LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED
from grebe.formats.parquet_pages.structure import read_checked_footer
from grebe.formats.spark_types import TypeJson, type_json
from grebe.indexes.kind import FILE_COLUMN, Facts
from grebe.predicate.tree import Path
from grebe.store.protocol import Store

_LOOKED_AT = 8
_META, _CODEC, _SIZE = 3, 4, 7
"""Fields of a column chunk: what it says of itself, and of that its codec and its size."""
_LINEAGE_BYTES = 0.5
# What zstd makes of a column that was compressed otherwise.
_SHRINKS = {UNCOMPRESSED: 0.4, SNAPPY: 0.75, LZ4: 0.75, LZ4_RAW: 0.75}
# Bytes of a value in Parquet with zstd, and written as text.
_WIDTHS = {"boolean": (0.2, 5), "byte": (1, 3), "short": (1.5, 4), "integer": (2.5, 6), "long": (3, 8), "float": (3, 8)}
_WIDTHS |= {"double": (5, 10), "date": (1.5, 10), "timestamp": (4, 20), "timestamp_ntz": (4, 20), "decimal": (3, 8)}
_OTHERS_WIDTHS = (8, 16)
_BINARY_FORMATS = ("parquet", "orc", "avro")


def facts_of(files: FileList, reading: Reading, store: Store) -> Facts:
    """`store` is that of the table's root."""
    if len(files) == 0:
        return Facts(0)
    try:
        return _from_footers(files, store) if reading.format == "parquet" else _guessed(files, reading)
    except GrebeError:  # encrypted, or beyond our reach: Spark may read it all the same
        return _guessed(files, reading)


def data_files(files: FileList, store: Store) -> list[DataFile]:
    """Raises nothing for files elsewhere than below the root: the store will not find them. Files with an etag are read as they
    were listed or not at all; others never change, or are listed again once they were read."""
    facts = zip(*(files.table[name].to_pylist() for name in ("size", "modified_ms", "etag")), strict=True)
    return [
        DataFile(store, path, size, None if etag is None else time, etag)
        for path, (size, time, etag) in zip(files.paths().to_pylist(), facts, strict=True)
    ]


def spread_over(count: int, most: int) -> np.ndarray:
    """So many places, evenly over all."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _from_footers(files: FileList, store: Store) -> Facts:
    some = files.take(spread_over(len(files), _LOOKED_AT))
    rows, read, widths = 0, 0, dict[Path, float]()
    for file in data_files(some, store):
        footer = read_checked_footer(file)
        rows, read = rows + footer.rows, read + file.size
        for leaf, size in leaf_sizes(file, footer):
            widths[leaf] = widths.get(leaf, 0.0) + size
    each = {leaf: size / max(1, rows) for leaf, size in widths.items()}
    return Facts(round(rows * files.total_bytes / max(1, read)), {**each, (FILE_COLUMN,): _LINEAGE_BYTES}, True)


def leaf_sizes(file: DataFile, footer: Footer) -> Iterator[tuple[Path, float]]:
    """Bytes of each column chunk. An encrypted one does not say, which is an error as for a damaged one."""
    with naming(file.uri):
        for group in footer.groups:
            for leaf, column in zip(footer.schema.leaves, group[1], strict=True):
                meta = column[_META]
                path = tuple(name.decode() for name in leaf.path)
                yield path, meta[_SIZE] * _SHRINKS.get(meta[_CODEC], 1.0)


def _guessed(files: FileList, reading: Reading) -> Facts:
    widths, text = dict[Path, float](), 0.0
    for column in reading.file_columns:
        for leaf, (packed, written) in _typical((column.name,), type_json(column.type)):
            widths[leaf] = packed
            text += written + (len(leaf[-1]) + 4 if reading.format == "json" else 1)
    width = sum(widths.values()) if reading.format in _BINARY_FORMATS else text
    return Facts(round(files.total_bytes / max(1.0, width)), {**widths, (FILE_COLUMN,): _LINEAGE_BYTES})


def _typical(path: Path, kind: TypeJson) -> Sequence[tuple[Path, tuple[float, float]]]:
    if isinstance(kind, dict) and kind["type"] == "struct":
        return [leaf for field in kind["fields"] for leaf in _typical((*path, field["name"]), field["type"])]
    name = kind.partition("(")[0] if isinstance(kind, str) else ""
    return [(path, _WIDTHS.get(name, _OTHERS_WIDTHS))]
