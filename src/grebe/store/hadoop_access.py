"""Who may get below a folder on HDFS that is made beside a table: whoever may read the table.

The folder itself is closed to everybody else, and so is what lies below it, whoever writes it and with which mode.
"""

from collections.abc import Iterable

_GROUP, _OTHER = 3, 0  # how far left their three bits are
LOOKED_AT = 64
"""So many files of a table say what its files are like."""


def folder_mode(table: int, files: Iterable[int]) -> int:
    """Return the mode of the folder, from that of the table's folder and those of its files."""
    mode = table & 0o777 | 0o700
    modes = list(files)
    for who in (_GROUP, _OTHER):
        if not mode >> who & 0o1 or not all(one >> who & 0o4 for one in modes):
            mode = without(mode, who)
    return mode


def without_group(mode: int) -> int:
    return without(mode, _GROUP)


def without(mode: int, who: int) -> int:
    return mode & ~(0o7 << who)


def action(mode: int, who: int) -> str:
    """Return three bits as access control lists have them: `r-x`."""
    bits = mode >> who & 0o7
    return "".join(letter if bits >> place & 1 else "-" for letter, place in (("r", 2), ("w", 1), ("x", 0)))


def has_group(mode: int) -> bool:
    return bool(mode >> _GROUP & 0o7)


def acl_spec(mode: int, entries: Iterable[str]) -> str:
    """Return an access control list for the folder as text: the table's entries, and the bits of everybody else."""
    own = list(entries)
    if not any(one.startswith("group::") for one in own):
        own.append(f"group::{action(mode, _GROUP)}")
    return ",".join(["user::rwx", *own, f"mask::{action(mode, _GROUP)}", f"other::{action(mode, _OTHER)}"])
