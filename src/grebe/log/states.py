"""What the entries add up to. `apply` is pure: the state before and an entry give the state after, or say why that is impossible.

States of an index and the verbs between them (a running operation is listed beside the state; it is no state of its own):

    (none) --create--> CREATING --commit--> ACTIVE --delete--> DELETED --vacuum--> (none)
                           \\--rollback--> (none)   <--restore--
                                          refresh, optimize: ACTIVE -> ACTIVE
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grebe.files import FileIds
from grebe.log.entry import (
    NO_FILES,
    NO_PURPOSE,
    Change,
    ContentFile,
    ContentForgotten,
    Entry,
    FilesRegistered,
    IndexChanged,
    IndexCreated,
    IndexDeleted,
    IndexDropped,
    IndexRestored,
    IndexSpec,
    Keep,
    Measured,
    OperationBegun,
    OperationEnded,
    Purpose,
    Segment,
    SegmentsMerged,
    TableCreated,
    TableInfo,
    TableSeen,
    Verb,
    Writer,
)

CREATING, ACTIVE, DELETED = "CREATING", "ACTIVE", "DELETED"


class Impossible(Exception):
    """The change does not fit the state. To a writer this means a conflict, to a reader a damaged log."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Begun and not yet ended. `number` is that of its begin entry, and the version of what it writes."""

    id: str
    verb: Verb
    indexes: tuple[str, ...]
    writer: Writer
    heartbeat_seconds: float
    number: int
    at_ms: int
    specs: Mapping[str, IndexSpec] = field(default_factory=dict)
    purpose: Purpose = NO_PURPOSE


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """Content of an index that was replaced by other that holds rows of fewer files: kept for queries of older versions of the
    table, which read those files."""

    version: int
    replaced_at: int
    """The number of the entry that replaced it."""
    spec: IndexSpec
    content: tuple[ContentFile, ...]
    held: FileIds
    """Files whose rows are in the content."""
    table_version: str = ""

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.content)


