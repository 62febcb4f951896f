"""Who may use the files of a table on a local disk, so that what is made beside it is open to nobody else.

Mode bits, owner, group and POSIX access control lists (ACL, stored as extended attributes) are taken over. Where one of them cannot
be given away (only root gives files to others, and a user only to groups of its own), whoever it would have been given to gets no
access instead.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

_ACL = "system.posix_acl_access"
_DEFAULT_ACL = "system.posix_acl_default"
_GROUP, _OTHER = 3, 0  # how far left their three bits are
_LOOKED_AT = 64
"""So many files of a table say what its files are like."""


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
                mode, acls = _without(mode, _GROUP), {}
        # A default ACL of the folder above may have been inherited.
        for name in (_ACL, _DEFAULT_ACL):
            with contextlib.suppress(OSError, AttributeError):
                os.removexattr(handle, name)
        os.fchmod(handle, mode)
        try:
            for name, value in acls.items():
                os.setxattr(handle, name, value)
        except OSError:  # with an ACL the bits of the group are an upper bound, and not what the group itself may
            os.fchmod(handle, _without(mode, _GROUP))


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
        top = table.stat()
        is_file = not stat.S_ISDIR(top.st_mode)
        beside = place.parent.parent == table.parent
        parents = _rights(table.parent.stat(), table.parent, 0o2775) if beside else None
        folder = _rights(top, table, 0o666 if is_file else 0o2777)
        if is_file:
            readable = folder.mode & 0o444
            files, folder = [folder], replace(folder, mode=folder.mode | readable >> 2, acls={})
        else:
            files = _files(table)
    except OSError:
        return None
    file = _common(files) if files else replace(folder, mode=folder.mode & 0o666, acls={})
    closed = _closed_above(table, place, folder.group)
    for who in (_GROUP, _OTHER):
        can_enter = folder.mode >> who & 0o1
        can_read = file.mode >> who & 0o4
        # An ACL names more than the group: its bits only say that somebody may.
        if not (can_enter and can_read) or who in closed:
            folder, file = _closed(folder, who), _closed(file, who)
    return Access(
        replace(folder, mode=folder.mode | 0o700),
        replace(file, mode=file.mode & 0o666 | 0o600),
        parents and replace(parents, mode=parents.mode | 0o700),
    )


def too_open(table: Path, place: Path) -> list[Path]:
    """Return the folders and files at `place` that somebody gets at who may not read the table; a few of them if there are many."""
    allowed = access_of(table, place)
    if allowed is None or not place.is_dir():
        return []
    found: list[Path] = []
    for who in (_GROUP, _OTHER):
        for folder, names, files in os.walk(place):
            mode = Path(folder).lstat().st_mode
            if not mode >> who & 0o1:
                names.clear()  # nobody of them gets below
                continue
            if mode >> who & 0o7 & ~(allowed.folder.mode >> who):
                found.append(Path(folder))
            open_files = (Path(folder, name) for name in files if not allowed.file.mode >> who & 0o4)
            found += [path for path in open_files if path.lstat().st_mode >> who & 0o4]
            if len(found) > _LOOKED_AT:
                break
    return sorted(set(found))


def _rights(of: os.stat_result, path: Path | str, bits: int) -> Rights:
    acls = {}
    for name in (_ACL, _DEFAULT_ACL):
        with contextlib.suppress(OSError, AttributeError):  # has none, or the platform has none
            acls[name] = os.getxattr(path, name)
    return Rights(of.st_mode & bits, of.st_uid, of.st_gid, acls)


def _files(table: Path) -> list[Rights]:
    """Of some files of the table, each as open as the folders on the way to it let it be."""
    found: list[Rights] = []
    for folder, mode in _folders(table):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for one in entries:
                with contextlib.suppress(OSError):
                    if one.is_file() and not one.name.startswith((".", "_")):
                        here = _rights(one.stat(), one.path, 0o666)
                        entered = (mode & 0o111) << 2 | (mode & 0o111) << 1
                        found.append(replace(here, mode=here.mode & entered))
                        if len(found) >= _LOOKED_AT:
                            return found
    return found


def _folders(table: Path) -> Iterator[tuple[str, int]]:
    """The table's folder and those in it, as far as they need to be looked at, each with the bits that it and those above share."""
    waiting = [(str(table), 0o777)]
    for _ in range(_LOOKED_AT):
        if not waiting:
            return
        folder, above = waiting.pop(0)
        with contextlib.suppress(OSError):
            mode = above & Path(folder).stat().st_mode
            with os.scandir(folder) as entries:
                below = sorted(one.path for one in entries if one.is_dir() and not one.name.startswith("."))
            waiting += [(path, mode) for path in below[:_LOOKED_AT]]
            yield folder, mode


def _common(files: list[Rights]) -> Rights:
    """What they all grant."""
    first = files[0]
    mode = first.mode
    for one in files[1:]:
        mode &= one.mode
    if any((one.group, one.acls) != (first.group, first.acls) for one in files):
        return replace(first, mode=_without(mode, _GROUP), acls={})
    return replace(first, mode=mode)


def _closed(rights: Rights, who: int) -> Rights:
    # Without bits of the group nobody that an ACL names may do anything.
    acls = {} if who == _GROUP else {name: _closed_to_others(value) for name, value in rights.acls.items()}
    return replace(rights, mode=_without(rights.mode, who), acls=acls)


def _closed_to_others(acl: bytes) -> bytes:
    """An ACL as it lies in the attribute: a version of 4 bytes, then entries of tag (2), permissions (2) and id (4)."""
    entries = [acl[at : at + 8] for at in range(4, len(acl), 8)]
    return acl[:4] + b"".join(one[:2] + b"\0\0" + one[4:] if one[:2] == b"\x20\0" else one for one in entries)


def _closed_above(table: Path, place: Path, group: int) -> set[int]:
    """Who cannot get to the table, for a folder above it that is not above the place as well."""
    closed: set[int] = set()
    above = set(place.parents)
    for folder in table.parents:
        if folder in above:
            break
        with contextlib.suppress(OSError):
            found = folder.stat()
            if not found.st_mode & 0o001:
                closed.add(_OTHER)
                if found.st_gid != group:
                    closed.add(_GROUP)
            if found.st_gid == group and not found.st_mode & 0o010:
                closed.add(_GROUP)
    return closed


def _without(mode: int, who: int) -> int:
    return mode & ~(0o7 << who)
