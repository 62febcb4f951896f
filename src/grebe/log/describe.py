"""The log for people and programs that ask: its indexes and its history as plain data."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from grebe.files import FileIds
from grebe.log.entry import (
    Change,
    ContentForgotten,
    Entry,
    FilesRegistered,
    IndexChanged,
    IndexCreated,
    IndexDeleted,
    IndexDropped,
    IndexRestored,
    OperationBegun,
    OperationEnded,
    SegmentsMerged,
    TableCreated,
    TableSeen,
    Verb,
)
from grebe.log.states import CREATING, IndexState, Operation, TableState
from grebe.shown.html import block
from grebe.shown.html import facts as html_facts
from grebe.shown.records import Records

SHOWN_OF_INDEXES = (
    "name",
    "kind",
    "columns",
    "state",
    "files_covered",
    "files_stale",
    "rows",
    "bytes",
    "refreshed_at",
    "operations",
    "problem",
)
"""The fields of `IndexInfo` that tables for people have."""
NOT_SHOWN = ("reading", "tree")
"""Properties of an index that are long, and mean nothing to people."""


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index. `files_stale` counts files of the table that it does not cover, and files it covers that are gone."""

    name: str
    kind: str
    columns: tuple[str, ...]
    state: str
    version: int
    files_covered: int
    files_stale: int
    rows: int
    bytes: int
    created_at: datetime.datetime
    refreshed_at: datetime.datetime
    source_version: str
    properties: Mapping[str, Any]
    operations: tuple[str, ...]
    """What is under way on it."""
    kept_versions: int = 0
    """Older versions that are kept for queries of older versions of the table."""
    kept_bytes: int = 0
    """Of these; `bytes` does not count them."""
    problem: str = ""
    """Why it can no longer be refreshed (a column of it was dropped, say), as the last refresh found; empty if it can."""

    def _repr_html_(self) -> str:
        told = {name: value for name, value in self.properties.items() if name not in NOT_SHOWN}
        own = {name: value for name, value in told.items() if not isinstance(value, Mapping)}
        facts = {**asdict(self), "properties": None, **own}
        return block(html_facts((name, value) for name, value in facts.items() if value not in (None, (), [], "", 0)))


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry of the log. `at` is the writer's own clock; the order is that of the numbers."""

    number: int
    at: datetime.datetime
    action: str
    writer: str
    changes: tuple[str, ...]


def describe_indexes(state: TableState, listed: FileIds, unregistered: int) -> Records[IndexInfo]:
    """All indexes by name. `listed` are the ids of the table's files now; `unregistered` files have none yet."""
    made = [_index(index, state, listed, unregistered) for index in state.indexes.values()]
    coming = [
        _coming(name, operation, listed, unregistered)
        for operation in state.operations.values()
        if operation.verb is Verb.CREATE
        for name in operation.indexes
        if name not in state.indexes
    ]
    by_name = {info.name: info for info in [*coming, *made]}
    return _indexes(by_name[name] for name in sorted(by_name))


def no_indexes() -> Records[IndexInfo]:
    return _indexes(())


def _indexes(infos: Iterable[IndexInfo]) -> Records[IndexInfo]:
    return Records(infos, SHOWN_OF_INDEXES, "No index yet.")


def describe_history(entries: Iterable[Entry]) -> Records[HistoryEntry]:
    told = (
        HistoryEntry(e.number, moment(e.at_ms), e.action, e.writer.name, tuple(_sentence(c) for c in e.changes))
        for e in entries
    )
    return Records(told, [field.name for field in fields(HistoryEntry)], "Nothing has been indexed yet.")


def moment(at_ms: int) -> datetime.datetime:
    """A writer's clock may be off by any amount; what no calendar holds becomes its last day."""
    try:
        return datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.datetime.max.replace(tzinfo=datetime.UTC)


def _index(index: IndexState, state: TableState, listed: FileIds, unregistered: int) -> IndexInfo:
    covered = len(index.covered & listed)
    vanished = len(index.covered) - covered
    return IndexInfo(
        name=index.name,
        kind=index.spec.kind,
        columns=index.spec.columns,
        state=index.state,
        version=index.version,
        files_covered=covered,
        files_stale=len(listed) - covered + unregistered + vanished,
        rows=sum(c.rows for c in index.content),
        bytes=sum(c.size for c in index.content),
        created_at=moment(index.created_ms),
        refreshed_at=moment(index.refreshed_ms),
        source_version=index.table_version,
        properties=index.spec.properties,
        operations=tuple(_under_way(o) for o in state.operations_on((index.name,))),
        kept_versions=len(index.kept),
        kept_bytes=sum(version.bytes for version in index.kept),
        problem=index.problem,
    )


def _coming(name: str, operation: Operation, listed: FileIds, unregistered: int) -> IndexInfo:
    spec = operation.specs[name]
    begun = moment(operation.at_ms)
    return IndexInfo(
        name=name,
        kind=spec.kind,
        columns=spec.columns,
        state=CREATING,
        version=operation.number,
        files_covered=0,
        files_stale=len(listed) + unregistered,
        rows=0,
        bytes=0,
        created_at=begun,
        refreshed_at=begun,
        source_version="",
        properties=spec.properties,
        operations=(_under_way(operation),),
    )


def _under_way(operation: Operation) -> str:
    return f"{operation.verb} by {operation.writer.name} since entry {operation.number}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _begun(change: OperationBegun) -> str:
    why = f": {change.purpose.why}" if change.purpose.why else ""
    return f"{change.verb} of {', '.join(change.indexes) or 'the table'} begun{why}"


def _ended(change: OperationEnded) -> str:
    return "done" if change.committed else f"rolled back: {change.reason}"


def _created(change: IndexCreated) -> str:
    on = ", ".join(change.spec.columns)
    return f"index {change.name} created: {change.spec.kind} on {on}, covers {_count(len(change.covered), 'file')}"


def _changed(change: IndexChanged) -> str:
    parts = [
        _count(len(change.add), "object") + " added" if change.add else "",
        _count(len(change.remove), "object") + " replaced" if change.remove else "",
        _count(len(change.cover), "file") + " more covered" if change.cover else "",
        _count(len(change.revive), "file") + " covered again" if change.revive else "",
        _count(len(change.uncover), "file") + " less covered" if change.uncover else "",
        f"cannot be refreshed: {change.problem}" if change.problem else "",
    ]
    return f"index {change.name}: {', '.join(p for p in parts if p) or 'nothing to do'}"


_SENTENCES: Mapping[type[Change], Callable[[Any], str]] = {
    TableCreated: lambda c: f"log of {c.table.uri} made",
    FilesRegistered: lambda c: f"{_count(c.segment.count, 'file')} registered from id {c.segment.first_id}",
    SegmentsMerged: lambda c: f"{_count(len(c.replaced), 'segment')} of the file list merged",
    OperationBegun: _begun,
    OperationEnded: _ended,
    IndexCreated: _created,
    IndexChanged: _changed,
    IndexDeleted: lambda c: f"index {c.name} deleted",
    IndexRestored: lambda c: f"index {c.name} restored",
    IndexDropped: lambda c: f"index {c.name} removed for good",
    TableSeen: lambda c: f"snapshot of {_count(len(c.files), 'file')}",
    ContentForgotten: lambda c: f"{_count(len(c.paths), 'retired object')} removed",
}


def _sentence(change: Change) -> str:
    return _SENTENCES[type(change)](change)
