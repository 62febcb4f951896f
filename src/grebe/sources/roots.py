"""Where the files of a table may lie.

A lake format's log names files by whole URIs, and whoever writes that log could name any.

A table owns its own folder. In an object store or HDFS it may also use the rest of its bucket or name service, since Iceberg's
`write.data.path` and Delta's shallow clones do. Any other place counts only if the setting `allowed_roots` names it or a folder
above it: a log must not make a reader fetch files of the local disk, of other stores, or of hosts that only the reader can reach.
"""

import os
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


def _is_below(uri: str, root: str) -> bool:
    """Compare local paths with their links resolved: a table may be opened by a link to its folder."""
    real, real_root = (os.path.realpath(one.removeprefix(_LOCAL)) for one in (uri, root))
    return relative_path(real_root, real) is not None
