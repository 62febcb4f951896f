"""What must hold of each object of the log by itself, checked whenever one is made from bytes.

Whoever can write to the log can seal what it wrote, so a seal says nothing of its author. A path that leads out of the log's
folder, a number that no table has, or a name that is no name of an index is found here, before anything is opened, listed or
removed by it.
What must hold between objects is a matter of `invariants`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from grebe.files import canonical_uri
from grebe.files.ids import ID_LIMIT
from grebe.log import names
from grebe.log.entry import (
    ContentFile,
    ContentForgotten,
    Entry,
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
    Prediction,
    Purpose,
    Segment,
    SegmentsMerged,
    TableInfo,
    Writer,
)
from grebe.log.states import ACTIVE, DELETED, IndexState, KeptVersion, Operation, Seen, TableState

MOST = 2**63 - 1
"""Numbers and sizes are 64 bits wide wherever they are counted together."""
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, which is what people can be shown."""
_LONGEST = 10_000
"""Characters of a text that tells a version, an id or a person."""


_MOST_CHANGES, _MOST_BEGUN, _MOST_OF_ONE_INDEX = 2_000, 16, 16
"""In one entry: changes, of these operations that begin, and those of one index."""
_MOST_INDEXES, _MOST_OPERATIONS = 2_000, 1_000
"""Of one table: indexes, and operations that run."""


class Refused(ValueError):
    """A value that no writer of a log ever writes."""


def check(value: Any) -> None:
    """Raise `Refused` if the object holds a value that no writer of a log ever writes."""
    checker = _CHECKS.get(type(value))
    if checker is not None:
        checker(value)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Refused(otherwise)


def _numbers(*values: int, most: int = MOST) -> None:
    for value in values:
        _require(0 <= value <= most, f"the number {value} is not between 0 and {most}")


def _few(what: str, count: int, most: int) -> None:
    _require(count <= most, f"{count:,} {what}; {most:,} are the most")


def _finite(*values: float) -> None:
    for value in values:
        # The most leaves room for sums of them: no state may come to hold what none may be read with.
        _require(0 <= value <= MOST, f"{value} is no number between 0 and {MOST}")


def _moment(ms: int) -> None:
    _require(_FIRST_MS <= ms <= _LAST_MS, f"{ms} ms lies outside of the years 1 to 9999")


def _short(*texts: str | None) -> None:
    for text in texts:
        _require(
            text is None or len(text) <= _LONGEST,
            "a text of a version, an id or a person is longer than 10,000 characters",
        )


def _index_names(found: Iterable[str]) -> None:
    for name in found:
        _require(names.is_index_name(name), f"{name[:120]!r} is no name of an index")


def _contents(found: Iterable[str]) -> None:
    for path in found:
        _require(names.is_content(path), f"{path[:300]!r} is no path of content in this log's folder")


def _objects(found: Iterable[str]) -> None:
    for path in found:
        _require(
            names.is_content(path) or names.is_segment(path), f"{path[:300]!r} is no path of an object of this log"
        )


def _operation_id(found: str) -> None:
    _require(names.is_operation_id(found), f"{found[:120]!r} is no id of an operation")


def _table(table: TableInfo) -> None:
    uri = table.uri
    _require(
        "://" in uri and "\0" not in uri and canonical_uri(uri) == uri,
        f"{uri[:300]!r} is no canonical URI of a table",
    )
    _short(uri, table.source)


def _spec(spec: IndexSpec) -> None:
    _short(spec.kind, *spec.columns)


def _content_file(file: ContentFile) -> None:
    # Of these there are many: what is wrong is looked for only where something is.
    if 0 <= file.footer <= file.size <= MOST and 0 <= file.rows <= MOST and names.is_content(file.path):
        return
    _contents((file.path,))
    _numbers(file.size, file.rows, file.footer)
    _require(file.footer <= file.size, f"{file.path} has a footer of {file.footer} bytes and {file.size} bytes in all")


def _segment(segment: Segment) -> None:
    _numbers(segment.size)
    _numbers(segment.first_id, segment.count, segment.first_id + segment.count, most=ID_LIMIT)
    _require(
        names.is_segment(segment.path) and names.is_segment_of(segment.path, segment.first_id, segment.count),
        f"{segment.path[:300]!r} is no path of the list of files {segment.first_id} to {segment.first_id + segment.count - 1}",
    )


