"""Listing the files of a table of plain files: roots and globs, which names count as data, and the files Spark would read.

Spark's rules, not ours: names that begin with `_` or `.` are hidden, unless they are partitions (`_a=1`); a file without bytes is
no data; below a root without partitions only its own files count, those of folders below do not; in a partitioned table files
outside partitions do not.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import TableNotFound, UnreadableFile
from grebe.files import canonical_uri, join_uri, relative_path
from grebe.files.unicode_names import escaped, is_unicode
from grebe.formats import format_of_file
from grebe.sources.globs import Glob, globs_of, is_glob
from grebe.store.protocol import ObjectInfo, ObjectMissing, Store

_LISTED = pa.schema(
    [
        ("path", pa.large_string()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
        ("etag", pa.string()),
        ("is_unicode", pa.bool_()),
    ]
)
_CHUNK_ROWS = 100_000
_THREADS = 16
_OWN_FOLDER = "_grebe"


@dataclass(frozen=True, slots=True)
class Roots:
    """The places to read, relative to the canonical `uri` of the lowest folder above them all; some may be globs."""

    uri: str
    paths: tuple[str, ...]

    @classmethod
    def of(cls, written: Sequence[str]) -> "Roots":
        uris = [canonical_uri(path) for path in written]
        stores = {_store_of(uri) for uri in uris}
        if len(stores) > 1:
            raise TableNotFound(f"one table lies in one store, not in {' and '.join(sorted(stores))}", detail="STORES")
        fixed = [_fixed_part(uri) for uri in uris]
        parent = fixed[0]
        while not all(relative_path(parent, each) is not None for each in fixed):
            parent = parent.rpartition("/")[0]
        return cls(parent, tuple(relative_path(parent, uri) or "" for uri in uris))

    def moved_up(self) -> "Roots":
        """The same places, seen from the folder above."""
        parent, _, last = self.uri.rpartition("/")
        return Roots(parent, tuple(f"{last}/{path}" if path else last for path in self.paths))

    def bases(self, folders: Sequence[str]) -> frozenset[str]:
        """Where the search for partitions ends, for files in these folders (canonical URIs): at the roots, at what a glob matched,
        and at the folder of a root that is a file."""
        plain = {join_uri(self.uri, path) for path in self.paths if not is_glob(path)}
        globs = [glob for path in self.paths if is_glob(path) for glob in globs_of(path)]
        bases: set[str] = set()
        used: set[str] = set()
        for folder in folders:
            for above in _upwards(folder):
                if above in plain:
                    used.add(above)
                    break
            inside = relative_path(self.uri, folder)
            if inside is not None:
                bases.update(base for glob in globs if (base := self._glob_base(glob, inside)) is not None)
        return frozenset(bases | used | {root.rpartition("/")[0] for root in plain - used})

    def _glob_base(self, glob: Glob, folder: str) -> str | None:
        below = folder.removeprefix(glob.folder).removeprefix("/")
        levels = below.split("/") if below else []
        matching = sum(1 for _ in takewhile(bool, map(_matches, glob.levels, levels)))
        if matching < len(glob.levels) - 1:
            return None
        return join_uri(self.uri, "/".join(filter(None, [glob.folder, *levels[: len(glob.levels)]])))


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything below some roots: the objects, one row each, with the folder as number; the folders; and which folders and which
    objects are roots themselves. A path that is no UTF-8 is there escaped, and not `is_unicode`."""

    table: pa.Table
    names: pa.Array
    folder_of: npt.NDArray[np.int64]
    folders: tuple[str, ...]
    root_folders: frozenset[str]
    is_root: npt.NDArray[np.bool_]


def list_roots(store: Store, roots: Roots) -> Listed:
    """Every object below the roots, hidden ones too. Raises `TableNotFound` naming a root that is not there."""
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda path: _list_one(store, path, roots.uri), dict.fromkeys(roots.paths)))
    table = pa.concat_tables([part.table for part in found]).combine_chunks()
    paths = table.column("path").combine_chunks()
    parts = pc.split_pattern(
        pc.binary_join_element_wise(_text(""), paths, _text("/")), "/", max_splits=1, reverse=True
    ).flatten()
    even = np.arange(0, len(parts), 2)
    encoded = parts.take(pa.array(even)).dictionary_encode()
    return Listed(
        table,
        parts.take(pa.array(even + 1)),
        encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        tuple(folder[1:] for folder in encoded.dictionary.to_pylist()),
        frozenset(folder for part in found for folder in part.folders),
        np.concatenate([part.is_root for part in found]),
    )


def data_rows(listed: Listed) -> npt.NDArray[np.bool_]:
    """Which objects are data files, or would be if they had bytes."""
    open_folders = np.array([_visible(folder, listed.root_folders) for folder in listed.folders], np.bool_)
    names = listed.names
    hidden = pc.or_(
        pc.and_(pc.starts_with(names, "_"), pc.invert(pc.match_substring(names, "="))),
        pc.or_(pc.starts_with(names, "."), pc.ends_with(names, "._COPYING_")),
    )
    shown: npt.NDArray[np.bool_] = ~hidden.to_numpy(zero_copy_only=False)
    # A root that is a file is read whatever folder it lies in, but not if its own name is hidden.
    return shown & (listed.is_root | open_folders[listed.folder_of])


