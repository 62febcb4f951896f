"""Decides a whole query at once: an index on one table can pay only because another table has one too, or because a grouping above
the join profits. Pure: what is known goes in, a decision comes out, and the same input always gives the same decision."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from grebe.config import Config
from grebe.planner.by_keys import JoinLookups
from grebe.planner.candidates import Asked, Candidate, asked_of, candidate
from grebe.planner.content import leading
from grebe.planner.cost import MEASURED, Meter, Rates
from grebe.planner.decision import Choice, Decision, Narrow, StandIn, indexes_of
from grebe.planner.inquiry import Inquiry
from grebe.planner.metadata import answers
from grebe.planner.narrowing import Narrowed, askable, narrowed, without_condition
from grebe.planner.not_chosen import NotChosen
from grebe.planner.options import Option, StandInOptions, narrowed_option, plain_option, read_counts
from grebe.planner.plans import Plan, estimate, options_of
from grebe.planner.profile import Profile, profile
from grebe.planner.programme import Offer, Programme
from grebe.planner.query import Join, Query
from grebe.planner.reasons import RANK, Code, Reason, unless_not_refreshable
from grebe.planner.shapes import Attributes, every_node, repeated
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.planner.versions import offered
from grebe.planner.viewing import Viewing
from grebe.predicate.tree import Path

MOST_CANDIDATES = 6
"""Of one scan, considered in the search. More are ranked by what they promise."""


def choose(
    query: Query,
    tables: Mapping[str, KnownTable],
    config: Config,
    *,
    why: bool = True,
    rates: Rates = MEASURED,
    inquiry: Inquiry | None = None,
) -> Decision:
    """What each scan is read from. Without `why` the reasons for what is not used are left out, which saves most of the time.
    Without `inquiry` no index is asked which files it leaves out."""
    made = _Choice(query, tables, config, Meter(query.settings, rates), inquiry).decision(why)
    problems = {
        (relation.name, index.name): index.problem
        for relation in query.relations
        if relation.table is not None and relation.table in tables
        for index in tables[relation.table].indexes
        if index.problem
    }
    if not problems:
        return made
    reasons = [unless_not_refreshable(one, problems.get((one.relation, one.index), "")) for one in made.reasons]
    return replace(made, reasons=tuple(reasons))


class _Choice:
    """The state of one decision, from the checks to the reasons."""

    def __init__(
        self,
        query: Query,
        tables: Mapping[str, KnownTable],
        config: Config,
        meter: Meter,
        inquiry: Inquiry | None,
    ) -> None:
        self._query = query
        self._tables = tables
        self._config = config
        self._inquiry = inquiry
        self._narrowed: dict[int, Option] = {}
        self._askable: dict[int, tuple[KnownTable, list[KnownIndex]]] = {}
        self._meter = meter
        self._attributes = Attributes(query)
        self._refused: list[tuple[str, Reason]] = []
        self._candidates: dict[int, list[Candidate]] = {}
        self._profiles: dict[int, Profile] = {}
        joined = self._joined()
        for relation in query.relations:
            table = tables.get(relation.table) if relation.table is not None else None
            asked = asked_of(relation)
            indexes = offered(relation, table) if table is not None else []
            candidates = self._examine(asked, table, indexes, config)
            guessed = profile(asked, candidates, table, joined.get(relation.number, frozenset()))
            self._profiles[relation.number] = self._narrow(guessed, table, indexes) if table is not None else guessed
        self._programme = Programme(query, self._attributes, repeated(query, self._attributes), self._profiles, meter)

    def _joined(self) -> dict[int, frozenset[Path]]:
        """The columns of each relation that the query joins by."""
        joined: dict[int, set[Path]] = {}
        for node in every_node(self._query.roots):
            if isinstance(node, Join):
                for key in (*node.left_keys, *node.right_keys):
                    column = None if key is None else self._attributes.column_of(key)
                    if column is not None:
                        joined.setdefault(column[0], set()).add(column[1])
        return {number: frozenset(paths) for number, paths in joined.items()}

    def _examine(
        self, asked: Asked, table: KnownTable | None, indexes: Sequence[KnownIndex], config: Config
    ) -> list[Candidate]:
        relation = asked.relation
        found: list[Candidate] = []
        if table is None or not table.indexes:
            if relation.obstacle is not None:
                self._refused.append(("", replace(relation.obstacle, relation=relation.name)))
            return found
        for index in sorted(indexes, key=attrgetter("name")):
            one = candidate(asked, table, index, self._query, config)
            if not isinstance(one, Reason):
                found.append(one)
            elif index.replaced_at is None:
                self._refused.append((table.uri, one))
        # Current versions first, and the smaller copy: of plans that cost the same, the first stays.
        found.sort(key=lambda one: (one.version is not None, one.content.bytes))
        if found:
            self._candidates[relation.number] = found
        return found

    def _narrow(self, guessed: Profile, table: KnownTable, indexes: Sequence[KnownIndex]) -> Profile:
        """Asks the indexes that prune. What they find is a better guess than any."""
        if self._inquiry is None or all(index.pruner is None for index in indexes):
            return guessed
        found, refused = askable(guessed.asked, table, indexes, self._query, self._config)
        self._askable[guessed.relation.number] = (table, [index for index, _ in found])
        helpful = []
        for index, known in found:
            assert index.pruner is not None
            if index.pruner.helps(guessed.asked.predicate):
                helpful.append((index, known))
            else:
                refused.append(without_condition(guessed.relation, index))
        if helpful:
            affordable = self._meter.affordable(plain_option(guessed, self._meter).cost)
            left, more = narrowed(guessed.asked, table, helpful, affordable, self._inquiry)
            refused += more
            if left is not None:
                guessed = _better(guessed, left)
                self._narrowed[guessed.relation.number] = narrowed_option(left, guessed, self._meter)
        self._refused += [(table.uri, reason) for reason in refused]
        return guessed

    def decision(self, why: bool) -> Decision:
        before = self._programme.run({})
        answered = answers(self._query, self._candidates, self._askable, self._inquiry)
        plans = self._programme.run({}, answered=answered) if answered else before
        stand_ins = self._offers()
        counts = read_counts(one for found in self._candidates.values() for one in found)
        if stand_ins:
            better = self._programme.run(stand_ins, counts, answered)
            if _cost(better) < _cost(plans) * (1.0 - self._meter.rates.margin):
                plans = better
        choices: list[Choice] = [*answered.values()]
        for option in options_of(plans):
            if option.candidate is not None:
                choices.append(_stand_in(option, option.candidate))
            elif option.narrowed is not None:
                choices.append(_narrow(option.narrowed))
        if self._askable:
            lookups = JoinLookups(self._profiles, self._programme.rows, self._askable, self._meter)
            by_keys, refused = lookups.choices(plans)
            choices += by_keys
            self._refused += refused
        choices.sort(key=attrgetter("relation"))
        reasons = self._reasons(choices, plans, counts, frozenset(answered)) if why else ()
        made = Decision(tuple(choices), reasons, estimate(before), estimate(plans))
        if not self._query.blocks:
            return made
        return Viewing(self._query, self._tables, self._config, self._meter).decided(made, self._programme.cost)

    def _offers(self) -> dict[int, Sequence[Offer]]:
        offers: dict[int, Sequence[Offer]] = {}
        for number in self._candidates.keys() | self._narrowed.keys():
            found = self._candidates.get(number, [])
            stand_ins = [self._options(one) for one in self._promising(number, found)]
            files = [self._narrowed[number]] if number in self._narrowed else []
            offers[number] = (self._programme.plain(number), *files, *stand_ins)
        return offers

    def _options(self, one: Candidate) -> StandInOptions:
        return StandInOptions(one, self._profiles[one.relation.number], self._attributes, self._meter)

    def _promising(self, number: int, found: list[Candidate]) -> list[Candidate]:
        if len(found) <= MOST_CANDIDATES:
            return found
        wanted = self._profiles[number].asked.mentions | self._profiles[number].statistics.distinct.keys()

        def promise(one: Candidate) -> tuple[bool, int]:
            read = int(one.content.sizes[one.keep].sum()) + one.coverage.direct_bytes
            return wanted.isdisjoint(leading(one.copy)), read

        return sorted(found, key=promise)[:MOST_CANDIDATES]

    def _reasons(
        self, choices: Sequence[Choice], plans: list[Plan], counts: frozenset[int], answered: frozenset[int]
    ) -> tuple[Reason, ...]:
        """One for every index that is not used; of several scans of its table, about the one where it came closest."""
        chosen = {
            source.relation.number: option
            for option in options_of(plans)
            if (source := option.candidate or option.narrowed) is not None
        }

        def cost_of(number: int, offer: Offer) -> float:
            fixed: dict[int, Sequence[Offer]] = {number: (option,) for number, option in chosen.items()}
            return _cost(self._programme.run({**fixed, number: (offer,)}, counts, answered))

        def cost_with(one: Candidate) -> float:
            return cost_of(one.relation.number, self._options(one))

        applied = {choice.relation: choice.index for choice in choices}
        explain = NotChosen(
            self._query,
            self._attributes,
            self._candidates,
            plans,
            applied,
            cost_with,
        )
        used = {(choice.table, index) for choice in choices for index in indexes_of(choice)}
        closest: dict[tuple[str, str, str], Reason] = {}
        unused = [(uri, reason) for uri, reason in self._refused if (uri, reason.index) not in used]
        for found in self._candidates.values():
            unused += [(one.table.uri, explain.reason(one)) for one in found if (one.table.uri, one.index) not in used]
        for number, option in self._narrowed.items():
            assert option.narrowed is not None
            left = option.narrowed
            for index in left.indexes:
                if (left.table.uri, index) not in used:
                    if number in applied:
                        reason = Reason(
                            Code.ANOTHER_INDEX_APPLIED, index, {"applied": applied[number]}, left.relation.name
                        )
                    else:
                        costs = {"with_ms": cost_of(number, option), "without_ms": _cost(plans)}
                        rounded = {name: round(cost, 1) for name, cost in costs.items()}
                        reason = Reason(Code.NOT_CHEAPER, index, rounded, left.relation.name)
                    unused.append((left.table.uri, reason))
        for uri, reason in unused:
            # Without an index it is about the relation itself.
            key = (uri, reason.index, "" if reason.index else reason.relation)
            if key not in closest or RANK[reason.code] > RANK[closest[key].code]:
                closest[key] = reason
        return tuple(closest[key] for key in sorted(closest))


def _cost(plans: list[Plan]) -> float:
    return sum(plan.cost for plan in plans)


def _better(guessed: Profile, left: Narrowed) -> Profile:
    """The rows that an index has counted, and the share of them that are guessed of the files that it does not know."""
    if left.records is None:
        return guessed
    unknown = 1.0 - left.table.bytes_of(left.known) / left.relation.bytes if left.relation.bytes else 0.0
    most = left.records + guessed.passing * unknown
    return replace(guessed, passing=max(1.0, min(guessed.passing, most)))


def _why(index: KnownIndex) -> str:
    return index.pruner.chosen if index.pruner is not None else ""


def _narrow(left: Narrowed) -> Narrow:
    return Narrow(
        relation=left.relation.number,
        index=left.indexes[0],
        table=left.table.uri,
        without=left.without,
        files=left.files,
        files_of=len(left.relation.listed) + left.relation.unregistered_files,
        uncovered=left.uncovered,
        name=left.relation.name,
        others=left.indexes[1:],
        parts=left.parts,
        left_out=left.left_out,
        versions=left.versions,
        whys={index.name: why for index in left.table.indexes if index.name in left.indexes and (why := _why(index))},
    )


def _stand_in(option: Option, one: Candidate) -> StandIn:
    return StandIn(
        relation=one.relation.number,
        index=one.index,
        table=one.table.uri,
        copy=one.copy,
        content=tuple(one.keep.tolist()),
        buckets=option.buckets,
        ordered=option.ordered,
        drop=one.coverage.drop,
        direct=one.coverage.direct_files > 0,
        name=one.relation.name,
        appended=one.coverage.appended,
        deleted=one.coverage.deleted,
        version=one.version,
    )
