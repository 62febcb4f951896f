"""Paths below the root of a store: which are allowed, and which files are a store's own and never shown."""

from grebe.errors import StoreRefused

# Written first under such a name, then given its real one in a step. A crash may leave one behind; it is never listed.
DRAFT_SUFFIX = ".grebe-draft"
DRAFT_FOLDER = ".grebe-drafts"


def checked(path: str) -> str:
    """The path itself, if it names an object below the root. Raises `StoreRefused` for one that could lead out of it."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise StoreRefused(
            f"{path!r} names no object below a store's root: parts of a path are separated by one `/` each, "
            "and none is empty, `.` or `..`",
            detail="PATH",
        )
    return path


def folder(prefix: str) -> str:
    """A folder as text that all paths below it begin with; the root is the empty text."""
    return f"{checked(prefix.rstrip('/'))}/" if prefix.rstrip("/") else ""


def is_draft(name: str) -> bool:
    """Whether a part of a path is one of a store's own."""
    return name == DRAFT_FOLDER or (name.startswith(".") and name.endswith(DRAFT_SUFFIX))
