"""`lake.recommend()`: queries planned as they are, candidates imagined on their tables, the best of them chosen and told."""

from collections.abc import Callable, Iterable, Sequence

from grebe.advisor.budget import budget_bytes
from grebe.advisor.recommend.choosing import Costs, Limits, Option, best
from grebe.advisor.recommend.considering import considered
from grebe.advisor.recommend.suggestion import Suggestion, Suggestions
from grebe.advisor.recommend.texts import Weighed
from grebe.advisor.what_if.answer import break_even
from grebe.advisor.what_if.asking import Opened
from grebe.errors import InvalidIndex, InvalidStatement
from grebe.planner.prices import Prices
from grebe.spark.attaching import Attached

OBJECTIVES = ("time", "space", "money")
_MOST = 10
_ENOUGH = 0.9
"""Of what could be saved: for the objective `space`."""
_SECOND = 1000.0


def recommend(
    spark: Attached,
    queries: Sequence[Weighed],
    opened: Opened,
    spelled: Callable[[str], str] = str,
    budget: object = None,
    most: int | None = None,
    build_seconds: float | None = None,
    objective: str = "time",
    only: str | None = None,
    pace: float = 1.0,
) -> Suggestions:
    """`only`: indexes of this table. `pace`: how much longer queries take than the planner reckons with. `spelled`: see
    `considered`. Raises `InvalidStatement` for a workload without a query that can be planned."""
    if objective not in OBJECTIVES:
        raise InvalidStatement(f"objective is one of {', '.join(OBJECTIVES)}, not {objective!r}", detail="OBJECTIVE")
    found = considered(spark, queries, opened, spelled)
    costs, cores = found.costs, found.cores
    limits = Limits(
        budget_bytes(budget, found.bytes),
        _MOST if most is None else most,
        float("inf") if build_seconds is None else build_seconds,
    )
    options = [one for one in found.options if only in (None, one.table)]
    chosen = best(options, costs, limits)
    if objective == "space":
        chosen = _smallest(chosen, costs)
    prices = Prices.of_settings(spark.config)
    told = _told(chosen, costs, prices, cores, pace)
    if objective == "money":
        told = [one for one in told if one.break_even.money_saved > 0]
    return Suggestions(told)


def _smallest(chosen: Sequence[Option], costs: Costs) -> list[Option]:
    """So few bytes that most of what could be saved is saved."""
    enough = _ENOUGH * costs.saved([], chosen)
    kept = list(chosen)
    for option in sorted(chosen, key=lambda one: -one.bytes):
        rest = [one for one in kept if one is not option]
        if costs.saved([], rest) >= enough:
            kept = rest
    return kept


def _told(chosen: Sequence[Option], costs: Costs, prices: Prices, cores: int, pace: float) -> list[Suggestion]:
    """Each by what it saves beside those before it; that which saves most comes first."""
    before = costs.total([])
    left, taken = list(chosen), list[Option]()
    queries = sum(one.weight for one in costs.asked)
    told = []
    while left:
        gain, _, option = max((costs.saved(taken, [*taken, one]), -place, one) for place, one in enumerate(left))
        left.remove(option)
        taken.append(option)
        used = [place for place in costs.concerned(option) if option.imagined.kind.name in costs.of(place, chosen)[1]]
        served = sum(costs.asked[place].weight for place in used)
        saved = gain * pace / _SECOND / max(queries, 1e-9)
        even = break_even(option.imagined.build_seconds, saved, 0.0, prices, cores)
        told.append(
            Suggestion(
                kind=option.imagined.kind,
                table=option.table,
                predicted_bytes=option.bytes,
                predicted_build_seconds=option.imagined.build_seconds,
                predicted_gain=gain / before if before else 0.0,
                break_even=even,
                reasons=(option.reason, f"serves {served:,.0f} of {queries:,.0f} queries"),
                prediction=option.imagined.prediction,
            )
        )
    return told


def texts_of(workload: Iterable[object]) -> list[Weighed]:
    """SQL texts, alone or each with a weight. The same text twice weighs twice."""
    found: dict[str, float] = {}
    for one in workload:
        match one:
            case str():
                text, weight = one, 1.0
            case (str() as text, int() | float() as weight) if weight > 0:
                pass
            case _:
                raise InvalidIndex(
                    f"a workload is made of SQL texts, or of pairs of a text and a weight above 0, not of {type(one).__name__}",
                    detail="WORKLOAD",
                )
        found[text] = found.get(text, 0.0) + weight
    return [Weighed(text, weight) for text, weight in found.items()]
