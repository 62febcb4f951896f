"""Registered files: identities with the ids that the log gave them, and their bytes on the lake.

An id is given once and never again, so the registered files of a table are a base and deltas that are simply put
together; a path that was rewritten is there once for every identity it had.
"""

import hashlib
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import CorruptLog, Unsupported
from grebe.files.arrow_stream import read_stream
from grebe.files.ids import ID_LIMIT, FileIds
from grebe.files.listing import NOWHERE, SCHEMA, FileList, match
from grebe.files.untrusted import decoding
from grebe.files.uri import canonical_uri

# The frame is the same for every format version, so that a newer one can be told from a damaged one:
# magic, format version, three bytes of zero, length of the payload, BLAKE2b-128 of all that and the payload; then the
# payload.
_HEAD = struct.Struct("<4sB3xQ")
_MAGIC = b"GRBF"
_VERSION = 1
_DIGEST_BYTES = 16
_ROOT = b"grebe.root"
_ODD = frozenset(("", ".", ".."))
_ODD_NAMES = pa.array(sorted(_ODD), pa.string())
_SINCE = "end"
"""A column that lists of older versions do not have."""
_NOT_NULL = [field.name for field in SCHEMA if not field.nullable]


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredFiles:
    """Files in ascending order of their ids; a path may occur several times, with different identities."""

    files: FileList
    ids: pa.UInt32Array

    @classmethod
    def empty(cls, root: str) -> "RegisteredFiles":
        return cls(FileList.empty(root), pa.array([], pa.uint32()))

    @classmethod
    def register(cls, files: FileList, first_id: int) -> "RegisteredFiles":
        """New files with consecutive ids."""
        last = first_id + len(files)
        if first_id < 0 or last > ID_LIMIT:
            raise Unsupported(f"file ids run from 0 to {ID_LIMIT - 1}, not {first_id} to {last - 1}", detail="FILE_ID")
        return cls(files, pa.array(np.arange(first_id, last, dtype=np.uint32)))

    @classmethod
    def concat(cls, *parts: "RegisteredFiles") -> "RegisteredFiles":
        """All files of a base and its deltas, seen from the root of the first. An id in two of them is a broken
        log."""
        root = parts[0].files.root
        table = (
            pa.concat_tables([part.files.rebased(root).table for part in parts]).unify_dictionaries().combine_chunks()
        )
        ids = pa.concat_arrays([part.ids for part in parts])
        numbers = ids.to_numpy()
        if not (numbers[1:] > numbers[:-1]).all():
            order = np.argsort(numbers, kind="stable")
            numbers = numbers[order]
            if (numbers[1:] == numbers[:-1]).any():
                twice = int(numbers[1:][numbers[1:] == numbers[:-1]][0])
                raise CorruptLog(f"file id {twice} of {root} was given more than once", detail="ID_TWICE")
            table, ids = table.take(pa.array(order)), pa.array(numbers)
        return cls(FileList(root, table), ids)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def next_id(self) -> int:
        """The smallest id above all of these."""
        return int(self.ids[-1].as_py()) + 1 if len(self.ids) else 0

    @property
    def file_ids(self) -> FileIds:
        return FileIds.of(self.ids.to_numpy())

    def ids_of(self, listing: FileList) -> pa.UInt32Array:
        """For each file of a listing the id under which exactly this file is registered, null if it is not; the
        newest, if several."""
        found = match(self.files, listing)
        return self.ids.take(pa.array(found, mask=found == NOWHERE))

    def missing(self, listing: FileList) -> FileList:
        """The files of a listing that are not registered."""
        return listing.filter(match(self.files, listing) == NOWHERE)

    def select(self, ids: FileIds) -> "RegisteredFiles":
        """Those with an id in `ids`."""
        rows: npt.NDArray[np.int64] = np.flatnonzero(ids.contains(self.ids.to_numpy()))
        return RegisteredFiles(self.files.take(rows), self.ids.take(pa.array(rows)))


