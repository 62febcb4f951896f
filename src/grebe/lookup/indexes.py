"""The indexes that prune, of a log's state: each in the version that knows most of the table's files."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from grebe import telemetry
from grebe.errors import CorruptIndex, GrebeError
from grebe.files import FileIds
from grebe.files.untrusted import decoding
from grebe.formats import Reading
from grebe.indexes.kind import Pruner
from grebe.indexes.registry import kind_named
from grebe.log.states import ACTIVE, IndexState, TableState
from grebe.lookup.answer import Numbers
from grebe.planner.reasons import Code, Reason
from grebe.store.protocol import Store

_logger = logging.getLogger("grebe.lookup")


@dataclass(frozen=True, slots=True)
class Usable:
    pruners: tuple[Pruner, ...] = ()
    unused: tuple[Reason, ...] = ()
    older: Mapping[str, int] = field(default_factory=dict)
    """Indexes of which an older version is used, as it knows files that the current one does not; and which version that is."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Why some of the indexes can no longer be refreshed."""

    @property
    def told(self) -> tuple[tuple[Reason, ...], Mapping[str, int], Mapping[str, str]]:
        """What is said of them besides, in the order of `Snapshot`."""
        return self.unused, self.older, self.problems


@dataclass(frozen=True, slots=True)
class Listed:
    """The files of the version of the table that was opened, as they are read: their ids in the log (any negative number: none),
    and their bytes."""

    ids: Numbers
    sizes: Numbers
    reading: Reading

    def bytes_in(self, files: FileIds) -> int:
        return int(self.sizes[files.contains(self.ids)].sum())


def usable(state: TableState, store: Store, listed: Listed | None = None) -> Usable:
    """The indexes that can tell where rows lie. One that cannot be read is left out, with a warning: its files are scanned. Without
    `listed` only current versions are looked at."""
    found: list[Pruner] = []
    unused: list[Reason] = []
    older: dict[str, int] = {}
    for index in state.indexes.values():
        if index.state != ACTIVE:
            unused.append(Reason(Code.NOT_ACTIVE, index.name, {"state": index.state}))
            continue
        version, made = _chosen(index, store, listed)
        if isinstance(made, Reason):
            unused.append(made)
            continue
        found.append(made)
        if version is not index:
            older[index.name] = version.version
    problems = {index.name: index.problem for index in state.indexes.values() if index.problem}
    return Usable(tuple(found), tuple(unused), older, problems)


def _chosen(index: IndexState, store: Store, listed: Listed | None) -> tuple[IndexState, Pruner | Reason]:
    """The version that knows most of the files, of those that can be opened and were made from the same reading; without any, the
    current one as it is."""
    current: Pruner | Reason | None = None
    for version in _by_knowledge(index, listed):
        made = _opened(version, store)
        if not isinstance(made, Reason) and (listed is None or _reads_alike(made, listed.reading)):
            return version, made
        current = made if version is index else current
    assert current is not None  # it is one of the versions
    return index, current


def _by_knowledge(index: IndexState, listed: Listed | None) -> list[IndexState]:
    """That which knows most first, of equals the current one. Versions that know no more are not looked at."""
    if listed is None or not index.kept:
        return [index]
    known = listed.bytes_in(index.held)
    more = [(listed.bytes_in(version.held), version) for version in index.kept]
    more = sorted((one for one in more if one[0] > known), key=lambda one: (-one[0], one[1].bytes))
    return [*(index.as_kept(version) for _, version in more), index]


def _opened(index: IndexState, store: Store) -> Pruner | Reason:
    try:
        with decoding(
            lambda why: CorruptIndex(f"what the log says of {index.name} does not fit: {why}", detail="SPEC")
        ):
            made = kind_named(index.spec.kind).pruner_of(index, store)
            if made is not None:
                _ = made.columns, made.reading, made.covered  # what the log says of it is read only then
    except GrebeError as problem:
        telemetry.event(_logger, logging.WARNING, "index_set_aside", index=index.name, code=problem.code)
        return Reason(Code.SET_ASIDE, index.name, {"why": problem.code})
    return Reason(Code.NO_PRUNER, index.name, {"kind": index.spec.kind}) if made is None else made


def _reads_alike(pruner: Pruner, reading: Reading) -> bool:
    return reading.agrees_on(pruner.reading, [path[0] for path in pruner.columns])
