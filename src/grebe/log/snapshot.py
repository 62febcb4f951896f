"""Reading the log: from the hint, a checkpoint or the first entry, on to the newest entry.

Opening costs three requests however long the history: the hint, the entry after it (absent), and the entry it speaks of. The hint
is only ever a place to start: the state in it counts if the log really holds the entry that it claims to be the state after.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from grebe import telemetry
from grebe.errors import Conflict, CorruptLog, GrebeError, StoreRefused, TableNotFound
from grebe.log import codec, invariants, names
from grebe.log.entry import Entry
from grebe.log.states import Impossible, TableState, apply
from grebe.store.protocol import ObjectMissing, ObjectTooLarge, Store

_LISTINGS = 20
LONGEST_WALK = 32
"""Entries read one by one before a shorter way is looked for."""
_logger = logging.getLogger("grebe.log")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after one entry; `digest` is that entry's, which the next one must name. Number -1: before the first entry."""

    number: int = -1
    digest: str = ""
    state: TableState = field(default_factory=TableState)

    def after(self, entry: Entry, digest: str, where: str) -> "Snapshot":
        """The snapshot one entry later. Raises `CorruptLog` where the entry does not follow."""
        if entry.number != self.number + 1 or entry.previous != self.digest:
            raise CorruptLog(
                f"{where} does not follow entry {self.number}: entries were lost or exchanged. Bring the log folder back from "
                "a backup, or remove the table's folder under _grebe and create the indexes anew: no data of the table is in it.",
                detail="CHAIN",
            )
        try:
            after = apply(self.state, entry)
        except Impossible as problem:
            raise CorruptLog(
                f"{where} cannot follow entry {self.number}: {problem}. {codec.NEXT_STEP}", detail="HISTORY"
            ) from problem
        if problems := invariants.broken_by(entry, after):
            raise CorruptLog(
                f"{where} is no entry that Grebe wrote: {'; '.join(problems[:3])}. {codec.NEXT_STEP}",
                detail="INVARIANT",
            )
        return Snapshot(entry.number, digest, after)


def newest(store: Store) -> Snapshot:
    """The newest state. Raises `TableNotFound` where there is no log."""
    found = newest_or_empty(store)
    if found.number < 0:
        raise TableNotFound(
            f"no Grebe log at {store.uri}: nothing has been indexed there. Create an index first, or name the right location=."
        )
    return found


def newest_or_empty(store: Store) -> Snapshot:
    """The newest state; the one before the first entry where there is no log."""
    return _from_hint(store) or _from_listing(store)


def read_on(store: Store, snapshot: Snapshot) -> Snapshot:
    """The newest state, from one that was read before."""
    following = _read_some(store, snapshot)
    if following.at_end:
        return following.snapshot
    jumped = newest_or_empty(store)
    return jumped if jumped.number > following.snapshot.number else _read_all(store, following.snapshot)


def holds(store: Store, snapshot: Snapshot) -> bool:
    """Whether the log still has the entry that this is the state after, or has been removed or exchanged meanwhile."""
    found = read_entry(store, snapshot.number)
    return found is not None and found[1] == snapshot.digest


@dataclass(frozen=True, slots=True)
class _Following:
    snapshot: Snapshot
    at_end: bool


def _read_some(store: Store, snapshot: Snapshot) -> _Following:
    """Reads on, but not so far that a checkpoint would be the shorter way."""
    for _ in range(LONGEST_WALK):
        found = read_entry(store, snapshot.number + 1)
        if found is None:
            return _Following(snapshot, at_end=True)
        snapshot = snapshot.after(*found, where=_where(store, snapshot.number + 1))
    return _Following(snapshot, at_end=False)


def _read_all(store: Store, snapshot: Snapshot) -> Snapshot:
    following = _read_some(store, snapshot)
    while not following.at_end:
        following = _read_some(store, following.snapshot)
    return following.snapshot


def read_entry(store: Store, number: int) -> tuple[Entry, str] | None:
    """The entry and its digest; None if there is no such entry yet."""
    try:
        data = store.get(names.entry_path(number), codec.MOST_BYTES)
    except ObjectMissing:
        return None
    except ObjectTooLarge as problem:
        raise CorruptLog(f"{problem}. {codec.NEXT_STEP}", detail="SIZE") from problem
    return codec.decode_entry(data, _where(store, number))


def history(store: Store, newest_number: int, limit: int | None = None) -> Iterator[Entry]:
    """The last `limit` entries (all, if None) up to `newest_number`, oldest first. Those that vacuum removed are left out."""
    number = 0 if limit is None else max(0, newest_number + 1 - limit)
    while number <= newest_number:
        found = read_entry(store, number)
        if found is None:
            number = _first_after_removed(store, number, newest_number)
            continue
        yield found[0]
        number += 1


def _first_after_removed(store: Store, missing: int, newest_number: int) -> int:
    """Return the number behind the last missing entry. Raises `CorruptLog` where no checkpoint stands in for the missing ones."""
    listed = [info.path for info in store.list(names.LOG)]
    there = {number for number in map(names.entry_number, listed) if number is not None}
    # Whoever opened the log long ago knows a newest entry that may have been removed like those before it.
    first = newest_number if newest_number in there else newest_number + 1
    while first - 1 in there:
        first -= 1
    if first <= missing:
        raise gap(store, missing)  # it is there after all
    if not any(
        is_sound_checkpoint(store, n) for n in map(names.checkpoint_number, listed) if n is not None and n >= first
    ):
        raise gap(store, first - 1)
    return first


