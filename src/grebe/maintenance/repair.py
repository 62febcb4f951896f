"""Mends what `verify` finds: only what is broken is derived anew from the table.

A run that has a fault goes as a whole, and the files whose rows it held are read again: those that no other run holds. Of a run
that is sound, but holds wrong rows of some file, the other rows are taken over as they are. All indexes are mended in one commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grebe import telemetry
from grebe.errors import Unsupported
from grebe.files import FileIds
from grebe.indexes.classic import functions
from grebe.indexes.faults import Fault
from grebe.indexes.kind import FILE_COLUMN, LOCATORS_CHANGED
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log, Proposal
from grebe.log.entry import NO_FILES, Change, IndexChanged, Keep, Verb
from grebe.log.operation import Running, of_indexes_still_there
from grebe.log.states import ACTIVE, IndexState, TableState
from grebe.maintenance.build import Built, Files, Planned, build
from grebe.maintenance.create import planned_for
from grebe.maintenance.failures import spark_errors
from grebe.maintenance.operation import carry_out, observed
from grebe.maintenance.runs import Older, Run, runs_of
from grebe.maintenance.steps import OF_ONE_INDEX
from grebe.maintenance.verify import verify
from grebe.maintenance.verify_rows import compare, files_now, reads_alike, sound_runs
from grebe.spark.source import SparkSource


def repair(source: SparkSource, log: Log, deep: bool = True, heartbeat_seconds: float = 60.0) -> list[str]:
    """The names of the indexes that were mended; deleted ones are left alone. `deep`: rows are derived anew to find what is
    wrong."""
    with observed(log, Verb.REPAIR, sorted(log.reload().state.indexes)) as told:
        return _repaired(source, log, deep, heartbeat_seconds, told)


def _repaired(source: SparkSource, log: Log, deep: bool, heartbeat_seconds: float, told: telemetry.Span) -> list[str]:
    before = log.state
    broken = _faulty(source, log, deep)
    told.add(indexes=sorted(broken))
    if not broken:
        told.begun()
        return []

    def work(running: Running) -> Proposal:
        state = log.reload().state
        files, _ = files_now(source, log, state)
        # What another has written anew since is not what was looked at.
        same = [name for name in broken if state.indexes[name].content == before.indexes[name].content]
        mended = [_mended(source, log, running, state.indexes[name], broken[name], files) for name in same]

        def changes(newest: TableState) -> Sequence[Change]:
            return of_indexes_still_there(newest, mended)

        return changes

    made = carry_out(log, Verb.REPAIR, sorted(broken), work, heartbeat_seconds=heartbeat_seconds, told=told)
    return [name for name in sorted(broken) if name in made.state.indexes and made.state.indexes[name].state == ACTIVE]


def _faulty(source: SparkSource, log: Log, deep: bool) -> dict[str, list[Fault]]:
    """What is wrong with each index in use. What is wrong with the log itself is not mended here."""
    state = log.state
    found = list(verify(log, deep).findings)
    if deep:
        found += compare(source, log, state, found).findings
    active = [name for name, index in state.indexes.items() if index.state == ACTIVE]
    by_index = {name: [one for one in found if one.index == name] for name in active}
    return {name: faults for name, faults in by_index.items() if faults and _can_be_built(source, state.indexes[name])}


def _can_be_built(source: SparkSource, index: IndexState) -> bool:
    """One whose columns are gone is left as it is; `refresh` marks it with the reason."""
    try:
        planned_for(source, kind_of(index.name, index.spec))
    except OF_ONE_INDEX:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Loss:
    """What of an index cannot stay."""

    runs: tuple[Run, ...]
    """They go, with whatever they hold."""
    rewritten: tuple[Run, ...]
    """They go, but what they hold of other files is taken over."""
    files: FileIds
    """Held files whose rows are gone with them."""
    strange: FileIds = NO_FILES
    """Files of which rewritten runs hold rows though they should not."""
    from_scratch: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for run in (*self.runs, *self.rewritten) for file in run.files)


def _mended(
    source: SparkSource, log: Log, running: Running, index: IndexState, faults: Sequence[Fault], files: Files
) -> IndexChanged:
    anew = planned_for(source, kind_of(index.name, index.spec))
    loss = _everything(index)
    if reads_alike(index, anew.spec):
        with spark_errors(f"repairing {index.name}", log.store.uri):
            loss = _loss(source, log, index, faults)
    if loss.from_scratch:
        return _changed(index, running, loss, _built(source, log, running, anew, files.only(index.covered)), faults)
    planned = _planned(log, index, anew, loss)
    try:
        built = _built(source, log, running, planned, files.only(loss.files & index.covered))
    except Unsupported as problem:
        if problem.code != LOCATORS_CHANGED:
            raise
        loss = _everything(index)
        built = _built(source, log, running, anew, files.only(index.covered))
    return _changed(index, running, loss, built, faults)


def _everything(index: IndexState) -> _Loss:
    return _Loss(tuple(runs_of(index)), (), index.held, from_scratch=True)


def _loss(source: SparkSource, log: Log, index: IndexState, faults: Sequence[Fault]) -> _Loss:
    mine = {file.path for file in index.content}
    sound = sound_runs(index, faults)
    broken = [run for run in runs_of(index) if run not in sound]
    wrong = FileIds.of([one.file for one in faults if one.file is not None])
    elsewhere = any(one.file is None and one.path not in mine and not _of_kept(one, index) for one in faults)
    if elsewhere or not index.spec.properties.get("lineage", True) or not sound:
        return _everything(index)  # which run holds which file is not known, or none is left to stay
    held = {place: _files_of(source, log, index, run) for place, run in enumerate(sound)}
    rewritten = tuple(run for place, run in enumerate(sound) if not held[place].isdisjoint(wrong))
    known = NO_FILES
    for files in held.values():
        known = known | files
    lost = (index.held - known if broken else NO_FILES) | (wrong & index.held)
    lost = lost if len(rewritten) < len(sound) else lost | index.dormant
    return _Loss(tuple(broken), rewritten, lost, wrong - index.held)


def _of_kept(one: Fault, index: IndexState) -> bool:
    return any(file.path == one.path for version in index.kept for file in version.content)


def _files_of(source: SparkSource, log: Log, index: IndexState, run: Run) -> FileIds:
    """Those of which the run holds rows."""
    if not run.rows:
        return NO_FILES
    frame = Older(index, log.store, (run,), NO_FILES).frame(source.session, [(FILE_COLUMN, "integer")])
    rows = frame.where(functions.col(FILE_COLUMN).isNotNull()).distinct().collect()
    return FileIds.of([int(row[0]) for row in rows])


def _planned(log: Log, index: IndexState, anew: Planned, loss: _Loss) -> Planned:
    staying = tuple(run for run in runs_of(index) if run not in loss.runs)
    older = Older(index, log.store, loss.rewritten, loss.files | loss.strange) if loss.rewritten else None
    return Planned(anew.kind, index.spec, older, Older(index, log.store, staying, NO_FILES) if staying else None)


def _built(source: SparkSource, log: Log, running: Running, planned: Planned, files: Files) -> Built | None:
    """None where there is nothing to write."""
    if not len(files.ids) and planned.older is None:
        return None
    name = planned.kind.name
    return build(source, log, running, {name: planned}, files)[name]


def _changed(
    index: IndexState, running: Running, loss: _Loss, built: Built | None, faults: Sequence[Fault]
) -> IndexChanged:
    change = IndexChanged(
        name=index.name,
        version=running.version,
        add=() if built is None else built.content,
        remove=loss.paths,
        cover=NO_FILES if built is None else built.covered,
        uncover=loss.files & index.covered,
        purge=loss.files,
        properties=None if built is None else built.spec.properties,
    )
    # Older versions are kept to save time; one with a fault saves none.
    return replace(change, keep=Keep(0)) if any(_of_kept(one, index) for one in faults) else change
