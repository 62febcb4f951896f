"""File lists: which files there are, and what tells a file from an earlier one of the same name.

A list is an Arrow table of identities in columns: the folder once in a dictionary, the name, size, modification time
in ms, and where there is one the etag (on a local disk inode and ctime, on HDFS the file id), a tag (what a lake format
adds to identity, such as Hudi's commit) and a digest of the file's end. Row counts may ride along; they are facts, not
identity. Two files are the same if path, size, modification time and tag are equal, and where both sides have one the
etag and the end too. Everything here works on whole columns, so that a million files
take a second or two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.files.uri import join_uri, relative_path

SCHEMA = pa.schema(
    [
        pa.field("directory", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modified_ms", pa.int64(), nullable=False),
        pa.field("etag", pa.string()),
        pa.field("tag", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("end", pa.string()),
    ]
)
Column: TypeAlias = Sequence[Any] | npt.NDArray[Any] | pa.Array
NOWHERE = -1
"""Stands for "no row" in an array of row numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class FileList:
    """Files below `root`, or elsewhere. `table` has the columns of `SCHEMA`; a directory is relative to the root (""
    = the root itself), or a canonical URI if it lies elsewhere. A list that was built holds each path once, in order
    of the UTF-8 bytes."""

    root: str
    table: pa.Table

    @classmethod
    def build(
        cls,
        root: str,
        paths: Column,
        sizes: Column,
        modified_ms: Column,
        etags: Column | None = None,
        tags: Column | None = None,
        rows: Column | None = None,
    ) -> "FileList":
        """Of columns in any order. `root` is canonical; a path is relative to it, or a canonical URI anywhere."""
        text = _column(paths, pa.large_string())
        directory, name = _split(root, text)
        table = pa.Table.from_arrays(
            [
                directory,
                name,
                _column(sizes, pa.int64()),
                _column(modified_ms, pa.int64()),
                *(
                    pa.nulls(len(text), SCHEMA.field(i).type)
                    if column is None
                    else _column(column, SCHEMA.field(i).type)
                    for i, column in enumerate((etags, tags, rows, None), 4)
                ),
            ],
            schema=SCHEMA,
        )
        return _in_order(cls(root, table))

    @classmethod
    def empty(cls, root: str) -> "FileList":
        return cls(root, SCHEMA.empty_table())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def paths(self) -> pa.Array:
        """Relative to the root, or canonical URIs if elsewhere."""
        return _joined(self.directories(), self.table.column("name"))

    def uris(self) -> pa.Array:
        """Canonical URIs."""
        encoded = _encoded(self.table.column("directory"))
        absolute = pa.array(
            [join_uri(self.root, folder) for folder in encoded.dictionary.to_pylist()], pa.large_string()
        )
        return _joined(absolute.take(encoded.indices), self.table.column("name"))

    def directories(self) -> pa.Array:
        return _encoded(self.table.column("directory")).cast(pa.large_string())

    def by_folder(self) -> tuple[list[str], npt.NDArray[np.int64]]:
        """The folders that hold files, as canonical URIs, and for each file the number of its folder."""
        encoded = _encoded(self.table.column("directory"))
        used, numbers = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_inverse=True)
        return [join_uri(self.root, folder) for folder in encoded.dictionary.take(pa.array(used)).to_pylist()], numbers

    @property
    def total_bytes(self) -> int:
        return int(pc.sum(self.table.column("size"), min_count=0).as_py())

    def take(self, rows: npt.NDArray[np.integer]) -> "FileList":
        """The files at these row numbers, in that order."""
        return FileList(self.root, _compacted(self.table.take(pa.array(rows, pa.int64()))))

    def filter(self, keep: npt.NDArray[np.bool_]) -> "FileList":
        return self.take(np.flatnonzero(keep))

    def below_root(self) -> "FileList":
        """Return the files that lie below the root: this list where all do."""
        encoded = _encoded(self.table.column("directory"))
        below = np.array(["://" not in folder for folder in encoded.dictionary.to_pylist()], np.bool_)
        return self if below.all() else self.filter(below[encoded.indices.to_numpy(zero_copy_only=False)])

    def rebased(self, root: str) -> "FileList":
        """The same files in the same order, seen from another root. Touches the folders only, so that it costs
        little."""
        if root == self.root:
            return self
        encoded = _encoded(self.table.column("directory"))
        absolute = [join_uri(self.root, folder) for folder in encoded.dictionary.to_pylist()]
        seen = pa.array([_seen_from(root, folder) for folder in absolute], pa.string())
        directory = pa.DictionaryArray.from_arrays(encoded.indices, seen)
        return FileList(root, self.table.set_column(0, SCHEMA.field(0), directory))

    def with_ends(self, digests: Column) -> "FileList":
        """The same files, with digests of their ends."""
        return self._with("end", _column(digests, pa.string()))

    def without_etags(self) -> "FileList":
        """The same files, told apart by size and time alone."""
        return self._with("etag", pa.nulls(len(self), pa.string()))

    def _with(self, name: str, column: pa.Array) -> "FileList":
        place = SCHEMA.get_field_index(name)
        return FileList(self.root, self.table.set_column(place, SCHEMA.field(place), column))

    def older_than(self, store_ms: int) -> npt.NDArray[np.bool_]:
        """Which files had their last change before this moment of their store's own clock."""
        modified: npt.NDArray[np.int64] = _one(self.table.column("modified_ms")).to_numpy(zero_copy_only=False)
        return modified < store_ms


