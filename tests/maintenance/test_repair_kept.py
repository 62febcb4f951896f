"""Older versions of an index, kept for queries of older versions of the table: one that is damaged is dropped, and no more."""

import json

import pytest

from grebe.files import FileIds
from grebe.log.entry import ContentFile, IndexChanged, Keep, Verb
from grebe.log.operation import begin
from grebe.maintenance.repair import repair
from tests.maintenance.crash_world import World, prepared, problems, without_spark


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """`i` has been written anew without the rows of one file."""
    without_spark(monkeypatch)
    made = prepared()
    log = made.log()
    before = log.state.indexes["i"]
    gone = FileIds.of([1])
    with begin(log, Verb.REFRESH, ["i"]) as running:
        path = f"{running.folder('i')}/part.gix"
        data = json.dumps(list(before.held - gone)).encode()
        log.store.put(path, data)
        change = IndexChanged(
            "i",
            running.version,
            (ContentFile(path, len(data), 910),),
            tuple(file.path for file in before.content),
            uncover=gone,
            purge=gone,
            keep=Keep(1),
        )
        running.commit(lambda state: [change])
    assert len(log.state.indexes["i"].kept) == 1
    return made


def mended(world: World) -> list[str]:
    return repair(world.source, world.log(), deep=False)  # type: ignore[arg-type]  # it has what is asked


def test_a_sound_one_stays(world: World) -> None:
    assert mended(world) == []
    assert len(world.log().state.indexes["i"].kept) == 1


def test_a_damaged_one_is_dropped_and_nothing_is_built(world: World) -> None:
    before = world.log().state.indexes["i"]
    world.store.delete(before.kept[0].content[0].path)
    assert mended(world) == ["i"]
    after = world.log().state.indexes["i"]
    assert (after.kept, after.content, after.covered) == ((), before.content, before.covered)
    assert problems(world) == []


def test_it_stays_while_other_content_is_mended(world: World) -> None:
    before = world.log().state.indexes["i"]
    world.store.delete(before.content[0].path)
    assert mended(world) == ["i"]
    after = world.log().state.indexes["i"]
    assert after.kept == before.kept
    assert after.content != before.content
    assert problems(world) == []
