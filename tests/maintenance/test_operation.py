"""The template of all verbs, without Spark: what fails is undone, and what may have been committed is never removed."""

import contextlib
from collections.abc import Callable

import pytest

from grebe.errors import StoreUnreachable
from grebe.files import FileIds
from grebe.log.commit import Log, Proposal
from grebe.log.entry import Change, ContentFile, IndexCreated, IndexSpec, TableInfo, Verb
from grebe.log.operation import Running
from grebe.log.states import TableState
from grebe.maintenance.operation import carry_out
from grebe.store.memory import MemoryStore
from grebe.store.protocol import OutcomeUnknown

SPEC = IndexSpec("covering", ("id",))
NOTHING = FileIds.of([])


class Unreliable(MemoryStore):
    """Once armed, the next put of a log entry is carried out or not, and from then on nothing is answered."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.carries_out = True
        self.armed = False
        self.deaf = False

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._answer()
        if not self.armed or self.carries_out:
            super().put_if_absent(path, data)
        self.deaf = self.armed
        self._answer()

    def get(self, path: str, most: int | None = None) -> bytes:
        self._answer()
        return super().get(path, most)

    def _answer(self) -> None:
        if self.deaf:
            raise OutcomeUnknown("no answer")

    def seen(self) -> set[str]:
        return {info.path for info in super().list()}


@pytest.fixture
def store() -> Unreliable:
    return Unreliable("memory://lake")


@pytest.fixture
def log(store: Unreliable) -> Log:
    return Log(store, patience=0.2).create(TableInfo("memory://t", "plain"))


def writing(log: Log, then: Callable[[], object], *names: str) -> Callable[[Running], Proposal]:
    """Writes an object for each index, then lets something happen, then proposes the first of them."""

    def work(running: Running) -> Proposal:
        paths = {name: f"{running.folder(name)}/part.gix" for name in names}
        for path in paths.values():
            log.store.put(path, b"content")
        then()

        def changes(state: TableState) -> list[Change]:
            content = (ContentFile(paths[names[0]], 7),)
            return [IndexCreated(names[0], SPEC, running.version, content, NOTHING)]

        return changes

    return work


def data(store: Unreliable) -> list[str]:
    return [path for path in sorted(store.seen()) if path.startswith("data/")]


def test_what_is_committed_stays_and_what_is_left_out_goes(log: Log, store: Unreliable) -> None:
    made = carry_out(log, Verb.CREATE, ["a", "b"], writing(log, lambda: None, "a", "b"), {"a": SPEC, "b": SPEC})
    assert data(store) == [file.path for file in made.state.indexes["a"].content]
    assert not made.state.operations


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt, StoreUnreachable])
def test_what_fails_is_rolled_back_and_removed(log: Log, store: Unreliable, problem: type[BaseException]) -> None:
    def fail() -> None:
        raise problem("on the way")

    with pytest.raises(problem):
        carry_out(log, Verb.CREATE, ["a"], writing(log, fail, "a"), {"a": SPEC})
    assert data(store) == []
    assert not log.reload().state.operations


@pytest.mark.parametrize("committed", [True, False])
def test_what_somebody_put_beside_content_stays(log: Log, store: Unreliable, committed: bool) -> None:
    def put_and_end() -> None:
        for path in [path for path in data(store) if path.endswith("part.gix")]:
            store.put(f"{path.rpartition('/')[0]}/notes.txt", b"mine")
        if not committed:
            raise StoreUnreachable("on the way")

    with contextlib.suppress(StoreUnreachable):
        carry_out(log, Verb.CREATE, ["a", "b"], writing(log, put_and_end, "a", "b"), {"a": SPEC, "b": SPEC})
    assert [path.rpartition("/")[2] for path in data(store)] == ["notes.txt", *["part.gix"] * committed, "notes.txt"]


@pytest.mark.parametrize("carried_out", [True, False])
def test_content_that_may_have_been_committed_is_not_removed(log: Log, store: Unreliable, carried_out: bool) -> None:
    """The store carries the commit out or not, and then answers nothing: nobody knows, so nothing is removed."""
    store.carries_out = carried_out

    def lose_the_connection() -> None:
        store.armed = True

    with pytest.raises(StoreUnreachable):
        carry_out(log, Verb.CREATE, ["a"], writing(log, lose_the_connection, "a"), {"a": SPEC})
    assert len(data(store)) == 1
    store.armed = store.deaf = False
    state = Log(store).open().state
    assert ("a" in state.indexes) == carried_out
    assert bool(state.operations) != carried_out
