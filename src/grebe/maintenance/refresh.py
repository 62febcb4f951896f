"""Brings indexes up to the table as it is now: all that are named in one atomic commit.

An index that cannot be refreshed any more, since a column of it was dropped, say, is in nobody's way: the others are refreshed, and
the same commit marks it with the reason.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grebe import telemetry
from grebe.errors import GrebeError, InvalidConfig
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log, Proposal
from grebe.log.entry import NO_FILES, NO_PURPOSE, Change, IndexChanged, IndexSpec, Keep, Purpose, TableSeen, Verb
from grebe.log.operation import Running, of_indexes_still_there
from grebe.log.states import ACTIVE, IndexState, TableState
from grebe.maintenance.build import Files, Planned, settled
from grebe.maintenance.create import planned_for
from grebe.maintenance.operation import carry_out
from grebe.maintenance.runs import Older, runs_of, to_merge
from grebe.maintenance.steps import KEEP, OF_ONE_INDEX, Step, each_carried_out, from_scratch, kept_of
from grebe.spark.source import SparkSource

MODES = ("full", "incremental", "quick")
_logger = logging.getLogger("grebe.maintenance")


@dataclass(frozen=True, slots=True)
class Refreshed:
    names: list[str]
    """Those that were looked at and are still there."""
    failed: Mapping[str, GrebeError] = field(default_factory=dict)
    """Why some of them cannot be refreshed."""


def refresh(
    source: SparkSource,
    log: Log,
    names: Sequence[str] = (),
    mode: str = "incremental",
    heartbeat_seconds: float = 60.0,
    keep: Keep = KEEP,
    purpose: Purpose = NO_PURPOSE,
) -> Refreshed:
    """Refresh the indexes named, or all in use. `keep`: older versions of them that stay, where the table has older versions
    too."""
    require_mode(mode)
    before = log.reload().state
    wanted = list(names) or sorted(name for name, index in before.indexes.items() if index.state == ACTIVE)
    if not wanted:
        return Refreshed([])
    failed: dict[str, GrebeError] = {}

    def work(running: Running) -> Proposal:
        state = log.reload().state  # after the begin entry: from here on nobody else replaces these indexes unnoticed
        files = settled(source, log, running)
        needed: list[Step] = []
        for name in wanted:
            try:
                step = _step(source, log, state.indexes[name], files, mode)
            except OF_ONE_INDEX as problem:
                failed[name] = problem
                continue
            needed += [step] if step is not None else []
        changed, unbuilt = each_carried_out(source, log, running, needed, files, kept_of(state.table, keep))
        failed.update(unbuilt)
        changed += [_marked(state.indexes[name], running, problem) for name, problem in failed.items()]

        # Of all indexes: from now on this is what readers of snapshots see.
        seen = [] if names else [TableSeen(files.covered, source.version)]

        def changes(newest: TableState) -> Sequence[Change]:
            return [*of_indexes_still_there(newest, changed), *seen]

        return changes

    made = carry_out(log, Verb.REFRESH, wanted, work, heartbeat_seconds=heartbeat_seconds, purpose=purpose)
    still = [name for name in wanted if name in made.state.indexes and made.state.indexes[name].state == ACTIVE]
    return Refreshed(still, failed)


def _marked(index: IndexState, running: Running, problem: GrebeError) -> IndexChanged:
    if index.problem != str(problem):  # each night's refresh finds the same again
        telemetry.event(_logger, logging.WARNING, "index_not_refreshable", index=index.name, code=problem.code)
    return IndexChanged(index.name, running.version, problem=str(problem))


def require_mode(mode: str) -> None:
    if mode not in MODES:
        raise InvalidConfig(f"refresh: mode is one of {', '.join(MODES)}, not {mode!r}", detail="VALUE")


def _step(source: SparkSource, log: Log, index: IndexState, files: Files, mode: str) -> Step | None:
    """None where the index is as it should be."""
    anew = planned_for(source, kind_of(index.name, index.spec))
    if mode == "full" or not _reads_alike(index, anew.spec):
        return from_scratch(index, anew, files)
    now = files.covered
    new, back, gone = now - index.covered - index.dormant, now & index.dormant, index.covered - now
    if mode == "quick" or not new:
        # A version may have deleted rows, and no file.
        stale = gone or back or index.problem or index.table_version != source.version
        return Step(index, None, files.only(NO_FILES), uncover=gone, revive=back) if stale else None
    runs = runs_of(index)
    appended = files.only(new)
    share = appended.files.total_bytes / max(1, files.files.total_bytes)
    merged = to_merge(runs, int(share * sum(run.rows for run in runs)))
    existing = Older(index, log.store, tuple(runs), NO_FILES)
    if not merged:
        planned = Planned(anew.kind, index.spec, existing=existing)
        return Step(index, planned, appended, uncover=gone, revive=back)
    if len(merged) < len(runs):
        older = Older(index, log.store, tuple(merged), NO_FILES)
        return Step(index, Planned(anew.kind, index.spec, older, existing), appended, older.paths, gone, back)
    # No run stays, so that rows of files that are gone can be left out for good.
    leaving = index.dormant | gone
    older = Older(index, log.store, tuple(merged), leaving - back)
    planned = Planned(anew.kind, index.spec, older, existing)
    return Step(index, planned, appended, older.paths, gone, taken_over=back, purge=leaving)


def _reads_alike(index: IndexState, anew: IndexSpec) -> bool:
    """Whether new files are read as those were that the index holds rows of."""
    return all(
        index.spec.properties.get(name) == anew.properties.get(name) for name in ("reading", "where", "definition")
    )
