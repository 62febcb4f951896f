"""Aggregates without keys over a table that need no scan: what they ask is known of the content files of an index, or of the
files of the table themselves.

Only where it is exact: the index knows the rows of the query's files and of no others, all of them, and every output is one of a
closed list of functions (`query.Answerable`), which the expressions of the plan are checked against where they are described.
Formats that delete single rows are left out, as such deletes are not part of what an index knows.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from grebe.formats.calendars import may_be_rebased
from grebe.indexes.kind import Totals
from grebe.planner.candidates import Candidate
from grebe.planner.decision import FromMetadata
from grebe.planner.inquiry import Inquiry
from grebe.planner.query import Aggregate, Answerable, Attribute, Filter, Node, Project, Query, Relation, Scan
from grebe.planner.shapes import every_node
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.predicate.tree import TRUE

_NAMES = ("count", "min", "max")


def answers(
    query: Query,
    candidates: Mapping[int, Sequence[Candidate]],
    asked: Mapping[int, tuple[KnownTable, Sequence[KnownIndex]]],
    inquiry: Inquiry | None,
) -> dict[int, FromMetadata]:
    """By `id` of the aggregate's node. `asked`: of each relation the indexes that prune."""
    found = {}
    scans = Counter(node.relation for node in every_node(query.roots) if isinstance(node, Scan))
    for node in every_node(query.roots):
        if isinstance(node, Aggregate) and not node.keys:
            functions = [one for one in node.answerable if one is not None and _is_known(one)]
            chain = _chain(node)
            # Answers are given by relation. Where one stands in several places of a plan, another aggregate may be above it there,
            # and what is known of its rows (`Relation.predicate`) leaves out the filters, which may differ.
            is_alone = chain is not None and scans[chain.relation] == 1
            if chain is not None and is_alone and functions and len(functions) == len(node.answerable):
                answer = _answer(chain, functions, query.relations, candidates, asked, inquiry)
                if answer is not None:
                    found[id(node)] = answer
    return found


@dataclass(frozen=True, slots=True)
class _Chain:
    """The projections and filters between an aggregate and the relation below it."""

    relation: int
    names: Mapping[int, int]
    """Attribute -> the one that it renames."""
    filtered: bool


def _chain(aggregate: Aggregate) -> _Chain | None:
    """Return what lies between an aggregate and its relation, or None if that is more than projections and filters."""
    names: dict[int, int] = {}
    node: Node = aggregate.child
    filtered = False
    while isinstance(node, Project | Filter):
        names |= node.aliases if isinstance(node, Project) else {}
        filtered = filtered or isinstance(node, Filter)
        node = node.child
    return _Chain(node.relation, names, filtered) if isinstance(node, Scan) else None


def _is_known(function: Answerable) -> bool:
    return function.name in _NAMES and (function.attribute is not None or function.name == "count")


def _answer(
    chain: _Chain,
    functions: Sequence[Answerable],
    relations: Sequence[Relation],
    candidates: Mapping[int, Sequence[Candidate]],
    asked: Mapping[int, tuple[KnownTable, Sequence[KnownIndex]]],
    inquiry: Inquiry | None,
) -> FromMetadata | None:
    number, names = chain.relation, chain.names
    relation = next(one for one in relations if one.number == number)
    for candidate in candidates.get(number, ()) if not chain.filtered else ():
        values = _of_copy(functions, candidate, names)
        if values is not None:
            return FromMetadata(number, candidate.index, candidate.table.uri, values, relation.name, candidate.version)
    table, indexes = asked.get(number, (None, ()))
    for index in indexes:
        if table is None or inquiry is None or index.pruner is None or not index.pruner.by_file:
            continue
        if relation.unregistered_files or relation.deleted or relation.listed - index.pruner.covered:
            continue
        totals = inquiry.totals(table, index, relation.predicate, relation.listed)
        values = None if totals is None else _all(functions, _OfFiles(relation, totals, names).value)
        if values is not None:
            return FromMetadata(number, index.name, table.uri, values, relation.name, index.older_version)
    return None


def _of_copy(
    functions: Sequence[Answerable], candidate: Candidate, names: Mapping[int, int]
) -> tuple[object, ...] | None:
    copy, relation = candidate.copy, candidate.relation
    if relation.predicate != TRUE or copy.where is not None or copy.rows_numbered or not candidate.coverage.exact:
        return None
    return _all(functions, _Known(candidate, names).value)


def _all(functions: Sequence[Answerable], value: Callable[[Answerable], object]) -> tuple[object, ...] | None:
    values = [value(function) for function in functions]
    return None if _Unknown in values else tuple(values)


class _Unknown:
    """In place of a value, as None is a value."""


@dataclass(frozen=True, slots=True)
class _Known:
    candidate: Candidate
    names: Mapping[int, int]

    def value(self, function: Answerable) -> object:
        content = self.candidate.content
        if function.attribute is None:
            return content.row_count
        own = _attribute(self.candidate.relation, self.names, function.attribute)
        column = None if own is None else content.columns.get(own.path)
        if column is None or (column.nulls < 0).any():
            return _Unknown
        kind, filled = column.bounds.type, content.row_count - int(column.nulls.sum())
        if function.name == "count":
            return filled
        if not (kind.is_integral or kind.name == "date"):
            return _Unknown
        if filled == 0:
            return None
        extreme = column.least if function.name == "min" else column.greatest
        return _Unknown if extreme is None else extreme


@dataclass(frozen=True, slots=True)
class _OfFiles:
    relation: Relation
    totals: Totals
    names: Mapping[int, int]

    def value(self, function: Answerable) -> object:
        if function.attribute is None:
            return self.totals.rows
        own = _attribute(self.relation, self.names, function.attribute)
        known = None if own is None else self.totals.columns.get(own.path)
        if own is None or known is None or may_be_rebased(own.type.strip('"'), known.least):
            return _Unknown  # of old days a scan may give others, or an error (READ_ANCIENT_DATETIME)
        filled = self.totals.rows - known.nulls
        if function.name == "count":
            return filled
        extreme = known.least if function.name == "min" else known.greatest
        return None if filled == 0 else _Unknown if extreme is None else extreme


def _attribute(relation: Relation, names: Mapping[int, int], attribute: int) -> Attribute | None:
    seen: set[int] = set()
    while attribute in names and attribute not in seen:
        seen.add(attribute)
        attribute = names[attribute]
    return next((own for own in relation.attributes if own.id == attribute), None)
