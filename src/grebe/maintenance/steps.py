"""What a verb does to each of several indexes: content that is built, content that goes, and files that come and go with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from grebe.clock import SYSTEM
from grebe.errors import CorruptIndex, GrebeError, InvalidIndex, TableNotFound, Unsupported
from grebe.files import FileIds
from grebe.indexes.kind import LOCATORS_CHANGED
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log
from grebe.log.entry import NO_FILES, IndexChanged, Keep, TableInfo
from grebe.log.operation import Running
from grebe.log.states import IndexState
from grebe.maintenance.build import Built, Files, Planned, build
from grebe.maintenance.create import planned_for
from grebe.spark.source import SparkSource

KEEP = Keep(1)
"""Unless the settings `keep_versions` and `keep_bytes` say otherwise."""
OF_ONE_INDEX = (InvalidIndex, Unsupported, CorruptIndex, TableNotFound)
"""Errors of one index, whatever others do: a column is gone, a kind is not installed, another table of a view is not there."""
_SPARK = GrebeError("", detail="SPARK").code
_OF_WORKERS = "PythonException"
_WITHOUT_VERSIONS = "plain"


def kept_of(table: TableInfo | None, keep: Keep) -> Keep | None:
    """What of replaced content stays: nothing where the table has no older versions, as a file that is gone stays gone."""
    return None if table is None or table.source == _WITHOUT_VERSIONS else keep


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done for one index. What was there when the work began must still be there, else another refresh was first:
    a conflict."""

    index: IndexState
    planned: Planned | None
    """None: nothing is built."""
    files: Files
    """To be read."""
    remove: tuple[str, ...] = ()
    uncover: FileIds = NO_FILES
    revive: FileIds = NO_FILES
    taken_over: FileIds = NO_FILES
    """Files that come back and whose rows are written anew."""
    purge: FileIds = NO_FILES
    """Files that were held, and whose rows are in nothing that is there before: those taken over included."""
    refreshes: bool = True
    """Whether the index is as fresh as the table after it."""

    def change(
        self, built: Built | None, version: int, table_version: str, keep: Keep | None = None, seconds: float = 0.0
    ) -> IndexChanged:
        return IndexChanged(
            name=self.index.name,
            version=version,
            add=() if built is None else built.content,
            remove=self.remove,
            cover=NO_FILES if built is None else built.covered | self.taken_over,
            uncover=self.uncover,
            revive=self.revive,
            purge=self.purge,
            table_version=table_version if self.refreshes else None,
            properties=None if built is None else built.spec.properties,
            keep=keep,
            seconds=round(seconds, 3),
            columns=None if built is None or built.spec.columns == self.index.spec.columns else built.spec.columns,
            problem="" if self.refreshes and self.index.problem else None,
        )


def carried_out(
    source: SparkSource,
    log: Log,
    running: Running,
    steps: Sequence[Step],
    files: Files | None,
    keep: Keep | None = None,
) -> list[IndexChanged]:
    """Indexes that need the same files are built together. `files` are all that an index would be built of from scratch, should
    new records be located otherwise than old ones; None: there are no new ones. `keep`: what of replaced content stays."""
    by_files: dict[FileIds, list[Step]] = {}
    for step in steps:
        by_files.setdefault(step.files.covered if step.planned else NO_FILES, []).append(step)
    changed: list[IndexChanged] = []
    for together in by_files.values():
        since = SYSTEM.monotonic()
        try:
            built = _built(source, log, running, together)
        except GrebeError as problem:
            if files is None or not _needs_rebuilding(problem, together):
                raise
            for one in together:
                _clear(log, running.folder(one.index.name))
            together = [
                from_scratch(one.index, planned_for(source, kind_of(one.index.name, one.index.spec)), files)
                for one in together
            ]
            built = _built(source, log, running, together)
        seconds = (SYSTEM.monotonic() - since) / len(together)
        changed += [
            step.change(built.get(step.index.name), running.version, source.version, keep, seconds) for step in together
        ]
    return changed


def each_carried_out(
    source: SparkSource,
    log: Log,
    running: Running,
    steps: Sequence[Step],
    files: Files,
    keep: Keep | None = None,
) -> tuple[list[IndexChanged], dict[str, GrebeError]]:
    """As `carried_out`; an index that cannot be built does not keep the others from it. Gives the reasons of those. Raises where
    none can be built, or where it is not a matter of single indexes."""
    try:
        return carried_out(source, log, running, steps, files, keep), {}
    except GrebeError as problem:
        if not _is_of_one_index(problem) or len(steps) < 2:
            raise
        first = problem
    changed: list[IndexChanged] = []
    failed: dict[str, GrebeError] = {}
    for step in steps:
        _clear(log, running.folder(step.index.name))
        try:
            changed += carried_out(source, log, running, [step], files, keep)
        except GrebeError as problem:
            if not _is_of_one_index(problem):
                raise
            failed[step.index.name] = problem
    if not changed:
        raise first
    return changed, failed


def _needs_rebuilding(problem: GrebeError, steps: Sequence[Step]) -> bool:
    """Whether what an index remembers of older rows does not fit the new ones: their places are told otherwise, or the tree of a
    layout fails over them in Spark's Python workers."""
    if problem.code == LOCATORS_CHANGED:
        return True
    grown = any(step.planned is not None and step.planned.existing is not None for step in steps)
    return grown and type(problem.__cause__).__name__ == _OF_WORKERS


def _is_of_one_index(problem: GrebeError) -> bool:
    """Spark does not say whose fault it is; whoever builds the indexes one by one finds out."""
    return isinstance(problem, OF_ONE_INDEX) or problem.code == _SPARK


def _clear(log: Log, folder: str) -> None:
    """Remove what a build that failed has written."""
    for found in log.store.list(folder):
        log.store.delete(found.path)


def _built(source: SparkSource, log: Log, running: Running, steps: Sequence[Step]) -> dict[str, Built]:
    planned = {step.index.name: step.planned for step in steps if step.planned is not None}
    return build(source, log, running, planned, steps[0].files) if planned else {}


def from_scratch(index: IndexState, planned: Planned, files: Files) -> Step:
    paths = tuple(file.path for file in index.content)
    return Step(index, planned, files, paths, uncover=index.covered, purge=index.held)
