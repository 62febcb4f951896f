"""The local disk: what a crash, a full or a read-only disk, links and odd folders leave."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from grebe.errors import StoreRefused
from grebe.store.local import LocalStore
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
        monkeypatch.setattr("pathlib.Path.open", refuse)
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

    def test_symbolic_links_are_followed_but_not_in_circles(self, store: LocalStore, tmp_path: Path) -> None:
        store.put("folder/object", b"x")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "file").write_bytes(b"xyz")
        (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "root" / "folder" / "up").symlink_to(tmp_path / "root")
        (tmp_path / "root" / "dangling").symlink_to(tmp_path / "nowhere")
        assert [(info.path, info.size) for info in store.list()] == [("folder/object", 1), ("link/file", 3)]

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

        def recording(place: str | Path) -> object:
            read.append(Path(place).name)
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