def _merged(change: SegmentsMerged) -> None:
    _require(all(map(names.is_segment, change.replaced)), "what is merged is no list of files")


def _writer(writer: Writer) -> None:
    _short(writer.host, writer.process_start, writer.name)
    _numbers(writer.pid)


def _prediction(one: Prediction) -> None:
    _numbers(one.bytes)
    _finite(one.seconds, one.scale_bytes, one.scale_seconds)


def _measured(one: Measured) -> None:
    _numbers(one.bytes)
    _finite(one.seconds)


def _purpose(one: Purpose) -> None:
    _numbers(one.most_bytes or 0)
    _index_names((*one.predicted, *one.budgeted))


def _begun(one: OperationBegun | Operation) -> None:
    _operation_id(one.id)
    _few("indexes of one operation", len(one.indexes), _MOST_INDEXES)
    _index_names((*one.indexes, *one.specs))


def _operation(one: Operation) -> None:
    _begun(one)
    _numbers(one.number)
    _moment(one.at_ms)


def _created(one: IndexCreated) -> None:
    _index_names((one.name,))
    _numbers(one.version)
    _short(one.table_version)


def _changed(one: IndexChanged) -> None:
    _index_names((one.name,))
    _numbers(one.version)
    _short(one.table_version)
    _finite(one.seconds)
    _contents(one.remove)


def _keep(one: Keep) -> None:
    _numbers(one.versions, one.bytes or 0)


def _named(one: IndexDeleted | IndexRestored | IndexDropped) -> None:
    _index_names((one.name,))


def _entry(entry: Entry) -> None:
    _numbers(entry.number)
    _moment(entry.at_ms)
    _short(entry.id, entry.previous, entry.action)
    _few("changes", len(entry.changes), _MOST_CHANGES)
    _few("operations that begin", sum(isinstance(one, OperationBegun) for one in entry.changes), _MOST_BEGUN)
    changed = Counter(one.name for one in entry.changes if isinstance(one, IndexChanged))
    _few("changes of one index", max(changed.values(), default=0), _MOST_OF_ONE_INDEX)


def _kept_version(one: KeptVersion) -> None:
    _numbers(one.version, one.replaced_at)
    _short(one.table_version)


def _index(one: IndexState) -> None:
    _index_names((one.name,))
    _numbers(one.version, one.deleted_at or 0)
    _moment(one.created_ms)
    _moment(one.refreshed_ms)
    _finite(one.upkeep_seconds)
    _short(one.table_version)
    _require(one.state in (ACTIVE, DELETED), f"index {one.name} is in no known state")


def _state(state: TableState) -> None:
    _numbers(state.next_file_id, most=ID_LIMIT)
    _few("indexes", len(state.indexes), _MOST_INDEXES)
    _few("running operations", len(state.operations), _MOST_OPERATIONS)
    _require(
        all(name == index.name for name, index in state.indexes.items()), "an index is listed under another's name"
    )
    _require(all(key == one.id for key, one in state.operations.items()), "an operation is listed under another's id")
    _objects(state.retired)
    _numbers(*state.retired.values())


def _seen(one: Seen) -> None:
    _short(one.version)
    _moment(one.at_ms)


_CHECKS: Mapping[type, Callable[[Any], None]] = {
    TableInfo: _table,
    IndexSpec: _spec,
    ContentFile: _content_file,
    Segment: _segment,
    SegmentsMerged: _merged,
    Writer: _writer,
    Prediction: _prediction,
    Measured: _measured,
    Purpose: _purpose,
    OperationBegun: _begun,
    OperationEnded: lambda one: _operation_id(one.id),
    IndexCreated: _created,
    IndexChanged: _changed,
    Keep: _keep,
    IndexDeleted: _named,
    IndexRestored: _named,
    IndexDropped: _named,
    ContentForgotten: lambda one: _objects(one.paths),
    Entry: _entry,
    KeptVersion: _kept_version,
    IndexState: _index,
    Operation: _operation,
    Seen: _seen,
    TableState: _state,
}