@dataclass(frozen=True, slots=True)
class Diff:
    """What came, what went, what stayed. A file that changed in place both went and came. `unchanged` has the facts
    of the known."""

    added: FileList
    removed: FileList
    unchanged: FileList


def diff(known: FileList, listing: FileList) -> Diff:
    found = match(known, listing)
    stayed = np.zeros(len(known), np.bool_)
    stayed[found[found != NOWHERE]] = True
    return Diff(listing.filter(found == NOWHERE), known.filter(~stayed), known.filter(stayed))


def match(known: FileList, listing: FileList) -> npt.NDArray[np.int64]:
    """For each file of `listing` the row of the same file in `known`, or NOWHERE.

    Most files are where they were. So the files of each folder that holds as many as before are first compared place by place, and
    only what that leaves over is looked up by path.
    """
    known = known.rebased(listing.root)
    result = np.full(len(listing), NOWHERE, np.int64)
    rows, places = _side_by_side(known, listing)
    names = (_one(of.table.column("name")).take(pa.array(at)) for of, at in ((known, rows), (listing, places)))
    same = pc.equal(*names).to_numpy(zero_copy_only=False) & _same_identity(known.table, rows, listing.table, places)
    result[places[same]] = rows[same]
    rest = np.flatnonzero(result == NOWHERE)
    unused = np.ones(len(known), np.bool_)
    unused[rows[same]] = False
    left = np.flatnonzero(unused)
    found = _looked_up(known.take(left), listing.take(rest))
    result[rest] = np.where(found == NOWHERE, NOWHERE, left[found] if len(left) else NOWHERE)
    return result


