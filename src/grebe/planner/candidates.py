"""Of every index that is known to a scan: what it can stand in for, or the reason why it cannot. The checks stand in one order,
from what concerns the index alone to what concerns the files of this scan."""

from dataclasses import dataclass
from typing import Any

from grebe.config import Config
from grebe.formats import Reading
from grebe.indexes.kind import Copy
from grebe.log.states import ACTIVE
from grebe.planner.content import Content, content_of
from grebe.planner.hybrid import Coverage, coverage
from grebe.planner.implication import implies
from grebe.planner.pruning import files_to_read
from grebe.planner.query import Query, Relation
from grebe.planner.reasons import Code, Reason
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.predicate.bounds import Numbers
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Path, Predicate, columns_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """A copy that may be read for a relation, and how much of it."""

    relation: Relation
    table: KnownTable
    index: str
    copy: Copy
    content: Content
    keep: Numbers
    """Positions of the content files that can hold rows of the query."""
    coverage: Coverage
    version: int | None = None
    """Of the index, where it is not the current one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A relation, and the columns that its predicate mentions."""

    relation: Relation
    mentions: frozenset[Path]

    @property
    def predicate(self) -> Predicate:
        """Taken as it is: one that is not normalised is only understood less."""
        return self.relation.predicate


def asked_of(relation: Relation) -> Asked:
    return Asked(relation, columns_of(relation.predicate))


def candidate(asked: Asked, table: KnownTable, index: KnownIndex, query: Query, config: Config) -> Candidate | Reason:
    relation = asked.relation
    refuse = Refusal(relation, index.name)
    out = ruled_out(relation, index, query, refuse)
    if out is not None:
        return out
    copy = index.copy
    if copy is None:
        return refuse(Code.NO_STAND_IN, kind=index.kind)
    if copy.definition is not None:
        return refuse(Code.NOT_ANSWERED, what="single rows of the table")
    refused = _columns(asked, copy, refuse)
    if refused is not None:
        return refused
    covered = coverage(relation, table, copy)
    refused = files_refused(covered, copy, config, refuse)
    if refused is not None:
        return refused
    keep = files_to_read(copy, asked.predicate, asked.mentions)
    return Candidate(relation, table, index.name, copy, content_of(copy), keep, covered, index.older_version)


def ruled_out(
    relation: Relation, index: KnownIndex, query: Query, refuse: "Refusal", in_place: bool = False
) -> Reason | None:
    """Why an index is not considered at all. `in_place`: for reading the table's own files, which know their names."""
    obstacle = relation.obstacle
    if obstacle is not None and not (in_place and obstacle.code == Code.USES_FILE_METADATA):
        return refuse(obstacle.code, **obstacle.arguments)
    if index.state != ACTIVE:
        return refuse(Code.NOT_ACTIVE, state=index.state)
    if index.set_aside:
        return refuse(Code.SET_ASIDE, why=index.set_aside)
    if query.only is not None and not _names(query.only, index):
        return refuse(Code.EXCLUDED, by="lake.only or a hint")
    if query.without and _names(query.without, index):
        return refuse(Code.EXCLUDED, by="lake.without or a hint")
    return None


def _names(names: frozenset[str], index: KnownIndex) -> bool:
    """The log knows no two indexes whose names differ in case only."""
    return index.name in names or index.name.casefold() in {name.casefold() for name in names}


def serves(copy: Copy, path: Path) -> bool:
    """Whether a column, or a field in one, can be taken from the copy: it is there, or lies inside a struct that is."""
    return any(path[:length] in copy.columns for length in range(len(path), 0, -1))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Makes the reasons why an index does not serve a relation."""

    relation: Relation
    index: str

    def __call__(self, code: str, **arguments: Any) -> Reason:
        return Reason(code, self.index, arguments, self.relation.name)


def _columns(asked: Asked, copy: Copy, refuse: Refusal) -> Reason | None:
    relation = asked.relation
    names = sorted({path[0] for path in relation.required})
    served = [name for name in names if any(path[0] == name for path in copy.columns)]
    different = differences(copy.reading, relation.reading, served, refuse)
    if different is not None:
        return different
    missing = [path for path in sorted(relation.required) if not serves(copy, path)]
    if missing:
        return refuse(Code.MISSING_REQUIRED_COL, columns=list(map(column_sql, missing)))
    if copy.where is not None and not implies(asked.predicate, copy.where):
        return refuse(Code.PARTIAL_NOT_IMPLIED, columns=list(map(column_sql, sorted(columns_of(copy.where)))))
    return None


def differences(one: Reading, other: Reading, names: list[str], refuse: Refusal) -> Reason | None:
    """Whether an index that was made from one reading says nothing of another, as far as these columns go."""
    if one.agrees_on(other, names):
        return None
    differs = _differences(one, other)
    if differs:
        return refuse(Code.READ_DIFFERENTLY, differs=differs)
    return refuse(Code.COL_SCHEMA_MISMATCH, columns=_changed(one, other, names))


def _differences(one: Reading, other: Reading) -> list[str]:
    """What differs about the readings as a whole, without the values of options."""
    differs = ["formats"] if one.format != other.format else []
    mine, theirs = dict(one.options), dict(other.options)
    differs += [f"options {name}" for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]
    return differs + (["time zones"] if one.time_zone != other.time_zone else [])


def _changed(one: Reading, other: Reading, names: list[str]) -> list[str]:
    mine, theirs = ({column.name: column for column in reading.columns} for reading in (one, other))
    looked_at = sorted(mine.keys() | theirs.keys()) if one.by_position else names
    return [column_sql((name,)) for name in looked_at if mine.get(name) != theirs.get(name)]


def files_refused(covered: Coverage, copy: Copy, config: Config, refuse: Refusal) -> Reason | None:
    if not covered.served:
        return refuse(Code.NO_COMMON_FILES)
    if not config.hybrid and not covered.exact:
        return refuse(Code.HYBRID_OFF, appended=covered.direct_files, deleted=len(covered.drop))
    if covered.appended > config.hybrid_max_appended:
        return refuse(Code.TOO_MUCH_APPENDED, share=covered.appended, limit=config.hybrid_max_appended)
    if covered.deleted > config.hybrid_max_deleted:
        return refuse(Code.TOO_MUCH_DELETED, share=covered.deleted, limit=config.hybrid_max_deleted)
    if covered.drop and not copy.lineage:
        return refuse(Code.NO_LINEAGE, files=len(covered.drop))
    return None
