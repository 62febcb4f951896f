"""Who may read a table, for all stores that keep access: decided from modes, groups and access control lists (ACL).

The folder of the indexes gets the access of the table's own folder, and closes all that lies in it. A partition or a file may let
fewer people through than the table's folder does, and so may a folder above it. So these are looked at too. A class of users that
one of them keeps out is kept out of the indexes: the *group*, with everybody whom the ACL names, or all *others*.

A table may have millions of files. Its folders are listed level by level, within the `Limits` of the store; of a level with more
folders, and of a folder with more files, some are taken that are spread evenly.

What no reader takes for data says nothing about a table, and jobs leave such things closed: hidden files and folders do not count,
except for the logs of table formats.
"""

import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Literal, Protocol, TypeVar

GROUP, OTHER = 3, 0
"""The classes of users, as how far left their three bits are."""
BOTH = frozenset((GROUP, OTHER))
_OWNER = 6
READ, WRITE, ENTER = 0o4, 0o2, 0o1
LISTINGS = 128
_LOGS = ("_delta", "_change_data", "_spark_metadata", ".hoodie")
"""How the names of hidden folders begin that readers of a table need nevertheless."""
_NAMING_FOLDERS = (".hoodie", "metadata")
"""Folders of formats whose log may name data in any folder, a hidden one too (Hudi, Iceberg)."""
_ACLS_OF_FILES = 2
"""So many files of a listing are asked for their ACL, where the listing does not tell."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a table is looked at."""

    listings: int
    """Folders that are listed."""
    nodes: int = 1024
    """Files and folders, and `fewest` more of each folder that is listed after these."""
    of_folder: int = 512
    """Files, and folders, of one folder."""
    fewest: int = 64


@dataclass(frozen=True, slots=True)
class AclEntry:
    """What an ACL grants to a user or a group, before its mask."""

    kind: Literal["user", "group"]
    name: str
    """Empty for the group that owns the file."""
    bits: int


@dataclass(frozen=True, slots=True)
class Node:
    """A file or folder, as its store describes it."""

    path: str
    is_folder: bool
    mode: int
    """With an ACL the bits of the group are its mask."""
    owner: str
    group: str
    acl: tuple[AclEntry, ...] | None
    """Without the entries of the owner, the mask and others; None where the store must be asked for it."""


AnyNode = TypeVar("AnyNode", bound=Node)


class Tree(Protocol[AnyNode]):
    """The files and folders of a store."""

    def listing(self, folder: str, most: int) -> Sequence[AnyNode]:
        """Return what lies in a folder; `most` nodes, spread evenly, where each takes a call. Nothing if it cannot be listed."""
        ...

    def with_acl(self, node: AnyNode) -> AnyNode:
        """Return the node with its ACL."""
        ...


