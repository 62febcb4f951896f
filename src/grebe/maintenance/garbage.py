"""Which objects of a location nobody needs any more: the decision, without the removal.

- content that an entry took out of use, once that entry is older than the retention;
- content of an operation that is known to have ended without it: at once, since no entry ever named it and so nobody read it;
- other objects that no entry names and no running operation owns, once they are older than the retention;
- heartbeats, trials of the store, drafts: a while after they were written;
- folders without anything in them;
- entries of the log below a checkpoint that is older than the log's retention, and the checkpoints before it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from grebe.log import names, snapshot
from grebe.log.commit import Log
from grebe.log.entry import OperationBegun
from grebe.log.liveness import is_gone, store_time
from grebe.log.location import beside
from grebe.log.ownership import overlaps
from grebe.log.registration import Registry
from grebe.log.states import TableState
from grebe.store.protocol import ObjectInfo, ObjectMissing

_MILLIS = 1000
_A_WHILE_MS = 10 * 60 * 1000
_LONGEST_WRITE_MS = 60 * 60 * 1000
_SHORTEST_LOG_RETENTION = 3600.0
"""Seconds. A writer that was held up between its look at the log and its commit must not meet a log without these entries."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many seconds bytes out of use stay, and entries of the log that a checkpoint has made superfluous."""

    seconds: float = 86_400.0
    log_seconds: float = 30 * 86_400.0


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Garbage:
    """Objects that may go. Of `retired` the log still speaks."""

    retired: tuple[str, ...]
    others: tuple[str, ...]
    waiting: int
    """Retired objects that a reader may still open."""
    objects: int
    """Those of them that are there, and their bytes."""
    bytes: int
    folders: tuple[str, ...] = ()
    """Folders that may go if they are empty then, each after those in it."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them, in an order that may be broken off at any point."""
        return (*self.retired, *self.others)


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a location."""

    objects: Sequence[ObjectInfo]
    folders: Sequence[ObjectInfo]


def found_in(log: Log) -> Found:
    """List everything in the location of a log, drafts and folders too."""
    return Found([*log.store.list(), *log.store.drafts()], log.store.folders("data"))


def garbage_of(log: Log, state: TableState, found: Found, name: str | None, limits: Limits) -> Garbage:
    """Return what may go, of one index or of all and of what belongs to none. `found` must have been listed before `state` was
    read: whoever wrote an object had announced itself by then."""
    listed = found.objects
    now = store_time(log.store, log.clock)
    young = now - int(limits.seconds * _MILLIS)
    is_of_table = _files_of_table(log, state)
    mine = [path for path in state.retired if name is None or path.startswith(f"data/{name}/")]
    mine = [path for path in mine if names.is_removable(path) and not is_of_table(path)]
    since = {number: _entry_time(log, number) for number in {state.retired[path] for path in mine}}
    retired = sorted(path for path in mine if since[state.retired[path]] <= young)
    others: list[str] = []
    if name is None:
        is_left = _leftovers(log, state, now, young)
        ours = (one for one in listed if _has_our_shape(one.path) and not is_of_table(one.path))
        others += sorted(one.path for one in ours if is_left(one))
        # Not before what they took out of use: how long that has been so is told by their age.
        log_seconds = max(limits.seconds, limits.log_seconds, _SHORTEST_LOG_RETENTION)
        others += superfluous_entries(log, state, listed, now - int(log_seconds * _MILLIS))
    sizes = {one.path: one.size for one in listed}
    there = [sizes[path] for path in (*retired, *others) if path in sizes]
    folders = _folders_to_try(found.folders, state, now)
    return Garbage(tuple(retired), tuple(others), len(mine) - len(retired), len(there), sum(there), folders)


def left_by_the_dead(log: Log, state: TableState) -> list[str]:
    """Return content that no entry names, of operations that have ended or whose process is surely gone. Nothing is written to find
    out, so that it can be removed from a full disk."""
    used = state.content_paths | set(state.retired)
    is_of_table = _files_of_table(log, state)

    @cache
    def is_over(version: int, operation: str) -> bool:
        running = state.operations.get(operation)
        return _has_ended(log, version, operation) if running is None else is_gone(running)

    found = (one.path for one in log.store.list("data") if one.path not in used and not is_of_table(one.path))
    return [path for path in found if (owner := names.operation_of(path)) is not None and is_over(*owner)]


def _has_our_shape(path: str) -> bool:
    return names.is_removable(path) or names.is_draft(path)


def _folders_to_try(found: Sequence[ObjectInfo], state: TableState, now: int) -> tuple[str, ...]:
    """Return folders for content that no running operation writes to, and that were not made a moment ago."""
    owners = ((one, names.owner_of_folder(one.path)) for one in found)
    return tuple(
        one.path
        for one, owner in owners
        if owner is not None and owner not in state.operations and one.modified_ms <= now - _A_WHILE_MS
    )


def _entry_time(log: Log, number: int) -> int:
    try:
        return log.store.stat(names.entry_path(number)).modified_ms
    except ObjectMissing:  # an entry so old that it was removed
        return 0


def _leftovers(log: Log, state: TableState, now: int, young: int) -> Callable[[ObjectInfo], bool]:
    """Tell what no entry names and no running operation owns: dead operations left it, or it lost a race."""
    used = state.content_paths | {segment.path for segment in state.segments} | set(state.retired)
    has_ended = cache(lambda version, operation: _has_ended(log, version, operation))

    def is_left(one: ObjectInfo) -> bool:
        if one.path in used:
            return False
        if names.is_draft(one.path):
            return one.modified_ms <= now - _LONGEST_WRITE_MS
        owner = names.operation_of(one.path)
        if owner is not None:
            return owner[1] not in state.operations and (one.modified_ms <= young or has_ended(*owner))
        folder, _, last = one.path.partition("/")
        if folder == "files":  # it does not say which operation wrote it
            return not state.operations and one.modified_ms <= young
        # A judge or an operation that is about to begin may have written it a moment ago.
        return last not in state.operations and one.modified_ms <= now - _A_WHILE_MS

    return is_left


def _has_ended(log: Log, version: int, operation: str) -> bool:
    """Tell whether the log holds the begin of this operation, which is not among the running ones."""
    if version > log.newest.number:
        return False
    found = snapshot.read_entry(log.store, version)
    return found is not None and any(
        isinstance(change, OperationBegun) and change.id == operation for change in found[0].changes
    )


def _files_of_table(log: Log, state: TableState) -> Callable[[str], bool]:
    """Tell the table's own files. They can lie here only in a log of release 0.1.0, which was not kept apart from its table."""
    location, table = log.store.uri, "" if state.table is None else state.table.uri
    if not table or location == beside(table) or not overlaps(location, table):
        return lambda path: False
    inside = f"{table.removeprefix(f'{location}/')}/" if table.startswith(f"{location}/") else None
    files = set(Registry(log).files(state).files.uris().to_pylist())

    def is_of_table(path: str) -> bool:
        return (inside is not None and path.startswith(inside)) or f"{location}/{path}" in files

    return is_of_table


def superfluous_entries(log: Log, state: TableState, listed: Iterable[ObjectInfo], old: int) -> list[str]:
    """Return the entries and checkpoints below the newest checkpoint whose entry is from before `old`, by the store's clock: the
    checkpoints first, then the entries, the oldest first. The entry that a checkpoint names stays, and all since the begin of a
    running operation."""
    entries: dict[int, ObjectInfo] = {}
    checkpoints: dict[int, ObjectInfo] = {}
    for one in listed:
        if (number := names.entry_number(one.path)) is not None:
            entries[number] = one
        elif (number := names.checkpoint_number(one.path)) is not None:
            checkpoints[number] = one
    limit = min([operation.number for operation in state.operations.values()], default=log.newest.number)
    for number in sorted(checkpoints, reverse=True):
        entry = entries.get(number)
        if number > limit or entry is None or entry.modified_ms > old:
            continue
        if not snapshot.is_sound_checkpoint(log.store, number):
            continue  # nothing can be read from there, so that what is before it is needed
        before = [entries[each].path for each in sorted(entries) if each < number]
        return [*(checkpoints[each].path for each in sorted(checkpoints) if each < number), *before]
    return []