def require_unicode(listed: Listed, data: npt.NDArray[np.bool_], uri: str) -> None:
    """Raise `UnreadableFile` where one of these objects has a path that is no UTF-8: neither a log nor Spark can name it."""
    odd = (
        listed.table.column("path")
        .filter(pa.array(data))
        .filter(pc.invert(listed.table.column("is_unicode").filter(pa.array(data))))
    )
    if len(odd):
        more = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
        raise UnreadableFile(
            f"the path of {join_uri(uri, odd[0].as_py())}{more} is no UTF-8 text; rename the file or the folder so that it is",
            detail="NAME",
        )


def _visible(folder: str, roots: frozenset[str]) -> bool:
    """Whether Spark gets down from a root to this folder."""
    current = folder
    while current not in roots:
        if not current:
            return False
        current, _, level = current.rpartition("/")
        if _hidden_folder(level):
            return False
    return current.rpartition("/")[2] != _OWN_FOLDER


def _hidden_folder(name: str) -> bool:
    if name.startswith(("_metadata", "_common_metadata")):
        return False
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


@dataclass(frozen=True, slots=True)
class _Found:
    table: pa.Table
    folders: tuple[str, ...]
    is_root: npt.NDArray[np.bool_]


def _list_one(store: Store, path: str, uri: str) -> _Found:
    if is_glob(path):
        parts = [_list_glob(store, glob) for glob in globs_of(path)]
        if any(part.table.num_rows for part in parts):
            return _Found(
                pa.concat_tables([part.table for part in parts]),
                tuple(folder for part in parts for folder in part.folders),
                np.concatenate([part.is_root for part in parts]),
            )
        raise TableNotFound(f"nothing matches {join_uri(uri, path)}", detail="NO_MATCH")
    attempts: list[Callable[[], _Found | None]] = [lambda: _folder(store, path), lambda: _file(store, path)]
    # One request less where the name tells.
    if format_of_file(path) is not None:
        attempts.reverse()
    for attempt in attempts:
        found = attempt()
        if found is not None:
            return found
    raise TableNotFound(
        f"there is nothing at {join_uri(uri, path)}; a path is taken as written (no %20 for a space, `\\` before * ? [ {{)",
        detail="NO_PATH",
    )


def _folder(store: Store, path: str) -> _Found | None:
    table = _as_table(store.list(path))
    return _Found(table, (path,), np.zeros(table.num_rows, np.bool_)) if table.num_rows else None


def _file(store: Store, path: str) -> _Found | None:
    try:
        info = store.stat(path) if path else None
    except ObjectMissing:
        info = None
    return _Found(_as_table(iter([info])), (), np.ones(1, np.bool_)) if info is not None else None


def _list_glob(store: Store, glob: Glob) -> _Found:
    """One recursive listing of the fixed part finds the matches and what lies below them."""
    table = _as_table(store.list(glob.folder))
    depth = glob.folder.count("/") + 1 if glob.folder else 0
    folders: dict[str, None] = {}
    keep, is_root = np.zeros(table.num_rows, np.bool_), np.zeros(table.num_rows, np.bool_)
    for row, path in enumerate(table.column("path").to_pylist()):
        levels = path.split("/")[depth:]
        if len(levels) < len(glob.levels):
            continue
        if all(pattern.fullmatch(level) for pattern, level in zip(glob.levels, levels, strict=False)):
            keep[row] = True
            is_root[row] = len(levels) == len(glob.levels)
            if not is_root[row]:
                folders["/".join(path.split("/")[: depth + len(glob.levels)])] = None
    return _Found(table.filter(pa.array(keep)), tuple(folders), is_root[keep])


def _as_table(objects: Iterator[ObjectInfo]) -> pa.Table:
    """In bulk, and never more than a chunk of them as Python objects."""
    batches, rows = [], []
    for info in objects:
        rows.append((info.path, info.size, info.modified_ms, info.etag))
        if len(rows) == _CHUNK_ROWS:
            batches.append(_batch(rows))
            rows = []
    batches.append(_batch(rows))
    return pa.Table.from_batches(batches, _LISTED)


def _batch(rows: list[tuple[str, int, int, str | None]]) -> pa.RecordBatch:
    paths, *facts = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
    good = list(map(is_unicode, paths))
    named = paths if all(good) else list(map(escaped, paths))
    arrays = [pa.array(column, field.type) for column, field in zip((named, *facts, good), _LISTED, strict=True)]
    return pa.record_batch(arrays, schema=_LISTED)


def _matches(pattern: re.Pattern[str], level: str) -> bool:
    return pattern.fullmatch(level) is not None


def _upwards(uri: str) -> Iterator[str]:
    """The folder itself and all above it."""
    while "/" in uri and not uri.endswith(":/"):
        yield uri
        uri = uri.rpartition("/")[0]


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _store_of(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _fixed_part(uri: str) -> str:
    """A glob's folder; of a path without glob itself."""
    while is_glob(uri):
        uri = uri.rpartition("/")[0]
    return uri
