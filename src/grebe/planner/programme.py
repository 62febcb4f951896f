"""The dynamic programme: from the scans up, the few best plans of every node of a query. What the nodes above could use (a
partitioning, an order) comes down with the recursion, so that nothing else is kept."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from grebe.planner.cost import Meter
from grebe.planner.joins import JoinCosts, joined_rows, side
from grebe.planner.options import Option, Partitioning, StandInOptions, Wanted, plain_option
from grebe.planner.plans import Plan, Planned, Step, best, run_again
from grebe.planner.profile import Profile
from grebe.planner.query import (
    Aggregate,
    Filter,
    Join,
    Key,
    Leaf,
    Limit,
    Node,
    Other,
    Project,
    Query,
    Scan,
    Sort,
    Union,
    Window,
)
from grebe.planner.shapes import Attributes, Class

Offer: TypeAlias = Option | StandInOptions
"""One way to read a scan, or all that a candidate offers."""

_NOTHING = Wanted(frozenset(), frozenset())
_LEAF_WIDTH = 40.0
_FUNCTION_WIDTH = 16.0
_PASSING = 0.33
"""Of a condition that stands elsewhere than above a scan."""
_OPERATIONS_OF_SEVERAL = 3
"""What is summed up of more than one column is a product, a share and the like."""
_TOP_ROW = 0.1
"""Keeping the first rows of an order, beside sorting all."""


class Programme:
    """A query, and what stays the same however its scans are read."""

    def __init__(
        self,
        query: Query,
        attributes: Attributes,
        repeated: Mapping[int, int],
        profiles: Mapping[int, Profile],
        meter: Meter,
    ) -> None:
        self._query = query
        self._attributes = attributes
        self._repeated = repeated
        self._profiles = profiles
        self._meter = meter
        self._plain = {number: plain_option(profile, meter) for number, profile in profiles.items()}
        self.rows: dict[int, float] = {}
        """Of each node of the query that was visited, by `id`: the same in every plan."""
        self._offers: Mapping[int, Sequence[Offer]] = {}
        self._counts: frozenset[int] = frozenset()
        self._answered: Collection[int] = ()

    def run(
        self,
        offers: Mapping[int, Sequence[Offer]],
        counts: frozenset[int] = frozenset(),
        answered: Collection[int] = (),
    ) -> list[Plan]:
        """The cheapest plan of each root. A scan without an offer is read as it is; `answered` are aggregates, by `id`, that
        need no plan at all."""
        self._offers, self._counts, self._answered = offers, counts, answered
        return [self._visit(root, _NOTHING).plans[0] for root in self._query.roots]

    def cost(self, node: Node) -> float:
        """Of a part of the query by itself, at best, under what was offered last."""
        return self._visit(node, _NOTHING).plans[0].cost

    def plain(self, relation: int) -> Option:
        return self._plain[relation]

    def _visit(self, node: Node, wanted: Wanted) -> Planned:
        if id(node) in self._answered:
            return Planned(1.0, 1.0, _LEAF_WIDTH, [Plan(0.0, None, (), _LEAF_WIDTH, 1, Step(node))])
        made = _HOW[type(node)](self, node, wanted)
        self.rows[id(node)] = made.rows
        return made

    def _keep(self, plans: Iterable[Plan], wanted: Wanted) -> list[Plan]:
        return best(plans, wanted, self._meter.settings.broadcast_bytes)

    def _scan(self, node: Scan, wanted: Wanted) -> Planned:
        profile = self._profiles[node.relation]
        options: list[Option] = []
        for offer in self._offers.get(node.relation) or (self._plain[node.relation],):
            options += (offer,) if isinstance(offer, Option) else offer.options(wanted, self._counts)
        plans = [Plan(o.cost, o.partitioning, o.order, o.size, o.tasks, o) for o in options]
        return Planned(profile.passing, profile.rows, profile.width, self._keep(plans, wanted))

    def _leaf(self, node: Leaf, wanted: Wanted) -> Planned:
        rows = max(1.0, node.bytes / _LEAF_WIDTH)
        tasks = self._meter.settings.cores
        return Planned(rows, rows, _LEAF_WIDTH, [Plan(0.0, None, (), float(node.bytes), tasks, Step(node))])

    def _filter(self, node: Filter, wanted: Wanted) -> Planned:
        child = self._visit(node.child, wanted)
        if is_scan_with_conditions(node.child):
            return child
        return Planned(max(1.0, child.rows * _PASSING**node.terms), child.base, child.width, child.plans)

    def _project(self, node: Project, wanted: Wanted) -> Planned:
        return self._visit(node.child, wanted)

    def _join(self, node: Join, wanted: Wanted) -> Planned:
        meter = self._meter
        keys = self._attributes.classes_of(node.left_keys), self._attributes.classes_of(node.right_keys)
        below = [_also(wanted, own, own) for own in keys]
        left, right = self._visit(node.left, below[0]), self._visit(node.right, below[1])
        rows, base, width = joined_rows(node, left, right)
        sides = (
            side(node, left, keys[0], True, self._repeated.get(id(node.left), 1), meter),
            side(node, right, keys[1], False, self._repeated.get(id(node.right), 1), meter),
        )
        plans = JoinCosts(node, *sides, rows, meter).plans()
        return Planned(rows, base, width, self._keep(plans, wanted))

    def _aggregate(self, node: Aggregate, wanted: Wanted) -> Planned:
        keys = self._attributes.classes_of(node.keys)
        child = self._visit(node.child, _also(wanted, keys, ()))
        groups = min(child.rows, self._groups(node.keys, child.rows)) if keys else 1.0
        width = 8.0 + _FUNCTION_WIDTH * (len(keys) + len(node.functions))
        plans = [self._grouped(node, keys, child, plan, groups, width) for plan in child.plans]
        return Planned(groups, groups, width, self._keep(plans, wanted))

    def _grouped(
        self, node: Aggregate, keys: tuple[Class | None, ...], child: Planned, plan: Plan, groups: float, width: float
    ) -> Plan:
        meter = self._meter
        operations = sum(map(_operations, node.functions))
        cost = plan.cost + meter.group(child.rows, groups, plan.tasks)
        cost += meter.compute(child.rows, operations, plan.tasks)
        size = plan.size * min(1.0, width / child.width) if keys else width
        if _is_clustered(plan, keys):
            cost += meter.group(groups, groups, plan.tasks)
            return Plan(cost, plan.partitioning, (), size, plan.tasks, Step(node), (plan,))
        partial = min(child.rows, groups * plan.tasks)
        tasks = meter.shuffled_partitions(partial * width) if keys else 1
        cost = (cost + meter.shuffle(partial, width, tasks)) / self._repeated.get(id(node), 1)
        cost += meter.group(partial, groups, tasks)
        step = Step(node, 1, partial * width)
        return Plan(cost, self._shuffled_by(keys), (), size, tasks, step, (plan,))

    def _groups(self, keys: tuple[Key, ...], rows: float) -> float:
        groups = 1.0
        for key in keys:
            column = None if key is None else self._origin(key)
            profile = None if column is None else self._profiles.get(column[0])
            groups *= profile.distinct(column[1]) if profile is not None and column is not None else math.sqrt(rows)
        return groups

    def _origin(self, key: int) -> tuple[int, tuple[str, ...]] | None:
        direct = self._attributes.column_of(key)
        return direct or next(iter(self._attributes.columns_of(self._attributes.class_of(key))), None)

    def _shuffled_by(self, keys: tuple[Class | None, ...]) -> Partitioning | None:
        """What Spark's own shuffle by these keys leaves behind."""
        plain = tuple(key for key in keys if key is not None)
        if not plain or len(plain) < len(keys):
            return None
        return Partitioning(plain, self._meter.settings.shuffle_partitions, False)

    def _window(self, node: Window, wanted: Wanted) -> Planned:
        meter = self._meter
        keys, order = self._attributes.classes_of(node.keys), self._attributes.classes_of(node.order)
        needed = (*keys, *order)
        child = self._visit(node.child, _also(wanted, keys, needed))
        plans = []
        for plan in child.plans:
            cost, tasks, partitioning, shuffles = plan.cost, plan.tasks, plan.partitioning, 0
            if not _is_clustered(plan, keys):
                tasks = meter.shuffled_partitions(child.rows * child.width) if keys else 1
                cost += meter.shuffle(child.rows, child.width, tasks)
                partitioning, shuffles = self._shuffled_by(keys), 1
            unsorted = shuffles or plan.order[: len(needed)] != needed
            cost += meter.sort(child.rows, tasks) if unsorted else 0.0
            cost += meter.group(child.rows, 1.0, tasks)
            step = Step(node, shuffles, shuffles * child.rows * child.width, int(bool(unsorted)))
            plans.append(Plan(cost, partitioning, _leading(needed), plan.size, tasks, step, (plan,)))
        return Planned(child.rows, child.base, child.width, self._keep(plans, wanted))

    def _sort(self, node: Sort, wanted: Wanted) -> Planned:
        meter = self._meter
        keys = self._attributes.classes_of(node.keys)
        child = self._visit(node.child, _NOTHING if node.everywhere else _also(wanted, (), keys))
        plans = []
        for plan in child.plans:
            cost, tasks, partitioning = plan.cost, plan.tasks, plan.partitioning
            if node.everywhere:
                tasks, partitioning = meter.shuffled_partitions(child.rows * child.width), None
                # Spark looks at a sample first, to cut the ranges: one more stage, which does all work since the last shuffle.
                cost += (
                    meter.shuffle(child.rows, child.width, tasks) + meter.shuffle(0, 0, plan.tasks) + run_again(plan)
                )
            unsorted = node.everywhere or plan.order[: len(keys)] != keys
            cost += meter.sort(child.rows, tasks) if unsorted else 0.0
            moved = child.rows * child.width * node.everywhere
            step = Step(node, int(node.everywhere), moved, int(unsorted))
            plans.append(Plan(cost, partitioning, _leading(keys), plan.size, tasks, step, (plan,)))
        return Planned(child.rows, child.base, child.width, self._keep(plans, wanted))

    def _limit(self, node: Limit, wanted: Wanted) -> Planned:
        below = node.child
        while isinstance(below, Limit | Project):
            below = below.child
        if isinstance(below, Sort) and below.everywhere:
            # The first rows of an order: each task keeps its own few, and nothing is shuffled.
            child = self._visit(below.child, _NOTHING)
            cost = self._meter.sort(child.rows, self._meter.settings.cores) * _TOP_ROW
            return self._limited(node, child, [plan._replace(cost=plan.cost + cost) for plan in child.plans])
        child = self._visit(below, _NOTHING)
        plans = child.plans
        if node.rows is not None and is_scan_with_conditions(below):
            # Spark reads one task first, and goes on only if that gave too few rows.
            share = min(1.0, node.rows / child.rows)
            plans = [plan._replace(cost=plan.cost * max(share, 1.0 / plan.tasks)) for plan in plans]
        return self._limited(node, child, plans)

    def _limited(self, node: Limit, child: Planned, plans: list[Plan]) -> Planned:
        rows = child.rows if node.rows is None else min(child.rows, float(node.rows))
        cheapest = min(plans, key=lambda plan: plan.cost)
        size = min(cheapest.size, rows * child.width)
        plan = Plan(cheapest.cost, None, (), size, 1, Step(node), (cheapest,))
        return Planned(max(1.0, rows), child.base, child.width, [plan])

    def _union(self, node: Union, wanted: Wanted) -> Planned:
        return self._beside(node, [self._visit(child, _NOTHING) for child in node.children])

    def _other(self, node: Other, wanted: Wanted) -> Planned:
        if node.keeps and len(node.children) == 1:
            return self._visit(node.children[0], wanted)
        return self._beside(node, [self._visit(child, _NOTHING) for child in node.children])

    def _beside(self, node: Node, below: list[Planned]) -> Planned:
        if not below:
            return self._leaf(Leaf("", 1), _NOTHING)
        cheapest = [one.plans[0] for one in below]
        plan = Plan(
            sum(plan.cost for plan in cheapest),
            None,
            (),
            sum(plan.size for plan in cheapest),
            sum(plan.tasks for plan in cheapest),
            Step(node),
            tuple(cheapest),
        )
        rows, base = sum(one.rows for one in below), sum(one.base for one in below)
        return Planned(rows, base, max(one.width for one in below), [plan])