def nodes_below(tree: Tree[AnyNode], table: AnyNode, limits: Limits | None = None) -> Iterator[AnyNode]:
    """Yield folders and files of a table, the upper ones first. Half of the listings that are left go to each level, so that
    the files of a table with many partitions on many levels are reached."""
    limits = limits or Limits(LISTINGS)
    level, left, nodes_left, any_folder = [table], limits.listings, limits.nodes, False
    while level and left:
        listed = spread(level, max(left // 2, 1))
        left -= len(listed)
        level = []
        for folder in listed:
            if folder is not table:
                yield tree.with_acl(folder)
            there = tree.listing(folder.path, min(limits.of_folder, max(nodes_left, limits.fewest)))
            if folder is table:
                any_folder = any(node.is_folder and _name(node) in _NAMING_FOLDERS for node in there)
            found = [node for node in there if _counts(node, any_folder=any_folder)]
            nodes_left -= len(found)
            files = [node for node in found if not node.is_folder]
            asked = {node.path for node in spread(files, _ACLS_OF_FILES)}
            yield from (tree.with_acl(node) if node.path in asked else node for node in files)
            folders = [node for node in found if node.is_folder]
            yield from folders
            level += folders


def is_hidden(name: str) -> bool:
    """Tell whether Spark passes over files and folders of this name: `_a=1` is a partition."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _counts(node: Node, *, any_folder: bool) -> bool:
    """Tell whether a file holds rows for all that is known, or a folder such files or the log of the table.

    `any_folder`: the log of the table may name files in folders that Spark passes over.
    """
    name = _name(node)
    if not is_hidden(name):
        return True
    return node.is_folder and (name.startswith(_LOGS) or (any_folder and not name.startswith(".")))


def _name(node: Node) -> str:
    return node.path.rpartition("/")[2]


def spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most so many of the items, spread evenly, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    if most == 1:
        return [items[-1]]
    return [items[number * (len(items) - 1) // (most - 1)] for number in range(most)]


def closed_classes(table: Node, others: Iterable[Node]) -> frozenset[int]:
    """Return the classes that must be kept out of a folder with the access of the table's folder: those that do not get into that,
    and those that one of the other nodes keeps out. What cannot be told counts as kept out."""
    found = {who for who in BOTH if not table.mode >> who & ENTER}
    rest = iter(others)
    while found != BOTH and (node := next(rest, None)) is not None:
        found |= _kept_out(table, node)
    if GROUP in found and table.acl:
        # Without the ACL those whom it names are others, whatever it says about them.
        found.add(OTHER)
    return frozenset(found)


def _kept_out(table: Node, node: Node) -> set[int]:
    """Return the classes of the table's folder that another node may keep out."""
    need = ENTER if node.is_folder else READ
    entering, here = _granted(table, or_), _granted(node, and_)
    least = _least_of(node)
    # Anybody may be among those whom only the other list names, a member of the group too.
    strange = {key: bits for key, bits in here.items() if key not in entering}
    to_strangers = reduce(and_, strange.values(), 0o7)
    to_strange_users = reduce(and_, (bits for (kind, _), bits in strange.items() if kind == "user"), 0o7)

    def bits_of(kind: str, name: str) -> int:
        if kind == "user" and name == node.owner:
            return node.mode >> _OWNER
        own = here.get((kind, name), least)
        return own if kind == "user" else own & to_strange_users

    found = set()
    if any(bits & ENTER and not bits_of(*key) & need for key, bits in entering.items()):
        found.add(GROUP)
    if table.mode >> OTHER & ENTER and not node.mode & to_strangers & need:
        found.add(OTHER)
    return found


def _granted(node: Node, both: Callable[[int, int], int] = and_) -> dict[tuple[str, str], int]:
    """Return the bits of the group that owns a node, and of all whom its ACL names; `both`: of a group that it names twice."""
    mask = node.mode >> GROUP & 0o7
    found: dict[tuple[str, str], int] = {}
    for one in node.acl or (AclEntry("group", "", mask),):
        key = one.kind, one.name or node.group
        found[key] = both(found[key], one.bits & mask) if key in found else one.bits & mask
    return found


def _least_of(node: Node) -> int:
    """Return the bits that everybody has whom no list names, in whatever groups."""
    groups = (bits for (kind, _), bits in _granted(node).items() if kind == "group")
    return reduce(and_, groups, node.mode & 0o7)


def excess(made: Node, allowed: Node) -> frozenset[int]:
    """Return the classes that get more at a node of the indexes than is allowed."""
    group, other = made.mode >> GROUP & 0o7, made.mode & 0o7
    allowed_group, allowed_other = allowed.mode >> GROUP & 0o7, allowed.mode & 0o7
    if made.group != allowed.group:  # then nobody knows who is in which class
        allowed_group = allowed_other = allowed_group & allowed_other
    found = set()
    if group & ~allowed_group or (group and made.acl and _granted(made) != _granted(replace(allowed, mode=made.mode))):
        found.add(GROUP)
    if other & ~allowed_other:
        found.add(OTHER)
    if allowed.mode & ~made.mode & stat.S_ISVTX:  # whoever may write there may also replace what others wrote
        found |= {who for who in BOTH if made.mode >> who & WRITE}
    return frozenset(found)


def closed(mode: int, classes: Iterable[int]) -> int:
    """Return a mode that grants nothing to these classes."""
    return reduce(and_, (~(0o7 << who) for who in classes), mode)


def without_group(mode: int, *, had_acl: bool = False) -> int:
    """Return the mode of a node that cannot be given to the group of the table, or not with its ACL: who would have been in which
    class is not known then, and everybody gets only what both classes had."""
    both = 0 if had_acl else mode & mode >> GROUP & 0o7
    return mode & ~0o077 | both << GROUP | both


def folder_of_file(file: Node) -> Node:
    """Return the folder that the table would have, which is a single file: entered by whoever may read it."""
    mode = file.mode & 0o777 | (file.mode & 0o444) >> 2
    # Whom an ACL names gets its own bits, so that the list cannot be that of a folder.
    return replace(file, is_folder=True, mode=closed(mode, BOTH) if file.acl else mode, acl=())
