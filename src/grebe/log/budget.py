"""A budget of bytes for indexes of a table, held at every commit: by whoever asks for it, whoever else is at work."""

from collections.abc import Collection, Sequence

from grebe.errors import Conflict
from grebe.log.entry import Change, IndexChanged, IndexCreated, IndexDropped, OperationBegun, Purpose
from grebe.log.states import Operation, TableState

OVER_BUDGET = "CONFLICT_OVER_BUDGET"


def bytes_of(state: TableState, changes: Sequence[Change] = (), names: Collection[str] = ()) -> int:
    """What these indexes (all, if none is named) take after these changes, those deleted and not yet removed included. Older
    versions that are kept for older versions of the table have a budget of their own (`keep_bytes`)."""
    sizes = {name: sum(file.size for file in index.content) for name, index in state.indexes.items()}
    for change in changes:
        match change:
            case IndexCreated(name=name, content=content):
                sizes[name] = sum(file.size for file in content)
            case IndexDropped(name=name):
                sizes.pop(name, None)
            case IndexChanged(name=name, add=add, remove=remove) if name in sizes:
                gone = set(remove)
                left = sum(file.size for file in state.indexes[name].content if file.path not in gone)
                sizes[name] = left + sum(file.size for file in add)
    return sum(size for name, size in sizes.items() if not names or name in names)


def require_within(purpose: Purpose, state: TableState, changes: Sequence[Change]) -> None:
    """That a commit stays within its budget. Raises `Conflict`."""
    if purpose.most_bytes is None:
        return
    after = bytes_of(state, changes, purpose.budgeted)
    if after > purpose.most_bytes and after > bytes_of(state, (), purpose.budgeted):
        raise _over(after, purpose.most_bytes)


def require_room(begun: OperationBegun, state: TableState, dead: Collection[Operation]) -> None:
    """That what an operation will take fits beside what is there, and what others have announced. Raises `Conflict`."""
    most = begun.purpose.most_bytes
    if most is None or not begun.purpose.predicted:
        return
    own, names = begun.purpose.predicted, begun.purpose.budgeted
    there = bytes_of(state, [IndexDropped(name) for name in own], names)
    coming = [one.purpose.predicted for one in state.operations.values() if one not in dead]
    announced = [item for some in (*coming, own) for item in some.items()]
    promised = sum(one.bytes for name, one in announced if not names or name in names)
    if there + promised > most:
        raise _over(there + promised, most)


def _over(bytes: int, most: int) -> Conflict:
    return Conflict(
        f"indexes of the table would take {bytes:,} bytes, and the budget is {most:,}; nothing was changed. Give more, or "
        "delete and vacuum an index.",
        detail="OVER_BUDGET",
    )