_HOW: Mapping[type[Node], Callable[[Programme, Any, Wanted], Planned]] = {
    Scan: Programme._scan,
    Leaf: Programme._leaf,
    Filter: Programme._filter,
    Project: Programme._project,
    Join: Programme._join,
    Aggregate: Programme._aggregate,
    Window: Programme._window,
    Sort: Programme._sort,
    Limit: Programme._limit,
    Union: Programme._union,
    Other: Programme._other,
}


def is_scan_with_conditions(node: Node) -> bool:
    """A scan, with nothing but conditions and new names above it: the conditions are part of the relation's predicate."""
    while isinstance(node, Filter | Project):
        node = node.child
    return isinstance(node, Scan)


def _also(wanted: Wanted, partitioned: Iterable[Class | None], ordered: Iterable[Class | None]) -> Wanted:
    return Wanted(
        wanted.partitioned.union(_known(partitioned)),
        wanted.ordered.union(_known(ordered)),
    )


def _known(classes: Iterable[Class | None]) -> list[Class]:
    return [one for one in classes if one is not None]


def _leading(classes: tuple[Class | None, ...]) -> tuple[Class, ...]:
    """Those before the first that is no attribute."""
    return tuple(_known(takewhile(lambda one: one is not None, classes)))


def _operations(function: str) -> int:
    """On each row, by the text of an aggregate function: keys are no functions, and rows are counted along the way."""
    if "(" not in function or function == "count(1)":
        return 0
    return _OPERATIONS_OF_SEVERAL if function.endswith("(?)") else 1


def _is_clustered(plan: Plan, keys: tuple[Class | None, ...]) -> bool:
    """Rows of one group are in one partition already."""
    return plan.partitioning is not None and set(keys).issuperset(plan.partitioning.classes)
