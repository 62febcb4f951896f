"""Lays the content of indexes out anew, without looking at the table: fewer runs, so that a question is asked fewer times."""

from collections.abc import Sequence

from grebe.errors import InvalidConfig
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log, Proposal
from grebe.log.entry import NO_FILES, Change, Keep, Verb
from grebe.log.operation import Running, of_indexes_still_there
from grebe.log.states import ACTIVE, IndexState, TableState
from grebe.maintenance.build import Files, Planned
from grebe.maintenance.operation import carry_out
from grebe.maintenance.runs import Older, Run, runs_of
from grebe.maintenance.steps import KEEP, Step, carried_out, kept_of
from grebe.spark.source import SparkSource

MODES = ("quick", "full")


def optimize(
    source: SparkSource,
    log: Log,
    names: Sequence[str] = (),
    mode: str = "quick",
    heartbeat_seconds: float = 60.0,
    keep: Keep = KEEP,
) -> list[str]:
    """The names of the indexes that were laid out anew: of those named, or of all in use. `quick` merges small runs; `full` makes
    one of all, without rows of files that are gone. `keep`: older versions of them that stay, where the table has older versions
    too."""
    if mode not in MODES:
        raise InvalidConfig(f"optimize: mode is one of {', '.join(MODES)}, not {mode!r}", detail="VALUE")
    before = log.reload().state
    wanted = list(names) or sorted(name for name, index in before.indexes.items() if index.state == ACTIVE)
    worth = [name for name in wanted if name not in before.indexes or to_rewrite(before.indexes[name], mode)]
    if not worth:
        return []

    def work(running: Running) -> Proposal:
        state = log.reload().state
        steps = [_step(source, log, state.indexes[name], mode) for name in worth]
        needed = [step for step in steps if step is not None]
        changed = carried_out(source, log, running, needed, None, kept_of(state.table, keep))

        def changes(newest: TableState) -> Sequence[Change]:
            return of_indexes_still_there(newest, changed)

        return changes

    made = carry_out(log, Verb.OPTIMIZE, worth, work, heartbeat_seconds=heartbeat_seconds)
    return [name for name in worth if name in made.state.indexes]


def to_rewrite(index: IndexState, mode: str) -> list[Run]:
    """Runs that would become one; none if that would change nothing."""
    runs = sorted(runs_of(index), key=lambda run: run.rows)
    if mode == "full":
        return runs if len(runs) > 1 or index.dormant else []
    # The largest stays, unless the others together are not much smaller.
    small = runs if len(runs) > 1 and 2 * sum(run.rows for run in runs[:-1]) >= runs[-1].rows else runs[:-1]
    return small if len(small) > 1 else []


def _step(source: SparkSource, log: Log, index: IndexState, mode: str) -> Step | None:
    runs = to_rewrite(index, mode)
    if not runs:
        return None
    everything = runs_of(index)
    left_out = index.dormant if len(runs) == len(everything) else NO_FILES
    older = Older(index, log.store, tuple(runs), left_out)
    existing = Older(index, log.store, tuple(everything), NO_FILES)
    planned = Planned(kind_of(index.name, index.spec), index.spec, older, existing)
    return Step(index, planned, Files.none(source), older.paths, purge=left_out, refreshes=False)
