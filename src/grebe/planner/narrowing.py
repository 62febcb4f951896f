"""Which files of a scan hold no row of the query, as its indexes say. An index speaks only of files that it covers; what none of
them covers is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from grebe.config import Config
from grebe.files import FileIds
from grebe.indexes.kind import Entries
from grebe.planner.candidates import Asked, Refusal, differences, ruled_out
from grebe.planner.inquiry import Inquiry
from grebe.planner.parts import Parts
from grebe.planner.query import Query, Relation
from grebe.planner.reasons import Code, Reason
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.predicate.text import column_sql

_NONE = FileIds.of([])


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is left of a scan, by the indexes named here, the one that says most first."""

    relation: Relation
    table: KnownTable
    indexes: tuple[str, ...]
    without: FileIds
    """Files of the scan that need not be read."""
    known: FileIds
    """Files of the scan that some of the indexes cover."""
    records: int | None
    """So many rows of the covered files can be in the query, at most; None: unknown."""
    parts: Parts = field(default_factory=dict)
    """Of some of the files that are read, the only ranges of bytes that have to be."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Files that each index by itself rules out."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Of those indexes that are not asked in their current version."""

    @property
    def files(self) -> int:
        return len(self.relation.listed) - len(self.without) + self.relation.unregistered_files

    @property
    def uncovered(self) -> int:
        return len(self.relation.listed) - len(self.known) + self.relation.unregistered_files

    @property
    def bytes(self) -> int:
        spared = sum(int(self.table.sizes[file]) - sum(ranges[1::2]) for file, ranges in self.parts.items())
        return self.relation.bytes - self.table.bytes_of(self.without) - spared


def askable(
    asked: Asked, table: KnownTable, indexes: Sequence[KnownIndex], query: Query, config: Config
) -> tuple[list[tuple[KnownIndex, FileIds]], list[Reason]]:
    """The indexes that know something of the scan's files, and of which; and why others do not. Of several versions of an index,
    the current one first, that which knows most."""
    found: dict[str, tuple[KnownIndex, FileIds]] = {}
    refused: dict[str, Reason] = {}
    for index in indexes:
        if index.pruner is not None:
            known = _known(asked, index, query, config)
            if isinstance(known, Reason):
                refused.setdefault(index.name, known)
            elif index.name not in found or table.bytes_of(found[index.name][1]) < table.bytes_of(known):
                found[index.name] = (index, known)
    return list(found.values()), [reason for name, reason in refused.items() if name not in found]


def _known(asked: Asked, index: KnownIndex, query: Query, config: Config) -> FileIds | Reason:
    relation, pruner = asked.relation, index.pruner
    assert pruner is not None
    refuse = Refusal(relation, index.name)
    out = ruled_out(relation, index, query, refuse, in_place=True)
    if out is not None:
        return out
    differs = differences(pruner.reading, relation.reading, sorted({path[0] for path in pruner.columns}), refuse)
    if differs is not None:
        return differs
    known = relation.listed & pruner.covered
    uncovered = len(relation.listed) - len(known) + relation.unregistered_files
    if not known:
        return refuse(Code.NO_COMMON_FILES)
    if uncovered and not config.hybrid:
        return refuse(Code.HYBRID_OFF, appended=uncovered, deleted=0)
    return known


def without_condition(relation: Relation, index: KnownIndex) -> Reason:
    assert index.pruner is not None
    column = column_sql(next(iter(index.pruner.columns)))
    return Refusal(relation, index.name)(Code.NO_FIRST_INDEXED_COL_COND, column=column)


def narrowed(
    asked: Asked,
    table: KnownTable,
    indexes: Sequence[tuple[KnownIndex, FileIds]],
    affordable: float,
    inquiry: Inquiry,
) -> tuple[Narrowed | None, list[Reason]]:
    """What these indexes together leave of a scan, reading no more than so many entries of each; and why some say nothing."""
    relation = asked.relation
    if affordable < 0:
        return None, [Refusal(relation, index.name)(Code.SCAN_IS_CHEAP) for index, _ in indexes]
    promising = []
    for index, known in indexes:
        hits = inquiry.hits(table, index, asked.predicate)
        if hits is not None:
            most = relation.bytes if hits.likely is None else hits.likely
            promising.append((most, index, known, hits))
    left: Narrowed | None = None
    reasons = []
    for most, index, known, hits in sorted(promising, key=lambda one: (one[0], one[1].name)):
        refuse = Refusal(relation, index.name)
        if left is not None:
            # What is left to read is what may be won.
            if left.files <= 1:
                reasons.append(refuse(Code.ANOTHER_INDEX_APPLIED, applied=left.indexes[0]))
                continue
            affordable *= left.bytes / max(1, relation.bytes)
        if most > affordable:
            reasons.append(refuse(Code.TOO_MANY_ROWS, rows=most))
            continue
        entries = inquiry.entries(table, index, asked.predicate, hits)
        if entries is None:
            continue
        having = FileIds.of(entries.files)
        without = known - having
        before = left if left is not None else Narrowed(relation, table, (), _NONE, _NONE, None)
        parts = (
            inquiry.parts(table, index, entries, (known & having) - before.without)
            if relation.by_parts and not before.parts
            else {}
        )
        if parts or without - before.without:
            left = _narrower(before, index, without, known, parts, _records(entries))
        else:
            reasons.append(refuse(Code.NOTHING_LEFT_OUT))
    return left, reasons


def _records(entries: Entries) -> int | None:
    """How many there are, unless they are files."""
    return None if entries.locators is None and entries.values is None else len(entries.files)


def _narrower(
    before: Narrowed, index: KnownIndex, without: FileIds, known: FileIds, parts: Parts, records: int | None
) -> Narrowed:
    """By one index more."""
    kept = {file: ranges for file, ranges in (before.parts or parts).items() if file not in without}
    counted = [count for count in (before.records, records) if count is not None]
    older = {} if index.older_version is None else {index.name: index.older_version}
    return replace(
        before,
        indexes=(*before.indexes, index.name),
        without=before.without | without,
        known=before.known | known,
        parts=kept,
        records=min(counted, default=None),
        left_out={**before.left_out, index.name: len(without)},
        versions={**before.versions, **older},
    )
