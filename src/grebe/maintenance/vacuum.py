"""Removes bytes that nobody can still be reading: of deleted indexes, of content that was replaced, and what dead operations left.
Older versions of an index that are kept for queries of older versions of the table are in use, and stay.

Whatever leaves use is announced by an entry of the log. A reader may go on with what it knew for `vacuum_retention_seconds`, and
then looks at the log again; so bytes may go once the *store's* clock says that so long has passed since that entry. No two
machines' clocks are compared, and removing twice does no harm.

Only objects whose names have exactly the shapes that Grebe writes are removed, only in a location that is marked as this table's,
and never one that is a file of the table.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from grebe import telemetry
from grebe.config import Config
from grebe.errors import IndexNotFound, InvalidConfig, StoreRefused
from grebe.log.commit import Log, Proposal
from grebe.log.entry import Change, ContentForgotten, Entry, IndexDropped, OperationEnded, Verb
from grebe.log.liveness import the_dead
from grebe.log.operation import Running, roll_back
from grebe.log.ownership import owner_of, require_owner
from grebe.log.states import DELETED, Operation, TableState, apply
from grebe.maintenance.garbage import DEFAULT_LIMITS, Garbage, Limits, found_in, garbage_of, left_by_the_dead
from grebe.maintenance.operation import carry_out, observed

_AT_ONCE = 16
_SHORTEST = 3600.0
_DAY = 86_400.0
_NO_ROOM = "STORE_REFUSED_NO_ROOM"
_GONE = "its process is gone"


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What went, and what has to wait."""

    indexes: tuple[str, ...]
    """Deleted indexes that are gone for good."""
    objects: int
    bytes: int
    waiting: int
    """Objects out of use that a reader may still open."""
    dry_run: bool = False
    """Whether this is only what would go."""
    paths: tuple[str, ...] = ()
    """The URIs of the objects that would go, if it is."""


def retention_of(config: Config) -> Limits:
    """Return how long bytes out of use stay by these settings. Raises `InvalidConfig` for a time so short that queries may lose
    what they are reading, unless that is asked for explicitly."""
    seconds = config.vacuum_retention_seconds
    if 0 < seconds < _SHORTEST and config.vacuum_retention_check:
        raise InvalidConfig(
            f"vacuum_retention_seconds = {seconds:g} is less than an hour: queries under way may still read what vacuum would "
            "remove. Give at least 3600; or set vacuum_retention_check to false, or vacuum_retention_seconds to 0, if nobody "
            "reads the indexes now.",
            detail="RETENTION",
        )
    return Limits(seconds, config.log_retention_days * _DAY)


def vacuum(
    log: Log,
    name: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    heartbeat_seconds: float = 60.0,
    *,
    dry_run: bool = False,
) -> Vacuumed:
    """Vacuum one index, or all and what belongs to none. A deleted index cannot be restored after this.

    `dry_run`: only say what would go. Nothing changes then; a small object is written for a moment, to learn the store's time."""
    with observed(log, Verb.VACUUM, [] if name is None else [name]) as told:
        if dry_run:
            told.begun()
            gone = _rehearsed(log, name, limits)
        else:
            gone = _vacuumed_if_full(log, name, limits, heartbeat_seconds, told)
        told.add(dropped=gone.indexes, files=gone.objects, bytes=gone.bytes, waiting=gone.waiting)
    return gone


def _vacuumed(log: Log, name: str | None, limits: Limits, heartbeat_seconds: float, told: telemetry.Span) -> Vacuumed:
    log.claim()
    _end_the_dead(log, name)
    dropped = _drop(log, name, heartbeat_seconds, told)
    found = found_in(log)
    garbage = garbage_of(log, log.reload().state, found, name, limits)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(log.store.delete, garbage.paths))
    for folder in garbage.folders:
        log.store.remove_folder(folder)
    if garbage.retired:
        log.commit("vacuum", _forgotten(garbage.retired))
    return _told(dropped, garbage)


def _vacuumed_if_full(
    log: Log, name: str | None, limits: Limits, heartbeat_seconds: float, told: telemetry.Span
) -> Vacuumed:
    """As `_vacuumed`, on a full disk too, where even a look at the store's clock needs room."""
    try:
        return _vacuumed(log, name, limits, heartbeat_seconds, told)
    except StoreRefused as problem:
        if problem.code != _NO_ROOM or not _make_room(log):
            raise
        return _vacuumed(log, name, limits, heartbeat_seconds, told)


def _make_room(log: Log) -> bool:
    """Remove from a full disk what dead operations left there, and tell whether there was anything."""
    state = log.reload().state
    if state.table is None:
        return False
    require_owner(log.store.uri, owner_of(log.store), state.table.uri)
    left = left_by_the_dead(log, state)
    for path in left:
        log.store.delete(path)
    return bool(left)


def _rehearsed(log: Log, name: str | None, limits: Limits) -> Vacuumed:
    """As `_vacuumed`, but what it would commit is only applied to the state that was read."""
    found = found_in(log)
    newest = log.reload()
    if newest.state.table is not None:
        require_owner(log.store.uri, owner_of(log.store), newest.state.table.uri)
    deleted = _deleted(newest.state, name)
    dead = the_dead(log.store, _operations_on(newest.state, name), log.clock)
    ended = [OperationEnded(one.id, committed=False, reason=_GONE) for one in dead]
    changes = (*ended, *map(IndexDropped, deleted))
    entry = Entry(newest.number + 1, "", newest.digest, "vacuum", log.clock.now_ms(), log.writer, changes)
    garbage = garbage_of(log, apply(newest.state, entry), found, name, limits)
    paths = tuple(f"{log.store.uri}/{path}" for path in sorted(garbage.paths))
    return replace(_told(deleted, garbage), dry_run=True, paths=paths)


def _told(dropped: Sequence[str], garbage: Garbage) -> Vacuumed:
    return Vacuumed(tuple(dropped), garbage.objects, garbage.bytes, garbage.waiting)


def _operations_on(state: TableState, name: str | None) -> list[Operation]:
    return [one for one in state.operations.values() if name is None or name in one.indexes]


def _end_the_dead(log: Log, name: str | None) -> None:
    """What they left has no owner then. Elsewhere only the next verb on the same index would notice."""
    for operation in the_dead(log.store, _operations_on(log.reload().state, name), log.clock):
        roll_back(log, operation.id, _GONE)


def _deleted(state: TableState, name: str | None) -> list[str]:
    if name is not None and name not in state.indexes and not _of_index(state.retired, name):
        known = ", ".join(sorted(state.indexes)) or "none"
        raise IndexNotFound(f"no index {name} on this table, and nothing is left of one; there are: {known}")
    return [one for one, index in state.indexes.items() if index.state == DELETED and name in (None, one)]


def _drop(log: Log, name: str | None, heartbeat_seconds: float, told: telemetry.Span) -> Sequence[str]:
    deleted = _deleted(log.reload().state, name)
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


def _forgotten(paths: Sequence[str]) -> Proposal:
    def changes(state: TableState) -> Sequence[Change]:
        still = tuple(path for path in paths if path in state.retired)
        return (ContentForgotten(still),) if still else ()

    return changes
