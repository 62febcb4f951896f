"""Begin, work, end. An operation announces itself by one entry and ends by another; between the two nobody sees its work.

    with begin(log, Verb.REFRESH, ("by_customer",)) as operation:
        …write content below operation.folder("by_customer")…
        operation.commit(lambda state: [IndexChanged(…)])

Leaving the block without a commit rolls the operation back. If the process dies instead, whoever meets the operation next does.
If somebody else ends it (`cancel`), its next heartbeat notices, and what it does is stopped.
"""

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType

from grebe import telemetry
from grebe.errors import (
    Conflict,
    GrebeError,
    IndexExists,
    IndexNotFound,
    InvalidConfig,
    InvalidIndex,
    StoreRefused,
    WrongState,
)
from grebe.log import names
from grebe.log.budget import require_room, require_within
from grebe.log.commit import Log, Proposal
from grebe.log.entry import (
    NO_PURPOSE,
    Change,
    IndexChanged,
    IndexSpec,
    OperationBegun,
    OperationEnded,
    Purpose,
    Verb,
)
from grebe.log.liveness import Heartbeat, begins_here, ended_here, the_dead
from grebe.log.snapshot import Snapshot, read_on
from grebe.log.states import ACTIVE, DELETED, Operation, TableState, may_run_together

_logger = logging.getLogger("grebe.log")


class Running:
    """An operation of this process. Once it has ended it does nothing more."""

    def __init__(self, log: Log, begun: Snapshot, operation: Operation, heartbeat: Heartbeat) -> None:
        self._log = log
        self._seen = begun
        self._operation = operation
        self._ended = False
        self._committing = False
        self._may_be_committed = False
        self._stops: list[Callable[[], None]] = []
        self._pid = os.getpid()
        self._heartbeat = heartbeat
        heartbeat.still_runs = self._still_runs

    @property
    def id(self) -> str:
        return self._operation.id

    @property
    def version(self) -> int:
        """The version of whatever this operation writes: the number of its begin entry."""
        return self._operation.number

    def folder(self, index: str) -> str:
        """Where this operation, and no other, may write content of that index."""
        return names.version_folder(index, self.version, self.id)

    @property
    def has_surely_failed(self) -> bool:
        """Tell, of an operation that did not succeed, whether the log does not hold its changes and never will: then nobody needs
        what it wrote."""
        return not self._may_be_committed and os.getpid() == self._pid  # a forked child does not own its parent's

    @contextmanager
    def stopped_by(self, stop: Callable[[], None]) -> Iterator[None]:
        """What is done in the block is stopped by this call, should somebody else end the operation meanwhile. It is called again
        with every heartbeat, and in another thread, until the block is left."""
        self._stops.append(stop)
        try:
            yield
        finally:
            self._stops.remove(stop)

    def require_under_way(self) -> None:
        """Raises `WrongState` if a heartbeat found that somebody else has ended the operation."""
        if not self._is_in(self._seen):
            raise self._was_ended()

    def commit(self, propose: Proposal) -> Snapshot:
        """Makes the changes and ends the operation, in one entry."""
        self._committing = True

        def changes(state: TableState) -> Sequence[Change]:
            if self.id not in state.operations:
                self._finish()
                raise self._was_ended()
            proposed = propose(state)
            self._require_announced(proposed)
            require_within(self._operation.purpose, state, proposed)
            return (*proposed, OperationEnded(self.id, committed=True))

        self._may_be_committed = True
        try:
            made = self._log.commit(f"{self._operation.verb} commit", changes)
        except (Conflict, StoreRefused, WrongState):
            self._may_be_committed = False  # each of them says that nothing was written
            raise
        self._finish()
        return made

    def rollback(self, reason: str) -> None:
        if self._ended or os.getpid() != self._pid:  # a forked child does not own its parent's operation
            return
        try:
            roll_back(self._log, self.id, reason)
        finally:
            self._finish()  # without a heartbeat it lapses by itself

    def _still_runs(self) -> bool:
        """Looked up in the log apart from what `log.newest` is: that moves on only when the work itself looks."""
        if self._is_in(self._seen) and not self._committing:
            self._seen = read_on(self._log.store, self._seen)
        if self._is_in(self._seen):
            return True
        # Again and again: jobs that are started only now are to be stopped as well.
        for stop in list(self._stops):
            stop()
        return False

    def _is_in(self, seen: Snapshot) -> bool:
        return self.id in seen.state.operations

    def _was_ended(self) -> WrongState:
        return WrongState(
            f"{self._operation.verb} of {', '.join(self._operation.indexes)} was ended by another process: cancelled, or not heard "
            "of in time. Start it again; a higher heartbeat_seconds gives slow processes longer.",
            detail="OPERATION_ENDED",
        )

    def _require_announced(self, changes: Sequence[Change]) -> None:
        """Others decide by what was announced whether they may run beside this."""
        touched = {name for change in changes if (name := getattr(change, "name", None)) is not None}
        if not touched <= set(self._operation.indexes):
            others = ", ".join(sorted(touched - set(self._operation.indexes)))
            raise WrongState(
                f"{self._operation.verb} did not announce {others} when it began; begin it with all indexes that it changes",
                detail="NOT_ANNOUNCED",
            )

    def _finish(self) -> None:
        self._ended = True
        if os.getpid() == self._pid:
            ended_here(self.id)
        self._heartbeat.stop()

    def __enter__(self) -> "Running":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.rollback(_reason(error))
        except GrebeError as problem:
            if error is None:
                raise
            # The first error is the one to show.
            telemetry.event(_logger, logging.WARNING, "rollback_failed", operation=self.id, code=problem.code)


