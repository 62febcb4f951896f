"""Where a Delta log says that its parts lie: sidecars of checkpoints, and deletion vectors.

The package deltalake opens them itself, wherever they are. Whoever writes the log could name any file of the machine, so the log is
looked through before the package gets to open what it names. What the log says of data files is checked where they are listed.
"""

import base64
import json
import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from grebe.errors import GrebeError, UnreadableFile
from grebe.files import canonical_uri
from grebe.files.untrusted import MOST_BYTES, decoding
from grebe.formats.parquet_file import parse_table
from grebe.formats.parquet_pages import read_footer
from grebe.formats.protocol import DataFile
from grebe.sources.delta_log import CHECKPOINT, COMMIT
from grebe.sources.marks import MARKS
from grebe.sources.roots import is_regular, refused, require_allowed, require_regular_files
from grebe.store.protocol import ObjectInfo, Store

_LOG = MARKS["delta"]
_SIDECARS = f"{_LOG}/_sidecars"
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json", re.ASCII)
_NAME = re.compile(r"[\w-][\w.=-]*", re.ASCII)
_PREFIX = re.compile(r"[A-Za-z0-9]*")
_NO_PATH = re.compile(r"[\x00-\x1f\\]")
_UUID_LENGTH = 20
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)


def require_own_sidecars(store: Store, table: str, version: int | None = None) -> None:
    """Raise `Unsupported` if a checkpoint that readers of this version start from names sidecars outside of the log's folder."""
    for folder in (_LOG, _SIDECARS):
        require_regular_files(table, folder)
    for one in _checkpoints(list(store.list(_LOG)), version):
        _sidecars(store, table, one)


def require_allowed_vectors(store: Store, table: str, version: int, roots: Sequence[str]) -> None:
    """Raise `Unsupported` if the log of this version names a deletion vector outside of the table and of the configured roots."""
    for kind, text in _vectors(store, table, version):
        uri = _place(table, kind, text)
        if uri is None:
            continue
        require_allowed([uri], table, roots)
        if not is_regular(uri):
            raise refused(table, f"the deletion vector {uri}, which is no regular file")


def _checkpoints(listed: Sequence[ObjectInfo], version: int | None) -> list[ObjectInfo]:
    """Return the newest checkpoints up to a version, all parts of them."""
    found: dict[int, list[ObjectInfo]] = {}
    whole = -1
    for one in listed:
        named = CHECKPOINT.fullmatch(_name(one))
        if named and one.size and (version is None or int(named[1]) <= version):
            found.setdefault(int(named[1]), []).append(one)
            whole = whole if named[3] else max(whole, int(named[1]))
    # One in parts may lack some of them: then the newest in one piece counts.
    return [one for number in sorted({max(found, default=-1), whole}) for one in found.get(number, ())]


def _sidecars(store: Store, table: str, checkpoint: ObjectInfo) -> list[str]:
    """Return the names of a checkpoint's sidecars, each of which lies where it must."""
    if checkpoint.path.endswith(".json"):
        told = (one.get("sidecar") for one in _actions(store, checkpoint.path))
        paths = [one.get("path") for one in told if isinstance(one, dict)]
    else:
        paths = [one for (one,) in _columns(store, checkpoint, ("sidecar.path",)) if one is not None]
    return [_sidecar(table, path) for path in paths]


def _sidecar(table: str, path: Any) -> str:
    """Return the name of a sidecar, given by that or by its whole URI."""
    if isinstance(path, str):
        name = path.rpartition("/")[2]
        own = f"{table}/{_SIDECARS}/{name}"
        by_uri = ":" in path and not _NO_PATH.search(path) and canonical_uri(path, encoded=True) == own
        if _NAME.fullmatch(name) and (path == name or by_uri):
            return name
    raise refused(table, f"the part {path!r} of a checkpoint")


def _vectors(store: Store, table: str, version: int) -> Iterator[tuple[Any, Any]]:
    """Yield kind and place of every deletion vector that the log of a version names, whether or not it is in use."""
    listed = list(store.list(_LOG))
    checkpoints = _checkpoints(listed, version)
    first = min((int(_name(one)[:20]) for one in checkpoints), default=0)
    parts = list(checkpoints)
    for one in checkpoints:
        parts += [store.stat(f"{_SIDECARS}/{name}") for name in _sidecars(store, table, one)]
    for one in listed:
        commit, compacted = COMMIT.fullmatch(_name(one)), _COMPACTED.fullmatch(_name(one))
        last = int(commit[1]) if commit else int(compacted[2]) if compacted else -1
        if first <= last <= version:
            parts.append(one)
    columns = ("add.deletionVector.storageType", "add.deletionVector.pathOrInlineDv")
    for one in parts:
        if one.path.endswith(".parquet"):
            yield from (found for found in _columns(store, one, columns) if any(part is not None for part in found))
            continue
        for action in _actions(store, one.path):
            added = action.get("add")
            vector = added.get("deletionVector") if isinstance(added, dict) else None
            if isinstance(vector, dict):
                yield vector.get("storageType"), vector.get("pathOrInlineDv")


def _place(table: str, kind: Any, text: Any) -> str | None:
    """Return the URI of a deletion vector; None for one that lies in the log itself."""
    if not isinstance(text, str) or kind not in ("i", "u", "p"):
        raise refused(table, "a deletion vector of no known kind")
    if kind == "i":
        return None
    if kind == "p":
        if _NO_PATH.search(text):
            raise refused(table, f"the deletion vector {text!r}")
        return canonical_uri(text, encoded=True)
    prefix, coded = text[:-_UUID_LENGTH], text[-_UUID_LENGTH:]
    try:
        unique = uuid.UUID(bytes=base64.b85decode(coded.translate(_TO_B85)))
    except ValueError:
        raise refused(table, "a deletion vector without a name") from None
    if not _PREFIX.fullmatch(prefix):
        raise refused(table, f"a deletion vector in the folder {prefix!r}")
    return "/".join(part for part in (table, prefix, f"deletion_vector_{unique}.bin") if part)


def _actions(store: Store, path: str) -> Iterator[dict[str, Any]]:
    with decoding(lambda why: _unreadable(store, path, why)):
        for line in store.get(path, MOST_BYTES).splitlines():
            action = json.loads(line, object_pairs_hook=_once) if line.strip() else None
            if isinstance(action, dict):
                yield action


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two values of one name they take."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name that is there twice")
    return made


def _columns(store: Store, file: ObjectInfo, wanted: Collection[str]) -> list[tuple[Any, ...]]:
    """Return the values of some columns of a checkpoint, a tuple for each row; nothing if it lacks all of them."""
    names = [leaf.path for leaf in read_footer(DataFile(store, file.path, file.size)).schema.leaves]
    present = [one for one in wanted if tuple(one.encode().split(b".")) in names]
    if not present:
        return []
    data = store.get(file.path, MOST_BYTES)
    with decoding(lambda why: _unreadable(store, file.path, why)):
        table = parse_table(data, present).flatten()
        while any(pa.types.is_struct(one.type) for one in table.schema):
            table = table.flatten()
        columns = [table.column(one).to_pylist() if one in present else [None] * len(table) for one in wanted]
        return list(zip(*columns, strict=True))


def _name(one: ObjectInfo) -> str:
    return one.path.rpartition("/")[2]


def _unreadable(store: Store, path: str, why: str) -> GrebeError:
    return UnreadableFile(f"{store.uri}/{path} is damaged: {why}", detail="DELTA")
