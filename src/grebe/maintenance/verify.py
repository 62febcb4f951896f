"""Whether a log and the files of its indexes are as they were written. No Spark is needed, and nothing is written.

Whether the rows of the indexes are those of the table is another question: `verify_rows`.
"""

import functools
import operator
from collections.abc import Iterator
from dataclasses import replace

import pyarrow.compute as pc

from grebe.errors import CorruptIndex, CorruptLog, GrebeError, SourceChanged
from grebe.files import FileIds, FileList
from grebe.files.untrusted import decoding
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


def changed_files(log: Log, listed: FileList) -> tuple[str, ...]:
    """Return a sentence about the files that indexes cover and that are there as other files now, if there are any."""
    held = functools.reduce(operator.or_, (index.held for index in log.state.indexes.values()), FileIds.of(()))
    known = Registry(log).files(log.state).select(held)
    others = known.missing(listed)
    if not len(known) or not len(others):
        return ()
    changed = pc.is_in(others.uris(), value_set=known.files.uris()).to_numpy(zero_copy_only=False)
    if not changed.any():
        return ()
    first = others.filter(changed).uris()[0].as_py()
    return (
        f"{int(changed.sum()):,} files changed since they were indexed, such as {first}: no index is used for them; refresh() "
        "brings the indexes up to date",
    )


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
            with decoding(lambda why: CorruptIndex(f"it cannot be checked: {why}", detail="SPEC")):
                found = list(kind_named(version.spec.kind).faults_of(version, log.store, deep))
            yield from found
        except GrebeError as problem:
            yield fault(version.name, "", problem)


def leftovers(state: TableState, store: Store) -> list[str]:
    """Objects that no entry names and no running operation owns, as far as can be told without writing a heartbeat's judge."""
    used = {*state.content_paths, *(segment.path for segment in state.segments), *state.retired}
    living = [operation.id for operation in state.operations.values() if not is_gone(operation)]

    def is_left(path: str) -> bool:
        if path in used:
            return False
        # A list of files does not say which operation wrote it.
        return not living if path.startswith("files/") else not any(owner in path for owner in living)

    return sorted(one.path for folder in ("data", "files") for one in store.list(folder) if is_left(one.path))