def _reason(error: BaseException | None) -> str:
    """Say in the history why an operation was given up, without any value of the data."""
    match error:
        case None:
            return "left without a commit"
        case GrebeError():
            return error.code
        case KeyboardInterrupt():
            return "cancelled by the user"
        case _:
            return type(error).__name__


def begin(
    log: Log,
    verb: Verb,
    indexes: Sequence[str],
    specs: Mapping[str, IndexSpec] | None = None,
    replace: bool = False,
    heartbeat_seconds: float = 60.0,
    purpose: Purpose = NO_PURPOSE,
) -> Running:
    """Announces an operation. Raises `WrongState` if another is in the way, and what the verb asks of the indexes' states."""
    _require_sensible(verb, indexes, specs, heartbeat_seconds)
    begun = OperationBegun(
        id=log.clock.new_id(),
        verb=verb,
        indexes=tuple(indexes),
        writer=log.writer,
        heartbeat_seconds=heartbeat_seconds,
        specs=dict(specs or {}),
        purpose=purpose,
    )
    heartbeat = Heartbeat(log.store, begun.id, heartbeat_seconds, log.clock)
    heartbeat.start()
    begins_here(begun.id)
    try:
        made = log.commit(f"{verb} begin", _beginning(log, begun, replace))
    except BaseException:
        ended_here(begun.id)
        heartbeat.stop()
        raise
    return Running(log, made, made.state.operations[begun.id], heartbeat)


def _require_sensible(
    verb: Verb, indexes: Sequence[str], specs: Mapping[str, IndexSpec] | None, heartbeat_seconds: float
) -> None:
    if isinstance(indexes, str) or not all(isinstance(name, str) for name in indexes):
        raise InvalidIndex(f"{verb} takes a list of names", detail="NAME")
    if not indexes and verb is not Verb.VACUUM:
        raise InvalidIndex(f"{verb} names no index", detail="NAME")
    if len({name.casefold() for name in indexes}) < len(indexes):
        raise InvalidIndex(f"{verb} names an index twice: {', '.join(indexes)}", detail="NAME")
    if verb is Verb.CREATE and set(specs or {}) != set(indexes):
        raise InvalidIndex(f"create of {', '.join(indexes)} must say for each of them what it makes", detail="SPEC")
    if not 0 < heartbeat_seconds < math.inf:
        raise InvalidConfig(f"heartbeat_seconds = {heartbeat_seconds} is no time span above 0", detail="VALUE")


def roll_back(log: Log, operation: str, reason: str) -> Snapshot:
    """Ends an operation without its changes. One that has ended already is left as it is."""

    def changes(state: TableState) -> Sequence[Change]:
        return (OperationEnded(operation, committed=False, reason=reason),) if operation in state.operations else ()

    return log.commit("rollback", changes)