def _side_by_side(known: FileList, listing: FileList) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows of the one and the other that have the same folder and the same place in it, of folders with equally many files."""
    encoded = [_encoded(of.table.column("directory")) for of in (known, listing)]
    numbers = {folder: number for number, folder in enumerate(encoded[1].dictionary.to_pylist())}
    others = len(numbers)
    translated = np.array([numbers.get(folder, others) for folder in encoded[0].dictionary.to_pylist()], np.int64)
    codes = [part.indices.to_numpy(zero_copy_only=False).astype(np.int64) for part in encoded]
    codes[0] = translated[codes[0]] if len(codes[0]) else codes[0]
    alike = np.equal(*(np.bincount(code, minlength=others + 1) for code in codes))
    alike[others] = False
    rows, places = (np.argsort(code, kind="stable") for code in codes)
    return rows[alike[codes[0][rows]]], places[alike[codes[1][places]]]


def _looked_up(known: FileList, listing: FileList) -> npt.NDArray[np.int64]:
    """As `match`, by path. One may be known several times, with different identities: then its rows are tried from the last back,
    all paths at once."""
    known_paths = known.paths()
    unique = pc.unique(known_paths)
    code, group = _codes(listing.paths(), unique), _codes(known_paths, unique)
    order = np.argsort(group, kind="stable")
    count = np.bincount(group, minlength=len(unique))
    start = np.cumsum(count) - count
    result = np.full(len(listing), NOWHERE, np.int64)
    asked = np.flatnonzero(code != NOWHERE)
    back = 1
    while len(asked):
        groups = code[asked]
        candidates = order[start[groups] + count[groups] - back]
        same = _same_identity(known.table, candidates, listing.table, asked)
        result[asked[same]] = candidates[same]
        asked = asked[~same & (count[groups] > back)]
        back += 1
    return result


def _same_identity(
    left: pa.Table, left_rows: npt.NDArray[np.int64], right: pa.Table, right_rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Row by row, whether size, time, tag and (where both have them) etag and end are equal; the paths are known to be."""
    rows = (pa.array(left_rows), pa.array(right_rows))

    def columns(name: str) -> tuple[pa.Array, pa.Array]:
        return _one(left.column(name).take(rows[0])), _one(right.column(name).take(rows[1]))

    same = pc.and_(pc.equal(*columns("size")), pc.equal(*columns("modified_ms")))
    tags = columns("tag")
    both_untagged = pc.and_(pc.is_null(tags[0]), pc.is_null(tags[1]))
    same = pc.and_(same, pc.fill_null(pc.or_kleene(both_untagged, pc.equal(*tags)), False))
    for name in ("etag", "end"):
        same = pc.and_(same, pc.fill_null(pc.equal(*columns(name)), True))
    result: npt.NDArray[np.bool_] = same.to_numpy(zero_copy_only=False)
    return result


def _codes(paths: pa.Array, among: pa.Array) -> npt.NDArray[np.int64]:
    """The position of each path in `among`, or NOWHERE."""
    codes: npt.NDArray[np.int64] = (
        pc.index_in(paths, value_set=among).fill_null(NOWHERE).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return codes


def _split(root: str, paths: pa.Array) -> tuple[pa.DictionaryArray, pa.Array]:
    """Directories as seen from the root, and names. The leading slash gives every path exactly two parts."""
    slashed = pc.binary_join_element_wise(pa.scalar("", pa.large_string()), paths, pa.scalar("/", pa.large_string()))
    parts = pc.split_pattern(slashed, "/", max_splits=1, reverse=True).flatten()
    even = pa.array(np.arange(0, len(parts), 2))
    encoded = parts.take(even).dictionary_encode()
    seen = [_seen_from(root, folder[1:]) for folder in encoded.dictionary.to_pylist()]
    directory = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(seen, pa.string()))
    return directory, parts.take(pc.add(even, 1)).cast(pa.string())


def _seen_from(root: str, folder: str) -> str:
    inside = relative_path(root, folder)
    return folder if inside is None else inside


def _in_order(files: FileList) -> FileList:
    paths = files.paths()
    if _ascending(paths):
        return files
    order = pc.sort_indices(paths)
    paths = paths.take(order)
    twice = paths[1:].filter(pc.equal(paths[1:], paths[:-1]))
    if len(twice):
        raise Unsupported(
            f"{twice[0].as_py()} is in the list of files twice; name each file by one path",
            detail="FILE_TWICE",
        )
    return FileList(files.root, files.table.take(order))


def _ascending(paths: pa.Array) -> bool:
    """Whether the paths are in order and none is there twice."""
    return bool(pc.all(pc.less(paths[:-1], paths[1:]), min_count=0).as_py())


def _joined(directories: pa.Array, names: pa.ChunkedArray) -> pa.Array:
    plain = _one(names).cast(pa.large_string())
    slashed = pc.binary_join_element_wise(directories, plain, pa.scalar("/", pa.large_string()))
    return pc.if_else(pc.equal(directories, ""), plain, slashed)


def _compacted(table: pa.Table) -> pa.Table:
    """With a dictionary of the folders in use only, once most of it is not."""
    encoded = _encoded(table.column("directory"))
    if len(encoded.dictionary) > 2 * table.num_rows:
        table = table.set_column(0, SCHEMA.field(0), encoded.cast(pa.string()).dictionary_encode())
    return table


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return _one(column.unify_dictionaries())


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _column(values: Column, kind: pa.DataType) -> pa.Array:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _one(values).cast(kind)
    return pa.array(values, kind)
