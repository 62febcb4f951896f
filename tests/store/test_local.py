"""The local disk: what a crash, a full or a read-only disk, links and odd folders leave."""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from grebe.errors import StoreRefused
from grebe.store.children import children_of
from grebe.store.local import LocalStore
from grebe.store.opening import open_table_store
from grebe.store.paths import is_draft
from grebe.store.protocol import ObjectExists, ObjectMissing, OutcomeUnknown


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "root")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.rglob("*"))


def listed(store: LocalStore) -> list[str]:
    return [info.path for info in store.list()]


class TestCrashes:
    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    @pytest.mark.parametrize("step", ["fsync", "link", "replace"])
    def test_a_crash_at_any_step_leaves_all_or_nothing(
        self, store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, step: str
    ) -> None:
        store.put("object-before", b"old")

        class PowerCut(BaseException):
            pass

        def cut(*_: object, **__: object) -> None:
            raise PowerCut

        with monkeypatch.context() as patch:
            patch.setattr(os, step, cut)
            patch.setattr(os, "unlink", lambda *_, **__: None)
            with contextlib.suppress(PowerCut):
                getattr(store, verb)("object", b"new")
        assert listed(store) in (["object-before"], ["object", "object-before"])
        if "object" in listed(store):
            assert store.get("object") == b"new"
        else:
            store.put_if_absent("object", b"again")

    def test_a_draft_left_behind_is_never_listed_and_in_nobodys_way(self, store: LocalStore, tmp_path: Path) -> None:
        store.put("folder/object", b"x")
        for place in ("folder", "."):
            (tmp_path / "root" / place / ".0123.grebe-draft").write_bytes(b"half of some")
        assert listed(store) == ["folder/object"]
        assert listed(LocalStore(tmp_path)) == ["root/folder/object"]

    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    def test_the_bytes_and_the_name_are_flushed_in_that_order(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch, verb: str
    ) -> None:
        store.put("folder/other", b"x")
        steps: list[str] = []

        def recording(name: str) -> Callable[..., object]:
            original: Callable[..., object] = getattr(os, name)

            def call(*arguments: object, **options: object) -> object:
                if name == "fsync":
                    assert isinstance(arguments[0], int)
                    folder = stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
                    steps.append("flush folder" if folder else "flush file")
                else:
                    steps.append(name)
                return original(*arguments, **options)

            return call

        for name in ("fsync", "link", "replace"):
            monkeypatch.setattr(os, name, recording(name))
        getattr(store, verb)("folder/object", b"x")
        assert steps == ["flush file", "link" if verb == "put_if_absent" else "replace", "flush folder"]


