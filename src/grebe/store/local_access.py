"""Who may use the files of a table on a local disk, so that what is made beside it is open to nobody else.

Mode bits, owner, group and POSIX access control lists (ACL, stored as extended attributes) are taken over. Where one of them cannot
be given away (only root gives files to others, and a user only to groups of its own), whoever it would have been given to gets no
access instead.
"""

import contextlib
import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from pathlib import Path

from grebe.store.table_access import (
    BOTH,
    ENTER,
    GROUP,
    OTHER,
    READ,
    AclEntry,
    Limits,
    Node,
    closed,
    closed_classes,
    excess,
    folder_of_file,
    is_hidden,
    nodes_below,
    spread,
    without_group,
)

_ACL = "system.posix_acl_access"
_DEFAULT_ACL = "system.posix_acl_default"
_ACL_ENTRY = struct.Struct("<HHI")
"""Tag, bits and id; 4 bytes with a version stand before the first."""
_USER, _OWNING_GROUP, _NAMED_GROUP, _OTHERS = 0x02, 0x04, 0x08, 0x20
_LIMITS = Limits(listings=4_000, nodes=50_000, of_folder=10_000, fewest=16)
"""A look at a local file takes some microseconds."""
_STICKY_OR_CLOSED = ~(stat.S_ISVTX | stat.S_IWGRP | stat.S_IWOTH)
_MOST_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Rights:
    """Access of one file or folder."""

    mode: int
    owner: int
    group: int
    acls: Mapping[str, bytes] = field(default_factory=dict)

    def give(self, handle: int) -> None:
        """Give them to an open file or folder that nobody but its owner can open yet."""
        made = os.fstat(handle)
        mode, acls = self.mode, dict(self.acls)
        if made.st_uid != self.owner:
            with contextlib.suppress(OSError):  # only root may; the maker keeps it then
                os.fchown(handle, self.owner, -1)
        if made.st_gid != self.group:
            try:
                os.fchown(handle, -1, self.group)
            except OSError:
                mode, acls = without_group(mode, had_acl=bool(acls)), {}
        # A default ACL of the folder above may have been inherited.
        for name in (_ACL, _DEFAULT_ACL):
            with contextlib.suppress(OSError, AttributeError):
                os.removexattr(handle, name)
        _set_mode(handle, mode)
        try:
            for name, value in acls.items():
                os.setxattr(handle, name, value)
        except OSError:  # with an ACL the bits of the group are an upper bound, and not what the group itself may
            _set_mode(handle, without_group(mode, had_acl=True))

    def closed_to(self, who: int) -> "Rights":
        # Without bits of the group nobody that an ACL names may do anything.
        acls = {} if who == GROUP else {name: _closed_to_others(value) for name, value in self.acls.items()}
        return replace(self, mode=closed(self.mode, [who]), acls=acls)


def _set_mode(handle: int, mode: int) -> None:
    """Set the mode of an open file or folder. Without the sticky bit, where it cannot be set, only the owner may write there:
    others could replace what is not theirs."""
    try:
        os.fchmod(handle, mode)
        is_set = not mode & stat.S_ISVTX or os.fstat(handle).st_mode & stat.S_ISVTX
    except OSError:
        if not mode & stat.S_ISVTX:
            raise
        is_set = False
    if not is_set:
        os.fchmod(handle, mode & _STICKY_OR_CLOSED)


@dataclass(frozen=True, slots=True)
class _LocalNode(Node):
    rights: Rights
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """What new folders and files beside a table get."""

    folder: Rights
    file: Rights
    parents: Rights | None
    """Of the folder that holds the table, where `_grebe` lies in it; None: folders elsewhere hold names only."""

    @property
    def of_parents(self) -> "Access | None":
        return None if self.parents is None else replace(self, folder=self.parents, parents=None)

    def give_to_folder(self, handle: int) -> None:
        self.folder.give(handle)

    def give_to_file(self, handle: int) -> None:
        self.file.give(handle)


def access_of(table: Path, place: Path) -> Access | None:
    """The access that files at `place` get, which are made from those of a table; None where the table cannot be looked at."""
    try:
        top = _node(str(table), table.stat())
        beside = place.parent.parent == table.parent
        parents = _rights(table.parent.stat(), table.parent, 0o3775) if beside else None
    except OSError:
        return None
    if top.is_folder:
        gate: Node = top
        folder = top.rights
    else:
        # Whom an ACL of the file names is let through by the list of the files of the index.
        gate = folder_of_file(replace(top, acl=()))
        folder = replace(top.rights, mode=gate.mode, acls={})
    files = [] if top.is_folder else [top.rights]

    def folders() -> Iterator[Node]:
        yield from _above(table, place)
        links = []
        for one in nodes_below(_LocalTree(), top, _LIMITS) if top.is_folder else ():
            if one.is_link:
                links.append(Path(one.path))
            if one.is_folder:
                yield one
            else:
                files.append(one.rights)
        for link in links:
            yield from _above(link, place)

    shut = set(closed_classes(gate, folders()))
    file = _common(files) if files else replace(folder, mode=folder.mode & 0o666, acls={})
    shut |= {who for who in BOTH if not (folder.mode >> who & ENTER and file.mode >> who & READ)}
    if GROUP in shut and (folder.acls or file.acls):
        shut.add(OTHER)  # those whom an ACL names would be others without it
    for who in shut:
        folder, file = folder.closed_to(who), file.closed_to(who)
    return Access(
        replace(folder, mode=folder.mode | 0o700),
        replace(file, mode=file.mode & 0o666 | 0o600),
        parents and replace(parents, mode=parents.mode | 0o700),
    )


