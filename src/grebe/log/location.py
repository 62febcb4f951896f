"""Where the log of a table lies, and where to look for one.

Beside the table, in `_grebe/<name>` of its parent folder, so that other engines go on seeing just their table. A setting can name
one folder for all tables; then each gets a name there that no other table has.
"""

import hashlib

FOLDER = "_grebe"


def beside(table: str) -> str:
    """The place beside a table (a canonical URI); only a table at the root of a store keeps it inside."""
    parent, name = _split(table)
    return f"{parent}/{FOLDER}/{name}" if parent is not None else f"{table}/{FOLDER}/{FOLDER}"


def below(root: str, table: str) -> str:
    """The place of a table below a folder for all tables."""
    _, name = _split(table)
    return f"{root.rstrip('/')}/{name}-{hashlib.sha256(table.encode()).hexdigest()[:16]}"


def places(path: str, root: str | None = None) -> list[str]:
    """Where the log of what lies at `path` may be: of itself, or of a table that it is a part of. The nearest first."""
    found = []
    while True:
        found += ([below(root, path)] if root else []) + [beside(path)]
        parent, _ = _split(path)
        if parent is None:
            return found
        path = parent


def parent_of(uri: str) -> str | None:
    """Return the folder above, or None at the root of a store."""
    return _split(uri)[0]


def _split(uri: str) -> tuple[str | None, str]:
    """Parent and name; no parent at the root of a store."""
    start = uri.index("://") + 3
    bucket_end = uri.find("/", start)
    if bucket_end < 0 or not uri[bucket_end + 1 :]:
        return None, uri[start:].strip("/") or "root"
    parent, _, name = uri.rpartition("/")
    return parent, name
