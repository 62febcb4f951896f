"""Plans of a query's parts: what having the rows a second time costs."""

from grebe.planner.options import Option, Partitioning
from grebe.planner.plans import Plan, Step, run_again
from grebe.planner.query import Leaf

BY_KEY = Partitioning((1,), 8, True)


def scanned(cost: float) -> Plan:
    return Plan(cost, None, (), 0.0, 8, Option(None, 0, False, cost, None, (), 8, 0.0, 1, 1))


def above(cost: float, *below: Plan, shuffles: int = 0) -> Plan:
    return Plan(cost, BY_KEY, (), 0.0, 8, Step(Leaf("", 1), shuffles), below)


def test_what_was_shuffled_is_kept_and_all_since_then_runs_again() -> None:
    grouped_in_place = above(120.0, scanned(100.0))
    shuffled = above(150.0, scanned(100.0), shuffles=1)
    assert run_again(grouped_in_place) == 120.0
    assert run_again(shuffled) == 0.0
    assert run_again(above(170.0, shuffled)) == 20.0


def test_of_a_join_a_side_that_stays_where_it_is_runs_again() -> None:
    one_moves = above(300.0, above(90.0, scanned(80.0)), scanned(150.0), shuffles=1)
    both_move = above(300.0, scanned(90.0), scanned(150.0), shuffles=2)
    assert (run_again(one_moves), run_again(both_move)) == (90.0, 0.0)