def encode(registered: RegisteredFiles) -> bytes:
    """The bytes that `decode` takes. The same files give the same bytes with the same version of pyarrow."""
    known = registered.files.table
    # Most lists have no such digests, and older versions of Grebe wrote none.
    known = known.drop_columns(_SINCE) if known[_SINCE].null_count == len(known) else known
    table = known.append_column(pa.field("id", pa.uint32(), nullable=False), registered.ids)
    table = table.replace_schema_metadata({_ROOT: registered.files.root.encode()}).combine_chunks()
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    payload = sink.getvalue()
    head = _HEAD.pack(_MAGIC, _VERSION, payload.size)
    return b"".join((head, _digest(head, payload), memoryview(payload)))


def decode(data: bytes) -> RegisteredFiles:
    """Raises `CorruptLog` for anything but the exact bytes of `encode`, and `Unsupported` for those of a newer
    version of Grebe."""
    start = _HEAD.size + _DIGEST_BYTES
    if len(data) < start or not data.startswith(_MAGIC):
        raise CorruptLog(f"a list of files has no head: {len(data)} bytes", detail="FILE_LIST")
    _, version, length = _HEAD.unpack_from(data)
    payload = memoryview(data)[start:]
    if len(payload) != length:
        raise CorruptLog(f"a list of files should have {length} bytes and has {len(payload)}", detail="FILE_LIST")
    if _digest(data[: _HEAD.size], payload) != data[_HEAD.size : start]:
        raise CorruptLog(f"a list of files of {length} bytes does not match its checksum", detail="FILE_LIST")
    if version > _VERSION:
        raise Unsupported(
            f"a list of files has format version {version}, this Grebe knows {_VERSION}: update Grebe",
            detail="NEWER_FORMAT",
        )
    with decoding(_refused):
        table = read_stream(payload).unify_dictionaries().combine_chunks()
        root = table.schema.metadata[_ROOT].decode()
        if _SINCE not in table.column_names:
            table = table.append_column(_SINCE, pa.nulls(len(table), pa.string()))
        files = FileList(root, table.select(SCHEMA.names).cast(SCHEMA))
        ids = table.column("id").combine_chunks()
        if (
            not pa.types.is_uint32(ids.type)
            or ids.null_count
            or any(files.table[name].null_count for name in _NOT_NULL)
        ):
            raise ValueError("a column that must have a value in each row lacks some, or is of another type")
        _check_places(files)
        numbers = ids.to_numpy()
        if len(numbers) and (
            int(numbers[-1]) - int(numbers[0]) != len(numbers) - 1 or not (numbers[1:] > numbers[:-1]).all()
        ):
            raise ValueError("its ids do not follow each other")
        return RegisteredFiles(files, ids)


def _check_places(files: FileList) -> None:
    """Raise `ValueError` unless root, folders and names are written as every list writes them: none leads upwards."""
    if "://" not in files.root or canonical_uri(files.root) != files.root:
        raise ValueError(f"{files.root[:300]!r} is no canonical URI")
    folders = files.table.column("directory").combine_chunks().dictionary.to_pylist()
    for folder in folders:
        plain = canonical_uri(folder) == folder if "://" in folder else not _ODD.intersection(folder.split("/"))
        if folder and not plain:
            raise ValueError(f"{folder[:300]!r} is no folder of a table")
    names = files.table.column("name")
    if pc.any(pc.or_(pc.is_in(names, _ODD_NAMES), pc.match_substring(names, "/"))).as_py():
        raise ValueError("a file has a name that leads elsewhere")


def _refused(why: str) -> CorruptLog:
    return CorruptLog(f"a list of files lacks its table, columns or root: {why}", detail="FILE_LIST")


def _digest(head: bytes, payload: pa.Buffer | memoryview) -> bytes:
    digest = hashlib.blake2b(head, digest_size=_DIGEST_BYTES)
    digest.update(payload)
    return digest.digest()