class TestRefusals:
    @pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
    def test_a_folder_that_cannot_be_written_says_what_to_do(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        store.put("object", b"x")

        def refuse(*_: object, **__: object) -> int:
            raise OSError(number, os.strerror(number))

        # Tests may run as root, whom no permission stops.
        monkeypatch.setattr(os, "open", refuse)
        for write in (store.put, store.put_if_absent):
            with pytest.raises(StoreRefused, match="location=") as refused:
                write("new", b"x")
            assert refused.value.code == "STORE_REFUSED_NO_PERMISSION"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_read_only_folder_is_refused(self, store: LocalStore, tmp_path: Path) -> None:
        store.put("object", b"x")
        (tmp_path / "root").chmod(0o500)
        try:
            assert store.get("object") == b"x"
            with pytest.raises(StoreRefused):
                store.put("new", b"x")
            with pytest.raises(StoreRefused):
                store.delete("object")
        finally:
            (tmp_path / "root").chmod(0o700)

    def test_a_full_disk_is_refused_and_leaves_nothing(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.put("object", b"x")

        def full(handle: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StoreRefused) as refused:
                store.put_if_absent("new", b"x")
        assert refused.value.code == "STORE_REFUSED_NO_ROOM"
        assert names(Path(store.uri.removeprefix("file://"))) == ["object"]

    def test_a_failing_disk_is_an_unknown_outcome(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        store.put("object", b"x")
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OutcomeUnknown):
            store.put_if_absent("new", b"x")

    def test_a_disk_without_hard_links_is_refused_for_put_if_absent_only(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_links(*_: object, **__: object) -> None:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

        monkeypatch.setattr(os, "link", no_links)
        with pytest.raises(StoreRefused, match="location=") as refused:
            store.put_if_absent("object", b"x")
        assert refused.value.code == "STORE_REFUSED_NO_PUT_IF_ABSENT"
        store.put("object", b"x")

    def test_a_file_where_a_folder_should_be_is_refused(self, store: LocalStore) -> None:
        store.put("a", b"x")
        store.put("folder/object", b"x")
        for write in (store.put, store.put_if_absent):
            with pytest.raises(StoreRefused) as refused:
                write("a/b", b"x")
            assert refused.value.code == "STORE_REFUSED_PATH"
        with pytest.raises(StoreRefused):
            store.put("folder", b"x")
        with pytest.raises(ObjectExists):
            store.put_if_absent("folder", b"x")
        assert listed(store) == ["a", "folder/object"]

    def test_a_name_too_long_is_refused_or_missing(self, store: LocalStore) -> None:
        store.put("object", b"x")
        with pytest.raises(StoreRefused):
            store.put("x" * 300, b"x")
        with pytest.raises(ObjectMissing):
            store.get("x" * 300)

    def test_a_folder_cannot_be_deleted_as_an_object(self, store: LocalStore) -> None:
        store.put("folder/object", b"x")
        with pytest.raises(StoreRefused):
            store.delete("folder")
        assert listed(store) == ["folder/object"]


class TestListing:
    def test_folders_are_not_objects(self, store: LocalStore, tmp_path: Path) -> None:
        store.put("a/b/c", b"x")
        (tmp_path / "root" / "empty" / "deeper").mkdir(parents=True)
        assert listed(store) == ["a/b/c"]

    def test_files_of_a_table_are_listed_through_links_but_not_in_circles(
        self, store: LocalStore, tmp_path: Path
    ) -> None:
        store.put("folder/object", b"x")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "file").write_bytes(b"xyz")
        (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "root" / "folder" / "up").symlink_to(tmp_path / "root")
        (tmp_path / "root" / "dangling").symlink_to(tmp_path / "nowhere")
        table = open_table_store(tmp_path / "root")
        assert [(info.path, info.size) for info in table.list()] == [("folder/object", 1), ("link/file", 3)]
        assert table.get("link/file") == b"xyz"
        assert table.get_range("link/file", 1, 1) == b"y"
        assert table.stat("link/file").size == 3

    def test_a_file_that_vanishes_meanwhile_is_left_out(self, store: LocalStore) -> None:
        for name in ("a/1", "a/2", "b/1"):
            store.put(name, b"x")
        entries = store.list()
        assert next(entries).path == "a/1"
        store.delete("a/2")
        store.delete("b/1")
        assert list(entries) == []

    def test_folders_before_the_start_are_not_read(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(10):
            store.put(f"day={number}/file", b"x")
        read: list[str] = []
        scandir = os.scandir

        def recording(place: int | str | Path) -> object:
            named = f"/proc/self/fd/{place}" if isinstance(place, int) else place
            read.append(Path(named).resolve().name)
            return scandir(place)

        monkeypatch.setattr(os, "scandir", recording)
        assert [info.path for info in store.list("", "day=7/file")] == ["day=8/file", "day=9/file"]
        assert read == ["root", "day=7", "day=8", "day=9"]

    def test_fifos_are_no_objects(self, store: LocalStore, tmp_path: Path) -> None:
        store.put("object", b"x")
        os.mkfifo(tmp_path / "root" / "fifo")
        assert listed(store) == ["object"]
        with pytest.raises(ObjectMissing):
            store.stat("fifo")


def test_times_are_those_of_the_file_in_milliseconds(store: LocalStore, tmp_path: Path) -> None:
    store.put("object", b"x")
    os.utime(tmp_path / "root" / "object", ns=(0, 1_234_567_891_999_999))
    assert store.stat("object").modified_ms == 1_234_567_891
    assert [info.modified_ms for info in store.list()] == [1_234_567_891]


def test_the_root_of_the_file_system_can_be_a_store(tmp_path: Path) -> None:
    root = LocalStore(Path("/"))
    assert root.uri == "file://"
    (tmp_path / "object").write_bytes(b"x")
    assert root.get(str(tmp_path / "object").lstrip("/")) == b"x"


def test_only_our_own_names_are_drafts() -> None:
    assert is_draft(".0123.grebe-draft")
    assert not any(map(is_draft, ["x.grebe-draft", ".hidden", "grebe-draft", "object"]))


class TestLinks:
    """Whoever may write to a folder of indexes can put a link there to anything."""

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        home = tmp_path / "home"
        (home / "deeper").mkdir(parents=True)
        (home / "letter").write_bytes(b"private")
        (home / "deeper" / "letter").write_bytes(b"private")
        return home

    @pytest.fixture
    def linked(self, store: LocalStore, tmp_path: Path, home: Path) -> LocalStore:
        store.put("data/object", b"x")
        (tmp_path / "root" / "data" / "folder").symlink_to(home)
        (tmp_path / "root" / "data" / "file").symlink_to(home / "letter")
        return store

    @pytest.mark.parametrize("path", ["data/file", "data/folder/letter", "data/folder/deeper/letter"])
    def test_nothing_behind_a_link_is_there(self, linked: LocalStore, path: str) -> None:
        for read in (linked.get, linked.stat, lambda path: linked.get_range(path, 0, 3)):
            with pytest.raises(ObjectMissing):
                read(path)

    def test_nothing_behind_a_link_is_listed(self, linked: LocalStore) -> None:
        assert listed(linked) == ["data/object"]
        assert list(linked.list("data/folder")) == []
        assert list(linked.list("data/folder/deeper")) == []

    @pytest.mark.parametrize("path", ["data/folder/letter", "data/folder/deeper/letter", "data/folder/new"])
    def test_nothing_is_written_or_removed_behind_a_link(self, linked: LocalStore, home: Path, path: str) -> None:
        before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
        for write in (linked.put, linked.put_if_absent):
            with pytest.raises(StoreRefused) as refused:
                write(path, b"overwritten")
            assert refused.value.code == "STORE_REFUSED_PATH"
        linked.delete(path)
        assert {file: file.read_bytes() for file in home.rglob("*") if file.is_file()} == before

    def test_a_link_in_the_place_of_an_object_is_replaced_or_removed_itself(
        self, linked: LocalStore, home: Path
    ) -> None:
        with pytest.raises(ObjectExists):
            linked.put_if_absent("data/file", b"new")
        linked.put("data/file", b"new")
        assert linked.get("data/file") == b"new"
        assert (home / "letter").read_bytes() == b"private"
        (home.parent / "root" / "data" / "other").symlink_to(home / "letter")
        linked.delete("data/other")
        assert (home / "letter").exists()

    def test_nothing_is_written_through_a_link_of_a_table_either(self, home: Path, tmp_path: Path) -> None:
        table = LocalStore(tmp_path / "table", follow_links=True)
        table.put("object", b"x")
        (tmp_path / "table" / "link").symlink_to(home)
        with pytest.raises(StoreRefused):
            table.put("link/letter", b"overwritten")
        table.delete("link/letter")
        assert (home / "letter").read_bytes() == b"private"

    def test_the_root_itself_may_be_a_link(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(home)
        store = LocalStore(tmp_path / "link")
        store.put("new", b"x")
        assert listed(store) == ["deeper/letter", "letter", "new"]


class TestWhatIsNoFile:
    """A reader must neither wait for a writer of a FIFO nor read a device without end."""

    @pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
    def test_what_is_no_file_is_refused_at_once(self, store: LocalStore, tmp_path: Path, kind: str) -> None:
        store.put("log/0", b"first")
        place = tmp_path / "root" / "log" / "1"
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "socket":
            with contextlib.chdir(place.parent), socket.socket(socket.AF_UNIX) as made:
                made.bind(place.name)
        else:
            try:
                os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
            except PermissionError:
                pytest.skip("only root makes devices")
        with pytest.raises(StoreRefused) as refused:
            store.get("log/1")
        assert refused.value.code == "STORE_REFUSED_NOT_A_FILE"
        with pytest.raises(StoreRefused):
            store.get_range("log/1", 0, 4)
        assert listed(store) == ["log/0"]
        with pytest.raises(ObjectMissing):
            store.stat("log/1")

    def test_a_refused_read_leaves_no_handle_open(self, store: LocalStore, tmp_path: Path) -> None:
        (tmp_path / "root" / "folder").mkdir(parents=True)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            with pytest.raises(ObjectMissing):
                store.get("folder")
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("target", ["x.parquet", "nowhere", "a.parquet/below", "y" * 300])
def test_a_link_that_leads_nowhere_hides_no_other_file_of_a_table(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.parquet").write_bytes(b"rows")
    (tmp_path / "x.parquet").symlink_to(target)
    table = open_table_store(tmp_path)
    assert [info.path for info in table.list()] == ["a.parquet"]
    assert "a.parquet" in children_of(table)


@pytest.mark.parametrize("below", ["", "indexes"])
def test_a_root_that_is_a_link_to_nowhere_is_refused_by_its_name(tmp_path: Path, below: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        StoreRefused, match=rf"{tmp_path}/link is a link that leads nowhere \(to {tmp_path}/nowhere\)"
    ) as refused:
        LocalStore(tmp_path / "link" / below).put("object", b"x")
    assert refused.value.code == "STORE_REFUSED_PATH"
    assert not (tmp_path / "nowhere").exists()
