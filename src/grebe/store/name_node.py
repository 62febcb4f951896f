"""What stores on HDFS ask of a name node about access: through a JVM, and without one."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from grebe.store.hadoop_access import acl_entries, acl_spec
from grebe.store.table_access import Node, spread

_MOST_LISTED = 4096
"""Of a folder without a JVM: four answers of a name node."""
_REFUSED = ("AccessControlException", "AccessDeniedException", "AuthorizationException")
_WITHOUT_ACLS = ("AclException", "UnsupportedOperationException")


class NativeNameNode:
    """By a client of hdfs-native. Paths begin with `/`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def node(self, path: str) -> Node | None:
        try:
            return self.with_acl(_native_node(self._client.get_file_info(path or "/")))
        except FileNotFoundError:
            return None

    def listing(self, folder: str, most: int) -> Sequence[Node]:
        try:
            found = list(itertools.islice(self._client.list_status(folder), _MOST_LISTED))
        except (OSError, RuntimeError) as error:
            if isinstance(error, FileNotFoundError) or _is_refused(error):
                return ()
            raise
        return [_native_node(one) for one in found if one.path.rstrip("/") != folder.rstrip("/")]

    def with_acl(self, node: Node) -> Node:
        try:
            entries = self._client.get_acl_status(node.path).entries
        except (OSError, RuntimeError) as error:
            gone = isinstance(error, FileNotFoundError) or _is_refused(error)
            if gone or any(sign in str(error) for sign in _WITHOUT_ACLS):
                return replace(node, acl=())
            raise
        texts = (f"{one.type}:{one.name or ''}:{one.permissions}" for one in entries if one.scope == "access")
        return replace(node, acl=acl_entries(texts))

    def make_closed(self, path: str) -> None:
        self._client.mkdirs(path, 0o700, create_parent=False)

    def set_group(self, path: str, group: str) -> bool:
        try:
            self._client.set_owner(path, group=group)
        except (OSError, RuntimeError):
            return False
        return True

    def set_mode(self, path: str, mode: int) -> bool:
        try:
            self._client.set_permission(path, mode & 0o1777)
        except (OSError, RuntimeError) as error:
            if _is_refused(error):
                return False
            raise
        return True

    def take_acl(self, path: str, table: str, mode: int) -> bool:
        return False

    def remove_acl(self, path: str) -> None:
        self._client.remove_acl(path)


def _native_node(status: Any) -> Node:
    path = status.path.rstrip("/") or "/"
    return Node(path, status.isdir, status.permission & 0o1777, status.owner, status.group, None)


def _is_refused(error: Exception) -> bool:
    return isinstance(error, PermissionError) or any(sign in str(error) for sign in _REFUSED)


class JvmNameNode:
    """By a `FileContext` of Hadoop, in the package `hadoop` (`org.apache.hadoop.fs`) of a JVM. Paths are URIs."""

    def __init__(self, context: Any, hadoop: Any) -> None:
        self._context = context
        self._path = hadoop.Path
        self._permission = hadoop.permission

    def node(self, path: str) -> Node | None:
        from py4j.protocol import Py4JJavaError

        try:
            top = "" if "/" in path.partition("://")[2] else "/"
            return self._described(self._context.getFileStatus(self._path(path + top)))
        except Py4JJavaError as error:
            if "FileNotFoundException" in class_names(error.java_exception):
                return None
            raise

    def listing(self, folder: str, most: int) -> Sequence[Node]:
        from py4j.protocol import Py4JJavaError

        try:
            found = self._context.util().listStatus(self._path(folder))
        except Py4JJavaError as error:
            if any(sign in class_names(error.java_exception) for sign in (*_REFUSED, "FileNotFoundException")):
                return ()
            raise
        return [self._described(found[number]) for number in spread(range(len(found)), most)]

    def with_acl(self, node: Node) -> Node:
        return node

    def _described(self, status: Any) -> Node:
        path, permission = str(status.getPath().toString()), status.getPermission()
        acl = acl_entries(self._acl_texts(path)) if status.hasAcl() else ()
        mode = int(permission.toShort())
        return Node(path, status.isDirectory(), mode, str(status.getOwner()), str(status.getGroup()), acl)

    def _acl_texts(self, path: str) -> list[str]:
        return [str(one.toString()) for one in self._context.getAclStatus(self._path(path)).getEntries()]

    def make_closed(self, path: str) -> None:
        self._context.mkdir(self._path(path), self._permission.FsPermission("700"), False)

    def set_group(self, path: str, group: str) -> bool:
        from py4j.protocol import Py4JJavaError

        try:
            self._context.setOwner(self._path(path), None, group)
        except Py4JJavaError:
            return False
        return True

    def set_mode(self, path: str, mode: int) -> bool:
        from py4j.protocol import Py4JJavaError

        try:
            self._context.setPermission(self._path(path), self._permission.FsPermission(f"{mode & 0o1777:o}"))
        except Py4JJavaError as error:
            if any(sign in class_names(error.java_exception) for sign in _REFUSED):
                return False
            raise
        return True

    def take_acl(self, path: str, table: str, mode: int) -> bool:
        from py4j.protocol import Py4JJavaError

        spec = acl_spec(mode, self._acl_texts(table))
        try:
            self._context.setAcl(self._path(path), self._permission.AclEntry.parseAclSpec(spec, True))
        except Py4JJavaError:
            return False
        return True

    def remove_acl(self, path: str) -> None:
        self._context.removeAcl(self._path(path))


def class_names(exception: Any) -> str:
    """Return the names of the classes of a Java exception and of what caused it."""
    names: list[str] = []
    while exception is not None and len(names) < 5:
        names.append(exception.getClass().getName())
        exception = exception.getCause()
    return ", ".join(names)
