"""Joins whose small side is looked up in an index of the other side, while the query runs: only the files where its keys lie are
read. How many keys there will be is a guess; so little is spent on finding out that a wrong one does no harm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grebe.planner.candidates import Refusal
from grebe.planner.cost import Meter
from grebe.planner.decision import ByKeys
from grebe.planner.options import Option
from grebe.planner.plans import Plan, Step, walk
from grebe.planner.profile import Profile
from grebe.planner.query import Filter, Join, Key, Node, Project, Relation, Scan
from grebe.planner.reasons import Code, Reason
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.predicate.text import column_sql

MOST_GUESSED = 50_000
"""Keys; where more are expected, all files are read."""
MOST_FOUND = 100_000
"""Where more have come when the query runs, none is looked up."""
_ROWS_OF_A_KEY = 4.0
_LEFT = frozenset({"Inner", "RightOuter", "LeftSemi"})
_RIGHT = frozenset({"Inner", "LeftOuter", "LeftSemi", "LeftAnti"})
"""Joins in which a row of that side without a partner is none of the result's."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A scan that is joined by a column whose keys an index can be asked for."""

    join: Join
    left: bool
    key: int
    column: int
    option: Option
    small: Plan
    keys: float
    """Rows of the other side, as guessed."""
    broadcast: bool
    profile: Profile
    table: KnownTable
    index: KnownIndex


class JoinLookups:
    """`rows`: of each node of the query, by its `id`. `indexes`: of each relation those that may be asked."""

    def __init__(
        self,
        profiles: Mapping[int, Profile],
        rows: Mapping[int, float],
        indexes: Mapping[int, tuple[KnownTable, Sequence[KnownIndex]]],
        meter: Meter,
    ) -> None:
        self._profiles = profiles
        self._rows = rows
        self._indexes = indexes
        self._meter = meter

    def choices(self, plans: Sequence[Plan]) -> tuple[list[ByKeys], list[tuple[str, Reason]]]:
        """What pays, at most one for each relation; and why the rest does not."""
        found: dict[int, ByKeys] = {}
        refused = []
        for side in self._sides(plans):
            relation = side.profile.relation
            why = self._why_not(side)
            if why is None and relation.number not in found:
                found[relation.number] = _choice(side)
            elif why is not None:
                refused.append((side.table.uri, why))
        return list(found.values()), refused

    def _sides(self, plans: Sequence[Plan]) -> Iterator[_Side]:
        for plan in plans:
            for here in walk(plan):
                step = here.step
                if isinstance(step, Step) and isinstance(step.node, Join) and len(here.children) == 2:
                    yield from self._sides_of(step.node, here, step)

    def _sides_of(self, join: Join, plan: Plan, step: Step) -> Iterator[_Side]:
        left, right = plan.children
        for node, own, keys, kinds, other, small in (
            (join.left, left, join.left_keys, _LEFT, join.right, right),
            (join.right, right, join.right_keys, _RIGHT, join.left, left),
        ):
            option = own.step
            scanned = _scan(node)
            if (
                scanned is None
                or join.kind not in kinds
                or not isinstance(option, Option)
                or option.candidate is not None
            ):
                continue
            profile = self._profiles[scanned]
            table, indexes = self._indexes.get(scanned, (None, ()))
            if not profile.relation.by_parts:
                continue
            # Of partitions Spark knows by itself where their keys lie.
            partitions = {(column.name,) for column in profile.relation.reading.partition_columns}
            for key in keys:
                column = _column(node, key)
                path = next((one.path for one in profile.relation.attributes if one.id == column), None)
                for index in indexes:
                    if key is None or column is None or table is None or index.pruner is None:
                        continue
                    if path is not None and path not in partitions and index.pruner.leads(path):
                        yield _Side(
                            join,
                            node is join.left,
                            key,
                            column,
                            option,
                            small,
                            self._rows[id(other)],
                            step.broadcasts > 0 and step.left_sent == (small is left),
                            profile,
                            table,
                            index,
                        )

    def _why_not(self, side: _Side) -> Reason | None:
        meter, scan = self._meter, side.option
        refuse = Refusal(side.profile.relation, side.index.name)
        asked = meter.lookup(side.keys)
        if meter.affordable(scan.cost) < 0:
            return refuse(Code.SCAN_IS_CHEAP)
        # A broadcast side is there anyway; any other one is run once more, just for its keys.
        cheap = side.broadcast and asked <= scan.cost * meter.rates.inquiry_share
        expected = scan.cost * _share(side.keys * _ROWS_OF_A_KEY, scan.files) + asked
        expected += 0.0 if side.broadcast else side.small.cost
        if side.keys <= MOST_GUESSED and (cheap or expected < scan.cost * (1.0 - meter.rates.margin)):
            return None
        column = next(one.path for one in side.profile.relation.attributes if one.id == side.column)
        return refuse(Code.TOO_MANY_KEYS, rows=round(side.keys), column=column_sql(column))


def _share(rows: float, files: int) -> float:
    """Of so many files, how many hold some of so many rows that lie anywhere."""
    return 1.0 - (1.0 - 1.0 / files) ** rows if files > 1 else 1.0


def _scan(node: Node) -> int | None:
    while isinstance(node, Filter | Project):
        node = node.child
    return node.relation if isinstance(node, Scan) else None


def _column(node: Node, key: Key) -> Key:
    """The attribute of the scan that a key is, by another name maybe."""
    while isinstance(node, Filter | Project):
        key = node.aliases.get(key, key) if isinstance(node, Project) and key is not None else key
        node = node.child
    return key


def _choice(side: _Side) -> ByKeys:
    relation: Relation = side.profile.relation
    attribute = next(one for one in relation.attributes if one.id == side.column)
    return ByKeys(
        relation=relation.number,
        index=side.index.name,
        table=side.table.uri,
        left=side.left,
        key=side.key,
        column=side.column,
        path=attribute.path,
        type=attribute.type,
        broadcast=side.broadcast,
        most=MOST_FOUND,
        name=relation.name,
        version=side.index.older_version,
        replaced_at=side.index.replaced_at,
    )
