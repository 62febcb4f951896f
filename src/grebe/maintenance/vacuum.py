"""Removes bytes that nobody can still be reading: of deleted indexes, of content that was replaced, and what dead operations left.
Older versions of an index that are kept for queries of older versions of the table are in use, and stay.

Whatever leaves use is announced by an entry of the log. A reader may go on with what it knew for `micd_seconds` (maximum index
cache duration), and then looks at the log again; so bytes may go once the *store's* clock says that so long has passed since that
entry. No two machines' clocks are compared, and removing twice does no harm.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grebe import telemetry
from grebe.errors import IndexNotFound
from grebe.log import names
from grebe.log.commit import Log, Proposal
from grebe.log.entry import Change, ContentForgotten, IndexDropped, Verb
from grebe.log.liveness import store_time, the_dead
from grebe.log.operation import Running, roll_back
from grebe.log.states import DELETED, TableState
from grebe.maintenance.operation import carry_out, observed
from grebe.store.protocol import ObjectInfo, ObjectMissing

_AT_ONCE = 16
_MILLIS = 1000
_A_WHILE_MS = 10 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What went, and what has to wait."""

    indexes: tuple[str, ...]
    """Deleted indexes that are gone for good."""
    objects: int
    bytes: int
    waiting: int
    """Objects out of use that a reader may still open."""


def vacuum(
    log: Log, name: str | None = None, micd_seconds: float = 86_400.0, heartbeat_seconds: float = 60.0
) -> Vacuumed:
    """Of one index, or of all and of what belongs to none. A deleted index cannot be restored after this."""
    with observed(log, Verb.VACUUM, [] if name is None else [name]) as told:
        gone = _vacuumed(log, name, micd_seconds, heartbeat_seconds, told)
        told.add(dropped=gone.indexes, files=gone.objects, bytes=gone.bytes, waiting=gone.waiting)
    return gone


def _vacuumed(
    log: Log, name: str | None, micd_seconds: float, heartbeat_seconds: float, told: telemetry.Span
) -> Vacuumed:
    _end_the_dead(log, name)
    dropped = _drop(log, name, heartbeat_seconds, told)
    # Listed before the log is looked at: whoever wrote an object had announced itself by then.
    listed = {one.path: one for folder in ("data", "files", "alive") for one in log.store.list(folder)}
    state = log.reload().state
    now = store_time(log.store, log.clock)
    young = now - int(micd_seconds * _MILLIS)
    ready, waiting = _retired(log, state, name, young)
    leftovers = [] if name is not None else _leftovers(state, listed.values(), now, young)
    gone = [*ready, *(path for path in leftovers if path not in state.retired)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(log.store.delete, gone))
    if ready:
        log.commit("vacuum", _forgotten(ready))
    there = [listed[path] for path in gone if path in listed]
    return Vacuumed(tuple(dropped), len(there), sum(one.size for one in there), waiting)


def _end_the_dead(log: Log, name: str | None) -> None:
    """What they left has no owner then. Elsewhere only the next verb on the same index would notice."""
    running = log.reload().state.operations.values()
    for operation in the_dead(log.store, [one for one in running if name is None or name in one.indexes], log.clock):
        roll_back(log, operation.id, "its process is gone")


def _drop(log: Log, name: str | None, heartbeat_seconds: float, told: telemetry.Span) -> Sequence[str]:
    state = log.reload().state
    if name is not None and name not in state.indexes and not _of_index(state.retired, name):
        known = ", ".join(sorted(state.indexes)) or "none"
        raise IndexNotFound(f"no index {name} on this table, and nothing is left of one; there are: {known}")
    deleted = [one for one, index in state.indexes.items() if index.state == DELETED and name in (None, one)]
    if not deleted:
        told.begun()
        return []

    def work(running: Running) -> Proposal:
        def changes(newest: TableState) -> Sequence[Change]:
            still = (newest.indexes.get(one) for one in deleted)
            return [IndexDropped(one.name) for one in still if one is not None and one.state == DELETED]

        return changes

    made = carry_out(log, Verb.VACUUM, deleted, work, heartbeat_seconds=heartbeat_seconds, told=told)
    return [one for one in deleted if one not in made.state.indexes]


def _of_index(paths: Iterable[str], name: str) -> list[str]:
    return [path for path in paths if path.startswith(f"data/{name}/")]


def _retired(log: Log, state: TableState, name: str | None, young: int) -> tuple[list[str], int]:
    """Objects that have been out of use for long enough, and how many have not."""
    mine = set(state.retired) if name is None else set(_of_index(state.retired, name))
    entries = {state.retired[path] for path in mine}
    times = {number: _entry_time(log, number) for number in entries}
    ready = [path for path in mine if times[state.retired[path]] <= young]
    return sorted(ready), len(mine) - len(ready)


def _entry_time(log: Log, number: int) -> int:
    try:
        return log.store.stat(names.entry_path(number)).modified_ms
    except ObjectMissing:  # an entry so old that it was removed
        return 0


def _leftovers(state: TableState, listed: Iterable[ObjectInfo], now: int, young: int) -> list[str]:
    """What no entry names and no running operation owns: dead operations left it, or it lost a race."""
    used = state.content_paths | {segment.path for segment in state.segments} | set(state.retired)
    running = tuple(state.operations)

    def is_left(one: ObjectInfo) -> bool:
        if one.path in used or one.modified_ms > young:
            return False
        folder = one.path.partition("/")[0]
        if folder == "alive":  # a judge or an operation that is about to begin may have written it a moment ago
            return one.modified_ms <= now - _A_WHILE_MS
        if folder == "files":  # it does not say which operation wrote it
            return not running
        return not any(owner in one.path for owner in running)

    return sorted(one.path for one in listed if is_left(one))


def _forgotten(paths: Sequence[str]) -> Proposal:
    def changes(state: TableState) -> Sequence[Change]:
        still = tuple(path for path in paths if path in state.retired)
        return (ContentForgotten(still),) if still else ()

    return changes
