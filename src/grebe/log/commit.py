"""Writing the log: a commit is a put-if-absent of the next number, repeated until it is known who won it.

The rules, each of which has a schedule in the simulation that fails without it:
- an unknown answer: the same number again, with the same bytes;
- "already exists": read that entry. My transaction id: I won (the reply to an earlier try was lost, or the store's client repeated
  it by itself). Another's: catch up, propose anew on top of it, next number. Absent: the same number again.
- never order by a clock, never look first and then write.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Self

from grebe.clock import SYSTEM, Clock
from grebe.errors import Conflict, CorruptLog, GrebeError
from grebe.log import codec, identity, invariants, names, snapshot
from grebe.log.entry import Change, Entry, TableCreated, TableInfo, Writer
from grebe.log.snapshot import Snapshot
from grebe.log.states import Impossible, TableState, apply
from grebe.store.patient import PatientStore
from grebe.store.probe import probe
from grebe.store.protocol import ObjectExists, OutcomeUnknown, Store

_logger = logging.getLogger("grebe.log")

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
        self.writer = writer or identity.this_writer()
        self.newest = Snapshot()
        self._checkpoint_every = checkpoint_every
        self._may_write = False

    @property
    def state(self) -> TableState:
        return self.newest.state

    def open(self) -> Self:
        """Reads the newest state. Raises `TableNotFound` where there is no log."""
        self.newest = snapshot.newest(self.store)
        return self

    def create(self, table: TableInfo) -> Self:
        """Opens the log of this table, making it if it is not there. Several may do so at once."""
        self.commit("create table", lambda state: () if state.table else (TableCreated(table),))
        made = self.state.table
        if made is None or made.uri != table.uri:
            raise Conflict(
                f"{self.store.uri} holds the indexes of another table ({made.uri if made else 'unknown'}), not of {table.uri}. "
                "Name another location=.",
                detail="OTHER_TABLE",
            )
        return self

    def reload(self) -> Snapshot:
        """Reads on from where this process is."""
        self.newest = snapshot.read_on(self.store, self.newest)
        return self.newest

    def commit(self, action: str, propose: Proposal) -> Snapshot:
        """One entry on top of the newest state, exactly once; the snapshot right after it."""
        self._check_before_first_write()
        transaction = self.clock.new_id()
        while True:
            before = self.reload()
            changes = tuple(propose(before.state))
            if not changes:
                return before
            now = self.clock.now_ms()
            entry = Entry(before.number + 1, transaction, before.digest, action, now, self.writer, changes)
            data, digest = codec.encode_entry(entry)
            after = Snapshot(entry.number, digest, _checked(before.state, entry))
            if self._settle(entry, data):
                self._leave_traces(after)
                self.newest = after
                return after

    def _settle(self, entry: Entry, data: bytes) -> bool:
        """Puts until the number is known to be taken. Is it by us?"""
        path = names.entry_path(entry.number)
        patience = self.store.patience()
        while True:
            try:
                self.store.put_if_absent(path, data)
                return True
            except ObjectExists as claim:
                found = snapshot.read_entry(self.store, entry.number)
                if found is not None:
                    return found[0].id == entry.id
                # Some stores answer so while another write is still under way, and then store neither.
                patience.wait(OutcomeUnknown(str(claim)))
            except OutcomeUnknown as problem:
                patience.wait(problem)

    def _leave_traces(self, made: Snapshot) -> None:
        """Hint and checkpoints only save readers time, so failing to write them fails nothing."""
        try:
            if (made.number + 1) % self._checkpoint_every == 0:
                snapshot.write_checkpoint(self.store, made)
            snapshot.write_hint(self.store, made)
        except GrebeError as problem:
            _logger.warning("event=hint_not_written number=%d code=%s", made.number, problem.code)

    def _check_before_first_write(self) -> None:
        if self._may_write:
            return
        probe(self.store)
        if self.newest.number < 0:
            self.newest = snapshot.newest_or_empty(self.store)
        snapshot.check_no_gap(self.store, self.newest)
        self._may_write = True


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
