"""The calls of the operating system fail, each in turn: answers stay the same, and the next verb works at once in the same process.

As `test_full_disk`, on a real local disk. Some calls of each verb, taken by a seed; `make soak` lets every one of them fail.
"""

import os
import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from grebe.clock import SYSTEM
from grebe.errors import GrebeError
from grebe.log import identity, names
from grebe.log.commit import Log
from grebe.maintenance.garbage import Limits
from grebe.maintenance.refresh import refresh
from grebe.maintenance.vacuum import vacuum
from grebe.store.local import LocalStore
from grebe.store.protocol import Store
from tests.maintenance.crash_world import ACTS, HEARTBEAT, Act, World, again, prepared, problems, without_spark
from tests.maintenance.failing_os import FAILURES, FailingOs, Failure, failing_os
from tests.maintenance.test_full_disk import Here

_HOURS = 2 * 3600
_MODE = 0o750
"""Of the folder whose access all that is made takes over."""


class DiskWorld(World):
    """On a disk. Everybody in it is this process."""

    def __init__(self, before: World, root: Path) -> None:
        self.root = root
        super().__init__(before)

    def _empty_store(self) -> Store:
        self.root.parent.chmod(_MODE)
        store = LocalStore(self.root)
        store.take_access_of(f"file://{self.root.parent}")
        return store

    def _place(self, path: str, data: bytes) -> None:
        file = self.root / path
        for parent in (self.root, *reversed(file.relative_to(self.root).parents[:-1])):
            folder = self.root / parent
            folder.mkdir(exist_ok=True)
            folder.chmod(_MODE)
        file.write_bytes(data)

    def log(self, name: str = "ann") -> Log:
        return self.opened(identity.this_writer())

    def place(self) -> Here:
        return Here("memory://lake", "memory://log", None, lambda uri: self.store, self.clock)

    def age(self) -> None:
        """Everything was written hours ago."""
        then = SYSTEM.now_ms() / 1000 - _HOURS
        for path in (self.root, *self.root.rglob("*")):
            os.utime(path, (then, then))

    def open_handles(self) -> list[str]:
        links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return [str(target) for link in links if str(target := os.readlink(link)).startswith(str(self.root))]  # noqa: PTH115


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FailingOs:
    without_spark(monkeypatch)
    return failing_os(monkeypatch)


@cache
def start() -> World:
    with pytest.MonkeyPatch.context() as patch:
        without_spark(patch)
        return prepared()


def world_for(act: Act, folder: Path) -> DiskWorld:
    """Only the first verb of a process tries the store out."""
    folder.mkdir()
    world = DiskWorld(start(), folder / "log")
    act.before(world)
    if world.has_log:
        world.log().claim()
    return world


def failed_at(disk: FailingOs, act: Act, failure: Failure, at: int, folder: Path) -> bool:
    """Let the verb fail at one call, require that all is well afterwards, and tell whether there was such a call."""
    world = world_for(act, folder)
    log = world.log()
    disk.fail(failure, at)
    raised: GrebeError | None = None
    try:
        act.run(world, log)
    except GrebeError as problem:
        raised = problem
    failed = list(disk.failed)
    disk.recover()
    where = f"{failure} at {at}, {failed[:1]}"
    if raised is not None:
        assert failed, raised
        assert raised.code in ("STORE_REFUSED_NO_ROOM", "STORE_UNREACHABLE"), where
        assert "try again" in raised.args[0] or "trying again" in raised.args[0], where
    assert problems(world, lost=act.name == "repair") == [], where
    again(world, act)
    require_well(world, where)
    if not (failure.is_late and "mkdir" in failed):  # who is told that it is not there does not open it to anybody
        assert {path.stat().st_mode & 0o777 for path in world.root.rglob("*") if path.is_dir()} == {_MODE}, where
    shutil.rmtree(folder)
    return bool(failed)


def require_well(world: DiskWorld, where: str) -> None:
    assert problems(world) == [], where
    refresh(world.source, world.log(), heartbeat_seconds=HEARTBEAT)  # type: ignore[arg-type]  # it has what is asked
    # What failed builds left goes at once, though by default bytes stay for a day.
    vacuum(world.log())
    state = world.log().state
    assert not state.operations, where
    assert world.under("data") <= state.content_paths | set(state.retired), where
    world.age()
    vacuum(world.log(), None, Limits(0), HEARTBEAT)
    state = world.log().state
    used = state.content_paths | {segment.path for segment in state.segments} | {names.MARKER}
    left = {str(path.relative_to(world.root)) for path in world.root.rglob("*") if path.is_file()}
    assert {path for path in left if not path.startswith("log/")} == used, where
    assert [path for path in left if names.is_draft(path)] == [], where
    assert problems(world) == [], where
    assert world.open_handles() == [], where


def calls_of(disk: FailingOs, act: Act, folder: Path) -> int:
    world = world_for(act, folder)
    log = world.log()
    before = disk.calls
    act.run(world, log)
    shutil.rmtree(folder)
    return disk.calls - before


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_whatever_call_of_a_verb_fails_the_next_verb_works_at_once(disk: FailingOs, act: Act, tmp_path: Path) -> None:
    calls, chance = calls_of(disk, act, tmp_path / "whole"), random.Random(act.name)
    # How threads take turns decides about a few calls.
    failed = [failed_at(disk, act, one, chance.randint(1, calls), tmp_path / str(one)) for one in FAILURES]
    assert any(failed)


def _all_calls(disk: FailingOs, act: Act, failure: Failure, folder: Path) -> Iterator[bool]:
    at = 1
    while failed_at(disk, act, failure, at, folder / str(at)):
        yield True
        at += 1


@pytest.mark.soak
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_every_call_of_a_verb_may_fail(disk: FailingOs, act: Act, failure: Failure, tmp_path: Path) -> None:
    assert sum(_all_calls(disk, act, failure, tmp_path)) > 10
