"""Brings indexes up to the table as it is now: all that are named in one atomic commit."""

from collections.abc import Sequence

from grebe.errors import InvalidConfig, Unsupported
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log, Proposal
from grebe.log.entry import Change, IndexChanged, Verb
from grebe.log.operation import Running, of_indexes_still_there
from grebe.log.states import ACTIVE, TableState
from grebe.maintenance.build import Built, build
from grebe.maintenance.create import planned_for
from grebe.maintenance.operation import carry_out
from grebe.spark.source import SparkSource

MODES = ("full", "incremental", "quick")
"""For now only the first: indexes are built anew."""


def refresh(
    source: SparkSource, log: Log, names: Sequence[str] = (), mode: str = "full", heartbeat_seconds: float = 60.0
) -> list[str]:
    """The names of the indexes that were refreshed: those named, or all in use."""
    require_mode(mode)
    before = log.reload().state
    wanted = list(names) or sorted(name for name, index in before.indexes.items() if index.state == ACTIVE)
    if not wanted:
        return []

    def work(running: Running) -> Proposal:
        state = log.reload().state  # after the begin entry: from here on nobody else replaces these indexes unnoticed
        planned = {name: planned_for(source, kind_of(name, state.indexes[name].spec)) for name in wanted}
        built = build(source, log, running, planned)
        replaced = [_replaced(state, name, made, running.version) for name, made in built.items()]

        def changes(newest: TableState) -> Sequence[Change]:
            return of_indexes_still_there(newest, replaced)

        return changes

    made = carry_out(log, Verb.REFRESH, wanted, work, heartbeat_seconds=heartbeat_seconds)
    return [name for name in wanted if name in made.state.indexes and made.state.indexes[name].state == ACTIVE]


def require_mode(mode: str) -> None:
    if mode not in MODES:
        raise InvalidConfig(f"refresh: mode is one of {', '.join(MODES)}, not {mode!r}", detail="VALUE")
    if mode != "full":
        raise Unsupported(f"refresh: mode={mode!r} comes later; use mode='full', which builds anew", detail="MODE")


def _replaced(state: TableState, name: str, built: Built, version: int) -> IndexChanged:
    """All content at once. What was there when the work began must still be there, else another refresh was first: a conflict."""
    index = state.indexes[name]
    return IndexChanged(
        name=name,
        version=version,
        add=built.content,
        remove=tuple(file.path for file in index.content),
        cover=built.covered,
        uncover=index.covered,
        table_version="",
        properties=built.spec.properties,
    )