def of_indexes_still_there(state: TableState, changes: Sequence[IndexChanged]) -> list[IndexChanged]:
    """Of a change of several indexes, what can still be done: those deleted meanwhile are left out, the rest goes on."""
    active = {name for name, index in state.indexes.items() if index.state == ACTIVE}
    possible = [c for c in changes if c.name in active]
    if changes and not possible:
        gone = ", ".join(c.name for c in changes)
        raise Conflict(f"{gone}: deleted by another writer meanwhile; nothing was changed.", detail="DELETED_MEANWHILE")
    return possible


def _beginning(log: Log, begun: OperationBegun, replace: bool) -> Proposal:
    living: set[str] = set()

    def changes(state: TableState) -> Sequence[Change]:
        met = state.operations_on(begun.indexes)
        unjudged = [o for o in met if o.id not in living]
        dead = the_dead(log.store, unjudged, log.clock) if unjudged else []
        living.update(o.id for o in unjudged if o not in dead)
        for other in met:
            if other not in dead and not may_run_together(begun.verb, other.verb):
                raise _in_the_way(begun, other)
        _ALLOWED[begun.verb](state, begun, replace)
        require_room(begun, state, dead)
        ended = [OperationEnded(o.id, committed=False, reason="its process is gone") for o in dead]
        return (*ended, begun)

    return changes


def _in_the_way(begun: OperationBegun, other: Operation) -> WrongState:
    return WrongState(
        f"{begun.verb} of {', '.join(begun.indexes)} cannot begin: {other.verb} of {', '.join(other.indexes)} is under way, "
        f"begun by {other.writer.name} (process {other.writer.pid}) in entry {other.number} at {other.at_ms} ms. Wait for it, or "
        "cancel it.",
        detail="OPERATION_UNDER_WAY",
    )


def _may_create(state: TableState, begun: OperationBegun, replace: bool) -> None:
    coming = [name for o in state.operations.values() if o.verb is Verb.CREATE for name in o.indexes]
    by_folded = {name.casefold(): name for name in [*coming, *state.indexes]}
    for name in begun.indexes:
        if not names.is_index_name(name):
            raise InvalidIndex(
                f"{name!r} cannot be the name of an index: it becomes the name of a folder. Take up to 100 letters, digits and "
                "_ . - with a letter, a digit or _ first.",
                detail="NAME",
            )
        existing = by_folded.get(name.casefold())
        if existing is not None and existing != name:
            raise InvalidIndex(
                f"index {name} differs from the existing {existing} in case only; choose another name", detail="NAME"
            )
        if name in state.indexes and not replace:
            hint = (
                "restore or vacuum it"
                if state.indexes[name].state == DELETED
                else "refresh it, or create with replace=True"
            )
            raise IndexExists(f"index {name} exists already and is {state.indexes[name].state}; {hint}")


def _must_be_active(state: TableState, begun: OperationBegun, replace: bool) -> None:
    for name in begun.indexes:
        if _must_exist_one(state, name) == DELETED:
            raise WrongState(
                f"{begun.verb} of index {name}: it is {DELETED}, not {ACTIVE}; restore it first", detail="IS_DELETED"
            )


def _must_be_deleted(state: TableState, begun: OperationBegun, replace: bool) -> None:
    for name in begun.indexes:
        if _must_exist_one(state, name) == ACTIVE:
            raise WrongState(
                f"{begun.verb} of index {name}: it is {ACTIVE}, not {DELETED}; there is nothing to restore",
                detail="IS_ACTIVE",
            )


def _must_exist(state: TableState, begun: OperationBegun, replace: bool) -> None:
    for name in begun.indexes:
        _must_exist_one(state, name)


def _must_exist_one(state: TableState, name: str) -> str:
    index = state.indexes.get(name)
    if index is None:
        known = ", ".join(sorted(state.indexes)) or "none yet"
        raise IndexNotFound(f"no index {name} on this table; there are: {known}")
    return index.state


_ALLOWED: Mapping[Verb, Callable[[TableState, OperationBegun, bool], None]] = {
    Verb.CREATE: _may_create,
    Verb.DELETE: _must_be_active,
    Verb.OPTIMIZE: _must_be_active,
    Verb.REFRESH: _must_be_active,
    Verb.REPAIR: _must_be_active,
    Verb.RESTORE: _must_be_deleted,
    Verb.VACUUM: _must_exist,
}
