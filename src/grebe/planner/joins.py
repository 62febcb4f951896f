"""How Spark carries out a join of two plans, and what that costs.

Which method it takes is not ours to choose: a side that Spark believes small is broadcast, everything else is a merge join. A merge
join shuffles the sides that are not partitioned suitably, and sorts those that do not come in order. One side partitioned by us is
enough for only the other to move.
"""

from dataclasses import dataclass

from grebe.planner.cost import Meter
from grebe.planner.options import Partitioning
from grebe.planner.plans import Plan, Planned, Step
from grebe.planner.query import Join
from grebe.planner.shapes import Class

_LEFT_MAY_BE_BROADCAST = frozenset({"Inner", "Cross", "RightOuter"})
_RIGHT_MAY_BE_BROADCAST = frozenset({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin"})
_ONLY_LEFT = frozenset({"LeftSemi", "LeftAnti", "ExistenceJoin"})
_MOST_PAIRS = 1e9
_PASSING_ANTI = 0.1
_UNCERTAINTY = 2.0
"""So many times larger than guessed a side may turn out: that it is small enough at run time is a hope only."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join, with all that does not depend on the plan taken for it."""

    planned: Planned
    keys: tuple[Class | None, ...]
    positions: dict[Class, int]
    may_be_broadcast: bool
    small: bool
    """Adaptive execution will find it small enough for a broadcast, once it is shuffled."""
    repeated: int
    """So often this part occurs in the query; a shuffle of it is run once."""

    @property
    def size(self) -> float:
        return self.planned.rows * self.planned.width

    def usable(self, plan: Plan) -> tuple[int, ...] | None:
        """The positions, among the keys, of what the plan is partitioned by; None if that does not serve this join. Spark's own
        shuffles serve only the join on all of their keys."""
        partitioning = plan.partitioning
        if partitioning is None or not (partitioning.ours or len(partitioning.classes) == len(self.keys)):
            return None
        return self._found(partitioning.classes)

    def in_order(self, plan: Plan) -> tuple[int, ...] | None:
        """The permutation of all keys that the plan is sorted by, if it is."""
        if len(plan.order) < len(self.keys) or len(self.positions) < len(self.keys):
            return None
        return self._found(plan.order[: len(self.keys)])

    def _found(self, classes: tuple[Class, ...]) -> tuple[int, ...] | None:
        found = [self.positions[one] for one in classes if one in self.positions]
        return tuple(found) if len(found) == len(classes) else None


def side(node: Join, planned: Planned, keys: tuple[Class | None, ...], left: bool, repeated: int, meter: Meter) -> Side:
    settings = meter.settings
    allowed = node.kind in (_LEFT_MAY_BE_BROADCAST if left else _RIGHT_MAY_BE_BROADCAST)
    positions: dict[Class, int] = {}
    for position, key in enumerate(keys):
        if key is not None:
            positions.setdefault(key, position)
    surely = planned.rows * planned.width * _UNCERTAINTY
    small = settings.adaptive and allowed and surely <= settings.adaptive_broadcast_bytes and node.hint != "merge"
    return Side(planned, keys, positions, allowed, small, repeated)


def joined_rows(node: Join, left: Planned, right: Planned) -> tuple[float, float, float]:
    """Rows, base and width of the result. The smaller side, before conditions, is taken to hold each key once."""
    pairs = left.rows * right.rows
    inner = pairs / max(1.0, min(left.base, right.base)) if node.left_keys else min(pairs, _MOST_PAIRS)
    matching = min(1.0, right.rows / max(1.0, right.base))
    match node.kind:
        case "LeftSemi":
            return max(1.0, left.rows * matching), left.base, left.width
        case "LeftAnti":
            return max(1.0, left.rows * max(_PASSING_ANTI, 1.0 - matching)), left.base, left.width
        case "ExistenceJoin":
            return left.rows, left.base, left.width
        case "LeftOuter":
            rows = max(inner, left.rows)
        case "RightOuter":
            rows = max(inner, right.rows)
        case "FullOuter":
            rows = max(inner, left.rows, right.rows)
        case _:
            rows = inner
    return max(1.0, rows), max(left.base, right.base), left.width + right.width


class JoinCosts:
    """All ways to join the plans of two sides."""

    def __init__(self, node: Join, left: Side, right: Side, rows: float, meter: Meter) -> None:
        self._node = node
        self._left = left
        self._right = right
        self._rows = rows
        self._meter = meter
        settings = meter.settings
        self._default_tasks = meter.shuffled_partitions(max(left.size, right.size))
        self._default = tuple(range(len(node.left_keys)))
        self._default_number = settings.shuffle_partitions
        self._shuffle_costs: dict[tuple[bool, int], float] = {}

    def plans(self) -> list[Plan]:
        return [self._joined(left, right) for left in self._left.planned.plans for right in self._right.planned.plans]

    def _joined(self, left: Plan, right: Plan) -> Plan:
        broadcast = self._broadcast_side(left, right)
        if broadcast is not None:
            return self._broadcast(left, right, broadcast)
        if not self._node.left_keys:
            return self._every_pair(left, right)
        return self._merged(left, right)

    def _broadcast_side(self, left: Plan, right: Plan) -> Side | None:
        node, limit = self._node, self._meter.settings.broadcast_bytes
        if node.hint == "left" and self._left.may_be_broadcast:
            return self._left
        if node.hint == "right" and self._right.may_be_broadcast:
            return self._right
        if node.hint in ("merge", "hash"):
            return None
        left_small = self._left.may_be_broadcast and left.size <= limit
        right_small = self._right.may_be_broadcast and right.size <= limit
        if left_small and right_small:
            return self._right if right.size <= left.size else self._left
        return self._left if left_small else self._right if right_small else None

    def _size(self, left: Plan, right: Plan) -> float:
        """Spark multiplies, which is why joins of joins are hardly ever broadcast."""
        return left.size if self._node.kind in _ONLY_LEFT else left.size * right.size

    def _broadcast(self, left: Plan, right: Plan, small: Side) -> Plan:
        streamed, plan, sent = (self._right, right, left) if small is self._left else (self._left, left, right)
        cost = plan.cost + sent.cost / small.repeated
        cost += self._meter.broadcast(small.planned.rows, small.planned.width)
        cost += self._meter.probe(streamed.planned.rows, self._rows, plan.tasks)
        step = Step(self._node, broadcasts=1, left_sent=small is self._left)
        return Plan(cost, plan.partitioning, plan.order, self._size(left, right), plan.tasks, step, (left, right))

    def _every_pair(self, left: Plan, right: Plan) -> Plan:
        cost = left.cost + right.cost + self._meter.produce(self._rows, left.tasks * right.tasks)
        return Plan(cost, None, (), self._size(left, right), left.tasks * right.tasks, Step(self._node), (left, right))

    def _merged(self, left: Plan, right: Plan) -> Plan:
        one, other, meter = self._left, self._right, self._meter
        by, number, tasks, ours, move_left, move_right = self._where_to(left, right)
        cost, shuffled = 0.0, 0.0
        for plan, its, moves, is_left in ((left, one, move_left, True), (right, other, move_right, False)):
            if moves:
                cost += (plan.cost + self._shuffle(is_left, tasks)) / its.repeated
                shuffled += its.size
            else:
                cost += plan.cost
        rows = one.planned.rows + other.planned.rows
        sorts = 0
        order: tuple[Class, ...] = ()
        if self._node.hint == "hash" or (move_left and one.small) or (move_right and other.small):
            # A table of hashes of the small side; the other keeps its order.
            cost += meter.probe(rows, self._rows, tasks)
            order = () if move_left else left.order
        else:
            sorted_by, sort_left, sort_right = self._sorts(left, right, move_left, move_right, tasks)
            sorts = sort_left + sort_right
            cost += meter.sort(one.planned.rows, tasks) * sort_left + meter.sort(other.planned.rows, tasks) * sort_right
            cost += meter.merge_join(rows, self._rows, tasks)
            order = self._kept(sorted_by)
        classes = self._kept(by)
        partitioning = Partitioning(classes, number, ours) if len(classes) == len(by) else None
        step = Step(self._node, move_left + move_right, shuffled, sorts)
        return Plan(cost, partitioning, order, self._size(left, right), tasks, step, (left, right))

    def _where_to(self, left: Plan, right: Plan) -> tuple[tuple[int, ...], int, int, bool, bool, bool]:
        """By which keys and into how many partitions the join runs, in how many tasks, whether that is a bucketing of ours, and
        which of the sides moves."""
        by_left, by_right = self._left.usable(left), self._right.usable(right)
        one, other = left.partitioning, right.partitioning
        if by_left is not None and by_right is not None and one is not None and other is not None:
            if by_left == by_right and one.number == other.number:
                return by_left, one.number, max(left.tasks, right.tasks), one.ours or other.ours, False, False
            # Spark keeps the side with more partitions.
            keep_left = one.number >= other.number
            by_left, by_right = (by_left, None) if keep_left else (None, by_right)
        if by_left is not None and one is not None:
            return by_left, one.number, left.tasks, one.ours, False, True
        if by_right is not None and other is not None:
            return by_right, other.number, right.tasks, other.ours, True, False
        return self._default, self._default_number, self._default_tasks, False, True, True

    def _shuffle(self, left: bool, tasks: int) -> float:
        known = self._shuffle_costs.get((left, tasks))
        if known is None:
            planned = (self._left if left else self._right).planned
            known = self._meter.shuffle(planned.rows, planned.width, tasks)
            self._shuffle_costs[left, tasks] = known
        return known

    def _sorts(
        self, left: Plan, right: Plan, move_left: bool, move_right: bool, tasks: int
    ) -> tuple[tuple[int, ...], bool, bool]:
        """In which order of the keys the sides meet, and which of them must be sorted for it."""
        order_left = None if move_left else self._left.in_order(left)
        order_right = None if move_right else self._right.in_order(right)
        if order_left is None and order_right is None:
            return self._default, True, True
        if order_left is not None and order_right is not None and order_left != order_right:
            larger_left = self._left.planned.rows >= self._right.planned.rows
            return (order_left, False, True) if larger_left else (order_right, True, False)
        order = order_left if order_left is not None else order_right
        assert order is not None
        return order, order_left is None, order_right is None

    def _kept(self, positions: tuple[int, ...]) -> tuple[Class, ...]:
        """The classes that the result is partitioned or sorted by: those of the side whose rows are never filled up with NULL."""
        if self._node.kind == "FullOuter":
            return ()
        keys = self._right.keys if self._node.kind == "RightOuter" else self._left.keys
        classes = []
        for position in positions:
            key = keys[position]
            if key is None:
                break
            classes.append(key)
        return tuple(classes)
