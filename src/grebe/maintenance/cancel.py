"""Ends operations on an index that died, or that are to be given up. Nobody ever has to mend anything by hand."""

from collections.abc import Sequence

from grebe.errors import IndexNotFound
from grebe.log.commit import Log
from grebe.log.entry import Change, OperationEnded
from grebe.log.states import Operation, TableState
from grebe.maintenance.operation import observed


def cancel(log: Log, name: str) -> list[Operation]:
    """Those that were ended. One that still runs finds out with its next heartbeat, and stops."""
    with observed(log, "cancel", [name]) as told:
        told.begun()
        ended = _ended(log, name)
        told.add(ended=[operation.id for operation in ended])
    return ended


def _ended(log: Log, name: str) -> list[Operation]:
    state = log.reload().state
    known = {*state.indexes, *(one for operation in state.operations.values() for one in operation.indexes)}
    if name not in known:
        raise IndexNotFound(f"no index {name} on this table; there are: {', '.join(sorted(known)) or 'none yet'}")
    ended: list[Operation] = []

    def changes(newest: TableState) -> Sequence[Change]:
        ended[:] = newest.operations_on((name,))
        return [OperationEnded(operation.id, committed=False, reason="cancelled") for operation in ended]

    log.commit("cancel", changes)
    return ended
