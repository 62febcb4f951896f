"""The directory of one version folder: what each content file holds, so that planning opens none of them.

A small Parquet file of our own, sealed, `directory.gix`, beside the content: one row a file, in the order of the run.
"""

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from grebe.errors import CorruptIndex, UnreadableFile
from grebe.files.untrusted import MOST_BYTES
from grebe.formats import DataFile
from grebe.formats.parquet_file import open_parquet
from grebe.formats.parquet_pages import tail_length
from grebe.indexes.columns import Chosen
from grebe.indexes.content.bounds import Bounds, bounds_of, column_of
from grebe.indexes.content.parquet_table import read_parquet
from grebe.indexes.content.sealed import digest, sealed, unsealed
from grebe.indexes.content.shape import shape_of
from grebe.indexes.kind import bound_names
from grebe.log.entry import ContentFile, IndexSpec
from grebe.store.protocol import ObjectInfo, ObjectMissing, Store

NAME = "directory.gix"
NO_BUCKET = -1
_TYPES = {"path": pa.string(), "size": pa.int64(), "rows": pa.int64(), "tail": pa.int64(), "tail_digest": pa.binary()}
COLUMNS = ("path", "size", "rows", "footer", "tail", "tail_digest", "bucket")
"""And then three for each column indexed on, its bounds and NULLs (`kind.bound_names`). Release 0.1 wrote those of the first."""
_PARTITION = re.compile(r"_([0-9]+)\.gix$")
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Written:
    name: str
    partition: int
    size: int
    rows: int
    footer: int
    tail: int
    """Bytes from the first index or filter of the file to its end."""
    tail_digest: bytes
    bounds: tuple[Bounds, ...]
    """Of the columns indexed on."""


def describe(index: str, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
    """All that a build wrote to the folder, and the directory, which is written here."""
    shape = shape_of(index, spec)
    if shape.layout is None:
        raise CorruptIndex(f"index {index} does not say how its rows lie", detail="SPEC")
    return describe_files(folder, store, shape.on, bucketed=shape.layout.buckets > 0)


def describe_files(folder: str, store: Store, on: Sequence[Chosen], bucketed: bool) -> tuple[ContentFile, ...]:
    """Write the directory of a folder, with bounds of the columns `on`; return it and the content files."""
    found = list(store.list(folder))
    content = [(one, int(partition[1])) for one in found if (partition := _PARTITION.search(one.path))]

    def examine(one: tuple[ObjectInfo, int]) -> _Written:
        return _examined(DataFile(store, one[0].path, one[0].size), one[1], on)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        written = list(pool.map(examine, content))
        # Checksums that Hadoop keeps beside local files, and files without rows: the log knows nothing of them.
        kept = {f"{folder}/{w.name}" for w in written if w.rows}
        list(pool.map(store.delete, [one.path for one in found if one.path not in kept]))
    # The number of a file within its partition has three digits, or more.
    run = sorted((w for w in written if w.rows), key=lambda w: (w.partition, len(w.name), w.name))
    return _store_directory(store, folder, run, on, bucketed)


def read_directory(store: Store, folder: str) -> pa.Table:
    """One row a content file, with the columns of `COLUMNS` and bounds; `path` is the name within the folder."""
    uri = f"{store.uri}/{folder}/{NAME}"
    try:
        return parse_directory(store.get(f"{folder}/{NAME}", MOST_BYTES), uri)
    except ObjectMissing as missing:
        raise CorruptIndex(f"{uri} is missing; refresh the index with mode='full'", detail="DIRECTORY") from missing


def parse_directory(data: bytes, uri: str) -> pa.Table:
    table = read_parquet(unsealed(data, uri), uri, "DIRECTORY")
    names, bounded = table.column_names, (table.num_columns - len(COLUMNS)) // 3
    if names != [*COLUMNS, *(name for place in range(bounded) for name in bound_names(place))]:
        raise CorruptIndex(f"{uri} is no directory of an index", detail="DIRECTORY")
    for name, kind in _TYPES.items():
        if table[name].type != kind or table[name].null_count:
            raise CorruptIndex(f"{uri} is no directory of an index: {name} is not what it was", detail="DIRECTORY")
    if pc.any(pc.or_(pc.less(table["tail"], 0), pc.greater(table["tail"], table["size"]))).as_py():
        raise CorruptIndex(f"{uri} names an end of a file that is longer than the file", detail="DIRECTORY")
    return table


def _examined(file: DataFile, partition: int, on: Sequence[Chosen]) -> _Written:
    try:
        opened = open_parquet(file)
        with opened.errors():
            filled = opened.metadata.num_rows > 0
            bounds = tuple(bounds_of(opened, one.content, one.type) if filled else Bounds() for one in on)
        tail = tail_length(opened.footer, file.size)
        tail_digest = digest(opened.raw.keep_tail(tail)[-tail:])
    except UnreadableFile as problem:
        raise CorruptIndex(
            f"what was written cannot be read: {problem.args[0]}; nothing was changed, build it again", detail="CONTENT"
        ) from problem
    metadata = opened.metadata
    sizes = (file.size, metadata.num_rows, metadata.serialized_size, tail)
    return _Written(file.path.rpartition("/")[2], partition, *sizes, tail_digest, bounds)


def _store_directory(
    store: Store, folder: str, written: Sequence[_Written], on: Sequence[Chosen], bucketed: bool
) -> tuple[ContentFile, ...]:
    def column(values: Iterable[object], of: pa.DataType) -> pa.Array:
        return pa.array(list(values), of)

    table = pa.table(
        {
            "path": column((w.name for w in written), pa.string()),
            "size": column((w.size for w in written), pa.int64()),
            "rows": column((w.rows for w in written), pa.int64()),
            "footer": column((w.footer for w in written), pa.int64()),
            "tail": column((w.tail for w in written), pa.int64()),
            "tail_digest": column((w.tail_digest for w in written), pa.binary()),
            "bucket": column((w.partition if bucketed else NO_BUCKET for w in written), pa.int32()),
        }
    )
    for place, one in enumerate(on):
        bounds = [w.bounds[place] for w in written]
        least, greatest, nulls = bound_names(place)
        table = table.append_column(least, column_of([b.low for b in bounds], one.type))
        table = table.append_column(greatest, column_of([b.high for b in bounds], one.type))
        table = table.append_column(nulls, column((b.nulls for b in bounds), pa.int64()))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_statistics=False)
    data = sealed(sink.getvalue().to_pybytes())
    store.put(f"{folder}/{NAME}", data)
    content = (ContentFile(f"{folder}/{w.name}", w.size, w.rows, w.footer) for w in written)
    return (*content, ContentFile(f"{folder}/{NAME}", len(data)))
