"""Views put into a decision: of each block that one answers, the cheapest, where it is cheaper than what was decided without."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from grebe.config import Config
from grebe.indexes.kind import Copy
from grebe.indexes.view.build import is_of_all_files
from grebe.indexes.view.definition import Base, Definition, same_files
from grebe.planner.candidates import Refusal, differences, files_refused, ruled_out
from grebe.planner.content import content_of
from grebe.planner.cost import Meter
from grebe.planner.decision import Choice, Decision, FromView
from grebe.planner.hybrid import Coverage, coverage
from grebe.planner.query import Aggregate, Node, Query, Relation, Scan
from grebe.planner.reasons import RANK, Code, Reason
from grebe.planner.shapes import children
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.planner.views import Block, Match, Missing, answers
from grebe.predicate.bounds import Numbers

_COLUMNAR = "parquet"


@dataclass(frozen=True, slots=True)
class _Candidate:
    block: Block
    relation: Relation
    table: KnownTable
    index: KnownIndex
    copy: Copy
    coverage: Coverage
    content: Numbers
    """Positions of the content files that are read."""
    match: Match


class Viewing:
    def __init__(self, query: Query, tables: Mapping[str, KnownTable], config: Config, meter: Meter) -> None:
        self._query = query
        self._tables = tables
        self._config = config
        self._meter = meter
        self._refused: dict[tuple[str, str], Reason] = {}

    def decided(self, made: Decision, cost_of: Callable[[Node], float]) -> Decision:
        for block in self._query.blocks:
            found = list(self._candidates(block))
            node = self._node(block)
            if not found or node is None:
                continue
            before = cost_of(node)
            best = min(found, key=self._cost)
            after = self._cost(best)
            if after < before * (1.0 - self._meter.rates.margin):
                made = self._with(made, best, before - after)
            else:
                self._refuse(
                    best.table,
                    Refusal(best.relation, best.index.name)(
                        Code.NOT_CHEAPER, with_ms=round(after, 1), without_ms=round(before, 1)
                    ),
                )
        used = {(choice.table, choice.index) for choice in made.choices}
        others = [reason for reason in made.reasons if reason.code != Code.NOT_ANSWERED or not self._is_better(reason)]
        told = [reason for key, reason in self._refused.items() if key not in used]
        used_names = {choice.index for choice in made.choices}
        kept = [reason for reason in others if not (reason.code == Code.NOT_ANSWERED and reason.index in used_names)]
        return replace(made, reasons=tuple(sorted((*kept, *told), key=attrgetter("index"))) if made.reasons else ())

    def _is_better(self, reason: Reason) -> bool:
        return any(index == reason.index for _, index in self._refused)

    def _with(self, made: Decision, best: _Candidate, gain: float) -> Decision:
        inside = set(best.block.relations)
        choices: list[Choice] = [one for one in made.choices if one.relation not in inside]
        choices.append(self._choice(best))
        after = replace(made.after, milliseconds=round(max(0.0, made.after.milliseconds - gain), 3))
        return replace(made, choices=tuple(sorted(choices, key=attrgetter("relation"))), after=after)

    def _choice(self, one: _Candidate) -> FromView:
        return FromView(
            relation=one.relation.number,
            index=one.index.name,
            table=one.table.uri,
            copy=one.copy,
            content=tuple(one.content.tolist()),
            buckets=0,
            ordered=False,
            drop=one.coverage.drop,
            direct=one.coverage.direct_files > 0,
            name=one.relation.name,
            appended=one.coverage.appended,
            deleted=one.coverage.deleted,
            version=one.index.older_version,
            block=one.block.number,
            match=one.match,
        )

    def _candidates(self, block: Block) -> Iterator[_Candidate]:
        for number in block.relations:
            relation = self._query.relations[number]
            table = self._tables.get(relation.table) if relation.table is not None else None
            for index in table.indexes if table is not None else ():
                if index.copy is None or index.copy.definition is None:
                    continue
                assert table is not None
                one = self._candidate(block, relation, table, index, index.copy, index.copy.definition)
                if isinstance(one, Reason):
                    self._refuse(table, one)
                else:
                    yield one

    def _candidate(
        self,
        block: Block,
        relation: Relation,
        table: KnownTable,
        index: KnownIndex,
        copy: Copy,
        definition: Definition,
    ) -> _Candidate | Reason:
        refuse = Refusal(relation, index.name)
        out = ruled_out(relation, index, self._query, refuse)
        if out is not None:
            return out
        if any(
            self._query.relations[number].beyond is not None for number in block.relations if number != relation.number
        ):
            return refuse(Code.NOT_ANSWERED, what="other tables as they were at a snapshot")
        places: dict[int, int] = {}
        for number in block.relations:
            place = _place(self._query.relations[number], definition.bases, relation)
            if place is not None and place not in places.values():
                different = self._different(self._query.relations[number], definition, place, refuse)
                if different is not None:
                    return different
                if place and not same_files(self._query.digests.get(number, ""), definition.bases[place].files):
                    return refuse(Code.BASE_CHANGED, table=definition.bases[place].uri)
                places[number] = place
        match = answers(definition, block, places)
        if isinstance(match, Missing):
            return refuse(Code.NOT_ANSWERED, what=match.what)
        covered = coverage(relation, table, copy)
        refused = files_refused(covered, copy, self._config, refuse)
        if refused is not None:
            return refused
        return _Candidate(block, relation, table, index, copy, covered, _content(copy, definition, covered), match)

    def _different(self, relation: Relation, definition: Definition, place: int, refuse: Refusal) -> Reason | None:
        return differences(definition.bases[place].reading, relation.reading, sorted(definition.reads(place)), refuse)

    def _cost(self, one: _Candidate) -> float:
        content, meter = content_of(one.copy), self._meter
        held_bytes, held_rows = int(content.sizes[one.content].sum()), int(content.rows[one.content].sum())
        held = meter.scan(
            held_bytes,
            held_rows,
            len(one.copy.columns),
            len(one.content),
            meter.scan_tasks(held_bytes, len(one.content)),
            meter.byte_rate(_COLUMNAR),
            meter.content_open_rate(one.table.uri),
        )
        size = one.coverage.direct_bytes
        files = one.coverage.direct_files
        direct = meter.scan(
            size,
            0,
            1,
            files,
            meter.scan_tasks(size, files),
            meter.byte_rate(one.relation.reading.format),
            meter.open_rate(one.table.uri),
        )
        return held + (direct if files else 0.0)

    def _refuse(self, table: KnownTable, reason: Reason) -> None:
        """Of several blocks, about the one where it came closest."""
        key = (table.uri, reason.index)
        if key not in self._refused or RANK[reason.code] > RANK[self._refused[key].code]:
            self._refused[key] = reason

    def _node(self, block: Block) -> Node | None:
        """The part of the query that the block is."""
        pending = list(self._query.roots)
        while pending:
            node = pending.pop(0)
            grouped = isinstance(node, Aggregate)
            if grouped == (block.groups is not None) and _scans(node) == set(block.relations):
                return node
            pending = [*children(node), *pending]
        return None


def _content(copy: Copy, definition: Definition, covered: Coverage) -> Numbers:
    """The groups of all files where no file is to be left out, those of each file otherwise."""
    everything = content_of(copy).everything
    if not definition.grouped:
        return everything
    of_all = np.array([is_of_all_files(path) for path in copy.content["path"].to_pylist()], np.bool_)
    return everything[~of_all if covered.drop else of_all]


def _place(relation: Relation, bases: Sequence[Base], first: Relation) -> int | None:
    """Which table of the view a relation is."""
    if relation is first:
        return 0
    return next(
        (place for place, base in enumerate(bases) if place and base.uri in (relation.table, relation.root)), None
    )


def _scans(node: Node) -> set[int]:
    if isinstance(node, Scan):
        return {node.relation}
    return {number for child in children(node) for number in _scans(child)}