def is_sound_checkpoint(store: Store, number: int) -> bool:
    """Tell whether the log can be read from this checkpoint on: it is whole, and the log holds the entry that it names."""
    found = _read_state(store, names.checkpoint_path(number))
    return found is not None and found.number == number and holds(store, found)


def check_no_gap(store: Store, snapshot: Snapshot) -> None:
    """Raises `CorruptLog` if entries lie behind a missing one: writing into the hole would fork the history."""
    expected = snapshot.number + 1
    for number in _listed_entries(store, snapshot.number):
        # A listing is no snapshot: what it skipped may have been written while it ran, so only a read can tell.
        while expected < number:
            if read_entry(store, expected) is None:
                raise gap(store, expected)
            expected += 1
        expected = number + 1


def gap(store: Store, number: int, why: str = "") -> CorruptLog:
    return CorruptLog(
        f"{_where(store, number)} is missing, but later entries are there.{why} Bring the object back from a backup or an older "
        "version of it; if there is none, remove the table's folder under _grebe and create the indexes anew: no data of the "
        "table is in it.",
        detail="GAP",
    )


def write_hint(store: Store, snapshot: Snapshot) -> None:
    _write_state(store, names.HINT, snapshot)


def write_checkpoint(store: Store, snapshot: Snapshot) -> None:
    # Overwriting is harmless: the state after an entry is the same for every writer.
    _write_state(store, names.checkpoint_path(snapshot.number), snapshot)


def _write_state(store: Store, path: str, snapshot: Snapshot) -> None:
    """Write a state that readers can take; without one they read the entries."""
    try:
        data = codec.encode_state(snapshot.number, snapshot.digest, snapshot.state)
    except codec.StateTooLarge:
        telemetry.event(_logger, logging.WARNING, "state_too_large", where=f"{store.uri}/{path}")
        return
    store.put(path, data)


def _from_hint(store: Store) -> Snapshot | None:
    """The newest state by way of the hint; None if the hint is absent, damaged, or of another log."""
    hint = _read_state(store, names.HINT)
    if hint is None:
        return None
    first = read_entry(store, hint.number + 1)
    if first is None:
        return hint if holds(store, hint) else None
    if first[0].previous != hint.digest:
        return None
    following = _read_some(store, hint.after(*first, where=_where(store, hint.number + 1)))
    return following.snapshot if following.at_end else None


def _from_listing(store: Store) -> Snapshot:
    """Return the newest state by way of the newest checkpoint that can be believed, or else from the first entry."""
    for _ in range(_LISTINGS):
        found = _from_one_listing(store)
        if found is not None:
            return found
    raise Conflict(f"the log at {store.uri} changes faster than it can be read: try again", detail="LOG_CHANGES")


def _from_one_listing(store: Store) -> Snapshot | None:
    """Return the newest state, or None if what was listed is there no more."""
    listed = [info.path for info in store.list(names.LOG)]
    numbers = [n for n in map(names.entry_number, listed) if n is not None]
    checkpoints = [n for n in map(names.checkpoint_number, listed) if n is not None]
    start = Snapshot()
    problems: list[GrebeError] = []
    for number in sorted(checkpoints, reverse=True):
        found = _read_state(store, names.checkpoint_path(number), problems)
        if found is not None and holds(store, found):
            start = found
            break
    reached = _read_all(store, start)
    if not numbers or reached.number >= numbers[-1]:
        return reached
    if read_entry(store, numbers[-1]) is not None:
        raise _unreachable(store, reached.number + 1, problems)
    return None  # the log is being removed, or was put back to an older state


def _unreachable(store: Store, number: int, problems: list[GrebeError]) -> GrebeError:
    """Return the error for an entry that is missing although later ones are there. Where checkpoints were there too, vacuum may
    have removed it: then what became of them is what counts."""
    refused = next((problem for problem in problems if isinstance(problem, StoreRefused)), None)
    if refused is not None:
        return refused
    return gap(store, number, f" No checkpoint stands in for it: {problems[0].args[0]}." if problems else "")


def _listed_entries(store: Store, after: int) -> Iterator[int]:
    start_after = names.entry_path(after) if after >= 0 else ""
    for info in store.list(names.LOG, start_after=start_after):
        number = names.entry_number(info.path)
        if number is not None:
            yield number


def _read_state(store: Store, path: str, problems: list[GrebeError] | None = None) -> Snapshot | None:
    """Return the state of a hint or a checkpoint, or None where none can be read, which costs time, not safety: an earlier one, or
    none, and the entries behind it hold everything. Why it could not be read is added to `problems`."""
    where = f"{store.uri}/{path}"
    try:
        number, digest, state = codec.decode_state(store.get(path, codec.MOST_BYTES), where)
    except ObjectMissing:
        return None
    except (CorruptLog, ObjectTooLarge, StoreRefused) as problem:
        telemetry.event(_logger, logging.WARNING, "checkpoint_unreadable", where=where, code=problem.code)
        if problems is not None:
            problems.append(problem)
        return None
    return Snapshot(number, digest, state)


def _where(store: Store, number: int) -> str:
    return f"{store.uri}/{names.entry_path(number)}"
