"""Where the files of a table may lie.

A lake format's log names files by whole URIs, and whoever writes that log could name any.

A table owns its own folder. In an object store or HDFS it may also use the rest of its bucket or name service, since Iceberg's
`write.data.path` and Delta's shallow clones do. Any other place counts only if the setting `allowed_roots` names it or a folder
above it: a log must not make a reader fetch files of the local disk, of other stores, or of hosts that only the reader can reach.
"""

import os
import stat
from collections.abc import Iterable, Sequence

from grebe.errors import Unsupported
from grebe.files import canonical_uri, relative_path

_LOCAL = "file://"
_OWN_FOLDER_ONLY = ("file", "http", "https", "ftp", "sftp")
"""What else is reached there has nothing to do with the table."""


def allowed_roots(settings: Iterable[str]) -> tuple[str, ...]:
    """Return the configured roots as canonical URIs."""
    return tuple(canonical_uri(one) for one in settings)


def is_allowed(uri: str, table: str, roots: Sequence[str] = ()) -> bool:
    """Tell whether a table may name this canonical URI as one of its files."""
    scheme, _, rest = uri.partition("://")
    own_scheme, _, own = table.partition("://")
    if any(relative_path(root, uri) is not None for root in (table, *roots)):
        return True
    if scheme == own_scheme and scheme not in _OWN_FOLDER_ONLY:
        return rest.partition("/")[0] == own.partition("/")[0]
    return scheme == "file" and any(_is_below(uri, root) for root in (table, *roots) if root.startswith(_LOCAL))


def require_allowed(uris: Iterable[str], table: str, roots: Sequence[str] = ()) -> None:
    """Raise `Unsupported` for the first URI that lies outside of the table and of the configured roots."""
    for uri in uris:
        if not is_allowed(uri, table, roots):
            raise Unsupported(
                f"the log of {table} names {uri}, which lies outside of the table; nothing there was read. If the table really "
                "keeps files there, name that folder in the setting allowed_roots",
                detail="OUTSIDE_ROOTS",
            )


def refused(table: str, what: str) -> Unsupported:
    """Return the error for what a log names and nobody may open because of it."""
    return Unsupported(
        f"the log of {table} names {what}: nothing there was read. Only files of the table itself, and places that the setting "
        "allowed_roots names, are read",
        detail="OUTSIDE_ROOTS",
    )


def require_regular_files(table: str, folder: str = "", *, deep: bool = False) -> None:
    """Raise `Unsupported` if a pipe, a socket or a device lies in a folder of a local table, or (`deep`) in one below it: a library
    that opens it waits for ever. Links are followed, as libraries do."""
    if not table.startswith(_LOCAL):
        return
    waiting, seen = [folder], set[tuple[int, int]]()
    while waiting:
        here = waiting.pop()
        place = f"{table}/{here}".removeprefix(_LOCAL)
        try:
            facts = os.stat(place)  # noqa: PTH116 - a place from outside
            with os.scandir(place) as entries:
                found = list(entries)
        except OSError:
            continue  # it is not there, or whoever reads it says what is wrong
        if (facts.st_dev, facts.st_ino) in seen:
            continue  # a link led back
        seen.add((facts.st_dev, facts.st_ino))
        for one in found:
            path = f"{here}/{one.name}".lstrip("/")
            kind = _kind(one.path)
            if stat.S_ISDIR(kind):
                waiting += [path] * deep
            elif not stat.S_ISREG(kind):
                raise refused(table, f"{path}, which is no regular file")


def is_regular(uri: str) -> bool:
    """Tell whether nothing but a regular file, or nothing at all, lies at a local URI. Others are left to their store."""
    return not uri.startswith(_LOCAL) or stat.S_ISREG(_kind(uri.removeprefix(_LOCAL)))


def _kind(place: str) -> int:
    """Return the mode of what lies at a place, or that of a regular file where nothing does."""
    try:
        return os.stat(place).st_mode  # noqa: PTH116 - a place from outside
    except OSError:
        return stat.S_IFREG


def _is_below(uri: str, root: str) -> bool:
    """Compare local paths with their links resolved: a table may be opened by a link to its folder."""
    real, real_root = (os.path.realpath(one.removeprefix(_LOCAL)) for one in (uri, root))
    return relative_path(real_root, real) is not None
