"""Aggregates without keys over a whole table that need no scan: what they ask is known of the content files of an index.

Only where it is exact: the copy holds the rows of the query's files and no others, all of them, and every function can be answered.
Formats that delete single rows are left out, as such deletes are not part of what a copy knows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grebe.planner.candidates import Candidate
from grebe.planner.decision import FromMetadata
from grebe.planner.query import Aggregate, Node, Project, Query, Scan
from grebe.planner.shapes import every_node
from grebe.predicate.tree import TRUE, Path

_FUNCTION = re.compile(r"(count|min|max)\((?:(1|\*)|#(\d+))\)", re.IGNORECASE)


def answers(query: Query, candidates: Mapping[int, Sequence[Candidate]]) -> dict[int, FromMetadata]:
    """By `id` of the aggregate's node."""
    found = {}
    for node in every_node(query.roots):
        if isinstance(node, Aggregate) and not node.keys and node.functions:
            answer = _answer(node, candidates)
            if answer is not None:
                found[id(node)] = answer
    return found


def _answer(aggregate: Aggregate, candidates: Mapping[int, Sequence[Candidate]]) -> FromMetadata | None:
    names: dict[int, int] = {}
    node: Node = aggregate.child
    while isinstance(node, Project):
        names |= node.aliases
        node = node.child
    if not isinstance(node, Scan):
        return None
    for candidate in candidates.get(node.relation, ()):
        values = _values(aggregate.functions, candidate, names)
        if values is not None:
            return FromMetadata(node.relation, candidate.index, candidate.table.uri, values, candidate.relation.name)
    return None


def _values(functions: Sequence[str], candidate: Candidate, names: Mapping[int, int]) -> tuple[object, ...] | None:
    copy, relation = candidate.copy, candidate.relation
    if relation.predicate != TRUE or copy.where is not None or copy.rows_numbered or not candidate.coverage.exact:
        return None
    known = _Known(candidate, names)
    values = [known.value(function) for function in functions]
    return None if _Unknown in values else tuple(values)


class _Unknown:
    """In place of a value, as None is a value."""


@dataclass(frozen=True, slots=True)
class _Known:
    candidate: Candidate
    names: Mapping[int, int]

    def value(self, function: str) -> object:
        asked = _FUNCTION.fullmatch(function)
        if asked is None:
            return _Unknown
        name, content = asked[1].lower(), self.candidate.content
        if asked[2]:
            return content.row_count if name == "count" else _Unknown
        bounds = content.bounds
        if bounds is None or self._column(int(asked[3])) != bounds.column or (content.nulls < 0).any():
            return _Unknown
        filled = content.row_count - int(content.nulls.sum())
        if name == "count":
            return filled
        if not (bounds.type.is_integral or bounds.type.name == "date"):
            return _Unknown
        if filled == 0:
            return None
        extreme = content.least if name == "min" else content.greatest
        return _Unknown if extreme is None else extreme

    def _column(self, attribute: int) -> Path | None:
        while attribute in self.names:
            attribute = self.names[attribute]
        return next((own.path for own in self.candidate.relation.attributes if own.id == attribute), None)
