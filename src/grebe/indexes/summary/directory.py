"""The files of an index of summaries, listed beside them: what each holds, and a digest of all its bytes.

They are read whole or not at all, and believed without looking at data again: a flipped bit must not lose a row.
"""

import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from grebe.errors import CorruptIndex
from grebe.files.untrusted import decoding
from grebe.formats import DataFile
from grebe.indexes.content.parquet_table import read_parquet, refused
from grebe.indexes.content.sealed import digest, require, sealed, unsealed
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.summary.shape import HIGH, LOW, SIEVE
from grebe.log.entry import ContentFile
from grebe.store.protocol import ObjectInfo, Store

NAME = "summary.gix"
_AT_ONCE = 16
_COLUMNS = ("name", "size", "digest", "files", "sieve", "low", "high")


@dataclass(frozen=True, slots=True)
class Listed:
    """What a file of the content holds: summaries of files (`sieve` is None), or pieces of a sieve with keys from low to high. A
    file that holds several of these is listed as often."""

    file: DataFile
    digest: bytes
    files: int
    sieve: int | None
    low: int | None
    high: int | None
    """None: what is not a matter of keys, such as the separators of text."""

    def parsed(self, data: bytes) -> pa.Table:
        """Just the rows that are meant."""
        require(data, self.digest, self.file.uri)
        table = _table(data, self.file.uri)
        with decoding(lambda why: refused(self.file.uri, why, "DAMAGED")):
            if self.sieve is None:
                return table.filter(pc.is_valid(table[FILE_COLUMN]))
            own = table.filter(pc.equal(table[SIEVE], self.sieve))
            return own.filter(pc.is_null(own[LOW]) if self.low is None else pc.is_valid(own[LOW]))


def describe(folder: str, store: Store) -> tuple[ContentFile, ...]:
    """All that a build wrote to the folder, and the directory, which is written here."""
    found = list(store.list(folder))

    def examine(one: ObjectInfo) -> tuple[ObjectInfo, bytes, pa.Table]:
        data = store.get(one.path)
        return one, digest(data), _table(data, f"{store.uri}/{one.path}")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        written = list(pool.map(examine, [one for one in found if one.path.endswith(".gix")]))
        kept = [(one, seal, table) for one, seal, table in written if len(table)]
        used = {one.path for one, _, _ in kept}
        # Checksums that Hadoop keeps beside local files, and files without rows: the log knows nothing of them.
        list(pool.map(store.delete, [one.path for one in found if one.path not in used]))
    rows = [row for one, seal, table in kept for row in _rows(one.path, one.size, seal, table)]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), sink, compression="zstd")
    data = sealed(sink.getvalue())
    store.put(f"{folder}/{NAME}", data)
    content = (ContentFile(one.path, one.size, len(table)) for one, _, table in kept)
    return (*content, ContentFile(f"{folder}/{NAME}", len(data)))


def parse(data: bytes, store: Store, folder: str, wanted: Sequence[ContentFile]) -> tuple[Listed, ...]:
    """Of the directory of that folder the files that the log names; others may have been replaced since it was written."""
    uri = f"{store.uri}/{folder}/{NAME}"
    table = _table(unsealed(data, uri), uri)
    if tuple(table.column_names) != _COLUMNS:
        raise CorruptIndex(f"{uri} is no directory of an index", detail="DIRECTORY")
    sizes = {file.path.rpartition("/")[2]: file.size for file in wanted if file.rows}
    rows = [row for row in table.to_pylist() if row["name"] in sizes]
    if {row["name"]: row["size"] for row in rows} != sizes:
        raise CorruptIndex(
            f"{uri} does not list the files that the log names; refresh the index with mode='full'", detail="DIRECTORY"
        )
    return tuple(
        Listed(
            DataFile(store, f"{folder}/{row['name']}", row["size"]),
            row["digest"],
            row["files"],
            row["sieve"],
            row["low"],
            row["high"],
        )
        for row in rows
    )


_SCHEMA = pa.schema(
    zip(
        _COLUMNS,
        (pa.string(), pa.int64(), pa.binary(), pa.int64(), pa.int32(), pa.int64(), pa.int64()),
        strict=True,
    )
)


def _rows(path: str, size: int, seal: bytes, table: pa.Table) -> Iterator[dict[str, object]]:
    row: dict[str, object] = {"name": path.rpartition("/")[2], "size": size, "digest": seal, "files": 0}
    files = len(table) - table[FILE_COLUMN].null_count
    if files:
        yield {**row, "files": files}
    pieces = table.filter(pc.is_valid(table[SIEVE])).select([SIEVE, LOW, HIGH])
    for number in pc.unique(pieces[SIEVE]).to_pylist():
        own = pieces.filter(pc.equal(pieces[SIEVE], number))
        if own[LOW].null_count:
            yield {**row, "sieve": number}
        if own[LOW].null_count < len(own):
            yield {**row, "sieve": number, "low": pc.min(own[LOW]).as_py(), "high": pc.max(own[HIGH]).as_py()}


def _table(data: bytes, uri: str) -> pa.Table:
    return read_parquet(data, uri)
