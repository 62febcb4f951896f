"""Why an index that could serve a scan was not taken: the most telling reason, as far as the plan that was chosen shows it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grebe.planner.candidates import Candidate
from grebe.planner.content import leading, path_of
from grebe.planner.plans import Plan, Step, walk
from grebe.planner.query import Aggregate, Join, Node, Query, Relation, Window
from grebe.planner.reasons import Code, Reason
from grebe.planner.shapes import Attributes, Class, every_node
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Path, columns_of


@dataclass(frozen=True, slots=True)
class _Keys:
    """Keys of one join side, grouping or window."""

    node: Node
    classes: tuple[Class | None, ...]
    beside: tuple[Class | None, ...] = ()
    """For a join, those of the other side."""


@dataclass(frozen=True, slots=True)
class NotChosen:
    query: Query
    attributes: Attributes
    candidates: Mapping[int, Sequence[Candidate]]
    plans: Sequence[Plan]
    """Those chosen."""
    applied: Mapping[int, str]
    """The index that each scan is served by."""
    cost_with: Callable[[Candidate], float]
    """Of the whole query, if just this candidate had to be taken."""

    def reason(self, candidate: Candidate) -> Reason:
        relation, copy = candidate.relation, candidate.copy
        lead = leading(copy)
        by = copy.layout.bucket_by if copy.layout.buckets > 0 else copy.layout.sort_by[:1]
        paths = [path for name in by if (path := path_of(copy, name)) is not None]
        lead = lead or tuple(paths[:1])
        classes = [self._class(relation, path) for path in paths]
        first = next(iter(classes), None)
        using = [keys for keys in self._all_keys() if first is not None and first in keys.classes]
        if lead and not using and columns_of(relation.predicate).isdisjoint(lead):
            return self._unused(candidate, lead)
        applied = self.applied.get(relation.number)
        if applied is not None:
            return self._because(candidate, Code.ANOTHER_INDEX_APPLIED, applied=applied)
        if copy.layout.buckets > 0 and using:
            found = self._shuffles(candidate, paths, classes, using)
            if found is not None:
                return found
        return self._not_cheaper(candidate)

    def _because(self, candidate: Candidate, code: str, **arguments: object) -> Reason:
        return Reason(code, candidate.index, arguments, candidate.relation.name)

    def _class(self, relation: Relation, path: Path) -> Class | None:
        ids = (attribute.id for attribute in relation.attributes if attribute.path == path)
        found = next(ids, None)
        return None if found is None else self.attributes.class_of(found)

    def _all_keys(self) -> Iterator[_Keys]:
        for node in every_node(self.query.roots):
            match node:
                case Join(_, _, _, left_keys, right_keys):
                    left, right = self.attributes.classes_of(left_keys), self.attributes.classes_of(right_keys)
                    yield _Keys(node, left, right)
                    yield _Keys(node, right, left)
                case Aggregate(_, keys) | Window(_, keys):
                    yield _Keys(node, self.attributes.classes_of(keys))

    def _unused(self, candidate: Candidate, lead: tuple[Path, ...]) -> Reason:
        by_expression = any(None in keys.classes for keys in self._all_keys())
        code = Code.NO_FIRST_INDEXED_COL_COND
        if by_expression and candidate.copy.layout.buckets > 0 and lead[0] in candidate.relation.required:
            code = Code.NOT_ELIGIBLE_JOIN
        return self._because(candidate, code, column=" or ".join(map(column_sql, lead)))

    def _shuffles(
        self, candidate: Candidate, paths: list[Path], classes: list[Class | None], using: list[_Keys]
    ) -> Reason | None:
        """Why no shuffle is saved, if that can be told."""
        suitable = [keys for keys in using if set(keys.classes).issuperset(classes)]
        if not suitable:
            closest = min((_missing(paths, classes, keys) for keys in using), key=len)
            return self._because(candidate, Code.MISSING_INDEXED_COL, columns=list(map(column_sql, closest)))
        if not self.query.settings.bucketing:
            return self._because(candidate, Code.BUCKETING_OFF)
        joins = [keys for keys in suitable if isinstance(keys.node, Join)]
        if len(joins) < len(suitable):
            return None
        broadcast = self._broadcast_joins()
        if all(id(keys.node) in broadcast for keys in joins):
            return self._because(candidate, Code.BROADCAST_INSTEAD)
        return self._pair(candidate, paths[0], classes[0], joins)

    def _broadcast_joins(self) -> set[int]:
        steps = (here.step for plan in self.plans for here in walk(plan))
        return {id(step.node) for step in steps if isinstance(step, Step) and step.broadcasts}

    def _pair(self, candidate: Candidate, path: Path, lead: Class | None, joins: list[_Keys]) -> Reason | None:
        """What the other sides of the joins have to offer."""
        others: dict[int, Path] = {}
        for keys in joins:
            for own, other in zip(keys.classes, keys.beside, strict=True):
                if own == lead and other is not None:
                    others |= {
                        number: column
                        for number, column in self.attributes.columns_of(other)
                        if number != candidate.relation.number
                    }
        if not others:
            return None
        pairs = [
            one for number, column in others.items() for one in _hashed_by(self.candidates.get(number, ()), column)
        ]
        if not pairs:
            nearest = min(others)
            name = next(relation.name for relation in self.query.relations if relation.number == nearest)
            return self._estimated(
                candidate, Code.NO_AVAIL_JOIN_INDEX_PAIR, other=name, column=column_sql(others[nearest])
            )
        buckets = candidate.copy.layout.buckets
        if all(math.gcd(buckets, one.copy.layout.buckets) == 1 for one in pairs):
            return self._because(
                candidate,
                Code.NO_COMPATIBLE_JOIN_INDEX_PAIR,
                buckets=buckets,
                pair=pairs[0].index,
                other=pairs[0].relation.name,
                pair_buckets=pairs[0].copy.layout.buckets,
            )
        return None

    def _not_cheaper(self, candidate: Candidate) -> Reason:
        return self._estimated(candidate, Code.NOT_CHEAPER)

    def _estimated(self, candidate: Candidate, code: str, **arguments: object) -> Reason:
        estimates = {
            "with_ms": round(self.cost_with(candidate), 1),
            "without_ms": round(sum(plan.cost for plan in self.plans), 1),
        }
        return self._because(candidate, code, **arguments, **estimates)


def _missing(paths: list[Path], classes: list[Class | None], keys: _Keys) -> list[Path]:
    return [path for path, one in zip(paths, classes, strict=True) if one not in keys.classes]


def _hashed_by(candidates: Iterable[Candidate], column: Path) -> list[Candidate]:
    return [
        one
        for one in candidates
        if one.copy.layout.buckets > 0 and path_of(one.copy, one.copy.layout.bucket_by[0]) == column
    ]