@dataclass(frozen=True, slots=True)
class IndexState:
    name: str
    spec: IndexSpec
    state: str
    version: int
    content: tuple[ContentFile, ...]
    covered: FileIds
    table_version: str
    created_ms: int
    refreshed_ms: int
    deleted_at: int | None = None
    """The number of the entry that deleted it."""
    dormant: FileIds = NO_FILES
    """Files that it does not cover, though their rows are still in its content."""
    kept: tuple[KeptVersion, ...] = ()
    """Older versions, the newest first."""
    measured: Measured | None = None
    """What building it took, where that was predicted."""
    upkeep_seconds: float = 0.0
    """What was spent on it since."""
    problem: str = ""
    """Why it cannot be refreshed any more, as the last refresh found; empty if it can."""

    @property
    def held(self) -> FileIds:
        """All files whose rows are in its content: of these a query may use it, whatever the newest version of the table has."""
        return self.covered | self.dormant if self.dormant else self.covered

    @property
    def paths(self) -> frozenset[str]:
        """All objects that belong to it: of its content, and of older versions."""
        older = (file.path for version in self.kept for file in version.content)
        return frozenset((*(file.path for file in self.content), *older))

    def as_kept(self, version: KeptVersion) -> "IndexState":
        """The index as it was in that version."""
        return replace(
            self,
            spec=version.spec,
            version=version.version,
            content=version.content,
            covered=version.held,
            dormant=NO_FILES,
            table_version=version.table_version,
            kept=(),
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """The table as of the last refresh of all its indexes."""

    files: FileIds
    version: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class TableState:
    table: TableInfo | None = None
    next_file_id: int = 0
    segments: tuple[Segment, ...] = ()
    indexes: Mapping[str, IndexState] = field(default_factory=dict)
    operations: Mapping[str, Operation] = field(default_factory=dict)
    retired: Mapping[str, int] = field(default_factory=dict)
    """Objects out of use -> the number of the entry since when."""
    seen: Seen | None = None

    def index(self, name: str) -> IndexState | None:
        return self.indexes.get(name)

    @property
    def content_paths(self) -> frozenset[str]:
        """All objects that belong to an index."""
        return frozenset(path for index in self.indexes.values() for path in index.paths)

    def operations_on(self, names: tuple[str, ...]) -> list[Operation]:
        """Running operations that touch one of these indexes, oldest first."""
        wanted = set(names)
        return sorted((o for o in self.operations.values() if not wanted.isdisjoint(o.indexes)), key=lambda o: o.number)


_TOGETHER = {Verb.DELETE, Verb.OPTIMIZE, Verb.REFRESH, Verb.REPAIR}


def may_run_together(one: Verb, other: Verb) -> bool:
    """May two operations on the same index both run? The second to commit then rebases or gets a conflict."""
    return one is other or (one in _TOGETHER and other in _TOGETHER)


def apply(state: TableState, entry: Entry) -> TableState:
    """The state after `entry`. Raises `Impossible`."""
    for change in entry.changes:
        state = _HOW[type(change)](state, change, entry)
    return state


def _table_created(state: TableState, change: TableCreated, entry: Entry) -> TableState:
    _require(state.table is None, "the table has been created before")
    return replace(state, table=change.table)


def _files_registered(state: TableState, change: FilesRegistered, entry: Entry) -> TableState:
    segment = change.segment
    _require(segment.first_id == state.next_file_id, f"file id {segment.first_id} is not the next one")
    _require(segment.count > 0, "a segment without files")
    return replace(state, next_file_id=segment.first_id + segment.count, segments=(*state.segments, segment))


def _segments_merged(state: TableState, change: SegmentsMerged, entry: Entry) -> TableState:
    paths = [s.path for s in state.segments]
    start = paths.index(change.replaced[0]) if change.replaced and change.replaced[0] in paths else len(paths)
    end = start + len(change.replaced)
    _require(tuple(paths[start:end]) == change.replaced and bool(change.replaced), "the merged segments have changed")
    old = state.segments[start:end]
    same = change.segment.first_id == old[0].first_id and change.segment.count == sum(s.count for s in old)
    _require(same, "a merged segment holds other files than those it replaces")
    segments = (*state.segments[:start], change.segment, *state.segments[end:])
    return replace(state, segments=segments, retired=_retire(state, change.replaced, entry.number))


def _operation_begun(state: TableState, change: OperationBegun, entry: Entry) -> TableState:
    _require(change.id not in state.operations, "the operation has begun before")
    for other in state.operations_on(change.indexes):
        _require(may_run_together(change.verb, other.verb), f"{other.verb} is under way on {', '.join(other.indexes)}")
    operation = Operation(
        id=change.id,
        verb=change.verb,
        indexes=change.indexes,
        writer=change.writer,
        heartbeat_seconds=change.heartbeat_seconds,
        number=entry.number,
        at_ms=entry.at_ms,
        specs=change.specs,
        purpose=change.purpose,
    )
    return replace(state, operations={**state.operations, change.id: operation})


def _operation_ended(state: TableState, change: OperationEnded, entry: Entry) -> TableState:
    _require(change.id in state.operations, "the operation has ended before")
    return replace(state, operations={k: v for k, v in state.operations.items() if k != change.id})


def _index_created(state: TableState, change: IndexCreated, entry: Entry) -> TableState:
    taken = {name.casefold(): name for name in state.indexes}.get(change.name.casefold())
    _require(taken is None, f"index {taken} exists already")
    _require_new_content(state, change.content, frozenset())
    index = IndexState(
        name=change.name,
        spec=change.spec,
        state=ACTIVE,
        version=change.version,
        content=change.content,
        covered=change.covered,
        table_version=change.table_version,
        created_ms=entry.at_ms,
        refreshed_ms=entry.at_ms,
        measured=change.measured,
    )
    return _with_index(state, index)


def _index_changed(state: TableState, change: IndexChanged, entry: Entry) -> TableState:
    index = _existing(state, change.name, ACTIVE)
    present = {c.path for c in index.content}
    removed = set(change.remove)
    _require(removed <= present, f"content of index {change.name} has been replaced meanwhile")
    covered, dormant = _coverage(index, change, all_replaced=removed == present)
    _require_new_content(state, change.add, index.paths)
    spec = index.spec
    if change.properties is not None:
        spec = replace(spec, properties={**spec.properties, **change.properties})
    if change.columns is not None:
        spec = replace(spec, columns=change.columns)
    after = replace(
        index,
        spec=spec,
        version=max(index.version, change.version),
        content=(*(c for c in index.content if c.path not in removed), *change.add),
        covered=covered,
        dormant=dormant,
        table_version=index.table_version if change.table_version is None else change.table_version,
        refreshed_ms=entry.at_ms if change.table_version is not None else index.refreshed_ms,
        upkeep_seconds=index.upkeep_seconds + change.seconds,
        problem=index.problem if change.problem is None else change.problem,
    )
    after = replace(after, kept=_kept(index, after, change.keep, entry.number))
    out_of_use = tuple(sorted(index.paths - after.paths))
    return replace(_with_index(state, after), retired=_retire(state, out_of_use, entry.number))


def _kept(before: IndexState, after: IndexState, keep: Keep | None, number: int) -> tuple[KeptVersion, ...]:
    """Older versions that stay: those that hold rows of files which the content does not hold, as far as the limits go."""
    older = before.kept
    if keep is not None and before.content:
        replaced = KeptVersion(before.version, number, before.spec, before.content, before.held, before.table_version)
        older = (replaced, *older)
    useful = [version for version in older if not version.held <= after.held]
    if keep is None:
        return tuple(useful)
    stay: list[KeptVersion] = []
    total = 0
    for version in useful[: keep.versions]:
        total += version.bytes
        if keep.bytes is not None and total > keep.bytes:
            break
        stay.append(version)
    return tuple(stay)


def _coverage(index: IndexState, change: IndexChanged, all_replaced: bool) -> tuple[FileIds, FileIds]:
    """What is covered and what is dormant after the change."""
    _require(change.uncover <= index.covered, f"index {index.name} no longer covers what this would replace")
    _require(change.revive <= index.dormant, f"index {index.name} no longer holds rows that this would revive")
    leaving = index.dormant | change.uncover
    purge = change.purge if change.purge is not None else leaving if all_replaced else NO_FILES
    _require(purge <= leaving, f"index {index.name} would lose rows of files that it covers")
    _require(purge.isdisjoint(change.revive), f"index {index.name} would lose rows that this would revive")
    dormant = leaving - purge - change.revive
    kept = (index.covered - change.uncover) | change.revive
    _require(kept.isdisjoint(change.cover), f"index {index.name} covers some of these files already")
    _require(dormant.isdisjoint(change.cover), f"index {index.name} holds rows of some of these files already")
    return kept | change.cover, dormant


def _index_deleted(state: TableState, change: IndexDeleted, entry: Entry) -> TableState:
    index = _existing(state, change.name, ACTIVE)
    return _with_index(state, replace(index, state=DELETED, deleted_at=entry.number))


def _index_restored(state: TableState, change: IndexRestored, entry: Entry) -> TableState:
    index = _existing(state, change.name, DELETED)
    return _with_index(state, replace(index, state=ACTIVE, deleted_at=None))


def _index_dropped(state: TableState, change: IndexDropped, entry: Entry) -> TableState:
    index = state.indexes.get(change.name)
    if index is None:
        raise Impossible(f"index {change.name} is not there")
    since = entry.number if index.deleted_at is None else index.deleted_at
    retired = _retire(state, tuple(sorted(index.paths)), since)
    indexes = {k: v for k, v in state.indexes.items() if k != change.name}
    return replace(state, indexes=indexes, retired=retired)


def _table_seen(state: TableState, change: TableSeen, entry: Entry) -> TableState:
    return replace(state, seen=Seen(change.files, change.version, entry.at_ms))


def _content_forgotten(state: TableState, change: ContentForgotten, entry: Entry) -> TableState:
    gone = set(change.paths)
    return replace(state, retired={k: v for k, v in state.retired.items() if k not in gone})


_HOW: Mapping[type[Change], Callable[[TableState, Any, Entry], TableState]] = {
    TableCreated: _table_created,
    FilesRegistered: _files_registered,
    SegmentsMerged: _segments_merged,
    OperationBegun: _operation_begun,
    OperationEnded: _operation_ended,
    IndexCreated: _index_created,
    IndexChanged: _index_changed,
    IndexDeleted: _index_deleted,
    IndexRestored: _index_restored,
    IndexDropped: _index_dropped,
    TableSeen: _table_seen,
    ContentForgotten: _content_forgotten,
}


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Impossible(otherwise)


def _existing(state: TableState, name: str, wanted: str) -> IndexState:
    index = state.indexes.get(name)
    if index is None:
        raise Impossible(f"index {name} is not there")
    _require(index.state == wanted, f"index {name} is {index.state}, not {wanted}")
    return index


def _require_new_content(state: TableState, content: tuple[ContentFile, ...], used: frozenset[str]) -> None:
    """`used`: what belongs to the index already. Each index has a folder of its own, which `invariants` looks after."""
    twice = [c.path for c in content if c.path in used or c.path in state.retired]
    _require(not twice and len({c.path for c in content}) == len(content), f"content {twice[:1]} is in the log already")


def _with_index(state: TableState, index: IndexState) -> TableState:
    return replace(state, indexes={**state.indexes, index.name: index})


def _retire(state: TableState, paths: tuple[str, ...], since: int) -> Mapping[str, int]:
    return {**state.retired, **dict.fromkeys(paths, since)} if paths else state.retired
