"""Any Hadoop file system, through the JVM of a running Spark session: its credentials, its settings, its schemes.

As on HDFS without a JVM, an object is written as a draft and then renamed by `FileContext`, whose rename without overwriting is one
step of the name node. Two things would let two writers win, and are never used: Hadoop on local files, for which the local store
stands in, and a rename on object stores, where it is a check and then a copy.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grebe.clock import SYSTEM
from grebe.errors import GrebeError, StoreRefused, Unsupported
from grebe.files import canonical_uri
from grebe.store.hadoop_access import prepare_root
from grebe.store.local import LocalStore
from grebe.store.name_node import JvmNameNode, class_names
from grebe.store.paths import DRAFT_FOLDER, checked, folder, is_draft
from grebe.store.protocol import (
    ObjectChanged,
    ObjectExists,
    ObjectInfo,
    ObjectMissing,
    OutcomeUnknown,
    Store,
    require_at_most,
)
from grebe.store.ranges import cut, spans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Here a rename is no single step.
_COPIES_TO_RENAME = {
    "s3",
    "s3a",
    "s3n",
    "gs",
    "wasb",
    "wasbs",
    "abfs",
    "abfss",
    "oss",
    "cosn",
    "obs",
    "swift",
    "swift2d",
}

_NOT_INSTALLED = (
    "UnsupportedFileSystemException",
    "UnsupportedOperationException",
    "ClassNotFoundException",
    "java.lang.NoClassDefFoundError",
    "java.lang.NoSuch",
)


def hadoop_store(session: "SparkSession", uri: str) -> Store:
    """The store at `uri`, a path or URI as Hadoop takes it, seen through `session`."""
    canonical = canonical_uri(uri)
    if canonical.startswith("file://"):
        return LocalStore(Path(canonical.removeprefix("file://") or "/"))
    # Hadoop itself wants its own name of the scheme (s3a, abfss), which the canonical form has lost.
    return HadoopStore(session, canonical, uri.partition(":")[0].lower())


def _context_of(session: "SparkSession") -> Any:
    try:
        return session.sparkContext
    except AttributeError as error:
        raise Unsupported(
            "a Spark Connect session has no JVM of its own to reach Hadoop by; use a classic session",
            detail="SPARK_CONNECT",
        ) from error


class HadoopStore:
    def __init__(self, session: "SparkSession", uri: str, scheme: str) -> None:
        context = _context_of(session)
        hadoop = context._jvm.org.apache.hadoop.fs
        authority, _, path = uri.partition("://")[2].partition("/")
        self._uri = uri
        self._base = f"{scheme}://{authority}/{path}/" if path else f"{scheme}://{authority}/"
        self._rename_is_safe = scheme not in _COPIES_TO_RENAME

        def array(kind: Any, item: Any) -> Any:
            made = context._gateway.new_array(kind, 1)
            made[0] = item
            return made

        # Each look-up of a name in the JVM is a call of its own: they are made once.
        self._path = hadoop.Path
        self._folder_rights = hadoop.permission.FsPermission.getDirDefault()
        self._create = context._jvm.java.util.EnumSet.of(hadoop.CreateFlag.CREATE)
        self._with_parents = array(hadoop.Options.CreateOpts, hadoop.Options.CreateOpts.createParent())
        self._keep = array(hadoop.Options.Rename, hadoop.Options.Rename.NONE)
        self._overwrite = array(hadoop.Options.Rename, hadoop.Options.Rename.OVERWRITE)
        self._table: str | None = None
        self._prepared_for: str | None = None
        self._making = threading.Lock()
        with _Failures(uri):
            self._context = hadoop.FileContext.getFileContext(
                hadoop.Path(self._base).toUri(), context._jsc.hadoopConfiguration()
            )
        self._name_node = JvmNameNode(self._context, hadoop)

    @property
    def uri(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"HadoopStore({self._uri!r})"

    def get(self, path: str, most: int | None = None) -> bytes:
        place = self._place(path)
        with self._failures(path):
            stream = self._context.open(place)
            try:
                data = bytes(stream.readAllBytes() if most is None else stream.readNBytes(most + 1))
                require_at_most(len(data), most, f"{self.uri}/{path}")
                return data
            finally:
                stream.close()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get_ranges(path, [(start, length)])[0]

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        asked = self.spans(ranges)
        place = self._place(path)
        with self._failures(path):
            stream = self._context.open(place)
            try:
                size = self._context.getFileStatus(place).getLen()
                read = [_read(stream, start, min(length, size - start)) for start, length in asked]
            finally:
                stream.close()
        # A change sets the time: what is afterwards as it was expected was so when it was opened.
        if expected is not None and not self.stat(path).is_same(expected):
            raise ObjectChanged(f"{self._uri}/{path} was changed")
        return cut(ranges, asked, read)

    @staticmethod
    def spans(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """What `get_ranges` really reads: one request each."""
        return spans(ranges)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if not self._rename_is_safe:
            raise StoreRefused(
                f"Hadoop cannot store a file at {self._uri} only if its name is free; open the store without Hadoop, or keep the "
                "indexes on another one with location=…",
                detail="NO_PUT_IF_ABSENT",
            )
        self._write_and_rename(path, data, self._keep)

    def put(self, path: str, data: bytes) -> None:
        self._write_and_rename(path, data, self._overwrite)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        top = folder(prefix)
        with self._failures(prefix):
            found = list(self._walk(self._path((self._base + top).rstrip("/") if top else self._base), top))
        return iter(sorted((info for info in found if info.path > start_after), key=lambda info: info.path))

    def children(self, prefix: str = "") -> Sequence[str]:
        place = self._path((self._base + folder(prefix)).rstrip("/") if folder(prefix) else self._base)
        try:
            with self._failures(prefix):
                entries = [each for each in self._context.util().listStatus(place) if each.getPath() != place]
        except ObjectMissing:
            return []
        found = [str(each.getPath().getName()) + "/" * each.isDirectory() for each in entries]
        return [name for name in found if not is_draft(name.rstrip("/"))]

    def drafts(self) -> Sequence[ObjectInfo]:
        return [one for one in self._all(DRAFT_FOLDER) if not one.path.endswith("/")]

    def folders(self, prefix: str) -> Sequence[ObjectInfo]:
        found = [replace(one, path=one.path.rstrip("/")) for one in self._all(prefix) if one.path.endswith("/")]
        return sorted(found, key=lambda one: one.path, reverse=True)

    def remove_folder(self, path: str) -> None:
        place = self._place(path)
        try:
            with self._failures(path):
                if not len(self._context.util().listStatus(place)):
                    self._context.delete(place, False)
        except ObjectMissing:
            return

    def _all(self, prefix: str) -> Sequence[ObjectInfo]:
        """Files and folders below a folder, and the folder itself; paths of folders end in `/`."""
        place = self._place(prefix)
        try:
            with self._failures(prefix):
                own = self._context.getFileStatus(place)
                entries = list(self._context.util().listStatus(place))
        except ObjectMissing:
            return []
        found = [ObjectInfo(f"{prefix}/", 0, own.getModificationTime())]
        for each in entries:
            path = f"{prefix}/{each.getPath().getName()}"
            if each.isDirectory():
                found += self._all(path)
            else:
                found.append(ObjectInfo(path, each.getLen(), each.getModificationTime()))
        return found

    def delete(self, path: str) -> None:
        place = self._place(path)
        try:
            with self._failures(path):
                self._context.delete(place, False)
        except ObjectMissing:
            return

    def stat(self, path: str) -> ObjectInfo:
        place = self._place(path)
        with self._failures(path):
            status = self._context.getFileStatus(place)
            if status.isFile():
                return ObjectInfo(path, status.getLen(), status.getModificationTime())
        raise ObjectMissing(f"{self._uri}/{path} is a folder")

    def take_access_of(self, table: str) -> None:
        """Let nobody below the root who may not read the table at this canonical URI, if it lies here as well."""
        scheme, _, rest = self._uri.partition("://")
        start = f"{scheme}://{rest.partition('/')[0]}/"
        if self._rename_is_safe and table.startswith(start):
            path = self._base[: self._base.index("/", self._base.index("://") + 3) + 1] + table[len(start) :]
            self._table = None if path == self._prepared_for else path

    def make_folder(self, path: str) -> None:
        """Make a folder that others than this store will write to."""
        self._make_root()
        with self._failures(path, writing=True):
            self._context.mkdir(self._place(path), self._folder_rights, True)

    def give_access(self, path: str) -> None:
        """Do nothing: who may not read the table does not get below the root."""

    def _make_root(self) -> None:
        with self._making:
            if self._table is not None:
                with _Failures(self._uri, writing=True):
                    prepare_root(self._name_node, self._base.rstrip("/"), self._table)
            self._table, self._prepared_for = None, self._table or self._prepared_for

    def _walk(self, place: Any, path: str) -> Iterator[ObjectInfo]:
        try:
            with self._failures(path):
                entries = self._context.util().listStatus(place)
        except ObjectMissing:
            return
        for status in entries:
            name = status.getPath().getName()
            if is_draft(name):
                continue
            if status.isDirectory():
                yield from self._walk(status.getPath(), f"{path}{name}/")
            # A file that was asked for as a folder is listed as itself.
            elif status.getPath() != place:
                yield ObjectInfo(path + name, status.getLen(), status.getModificationTime())

    def _place(self, path: str) -> Any:
        return self._path(self._base + checked(path))

    def _write_and_rename(self, path: str, data: bytes, options: Any) -> None:
        place = self._place(path)
        draft = self._path(f"{self._base}{DRAFT_FOLDER}/{SYSTEM.new_id()}")
        self._make_root()
        with self._failures(path, writing=True):
            stream = self._context.create(draft, self._create, self._with_parents)
            try:
                stream.write(data)
            finally:
                stream.close()
            try:
                self._rename(draft, place, options)
            except ObjectExists:
                self._context.delete(draft, False)
                raise

    def _rename(self, draft: Any, place: Any, options: Any) -> None:
        try:
            with _Failures(self._uri):
                self._context.rename(draft, place, options)
        except ObjectMissing:
            with self._failures(place.getName(), writing=True):
                self._context.mkdir(place.getParent(), self._folder_rights, True)
                self._context.rename(draft, place, options)

    def _failures(self, path: str, *, writing: bool = False) -> "_Failures":
        return _Failures(f"{self._uri}/{path}".rstrip("/"), writing=writing)


def _read(stream: Any, start: int, length: int) -> bytes:
    if length <= 0:
        return b""
    stream.seek(start)
    return bytes(stream.readNBytes(length))


class _Failures:
    """Turns Java's exceptions into the outcomes of the protocol, without their text."""

    def __init__(self, where: str, *, writing: bool = False) -> None:
        self._where = where
        self._writing = writing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from py4j.protocol import Py4JError, Py4JJavaError

        if isinstance(error, Py4JJavaError):
            raise self._outcome(class_names(error.java_exception)) from None
        if isinstance(error, Py4JError):
            raise OutcomeUnknown(f"{self._where}: the JVM of the Spark session does not answer") from None

    def _outcome(self, names: str) -> GrebeError:
        if "FileAlreadyExistsException" in names:
            return ObjectExists(f"{self._where} exists already")
        if "FileNotFoundException" in names and not self._writing:
            return ObjectMissing(f"{self._where} is not there")
        if "AccessControlException" in names or "AccessDeniedException" in names or "AuthorizationException" in names:
            return StoreRefused(
                f"no permission for {self._where}; change its permissions, or keep the indexes elsewhere with location=…",
                detail="NO_PERMISSION",
            )
        if "SafeModeException" in names:
            return StoreRefused(
                f"{self._where}: the name node is in safe mode and can only be read", detail="READ_ONLY"
            )
        if "QuotaExceededException" in names:
            return StoreRefused(f"no room for {self._where}", detail="NO_ROOM")
        if "ParentNotDirectoryException" in names or "InvalidPathException" in names or "IllegalArgument" in names:
            return StoreRefused(f"no file can be at {self._where}", detail="PATH")
        if any(sign in names for sign in _NOT_INSTALLED):
            return StoreRefused(
                f"this Hadoop has no file system for {self._where}, or not all of its jars ({names})",
                detail="UNSUPPORTED",
            )
        return OutcomeUnknown(f"{self._where}: Hadoop reports {names}")