def too_open(table: Path, place: Path) -> list[Path]:
    """Return the folders and files at `place` that somebody gets at who may not read the table; a few of them if there are many."""
    access = access_of(table, place)
    if access is None or not place.is_dir():
        return []
    folder, file = _allowed(access.folder, place), _allowed(access.file, place)
    found: set[Path] = set()
    for who in (GROUP, OTHER):
        for path, names, files in os.walk(os.path.realpath(place)):
            here = _look(path)
            if here is None or not here.mode >> who & ENTER:
                names.clear()  # nobody of them gets below
                continue
            if who in excess(here, folder):
                found.add(Path(path))
            looked = (_look(os.path.join(path, name)) for name in files)  # noqa: PTH118 - text, as os.walk has it
            found |= {Path(one.path) for one in looked if one is not None and who in excess(one, file)}
            if len(found) > _MOST_SHOWN:
                break
    return sorted(found)


def _allowed(rights: Rights, place: Path) -> Node:
    return Node(
        str(place), False, rights.mode, str(rights.owner), str(rights.group), _entries(rights.acls.get(_ACL, b""))
    )


def _look(path: str) -> _LocalNode | None:
    """Return what lies there, and for a link nothing: none of ours are links."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        return None if stat.S_ISLNK(found.st_mode) else _node(path, found)
    return None


def _node(path: str, found: os.stat_result, *, is_link: bool = False) -> _LocalNode:
    is_folder = stat.S_ISDIR(found.st_mode)
    rights = _rights(found, path, 0o3777 if is_folder else 0o666)
    acl = _entries(rights.acls.get(_ACL, b""))
    return _LocalNode(path, is_folder, rights.mode, str(rights.owner), str(rights.group), acl, rights, is_link)


def _rights(of: os.stat_result, path: Path | str, bits: int) -> Rights:
    acls = {}
    for name in (_ACL, _DEFAULT_ACL) if stat.S_ISDIR(of.st_mode) else (_ACL,):
        with contextlib.suppress(OSError, AttributeError):  # has none, or the platform has none
            acls[name] = os.getxattr(path, name)
    return Rights(of.st_mode & bits, of.st_uid, of.st_gid, acls)


class _LocalTree:
    """Folders as they are read through links."""

    def listing(self, folder: str, most: int) -> Sequence[_LocalNode]:
        found = []
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            each = sorted(entries, key=lambda one: one.name)
            folders = [one for one in each if one.is_dir()]
            files = [one for one in each if one.is_file() and not is_hidden(one.name)]
            for one in (*spread(folders, most), *spread(files, most)):
                with contextlib.suppress(OSError):  # gone since
                    found.append(_node(one.path, one.stat(), is_link=one.is_symlink()))
        return found

    def with_acl(self, node: _LocalNode) -> _LocalNode:
        return node


def _common(files: list[Rights]) -> Rights:
    """Return what they all grant."""
    first = files[0]
    mode = reduce(and_, (one.mode for one in files))
    if any((one.group, one.acls) != (first.group, first.acls) for one in files):
        return replace(first, mode=without_group(mode, had_acl=any(one.acls for one in files)), acls={})
    return replace(first, mode=mode)


def _entries(acl: bytes) -> tuple[AclEntry, ...]:
    """Return the entries of an ACL as it lies in the attribute."""
    found = []
    for at in range(4, len(acl) - _ACL_ENTRY.size + 1, _ACL_ENTRY.size):
        tag, bits, identity = _ACL_ENTRY.unpack_from(acl, at)
        if tag == _USER:
            found.append(AclEntry("user", str(identity), bits))
        elif tag in (_OWNING_GROUP, _NAMED_GROUP):
            found.append(AclEntry("group", "" if tag == _OWNING_GROUP else str(identity), bits))
    return tuple(found)


def _closed_to_others(acl: bytes) -> bytes:
    entries = [acl[at : at + 8] for at in range(4, len(acl), 8)]
    return acl[:4] + b"".join(one[:2] + b"\0\0" + one[4:] if one[0] == _OTHERS else one for one in entries)


def _above(table: Path, place: Path) -> Iterator[_LocalNode]:
    """Yield the folders above a table that are not above the place as well, wherever links lead."""
    above = set(Path(os.path.realpath(place)).parents)
    for folder in Path(os.path.realpath(table)).parents:
        if folder in above:
            break
        with contextlib.suppress(OSError):
            yield _node(str(folder), folder.stat())
