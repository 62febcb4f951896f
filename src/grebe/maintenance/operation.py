"""The template of every verb: validate, begin, work, commit. What fails is rolled back, and what it wrote is removed."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

from grebe import telemetry
from grebe.errors import GrebeError
from grebe.log import names as paths
from grebe.log.commit import Log, Proposal
from grebe.log.entry import NO_PURPOSE, IndexSpec, Purpose, Verb
from grebe.log.operation import Running, begin
from grebe.log.snapshot import Snapshot
from grebe.log.states import TableState
from grebe.spark.jobs import stop_jobs

_logger = logging.getLogger("grebe.maintenance")
_AT_ONCE = 16
_WRITING = (Verb.CREATE, Verb.OPTIMIZE, Verb.REFRESH, Verb.REPAIR)

Work = Callable[[Running], Proposal]
"""Writes content below the operation's folders, and says what to commit."""


def carry_out(
    log: Log,
    verb: Verb,
    names: Sequence[str],
    work: Work,
    specs: Mapping[str, IndexSpec] | None = None,
    replace: bool = False,
    heartbeat_seconds: float = 60.0,
    told: telemetry.Span | None = None,
    purpose: Purpose = NO_PURPOSE,
) -> Snapshot:
    """The state right after the commit. `begin` validates: what the verb asks of the indexes, and who else is at work on them.
    `told`: of the verb as a whole, where this is only a part of it."""
    with observed(log, verb, names) if told is None else nullcontext(told) as telling:
        return _carried_out(
            log, verb, names, work, lambda: begin(log, verb, names, specs, replace, heartbeat_seconds, purpose), telling
        )


def observed(log: Log, verb: str, names: Sequence[str]) -> telemetry.Span:
    """How it goes is told: to logs, traces and metrics."""
    table = log.state.table
    return telemetry.operation(_logger, str(verb), log.store.uri if table is None else table.uri, names)


def _carried_out(
    log: Log,
    verb: Verb,
    names: Sequence[str],
    work: Work,
    begun: Callable[[], Running],
    told: telemetry.Span,
) -> Snapshot:
    folders: list[str] = []
    try:
        with begun() as running:
            told.begun(operation=running.id)
            folders += [running.folder(name) for name in names] if verb in _WRITING else []
            try:
                with running.stopped_by(lambda: stop_jobs(running.id)):
                    proposed = _done(work, running)
                made = running.commit(proposed)
            except BaseException:
                # Before the roll-back is written: on a full disk there is room for it only afterwards.
                if running.has_surely_failed:
                    _remove_all(log, folders)
                raise
    except BaseException:
        _remove_unused(log, folders)
        raise
    # Of several indexes one may have been deleted meanwhile: the rest was committed.
    if left_out := [folder for folder in folders if not any(_content(made.state, folder))]:
        _remove_unused(log, left_out)
    if folders:
        told.add(**_written(made.state, folders))
    return made


def _written(state: TableState, folders: Sequence[str]) -> dict[str, int]:
    inside = tuple(f"{folder}/" for folder in folders)
    new = [file for index in state.indexes.values() for file in index.content if file.path.startswith(inside)]
    return {"files": len(new), "rows": sum(file.rows for file in new), "bytes": sum(file.size for file in new)}


def _done(work: Work, running: Running) -> Proposal:
    try:
        return work(running)
    except GrebeError:
        running.require_under_way()  # what was stopped fails in many ways, none of which says why
        raise


def _remove_all(log: Log, folders: Sequence[str]) -> None:
    """Remove the folders of an operation that did not commit: no entry names what lies there, and none will."""
    try:
        _remove(log, folders, set())
    except GrebeError as problem:
        telemetry.event(_logger, logging.WARNING, "leftovers", code=problem.code, folders=folders)


def _remove(log: Log, folders: Sequence[str], used: Collection[str]) -> None:
    """Remove what lies in the folders, is not used and has the shape of what Grebe writes. What else is there is not ours."""
    listed = [one.path for folder in folders for one in log.store.list(folder)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(log.store.delete, (path for path in listed if path not in used and paths.is_removable(path))))
    for folder in folders:
        for below in log.store.folders(folder):
            log.store.remove_folder(below.path)


def _remove_unused(log: Log, folders: Sequence[str]) -> None:
    """Removes what lies in the folders and belongs to no index. Failing to is no failure of the verb: vacuum removes it later."""
    if not folders:
        return
    try:
        state = log.reload().state
        if any(folder.endswith(f"-{running}") for folder in folders for running in state.operations):
            return  # it could not be rolled back, so it is not known yet how it ended
        used = {path for folder in folders for path in _content(state, folder)}
        _remove(log, folders, used)
    except GrebeError as problem:
        telemetry.event(_logger, logging.WARNING, "leftovers", code=problem.code, folders=folders)


def _content(state: TableState, folder: str) -> list[str]:
    inside = f"{folder}/"
    return [path for path in state.content_paths if path.startswith(inside)]
