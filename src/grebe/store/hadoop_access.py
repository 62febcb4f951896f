"""Who may get below a folder on HDFS that is made beside a table: whoever may read the table.

The folder itself, the root of a store, is closed to everybody else, and so is what lies below it, whoever writes it and with which
mode. A root that is there already is closed to those who may not read the table any more, but never opened.
"""

import logging
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from grebe import telemetry
from grebe.store.access import AccessCheck
from grebe.store.table_access import (
    GROUP,
    LISTINGS,
    OTHER,
    AclEntry,
    Limits,
    Node,
    Tree,
    closed,
    closed_classes,
    excess,
    folder_of_file,
    nodes_below,
    without_group,
)

_logger = logging.getLogger("grebe.store")
_ENTERED = 0o7711
_NAMES_ONLY = 0o755
_LISTINGS_AGAIN = 32
"""Of a table whose indexes have a root already: it is looked at before the first write of every process."""


class NameNode(Tree[Node], Protocol):
    """The calls of a name node that are needed here. All may raise what the client raises, where nothing else is said."""

    def node(self, path: str) -> Node | None:
        """Return a file or folder with its ACL, or None where nothing is."""
        ...

    def make_closed(self, path: str) -> None:
        """Make a folder, in one that is there, that only its owner enters; one that is there stays as it is."""
        ...

    def set_group(self, path: str, group: str) -> bool:
        """Return whether the name node let it be set: only groups of one's own can be."""
        ...

    def set_mode(self, path: str, mode: int) -> bool:
        """Return whether the name node let it be set: only the owner may."""
        ...

    def take_acl(self, path: str, table: str, mode: int) -> bool:
        """Give a folder this mode and the ACL of the table's folder; return whether it could be given."""
        ...

    def remove_acl(self, path: str) -> None:
        """Remove the ACL of a folder."""
        ...


def prepare_root(name_node: NameNode, root: str, table: str) -> None:
    """Make the root of a store as open as the table that lies at `table`, or close one that is there as far as the table is."""
    made, of_table = name_node.node(root), name_node.node(table)
    if of_table is None:
        return
    if made is None:
        _make_root(name_node, root, _allowed(name_node, root, of_table, LISTINGS), table)
    elif made.mode & _ENTERED & 0o077:
        allowed = _allowed(name_node, root, of_table, _LISTINGS_AGAIN)
        # Whoever else may write there or list it was let by its owner.
        entered = (replace(one, mode=one.mode & _ENTERED) for one in (made, allowed))
        too_much = excess(*entered)
        if too_much and not name_node.set_mode(root, closed(made.mode, too_much)):
            telemetry.event(_logger, logging.WARNING, "indexes_more_open_than_table", location=root, table=table)


def check_of_root(name_node: NameNode, root: str, table: str, uri: str) -> AccessCheck | None:
    """Compare the root of a store, at `uri`, with the table; None where one of both is not there."""
    made, of_table = name_node.node(root), name_node.node(table)
    if made is None or of_table is None:
        return None
    too_much = excess(made, _allowed(name_node, root, of_table, LISTINGS))
    letters = "".join(letter for who, letter in ((GROUP, "g"), (OTHER, "o")) if who in too_much)
    advice = f"hdfs dfs -chmod {letters}-rwx {shlex.quote(uri)}"
    return AccessCheck(f"{uri} (which closes all that lies in it)", (uri,) if too_much else (), advice)


def _allowed(name_node: NameNode, root: str, table: Node, listings: int) -> Node:
    """Return the folder that the root may be at most."""
    gate = table if table.is_folder else folder_of_file(table)
    below = nodes_below(name_node, table, Limits(listings)) if table.is_folder else iter((table,))

    def others() -> Iterator[Node]:
        yield from _above(name_node, table.path, root)
        yield from below

    classes = closed_classes(gate, others())
    return replace(gate, mode=closed(gate.mode & 0o777 | 0o700, classes), acl=() if GROUP in classes else gate.acl)


def _above(name_node: NameNode, table: str, root: str) -> Iterator[Node]:
    """Yield the folders above a table that are not above the root as well."""
    folder = _parent(table)
    while folder and not root.startswith(f"{folder}/"):
        found = name_node.node(folder)
        if found is not None:
            yield found
        folder = _parent(folder)


def _make_root(name_node: NameNode, root: str, allowed: Node, table: str) -> None:
    parent, lake = _parent(root), _parent(table)
    above = name_node.node(lake) if _parent(parent) == lake else None
    # The folders above hold names only. One that many tables share must let everybody in who gets to one of them.
    _make_above(name_node, parent, above.mode if above else _NAMES_ONLY)
    name_node.make_closed(root)
    made = name_node.node(root)
    if made is None:
        return
    if made.acl:  # inherited from the folder above; with the bits of a group it would come into force
        name_node.remove_acl(root)
    mode, has_acl = allowed.mode, bool(allowed.acl)
    if made.group != allowed.group and not name_node.set_group(root, allowed.group):
        mode, has_acl = without_group(mode, had_acl=has_acl), False
    if has_acl and name_node.take_acl(root, table, mode):
        return
    name_node.set_mode(root, without_group(mode, had_acl=True) if has_acl else mode)


def _make_above(name_node: NameNode, folder: str, mode: int) -> None:
    if folder and name_node.node(folder) is None:
        _make_above(name_node, _parent(folder), mode)
        name_node.make_closed(folder)
        name_node.set_mode(folder, mode)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def acl_entries(texts: Iterable[str]) -> tuple[AclEntry, ...]:
    """Return the entries of an ACL that Hadoop writes as `user:alice:r-x`, without those that are for new files and folders."""
    found = []
    for text in texts:
        kind, name, letters = text.split(":")[:3]
        if kind == "group" or (kind == "user" and name):
            bits = sum(bit for bit, letter in zip((4, 2, 1), letters, strict=False) if letter != "-")
            found.append(AclEntry("group" if kind == "group" else "user", name, bits))
    return tuple(found)


def acl_spec(mode: int, entries: Iterable[str]) -> str:
    """Return an access control list for the folder as text: the table's entries, and the bits of everybody else."""
    own = list(entries)
    if not any(one.startswith("group::") for one in own):
        own.append(f"group::{_letters(mode, GROUP)}")
    return ",".join(["user::rwx", *own, f"mask::{_letters(mode, GROUP)}", f"other::{_letters(mode, OTHER)}"])


def _letters(mode: int, who: int) -> str:
    """Return three bits as access control lists have them: `r-x`."""
    bits = mode >> who & 0o7
    return "".join(letter if bits >> place & 1 else "-" for letter, place in (("r", 2), ("w", 1), ("x", 0)))
