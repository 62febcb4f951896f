"""The indexes that prune, of a log's state."""

import logging
from dataclasses import dataclass

from grebe.errors import GrebeError
from grebe.indexes.kind import Pruner
from grebe.indexes.registry import kind_named
from grebe.log.states import ACTIVE, TableState
from grebe.planner.reasons import Code, Reason
from grebe.store.protocol import Store

_logger = logging.getLogger("grebe.lookup")


@dataclass(frozen=True, slots=True)
class Usable:
    pruners: tuple[Pruner, ...] = ()
    unused: tuple[Reason, ...] = ()


def usable(state: TableState, store: Store) -> Usable:
    """The indexes that can tell where rows lie. One that cannot be read is left out, with a warning: its files are scanned."""
    found: list[Pruner] = []
    unused: list[Reason] = []
    for index in state.indexes.values():
        if index.state != ACTIVE:
            unused.append(Reason(Code.NOT_ACTIVE, index.name, {"state": index.state}))
            continue
        try:
            made = kind_named(index.spec.kind).pruner_of(index, store)
        except GrebeError as problem:
            _logger.warning("event=index_set_aside index=%s code=%s", index.name, problem.code)
            unused.append(Reason(Code.SET_ASIDE, index.name, {"why": problem.code}))
            continue
        if made is None:
            unused.append(Reason(Code.NO_PRUNER, index.name, {"kind": index.spec.kind}))
        else:
            found.append(made)
    return Usable(tuple(found), tuple(unused))
