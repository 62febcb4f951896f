"""A disk that is really full: a small file system in memory. One error, the same answers, and the next verb works at once.

So much room is left that a verb fails at a certain step of its work. A few steps of some verbs; `make soak` leaves every number of
pages that is too small for a verb.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import GrebeError, StoreRefused
from grebe.log import names
from grebe.store.local import LocalStore
from tests.maintenance.disk_scene import (
    PRIVATE,
    SPARK_VERBS,
    VERBS,
    DiskScene,
    DiskVerb,
    Stored,
    require_well_told,
    run_again,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("disks")]

PAGE = 4096
_PAGES = 1024
_WRITES = ("put", "put_if_absent")
_ENTRIES = ("begin", "commit")
_ROLLBACK = b'"action":"rollback"'


@dataclass
class SmallDisk:
    """A mounted file system of a few pages. A file takes whole pages; folders, names and empty files take none."""

    folder: Path
    writes: list[tuple[int, str]] = field(default_factory=list)
    """What was written to the store since the last `leave`, and how many pages had been taken by then."""
    refused: list[str] = field(default_factory=list)
    """Paths for which there was no room, while the verb was at work."""
    _taken: int = 0

    @property
    def free(self) -> int:
        facts = os.statvfs(self.folder)
        return facts.f_bavail * facts.f_frsize // PAGE

    def leave(self, pages: int | None = None) -> None:
        """Fill the disk up to so many pages; None: leave it as it is."""
        if pages is not None:
            self._ballast.write_bytes(bytes(PAGE) * (self.free - pages))
            assert self.free == pages
        self.writes.clear()
        self.refused.clear()
        self._taken = _PAGES - self.free

    def make_room(self) -> None:
        self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def write(self, real: Any, store: LocalStore, path: str, data: bytes) -> None:
        if store.uri.startswith(f"file://{self.folder}"):
            self.writes.append((_PAGES - self.free - self._taken, path))
        try:
            real(store, path, data)
        except StoreRefused:
            if _ROLLBACK not in data:  # the verb has failed before
                self.refused.append(path)
            raise

    def failed_step(self, raised: bool) -> str | None:
        """What there was no room for. Without the hint a verb goes on."""
        entries = [path for _, path in self.writes if names.entry_number(path) is not None]
        refused = [path for path in self.refused if path != names.HINT]
        if not raised:
            assert not refused
            return "hint" if self.refused else None
        if not refused:
            return "content"  # Spark writes that
        return refused[0].partition("/")[0] if refused[0] not in entries else _ENTRIES[refused[0] != entries[0]]

    def pages_before(self, step: str) -> int:
        """How many pages the verb that has just run had taken before it came there."""
        entries = [pages for pages, path in self.writes if names.entry_number(path) is not None]
        hints = [pages for pages, path in self.writes if path == names.HINT]
        return {"begin": 0, "content": entries[-1] // 2, "commit": entries[-1], "hint": hints[-1]}[step]


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    mount, folder = shutil.which("mount"), tmp_path_factory.mktemp("small")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={_PAGES * PAGE}", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk here")
    yield SmallDisk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small(mounted: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
    for name in _WRITES:
        real = getattr(LocalStore, name)
        monkeypatch.setattr(LocalStore, name, lambda *arguments, real=real: mounted.write(real, *arguments))
    yield mounted
    for left in mounted.folder.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def ready(small: SmallDisk, scene: DiskScene, verb: DiskVerb, name: str) -> Stored:
    """Indexes on the small disk, as the verb is to find them, in a process that has written there before."""
    stored = scene.stored(small.folder / name)
    verb.before(stored)
    stored.open().claim()
    return stored


def failed_at(
    small: SmallDisk, scene: DiskScene, verb: DiskVerb, pages: int, caplog: pytest.LogCaptureFixture
) -> str | None:
    """Let the verb run where so many pages are left, and require that all is well afterwards. Gives the step that failed."""
    stored = ready(small, scene, verb, f"left-{pages}")
    caplog.clear()
    small.leave(pages)
    raised: GrebeError | None = None
    try:
        verb.run(stored.table)
    except GrebeError as problem:
        raised = problem
    step = small.failed_step(raised is not None)
    if raised is not None:
        require_well_told(raised)
        assert raised.code == "STORE_REFUSED_NO_ROOM"
        require_removed(stored)
    stored.require_answers(in_spark=not verb.loses)
    assert stored.table.verify().ok or verb.loses
    small.make_room()
    run_again(verb, stored, raised)
    assert PRIVATE not in caplog.text
    assert PRIVATE not in repr(stored.table.history())
    shutil.rmtree(stored.location)
    return step


def require_removed(stored: Stored) -> None:
    """What the failed verb wrote for an index has left the full disk at once."""
    state = stored.open().state
    content = (
        str(path.relative_to(stored.location)) for path in (stored.location / "data").rglob("*") if path.is_file()
    )
    assert set(content) <= state.content_paths | set(state.retired)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("create", "content"),
        ("refresh incremental", "commit"),
        ("optimize full", "hint"),
        ("delete", "begin"),
        ("restore", "commit"),
        ("vacuum", "begin"),
    ],
)
def test_a_verb_that_finds_no_room_leaves_answers_and_process_as_they_were(
    small: SmallDisk, disk_scene: DiskScene, caplog: pytest.LogCaptureFixture, name: str, step: str
) -> None:
    verb = VERBS[name]
    whole = ready(small, disk_scene, verb, "whole")
    small.leave()
    verb.run(whole.table)
    pages = small.pages_before(step)
    shutil.rmtree(whole.location)
    assert failed_at(small, disk_scene, verb, pages, caplog) == step


def test_verify_needs_no_room(small: SmallDisk, disk_scene: DiskScene) -> None:
    stored = disk_scene.stored(small.folder / "full")
    small.leave(0)
    assert stored.table.verify(deep=True).ok
    stored.require_answers()
    small.make_room()


@pytest.mark.soak
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_may_find_any_number_of_pages_too_few(
    small: SmallDisk, disk_scene: DiskScene, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    pages, steps = 0, set[str]()
    while (step := failed_at(small, disk_scene, VERBS[name], pages, caplog)) is not None:
        steps.add(step)
        pages += 1
    assert {"begin", "hint"} <= steps
    assert name not in SPARK_VERBS or {"content", "commit"} <= steps


@pytest.mark.soak
def test_the_command_line_says_one_error_and_vacuum_frees_what_was_left(small: SmallDisk, tmp_path: Path) -> None:
    table = tmp_path / "t"
    table.mkdir()
    drawn = random.Random(7)
    pq.write_table(pa.table({"text": [f"{drawn.getrandbits(128):032x}" for _ in range(60_000)]}), table / "0.parquet")
    small.leave(128)
    program = [sys.executable, "-c", "from grebe.cli.main import main; main()"]
    where = [str(table), "--location", str(small.folder / "index")]
    made = subprocess.run(
        [*program, "create", where[0], "wide", "--kind", "covering", "--on", "text", *where[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 1
    assert [line[:30] for line in made.stderr.splitlines() if line.startswith("error:")] == [
        "error: [STORE_REFUSED_NO_ROOM]"
    ]
    assert "Traceback" not in made.stderr
    assert "\tat " not in made.stderr
    subprocess.run([*program, "vacuum", *where], check=True, capture_output=True)
    assert not list((small.folder / "index").rglob("*.gix"))
