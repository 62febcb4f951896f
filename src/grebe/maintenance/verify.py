"""Whether a log and the files of its indexes are as they were written. No Spark is needed, and nothing is written.

Whether the rows of the indexes are those of the table is another question: `verify_rows`.
"""

from collections.abc import Iterator
from dataclasses import replace

from grebe.errors import CorruptLog, GrebeError, SourceChanged
from grebe.indexes.faults import Fault, Report, fault
from grebe.indexes.registry import kind_named
from grebe.log import invariants
from grebe.log.commit import Log
from grebe.log.liveness import is_gone
from grebe.log.registration import Registry
from grebe.log.states import IndexState, TableState
from grebe.maintenance.operation import observed
from grebe.store.protocol import Store


def verify(log: Log, deep: bool = False) -> Report:
    """Of the state that the log was read in. `deep` reads every byte of the indexes."""
    state = log.state
    with observed(log, "verify", sorted(state.indexes)) as told:
        told.begun(deep="yes" if deep else "no")
        found = [
            *_of_log(log, state),
            *(one for index in state.indexes.values() for one in _of_index(index, log, deep)),
        ]
        # A file may belong to several versions of an index.
        report = Report(tuple(dict.fromkeys(found)), tuple(leftovers(state, log.store)))
        told.add(faults=len(report.findings), leftovers=len(report.leftovers))
    return report


def _of_log(log: Log, state: TableState) -> Iterator[Fault]:
    for problem in invariants.broken(state):
        yield fault("", "log", CorruptLog(problem, detail="INVARIANT"))
    for segment in state.segments:
        try:
            Registry(log).files(replace(state, segments=(segment,)))
        except SourceChanged:
            continue  # merged with others since this state was read
        except GrebeError as problem:
            yield fault("", segment.path, problem)


def _of_index(index: IndexState, log: Log, deep: bool) -> Iterator[Fault]:
    """Older versions that are kept included."""
    for version in (index, *map(index.as_kept, index.kept)):
        try:
            yield from kind_named(version.spec.kind).faults_of(version, log.store, deep)
        except GrebeError as problem:
            yield fault(version.name, "", problem)


def leftovers(state: TableState, store: Store) -> list[str]:
    """Objects that no entry names and no running operation owns, as far as can be told without writing a heartbeat's judge."""
    used = {*state.content_paths, *(segment.path for segment in state.segments), *state.retired}
    living = [operation.id for operation in state.operations.values() if not is_gone(operation.writer)]

    def is_left(path: str) -> bool:
        if path in used:
            return False
        # A list of files does not say which operation wrote it.
        return not living if path.startswith("files/") else not any(owner in path for owner in living)

    return sorted(one.path for folder in ("data", "files") for one in store.list(folder) if is_left(one.path))
