"""What of replaced content stays for queries of older versions of the table, and when its bytes may go."""

from typing import Any

import pytest

from grebe.errors import Conflict
from grebe.files import FileIds
from grebe.log import codec, invariants
from grebe.log.commit import Log
from grebe.log.describe import describe_indexes
from grebe.log.entry import ContentFile, IndexChanged, IndexDeleted, IndexDropped, IndexRestored, Keep
from grebe.log.states import IndexState
from tests.log.worlds import SPEC, create, new_log, register

SIZE = 100


@pytest.fixture
def log() -> Log:
    """An index of the files 0 to 3, of ten that there are."""
    log = new_log()
    register(log, *"abcdefghij")
    create(log, "i", FileIds.of(range(4)))
    return log


def index(log: Log) -> IndexState:
    return log.state.indexes["i"]


def changed(log: Log, **change: Any) -> None:
    log.commit("refresh", lambda state: [IndexChanged("i", log.newest.number, **change)])


def replaced(log: Log, now: range | list[int], keep: Keep | None) -> str:
    """All content is written anew, of just these files; gives the path of what was there."""
    before = index(log)
    path = f"data/i/{log.newest.number}/part.gix"
    changed(
        log,
        add=(ContentFile(path, SIZE, rows=10),),
        remove=tuple(file.path for file in before.content),
        cover=FileIds.of(now),
        uncover=before.covered,
        purge=before.held,
        table_version=f"v{log.newest.number}",
        keep=keep,
    )
    return before.content[0].path


def held(log: Log) -> list[list[int]]:
    assert invariants.broken(log.state) == []
    return [list(version.held) for version in index(log).kept]


def test_what_held_more_files_is_kept_and_can_be_used_as_it_was(log: Log) -> None:
    before = index(log)
    old = replaced(log, [3, 4, 5], Keep(1))
    assert held(log) == [[0, 1, 2, 3]]
    assert old not in log.state.retired
    assert index(log).held == FileIds.of([3, 4, 5])
    again = index(log).as_kept(index(log).kept[0])
    assert (again.spec, again.content, again.held) == (SPEC, before.content, before.covered)
    assert (again.version, again.table_version) == (before.version, "v1")


def test_without_limits_nothing_is_kept(log: Log) -> None:
    old = replaced(log, [3, 4], None)
    assert held(log) == []
    assert log.state.retired[old] == log.newest.number


def test_dormant_files_are_held_and_so_kept(log: Log) -> None:
    changed(log, uncover=FileIds.of([0]), purge=FileIds.of([]), keep=Keep(1))
    assert (index(log).held, held(log)) == (FileIds.of(range(4)), [])
    replaced(log, [1, 2, 3], Keep(1))
    assert held(log) == [[0, 1, 2, 3]]


def test_the_oldest_go_beyond_the_number(log: Log) -> None:
    paths = [replaced(log, [number], Keep(2)) for number in (4, 5, 6)]
    assert held(log) == [[5], [4]]
    assert [path in log.state.retired for path in paths] == [True, False, False]
    assert log.state.retired[paths[0]] == log.newest.number


def test_the_oldest_go_beyond_the_bytes(log: Log) -> None:
    paths = [replaced(log, [number], Keep(9, 2 * SIZE)) for number in (4, 5, 6)]
    assert held(log) == [[5], [4]]
    replaced(log, [7], Keep(9, SIZE - 1))
    assert held(log) == []
    assert set(paths) <= log.state.retired.keys()


def test_lower_limits_hold_from_the_next_change_on(log: Log) -> None:
    for number in (4, 5, 6):
        replaced(log, [number], Keep(3))
    changed(log, revive=FileIds.of([]), keep=Keep(1))
    assert held(log) == [[5]]
    changed(log, keep=Keep(0))
    assert held(log) == []


def test_a_version_that_holds_nothing_more_than_the_content_goes_at_once(log: Log) -> None:
    old = replaced(log, [4], Keep(5))
    assert held(log) == [[0, 1, 2, 3]]
    changed(log, add=(ContentFile("data/i/more", 1),), cover=FileIds.of(range(4)))
    assert held(log) == []
    assert log.state.retired[old] == log.newest.number


def test_what_is_rewritten_without_a_loss_is_not_kept(log: Log) -> None:
    content = index(log).content[0].path
    changed(log, add=(ContentFile("data/i/new", 1),), remove=(content,), purge=FileIds.of([]), keep=Keep(5))
    assert held(log) == []
    assert content in log.state.retired


def test_kept_versions_share_the_fate_of_their_index(log: Log) -> None:
    old = replaced(log, [4], Keep(1))
    log.commit("delete", lambda state: [IndexDeleted("i")])
    assert old not in log.state.retired
    log.commit("restore", lambda state: [IndexRestored("i")])
    assert held(log) == [[0, 1, 2, 3]]
    log.commit("delete", lambda state: [IndexDeleted("i")])
    since = log.newest.number
    log.commit("vacuum", lambda state: [IndexDropped("i")])
    assert log.state.retired[old] == since


def test_an_object_of_a_kept_version_cannot_be_added_again(log: Log) -> None:
    old = replaced(log, [4], Keep(1))
    with pytest.raises(Conflict, match="is in the log already"):
        changed(log, add=(ContentFile(old, 1),), cover=FileIds.of([5]))


def test_a_checkpoint_holds_them(log: Log) -> None:
    replaced(log, [4], Keep(2))
    replaced(log, [5], Keep(2))
    newest = log.newest
    assert codec.decode_state(codec.encode_state(newest.number, newest.digest, log.state), "here")[2] == log.state


def test_people_are_told_how_many_there_are_and_how_large(log: Log) -> None:
    replaced(log, [4], Keep(2))
    replaced(log, [5, 6], Keep(2))
    (info,) = describe_indexes(log.state, FileIds.of([5, 6]), 0)
    assert (info.bytes, info.kept_versions, info.kept_bytes) == (SIZE, 2, 2 * SIZE)


def test_rows_that_were_left_out_are_not_covered_again_by_somebody_else(log: Log) -> None:
    """Rows of dormant files are being left out, when one of these files comes back."""
    changed(log, uncover=FileIds.of([0, 1]))
    before = index(log)
    changed(log, revive=FileIds.of([1]))
    rewritten = {"add": (ContentFile("data/i/new", 1),), "remove": (before.content[0].path,)}
    with pytest.raises(Conflict, match="would lose rows of files that it covers"):
        changed(log, **rewritten, purge=before.dormant)


def test_rows_of_files_that_go_while_content_is_written_anew_are_dormant_in_it(log: Log) -> None:
    before = index(log)
    changed(log, uncover=FileIds.of([0]))
    changed(log, add=(ContentFile("data/i/new", 1),), remove=(before.content[0].path,), purge=before.dormant)
    assert (index(log).covered, index(log).dormant) == (FileIds.of([1, 2, 3]), FileIds.of([0]))
