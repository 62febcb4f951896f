"""Indexes on a local disk: who reads them among real users, where parts of the table are closed to some."""

import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from grebe.store.local import LocalStore
from grebe.store.local_access import access_of, too_open

OWNER, READER, STRANGER = 7001, 7002, 7003
GROUP, FOREIGN = 8001, 8002
NOBODY = 0xFFFFFFFF

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others and becomes somebody else")


class Lake:
    """A folder that everybody gets to, with a table `t` of partitions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for day in range(3):
            self.write(f"t/day={day}/part-0.parquet")

    def write(self, path: str, data: bytes = b"x") -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def give(self, modes: dict[str, int], group: int = GROUP) -> None:
        """Give everything of the table to the group, with modes by the depth: those of folders and `file`."""
        for path in (self.folder / "t", *(self.folder / "t").rglob("*")):
            os.chown(path, OWNER, group)
            path.chmod(modes["folder"] if path.is_dir() else modes["file"])

    def acl(self, path: str, users: dict[int, int], group: int, other: int, name: str = "access") -> None:
        entries = [(1, 7, NOBODY), *((2, bits, user) for user, bits in sorted(users.items())), (4, group, NOBODY)]
        entries += [(0x10, 7, NOBODY), (0x20, other, NOBODY)]
        packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)
        os.setxattr(self.folder / path, f"system.posix_acl_{name}", packed)

    def indexed(self, place: str = "_grebe/t", table: str = "t") -> Path:
        """Write an object of the index, and return it."""
        store = LocalStore(self.folder / place)
        store.take_access_of((self.folder / table).as_uri())
        store.put("data/i/part.gix", b"columns")
        return self.folder / place / "data" / "i" / "part.gix"


def reads(path: Path, user: int, groups: Sequence[int] = ()) -> bool:
    ran = subprocess.run(
        ["/usr/bin/env", "cat", str(path)],
        user=user,
        group=user,
        extra_groups=groups,
        capture_output=True,
        cwd="/",
        check=False,
    )
    return ran.returncode == 0


@pytest.fixture
def lake() -> Iterator[Lake]:
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Lake(Path(made))


@pytest.fixture
def lists(lake: Lake) -> Lake:
    """On a file system with access control lists."""
    try:
        lake.acl("t", {READER: 5}, 5, 0)
    except OSError:
        pytest.skip("no access control lists here")
    return lake


def test_the_group_of_a_table_reads_its_indexes_and_nobody_else(lake: Lake) -> None:
    lake.give({"folder": 0o750, "file": 0o640})
    index = lake.indexed()
    assert reads(index, OWNER)
    assert reads(index, READER, [GROUP])
    assert not reads(index, STRANGER, [FOREIGN])


def test_a_partition_of_another_group_keeps_that_of_the_table_out(lake: Lake) -> None:
    lake.give({"folder": 0o750, "file": 0o640})
    os.chown(lake.folder / "t/day=1", OWNER, FOREIGN)
    assert not reads(lake.folder / "t/day=1/part-0.parquet", READER, [GROUP])
    index = lake.indexed()
    assert not reads(index, READER, [GROUP])
    assert not reads(index, STRANGER, [FOREIGN])
    assert reads(index, OWNER)


def test_files_of_different_groups_that_everybody_reads_stay_so(lake: Lake) -> None:
    lake.give({"folder": 0o755, "file": 0o644})
    os.chown(lake.folder / "t/day=1/part-0.parquet", OWNER, FOREIGN)
    index = lake.indexed()
    for groups in ([GROUP], [FOREIGN], []):
        assert reads(index, READER, groups)


def test_one_closed_partition_among_many_closes_the_indexes(lake: Lake) -> None:
    for day in range(300):
        lake.write(f"t/day={day:04}/part-0.parquet")
    lake.give({"folder": 0o755, "file": 0o644})
    assert reads(lake.indexed("_grebe/before"), STRANGER)
    (lake.folder / "t/day=0177").chmod(0o700)
    index = lake.indexed()
    assert not reads(index, STRANGER)
    assert reads(index, OWNER)


def test_every_closed_file_among_many_of_a_folder_closes_the_indexes(lake: Lake) -> None:
    for number in range(100):
        lake.write(f"u/{number:03}.parquet")
    (lake.folder / "u").chmod(0o755)
    for file in sorted((lake.folder / "u").iterdir()):
        file.chmod(0o600)
        access = access_of(lake.folder / "u", lake.folder / "_grebe/u")
        assert access is not None
        assert access.file.mode & 0o077 == 0, file
        assert access.folder.mode & 0o077 == 0, file
        file.chmod(0o644)


@pytest.mark.parametrize(("folders", "files"), [(1, 3_000), (700, 3)])
def test_one_closed_file_among_thousands_closes_the_indexes(lake: Lake, folders: int, files: int) -> None:
    for folder in range(folders):
        for number in range(files):
            lake.write(f"u/day={folder:04}/{number:05}.parquet", b"")
    for path in (lake.folder / "u", *(lake.folder / "u").iterdir()):
        path.chmod(0o755)
    (lake.folder / "_grebe/u").mkdir(parents=True)
    (lake.folder / "_grebe/u").chmod(0o755)
    assert too_open(lake.folder / "u", lake.folder / "_grebe/u") == []
    (lake.folder / f"u/day={folders // 3:04}/{files // 3:05}.parquet").chmod(0o600)
    assert too_open(lake.folder / "u", lake.folder / "_grebe/u") == [lake.folder / "_grebe/u"]


def test_closed_things_that_are_no_data_leave_the_indexes_open(lake: Lake) -> None:
    lake.give({"folder": 0o755, "file": 0o644})
    lake.write("t/_tmp/part-0.parquet")
    lake.write("t/_SUCCESS")
    (lake.folder / "closed/x").mkdir(parents=True)
    (lake.folder / "closed").chmod(0o700)
    (lake.folder / "t/_link").symlink_to(lake.folder / "closed/x")
    for name in ("_tmp", "_SUCCESS"):
        (lake.folder / "t" / name).chmod(0o700)
    assert reads(lake.indexed(), STRANGER)
    (lake.folder / "t/day=1/link").symlink_to(lake.folder / "closed/x")
    assert not reads(lake.indexed("_grebe/after"), STRANGER)


@pytest.mark.parametrize("name", ["_delta_log", ".hoodie", "metadata", "_a=1", "more"])
def test_closed_logs_and_partitions_close_the_indexes(lake: Lake, name: str) -> None:
    lake.give({"folder": 0o755, "file": 0o644})
    lake.write(f"t/{name}/x")
    (lake.folder / "t" / name).chmod(0o700)
    assert not reads(lake.indexed(), STRANGER)


def test_nobody_replaces_files_of_others_in_indexes_of_a_table_with_the_sticky_bit(lake: Lake) -> None:
    lake.give({"folder": 0o1777, "file": 0o666})
    (lake.folder / "t").chmod(0o1777)
    lake.folder.chmod(0o1755)
    index = lake.indexed()
    for folder in (index.parent, index.parent.parent, lake.folder / "_grebe/t"):
        assert folder.stat().st_mode & 0o7777 == 0o1777
    assert (lake.folder / "_grebe").stat().st_mode & 0o7777 == 0o1755
    moved = [str(index), str(index.with_name("moved"))]
    ran = subprocess.run(
        ["/usr/bin/env", "mv", *moved], user=STRANGER, group=STRANGER, capture_output=True, check=False
    )
    assert ran.returncode != 0
    assert index.exists()
    assert too_open(lake.folder / "t", lake.folder / "_grebe/t") == []
    index.parent.chmod(0o777)
    assert too_open(lake.folder / "t", lake.folder / "_grebe/t") == [index.parent]


@pytest.mark.parametrize("is_told", [True, False])
def test_where_the_sticky_bit_cannot_be_set_only_the_owner_writes(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    lake.give({"folder": 0o1777, "file": 0o644})
    (lake.folder / "t").chmod(0o1777)
    really = os.fchmod

    def without(handle: int, mode: int) -> None:
        if mode & 0o1000 and is_told:
            raise PermissionError
        really(handle, mode & ~0o1000)

    monkeypatch.setattr(os, "fchmod", without)
    index = lake.indexed()
    assert index.parent.stat().st_mode & 0o7777 == 0o755
    assert reads(index, STRANGER)


def test_a_list_of_a_table_is_that_of_its_indexes(lists: Lake) -> None:
    lists.give({"folder": 0o700, "file": 0o600})
    for path in (lists.folder / "t", *(lists.folder / "t").rglob("*")):
        lists.acl(str(path.relative_to(lists.folder)), {READER: 5}, 0, 0)
    index = lists.indexed()
    assert reads(index, READER)
    assert not reads(index, STRANGER, [GROUP])
    assert too_open(lists.folder / "t", lists.folder / "_grebe/t") == []
    lists.acl("_grebe/t/data/i/part.gix", {READER: 5, STRANGER: 5}, 0, 0)
    assert too_open(lists.folder / "t", lists.folder / "_grebe/t") == [index]


def test_the_bits_of_a_list_of_a_partition_are_not_those_of_its_group(lists: Lake) -> None:
    lists.give({"folder": 0o750, "file": 0o640})
    lists.acl("t", {}, 5, 0)
    lists.acl("t/day=1", {READER: 5}, 0, 0)
    assert not reads(lists.folder / "t/day=1/part-0.parquet", STRANGER, [GROUP])
    assert not reads(lists.indexed(), STRANGER, [GROUP])


def test_whom_a_list_keeps_out_is_not_let_in_with_everybody_else(lists: Lake) -> None:
    lists.give({"folder": 0o755, "file": 0o644})
    lists.acl("t", {STRANGER: 0}, 5, 5)
    index = lists.indexed("_grebe/first")
    assert reads(index, READER)
    assert not reads(index, STRANGER)
    (lists.folder / "t/day=1").chmod(0o705)
    assert not reads(lists.indexed(), STRANGER)


def test_a_list_that_the_folder_above_hands_down_gets_nobody_in(lists: Lake) -> None:
    os.removexattr(lists.folder / "t", "system.posix_acl_access")
    lists.give({"folder": 0o750, "file": 0o640})
    lists.acl("", {STRANGER: 5}, 5, 5, "default")
    assert not reads(lists.indexed(), STRANGER)


def test_a_table_behind_a_link_is_as_closed_as_the_folders_that_it_really_lies_in(lake: Lake) -> None:
    lake.give({"folder": 0o755, "file": 0o644})
    closed = lake.folder / "closed"
    closed.mkdir(mode=0o700)
    (lake.folder / "t").rename(closed / "t")
    (lake.folder / "t").symlink_to(closed / "t")
    assert not reads(lake.folder / "t/day=1/part-0.parquet", STRANGER)
    assert not reads(lake.indexed(), STRANGER)


def test_a_partition_behind_a_link_is_as_closed_as_the_folders_that_it_really_lies_in(lake: Lake) -> None:
    lake.give({"folder": 0o755, "file": 0o644})
    closed = lake.folder / "closed"
    closed.mkdir(mode=0o700)
    (lake.folder / "t/day=1").rename(closed / "day=1")
    (lake.folder / "t/day=1").symlink_to(closed / "day=1")
    assert not reads(lake.indexed(), STRANGER)


def test_a_file_that_cannot_be_given_to_the_group_of_the_table_is_closed_to_both(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.give({"folder": 0o705, "file": 0o604})
    assert not reads(lake.folder / "t/day=1/part-0.parquet", READER, [GROUP])

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refused)
    assert not reads(lake.indexed(), READER, [GROUP])


def test_a_folder_of_indexes_that_is_a_link_is_compared_too(lake: Lake) -> None:
    lake.give({"folder": 0o750, "file": 0o640})
    index = lake.indexed("elsewhere")
    (lake.folder / "_grebe").mkdir()
    (lake.folder / "_grebe" / "t").symlink_to(lake.folder / "elsewhere")
    index.chmod(0o644)
    (lake.folder / "elsewhere").chmod(0o755)
    assert lake.folder / "elsewhere" in too_open(lake.folder / "t", lake.folder / "_grebe" / "t")
