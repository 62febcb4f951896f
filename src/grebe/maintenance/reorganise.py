"""Writes a part of an index's content anew, by other properties: some of its files go, and their rows come back in others, in one
commit. What is read meanwhile, and what was read before, stays right: rows are neither lost nor doubled."""

from collections.abc import Callable, Sequence

from grebe.errors import WrongState
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log, Proposal
from grebe.log.entry import NO_FILES, NO_PURPOSE, Change, ContentFile, IndexSpec, Keep, Purpose, Verb
from grebe.log.liveness import the_dead
from grebe.log.operation import Running, of_indexes_still_there
from grebe.log.states import IndexState, TableState
from grebe.maintenance.build import Files, Planned
from grebe.maintenance.operation import carry_out
from grebe.maintenance.runs import Older, Run
from grebe.maintenance.steps import KEEP, Step, carried_out, kept_of
from grebe.spark.source import SparkSource

Chosen = Callable[[IndexState], tuple[IndexSpec, Sequence[ContentFile]]]
"""Of the index as it is when the work begins: what it shall be, and the files whose rows are written anew."""


def reorganise(
    source: SparkSource,
    log: Log,
    name: str,
    chosen: Chosen,
    heartbeat_seconds: float = 60.0,
    keep: Keep = KEEP,
    purpose: Purpose = NO_PURPOSE,
) -> bool:
    """Whether anything was written. Raises `Conflict` or `WrongState` while somebody else is at work on the index."""
    _require_nobody_at_it(log, name)
    written = False

    def work(running: Running) -> Proposal:
        nonlocal written
        state = log.reload().state
        index = state.indexes[name]
        spec, files = chosen(index)
        written = bool(files)
        steps = [_step(source, log, index, spec, files)] if files else []
        changed = carried_out(source, log, running, steps, None, kept_of(state.table, keep))

        def changes(newest: TableState) -> Sequence[Change]:
            return of_indexes_still_there(newest, changed)

        return changes

    carry_out(log, Verb.OPTIMIZE, [name], work, heartbeat_seconds=heartbeat_seconds, purpose=purpose)
    return written


def _require_nobody_at_it(log: Log, name: str) -> None:
    """Two may begin at once; only the first to commit would not have worked in vain."""
    others = [one for one in log.reload().state.operations_on((name,)) if one.verb is Verb.OPTIMIZE]
    dead = the_dead(log.store, others, log.clock) if others else []
    for other in others:
        if other not in dead:
            raise WrongState(
                f"index {name} is being laid out anew already, by {other.writer.name} (process {other.writer.pid}) since entry "
                f"{other.number}; leave it to them",
                detail="OPERATION_UNDER_WAY",
            )


def _step(source: SparkSource, log: Log, index: IndexState, spec: IndexSpec, files: Sequence[ContentFile]) -> Step:
    older = Older(index, log.store, (Run(tuple(files)),), NO_FILES)
    existing = Older(index, log.store, (Run(index.content),), NO_FILES)
    planned = Planned(kind_of(index.name, spec), spec, older, existing)
    return Step(index, planned, Files.none(source), older.paths, refreshes=False)
