"""A budget for all indexes of a table: held by every commit that asks for it, with room that others have announced taken off."""

import pytest

from grebe.errors import Conflict
from grebe.files import FileIds
from grebe.log.budget import bytes_of
from grebe.log.commit import Log
from grebe.log.describe import describe_history
from grebe.log.entry import ContentFile, IndexChanged, IndexCreated, IndexDropped, Prediction, Purpose, Verb
from grebe.log.operation import Running, begin
from grebe.log.snapshot import history
from tests.log.worlds import SPEC, new_log, register


def _made(running: Running, name: str, size: int) -> list[IndexCreated]:
    content = (ContentFile(f"{running.folder(name)}/part", size),)
    return [IndexCreated(name, SPEC, running.version, content, FileIds.of([0]))]


def _create(log: Log, name: str, size: int, purpose: Purpose) -> None:
    with begin(log, Verb.CREATE, [name], {name: SPEC}, purpose=purpose) as running:
        running.commit(lambda state: _made(running, name, size))


def _log() -> Log:
    log = new_log()
    register(log, "a", "b")
    return log


def test_a_commit_above_the_budget_is_refused_and_nothing_is_changed() -> None:
    log = _log()
    _create(log, "first", 60, Purpose("it pays", most_bytes=100))
    with pytest.raises(Conflict) as raised:
        _create(log, "second", 41, Purpose(most_bytes=100))
    assert raised.value.code == "CONFLICT_OVER_BUDGET"
    assert list(log.reload().state.indexes) == ["first"]
    assert not log.state.operations
    _create(log, "second", 40, Purpose(most_bytes=100))
    assert bytes_of(log.state) == 100


def test_what_was_predicted_is_reserved_from_the_beginning_on() -> None:
    log = _log()
    first = Purpose(predicted={"first": Prediction(70, 1.0)}, most_bytes=100)
    second = Purpose(predicted={"second": Prediction(40, 1.0)}, most_bytes=100)
    with begin(log, Verb.CREATE, ["first"], {"first": SPEC}, purpose=first) as running:
        with pytest.raises(Conflict) as raised:
            begin(log, Verb.CREATE, ["second"], {"second": SPEC}, purpose=second)
        assert raised.value.code == "CONFLICT_OVER_BUDGET"
        running.commit(lambda state: _made(running, "first", 50))
    _create(log, "second", 45, second)
    assert bytes_of(log.state) == 95


def test_an_index_that_is_replaced_gives_its_room() -> None:
    log = _log()
    _create(log, "one", 90, Purpose(most_bytes=100))
    purpose = Purpose(predicted={"one": Prediction(80, 1.0)}, most_bytes=100)
    with begin(log, Verb.CREATE, ["one"], {"one": SPEC}, replace=True, purpose=purpose) as running:
        running.commit(lambda state: [IndexDropped("one"), *_made(running, "one", 80)])
    assert bytes_of(log.state) == 80


def test_what_makes_an_index_smaller_is_never_refused() -> None:
    log = _log()
    _create(log, "one", 90, Purpose())
    before = log.state.indexes["one"].content[0].path
    with begin(log, Verb.OPTIMIZE, ["one"], purpose=Purpose(most_bytes=50)) as running:
        part = ContentFile(f"{running.folder('one')}/part", 60)
        running.commit(lambda state: [IndexChanged("one", running.version, add=(part,), remove=(before,))])
    assert bytes_of(log.state) == 60


def test_a_budget_may_be_for_one_index_whatever_others_take() -> None:
    log = _log()
    _create(log, "other", 900, Purpose())
    _create(log, "own", 90, Purpose(most_bytes=100, budgeted=("own",)))
    with pytest.raises(Conflict):
        _create(log, "next", 101, Purpose(most_bytes=100, budgeted=("next",)))
    assert bytes_of(log.state, (), ["own"]) == 90


def test_the_reason_stands_in_the_history() -> None:
    log = _log()
    _create(log, "one", 90, Purpose("40 queries ask for it"))
    told = [text for entry in describe_history(history(log.store, log.newest.number, None)) for text in entry.changes]
    assert "create of one begun: 40 queries ask for it" in told
