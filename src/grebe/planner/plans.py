"""Plans as the dynamic programme handles them: for each node of a query a few, none of which another beats in every respect."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from grebe.planner.decision import Estimate
from grebe.planner.options import Option, Partitioning, Wanted
from grebe.planner.query import Node
from grebe.planner.shapes import Class

MOST = 10
"""Plans kept for a node."""


class Step(NamedTuple):
    """What a node of a plan does, beside its children."""

    node: Node | None
    shuffles: int = 0
    shuffled_bytes: float = 0.0
    sorts: int = 0
    broadcasts: int = 0
    left_sent: bool = False
    """Of a broadcast, whether it is the left side that is sent."""


class Plan(NamedTuple):
    cost: float
    partitioning: Partitioning | None
    order: tuple[Class, ...]
    """Within each partition, ascending."""
    size: float
    """What Spark takes the size of the result to be, before it runs."""
    tasks: int
    step: Step | Option
    children: "tuple[Plan, ...]" = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """A node: what holds of its rows in every plan, and the plans."""

    rows: float
    base: float
    """Rows that there would be without conditions: of what a key is a key."""
    width: float
    plans: list[Plan]


def trimmed(plan: Plan, wanted: Wanted) -> Plan:
    """Without what no node above can use."""
    partitioning, order = plan.partitioning, plan.order
    if partitioning is not None and not wanted.partitioned.issuperset(partitioning.classes):
        partitioning = None
    length = 0
    for one in order:
        if one not in wanted.ordered:
            break
        length += 1
    if partitioning is plan.partitioning and length == len(order):
        return plan
    return plan._replace(partitioning=partitioning, order=order[:length])


def best(plans: Iterable[Plan], wanted: Wanted, broadcast_bytes: int) -> list[Plan]:
    """The plans worth keeping, cheapest first. Of equal ones the first stays."""
    kept: list[Plan] = []
    for plan in sorted((trimmed(plan, wanted) for plan in plans), key=_cost):
        if not any(_beats(other, plan, broadcast_bytes) for other in kept):
            kept.append(plan)
            if len(kept) == MOST:
                break
    return kept


def _cost(plan: Plan) -> float:
    return plan.cost


def _beats(one: Plan, other: Plan, broadcast_bytes: int) -> bool:
    """One that costs no more offers all that the other does. Being small enough to be broadcast is neither good nor bad."""
    return (
        (other.partitioning is None or other.partitioning == one.partitioning)
        and (not other.order or other.order == one.order[: len(other.order)])
        and (one.size <= broadcast_bytes) == (other.size <= broadcast_bytes)
    )


def walk(plan: Plan) -> Iterator[Plan]:
    pending = [plan]
    while pending:
        here = pending.pop()
        yield here
        pending.extend(reversed(here.children))


def run_again(plan: Plan) -> float:
    """What it costs to have the rows a second time: the work since the last shuffle, whose result is kept."""
    if isinstance(plan.step, Option):
        return plan.cost
    again = [run_again(child) for child in plan.children]
    if plan.step.shuffles:
        # Of a join one side may stay where it is.
        return min(again) if plan.step.shuffles < len(again) else 0.0
    return plan.cost - sum(child.cost for child in plan.children) + sum(again)


def options_of(plans: Iterable[Plan]) -> list[Option]:
    """How each scan is read."""
    return [here.step for plan in plans for here in walk(plan) if isinstance(here.step, Option)]


def estimate(plans: Iterable[Plan]) -> Estimate:
    """Of all trees of a query together."""
    files = size = shuffles = sorts = broadcasts = 0
    shuffled = milliseconds = 0.0
    for plan in plans:
        milliseconds += plan.cost
        for here in walk(plan):
            step = here.step
            shuffled += step.shuffled_bytes
            sorts += step.sorts
            if isinstance(step, Option):
                files += step.files
                size += step.bytes
                shuffles += step.shuffled_bytes > 0
            else:
                shuffles += step.shuffles
                broadcasts += step.broadcasts
    return Estimate(
        files=files,
        bytes=size,
        requests=2 * files,
        shuffles=shuffles,
        shuffle_bytes=round(shuffled),
        sorts=sorts,
        broadcasts=broadcasts,
        milliseconds=round(milliseconds, 3),
    )
