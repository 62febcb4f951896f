"""HDFS without a JVM, through hdfs-native.

`create(overwrite=False)` would show the name before the bytes are complete. So an object is written whole as a draft, in a hidden
folder below the root, and then renamed: without overwriting for `put_if_absent`, with it for `put`; either is one step of the name
node. A crash leaves at most a draft, which no listing shows and no name refers to.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from grebe.clock import SYSTEM
from grebe.errors import GrebeError, StoreRefused
from grebe.store.access import AccessCheck
from grebe.store.hadoop_access import check_of_root, prepare_root
from grebe.store.name_node import NativeNameNode
from grebe.store.paths import DRAFT_FOLDER, checked, folder, is_draft
from grebe.store.protocol import ObjectChanged, ObjectExists, ObjectInfo, ObjectMissing, OutcomeUnknown, require_at_most
from grebe.store.ranges import cut, spans

# By default the client tries for three minutes. Whoever waits for a commit repeats it by himself.
_PATIENCE = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "1000",
    "dfs.client.socket-timeout": "20000",
}
# The name node asks for blocks of at least this size (dfs.namenode.fs-limits.min-block-size).
_ONE_BLOCK = 1 << 20
_TRIES_FOR_LAST_BLOCK = 100


class HdfsStore:
    """`options` are Hadoop settings, added to those of `HADOOP_CONF_DIR`."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        from hdfs_native import Client

        scheme, _, rest = uri.partition("://")
        authority, _, path = rest.partition("/")
        self._uri = uri
        self._base = f"/{path}/" if path else "/"
        self._table: str | None = None
        self._prepared_for: str | None = None
        self._making = threading.Lock()
        try:
            self._client: Client = Client(f"{scheme}://{authority}", {**_PATIENCE, **options})
        except (OSError, RuntimeError, ValueError):  # whose text may hold a value of the options
            raise StoreRefused(
                f"no name node is known for {uri}; name it in the URI, as hdfs://node:8020/…, or set HADOOP_CONF_DIR to the "
                "folder with a sound core-site.xml and hdfs-site.xml",
                detail="NAME_NODE",
            ) from None

    @property
    def uri(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"HdfsStore({self._uri!r})"

    def get(self, path: str, most: int | None = None) -> bytes:
        with self._failures(path):
            reader = self._reader(path)
            require_at_most(len(reader), most, f"{self._uri}/{path}")
            return bytes(reader.read(-1))

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get_ranges(path, [(start, length)])[0]

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        asked = self.spans(ranges)
        with self._failures(path):
            reader = self._reader(path, min_end=max(start + length for start, length in asked) if asked else 0)
            read = [_read(reader, start, length) for start, length in asked]
        # A change sets the time: what is afterwards as it was expected was so when it was opened.
        if expected is not None and not self.stat(path).is_same(expected):
            raise ObjectChanged(f"{self._uri}/{path} was changed")
        return cut(ranges, asked, read)

    @staticmethod
    def spans(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """What `get_ranges` really reads: one request each."""
        return spans(ranges)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._write_and_rename(path, data, overwrite=False)

    def put(self, path: str, data: bytes) -> None:
        self._write_and_rename(path, data, overwrite=True)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        top = folder(prefix)
        try:
            with self._failures(prefix):
                found = [
                    ObjectInfo(each.path[len(self._base) :], each.length, each.modification_time)
                    for each in self._client.list_status((self._base + top).rstrip("/") or "/", recursive=True)
                    if not each.isdir
                ]
        except ObjectMissing:
            return iter(())
        shown = (info for info in found if info.path > start_after and not any(map(is_draft, info.path.split("/"))))
        # The name node lists folder by folder, and a file asked for as a folder is listed as itself.
        return iter(sorted((info for info in shown if info.path.startswith(top)), key=lambda info: info.path))

    def children(self, prefix: str = "") -> Sequence[str]:
        top = (self._base + folder(prefix)).rstrip("/")
        try:
            with self._failures(prefix):
                found = [
                    each.path.rpartition("/")[2] + "/" * each.isdir
                    for each in self._client.list_status(top or "/", recursive=False)
                    if each.path.rstrip("/") != top
                ]
        except ObjectMissing:
            return []
        return [name for name in found if not is_draft(name.rstrip("/"))]

    def drafts(self) -> Sequence[ObjectInfo]:
        return [one for one in self._all(DRAFT_FOLDER) if not one.path.endswith("/")]

    def folders(self, prefix: str) -> Sequence[ObjectInfo]:
        found = [replace(one, path=one.path.rstrip("/")) for one in self._all(prefix) if one.path.endswith("/")]
        return sorted(found, key=lambda one: one.path, reverse=True)

    def remove_folder(self, path: str) -> None:
        try:
            with self._failures(path):
                if not list(self._client.list_status(self._place(path), recursive=False)):
                    self._client.delete(self._place(path), False)
        except ObjectMissing:
            return

    def _all(self, prefix: str) -> Sequence[ObjectInfo]:
        """Files and folders below a folder, and the folder itself; paths of folders end in `/`."""
        try:
            with self._failures(prefix):
                top = self._place(prefix)
                each = [self._client.get_file_info(top), *self._client.list_status(top, recursive=True)]
        except ObjectMissing:
            return []
        return [
            ObjectInfo(one.path[len(self._base) :] + "/" * one.isdir, one.length, one.modification_time) for one in each
        ]

    def delete(self, path: str) -> None:
        with self._failures(path):
            self._client.delete(self._place(path), False)

    def stat(self, path: str) -> ObjectInfo:
        with self._failures(path):
            status = self._client.get_file_info(self._place(path))
        if status.isdir:
            raise ObjectMissing(f"{self._uri}/{path} is a folder")
        return ObjectInfo(path, status.length, status.modification_time)

    def take_access_of(self, table: str) -> None:
        """Let nobody below the root who may not read the table at this canonical URI, if it lies here as well."""
        path = self._path_of(table)
        if path is not None and path != self._prepared_for:
            self._table = path

    def access_check(self, table: str) -> AccessCheck | None:
        """Compare the root with the table at this canonical URI; None where one of both is not there, or the table is elsewhere."""
        path = self._path_of(table)
        with self._failures(""):
            name_node = NativeNameNode(self._client)
            return None if path is None else check_of_root(name_node, self._base.rstrip("/"), path, self._uri)

    def _path_of(self, table: str) -> str | None:
        scheme, _, rest = self._uri.partition("://")
        start = f"{scheme}://{rest.partition('/')[0]}/"
        return table[len(start) - 1 :] if table.startswith(start) else None

    def make_folder(self, path: str) -> None:
        """Make a folder that others than this store will write to."""
        with self._failures(path, writing=True):
            self._make_root()
            self._client.mkdirs(self._place(path), create_parent=True)

    def give_access(self, path: str) -> None:
        """Do nothing: who may not read the table does not get below the root."""

    def _make_root(self) -> None:
        with self._making:
            root = self._base.rstrip("/")
            if self._table is not None and root:
                prepare_root(NativeNameNode(self._client), root, self._table)
            self._table, self._prepared_for = None, self._table or self._prepared_for

    def _place(self, path: str) -> str:
        return self._base + checked(path)

    def _reader(self, path: str, min_end: int = 0) -> Any:
        """Opens a file whose every byte can be read.

        Where a file may be closed before its last block is reported (dfs.namenode.file.close.num-committed-allowed), the client
        opens it without that block for a moment: under load one read in fifty found a small file empty. The name node knows the
        true length from the start.
        """
        place = self._place(path)
        for _ in range(_TRIES_FOR_LAST_BLOCK):
            reader = self._client.read(place)
            seen = len(reader)
            if 0 < seen < _ONE_BLOCK and seen >= min_end:
                return reader
            if seen >= self._client.get_file_info(place).length:
                return reader
            SYSTEM.sleep(0.02)
        raise OutcomeUnknown(f"{self._uri}/{path}: its last block has not been reported by the data nodes yet")

    def _write_and_rename(self, path: str, data: bytes, *, overwrite: bool) -> None:
        from hdfs_native import WriteOptions

        place = self._place(path)
        draft = f"{self._base}{DRAFT_FOLDER}/{SYSTEM.new_id()}"
        with self._failures(path, writing=True):
            self._make_root()
            with self._client.create(draft, WriteOptions(create_parent=True)) as file:
                file.write(data)
            try:
                try:
                    self._client.rename(draft, place, overwrite)
                except FileNotFoundError:
                    self._client.mkdirs(place.rpartition("/")[0], create_parent=True)
                    self._client.rename(draft, place, overwrite)
            except FileExistsError:
                self._client.delete(draft, False)
                raise

    def _failures(self, path: str, *, writing: bool = False) -> "_Failures":
        return _Failures(f"{self._uri}/{path}".rstrip("/"), writing)


def _read(reader: Any, start: int, length: int) -> bytes:
    """The client panics when asked for bytes past the end."""
    length = min(length, len(reader) - start)
    return bytes(reader.read_range(start, length)) if length > 0 else b""


class _Failures:
    """Turns what hdfs-native raises into the outcomes of the protocol, without its text, which is a Java stack trace."""

    def __init__(self, where: str, writing: bool) -> None:
        self._where = where
        self._writing = writing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError | RuntimeError | ValueError):
            raise self._outcome(error) from None

    def _outcome(self, error: Exception) -> GrebeError:
        text = str(error)
        if isinstance(error, FileExistsError):
            return ObjectExists(f"{self._where} exists already")
        if isinstance(error, FileNotFoundError) and not self._writing:
            return ObjectMissing(f"{self._where} is not there")
        if isinstance(error, PermissionError) or "AccessControlException" in text or "AuthorizationException" in text:
            return StoreRefused(
                f"no permission for {self._where}; change its permissions, or keep the indexes elsewhere with location=…",
                detail="NO_PERMISSION",
            )
        if "SafeModeException" in text:
            return StoreRefused(
                f"{self._where}: the name node is in safe mode and can only be read", detail="READ_ONLY"
            )
        if "QuotaExceededException" in text or "could only be written to 0" in text:
            return StoreRefused(f"no room for {self._where}", detail="NO_ROOM")
        if any(
            sign in text
            for sign in ("ParentNotDirectory", "InvalidPath", "must both be directories", "FileAlreadyExists")
        ):
            return StoreRefused(f"no file can be at {self._where}", detail="PATH")
        # Also a rename whose draft is gone: the client repeats a call whose reply got lost, and the first may have done it.
        return OutcomeUnknown(f"{self._where}: the name node or a data node gave no usable answer")
