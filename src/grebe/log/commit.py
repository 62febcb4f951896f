"""Writing the log: a commit is a put-if-absent of the next number, repeated until it is known who won it.

The rules, each of which has a schedule in the simulation that fails without it:
- an unknown answer: the same number again, with the same bytes;
- "already exists": read that entry. My transaction id: I won (the reply to an earlier try was lost, or the store's client repeated
  it by itself). Another's: catch up, propose anew on top of it, next number. Absent: the same number again.
- never order by a clock, never look first and then write.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Self

from grebe import telemetry
from grebe.clock import SYSTEM, Clock
from grebe.errors import (
    Conflict,
    CorruptLog,
    GrebeError,
    InvalidIndex,
    StoreRefused,
    StoreUnreachable,
    TableNotFound,
)
from grebe.log import codec, identity, invariants, names, snapshot
from grebe.log.entry import Change, Entry, TableCreated, TableInfo, Writer
from grebe.log.ownership import claim, require_owner
from grebe.log.snapshot import Snapshot
from grebe.log.states import Impossible, TableState, apply
from grebe.store.access import taking_access_of
from grebe.store.patient import PatientStore
from grebe.store.probe import probe
from grebe.store.protocol import ObjectExists, OutcomeUnknown, Store

_logger = logging.getLogger("grebe.log")

_LONGEST_LOOK_MS = 10 * 60 * 1000

Proposal = Callable[[TableState], Sequence[Change]]
"""Given the newest state, the changes to make on top of it (none: there is nothing to do). Called again after each lost race; may
raise, which ends the commit with nothing written."""


class Log:
    """One table's log as this process sees it. `newest` is immutable and replaced as a whole; any thread may read it."""

    def __init__(
        self,
        store: Store,
        clock: Clock = SYSTEM,
        writer: Writer | None = None,
        patience: float = 60.0,
        checkpoint_every: int = 64,
    ) -> None:
        self.store = PatientStore(store, clock, patience)
        self.clock = clock
        self._writer = writer
        self._newest = Snapshot()
        self._lock = threading.Lock()
        self._traces = PatientStore(store, clock, seconds=0.5)
        self._checkpoint_every = checkpoint_every
        self._may_write = False
        self.generation = 0
        """Counts how often the log was found to be another one than was read before: ids of files mean other files then."""

    @property
    def newest(self) -> Snapshot:
        return self._newest

    @property
    def writer(self) -> Writer:
        return self._writer or identity.this_writer()

    @property
    def state(self) -> TableState:
        return self.newest.state

    def open(self) -> Self:
        """Reads the newest state. Raises `TableNotFound` where there is no log."""
        table = self._move_to(snapshot.newest(self.store)).state.table
        if table is not None:
            taking_access_of(self.store, table.uri)
        return self

    def create(self, table: TableInfo) -> Self:
        """Opens the log of this table, making it if it is not there. Several may do so at once."""
        taking_access_of(self.store, table.uri)
        made = self._commit("create table", lambda state: () if state.table else (TableCreated(table),), table)
        require_owner(self.store.uri, made.state.table.uri if made.state.table else "unknown", table.uri)
        return self

    def claim(self) -> None:
        """Make sure that this folder is marked as that of this log's table, before anything is written or removed in it."""
        self._look()
        self._check_before_first_write(None)

    def reload(self) -> Snapshot:
        """Reads on from where this process is. A log that was removed and made anew meanwhile is opened anew."""
        before = self._newest
        try:
            found = snapshot.read_on(self.store, before)
            # Without a new entry nothing has shown yet that this is still the log that was read.
            replaced = found.number == before.number >= 0 and not snapshot.holds(self.store, before)
        except CorruptLog:
            if before.number < 0 or snapshot.holds(self.store, before):
                raise
            replaced = True
        if replaced:
            found = snapshot.newest_or_empty(self.store)
            # Entries that are as old as this may have been removed by a vacuum, and others written since.
            same = found.number > before.number and found.state.table == before.state.table
            level, event = (logging.INFO, "log_read_anew") if same else (logging.WARNING, "log_replaced")
            telemetry.event(_logger, level, event, where=self.store.uri, number=before.number)
            self._may_write = False
            self.generation += 1
        return self._move_to(found, instead_of=before)

    def commit(self, action: str, propose: Proposal) -> Snapshot:
        """One entry on top of the newest state, exactly once; the snapshot right after it."""
        return self._commit(action, propose, None)

    def _commit(self, action: str, propose: Proposal, table: TableInfo | None) -> Snapshot:
        """`table`: whose log this becomes, if there is none."""
        transaction = self.clock.new_id()
        while True:
            looked_ms = self.clock.now_ms()
            before = self._look()
            self._check_before_first_write(table)
            changes = tuple(propose(before.state))
            if not changes:
                return before
            if before.number < 0 and not isinstance(changes[0], TableCreated):
                raise TableNotFound(
                    f"the log at {self.store.uri} has been removed; create the indexes anew", detail="LOG_REMOVED"
                )
            now = self.clock.now_ms()
            if abs(now - looked_ms) > _LONGEST_LOOK_MS:
                continue  # held up for so long that a vacuum may have removed the number that was next, and many after it
            asked = Entry(before.number + 1, transaction, before.digest, action, now, self.writer, changes)
            data, entry, digest = _as_others_read_it(asked)
            after = Snapshot(entry.number, digest, _checked(before.state, entry))
            if self._settle(entry, data):
                self._leave_traces(after)
                return self._move_to(after)

    def _settle(self, entry: Entry, data: bytes) -> bool:
        """Puts until the number is known to be taken. Is it by us?"""
        path = names.entry_path(entry.number)
        patience = self.store.patience()
        unsure: OutcomeUnknown | None = None
        while True:
            try:
                self.store.put_if_absent(path, data)
                return True
            except StoreRefused as refusal:
                if unsure is None:
                    raise
                # An earlier try may have been carried out, or may still be.
                raise StoreUnreachable(
                    f"the store gave no clear answer ({unsure.args[0]}), and then refused ({refusal.args[0]}). What was asked "
                    "of it may have happened all the same; trying again is safe."
                ) from refusal
            except ObjectExists as claim:
                found = snapshot.read_entry(self.store, entry.number)
                if found is not None:
                    return found[0].id == entry.id
                # Some stores answer so while another write is still under way, and then store neither.
                patience.wait(OutcomeUnknown(str(claim)))
            except OutcomeUnknown as problem:
                unsure = problem
                patience.wait(problem)

    def _leave_traces(self, made: Snapshot) -> None:
        """Hint and checkpoints only save readers time, so failing to write them fails nothing."""
        try:
            if (made.number + 1) % self._checkpoint_every == 0:
                snapshot.write_checkpoint(self._traces, made)
            snapshot.write_hint(self._traces, made)
        except GrebeError as problem:
            telemetry.event(_logger, logging.WARNING, "hint_not_written", number=made.number, code=problem.code)

    def _look(self) -> Snapshot:
        """Read the newest state, whether or not this log was opened before."""
        if self.newest.number < 0:
            self._move_to(snapshot.newest_or_empty(self.store))
        return self.reload()

    def _check_before_first_write(self, table: TableInfo | None) -> None:
        if self._may_write:
            return
        owner = self.state.table or table
        if owner is None:
            return  # there is no log, and none is to be made: whoever asked is told so
        claim(self.store, owner.uri, has_log=self.newest.number >= 0)
        probe(self.store)
        snapshot.check_no_gap(self.store, self.newest)
        self._may_write = True

    def _move_to(self, found: Snapshot, instead_of: Snapshot | None = None) -> Snapshot:
        """Another thread may have been further already: then that stays, unless it is what was found to be gone."""
        with self._lock:
            if found.number >= self._newest.number or self._newest is instead_of:
                self._newest = found
        return found


def _as_others_read_it(entry: Entry) -> tuple[bytes, Entry, str]:
    """The bytes of an entry and what they say: all that counts is what everybody else will read."""
    data, _ = codec.encode_entry(entry)
    try:
        return data, *codec.decode_entry(data, entry.action)
    except CorruptLog as unreadable:
        raise InvalidIndex(
            f"{entry.action} was not written, since nobody could read it: {unreadable}. Give every field the type it has.",
            detail="FIELDS",
        ) from unreadable


def _checked(before: TableState, entry: Entry) -> TableState:
    """The state after our own entry. What does not fit is a conflict with whoever changed the state since we read it."""
    try:
        after = apply(before, entry)
    except Impossible as problem:
        raise Conflict(
            f"{entry.action}: {problem}. Another writer was first; try again.", detail="LOST_RACE"
        ) from problem
    if problems := invariants.broken(after):
        raise CorruptLog(
            f"{entry.action} was not written, since it would break the log: {'; '.join(problems)}", detail="INVARIANT"
        )
    return after
