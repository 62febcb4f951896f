"""What would be, told to people and to programs: which of the imagined indexes a query would use, what they would take and save,
and after how many queries they would have paid for themselves."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from grebe.advisor.what_if.imagined import Imagined
from grebe.planner.decision import Decision, Estimate
from grebe.planner.explain import Explanation
from grebe.planner.explain_text import INDENT, in_columns, size_text
from grebe.planner.prices import Prices

_SECOND = 1000.0
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Since when an index has saved what it cost: after so many queries, seconds of work; None: never. `money` is what a query
    saves, in dollars, and what building costs."""

    queries: float | None
    seconds_saved: float
    money_saved: float
    money_to_build: float


@dataclass(frozen=True, slots=True)
class Predicted:
    index: str
    kind: str
    bytes: int
    build_seconds: float
    break_even: BreakEven


@dataclass(frozen=True, slots=True)
class WhatIf:
    """As `Explanation`, of indexes that are not there; `now` is what the query takes with those that are."""

    explanation: Explanation
    now: Estimate
    predicted: tuple[Predicted, ...]

    @property
    def decision(self) -> Decision:
        return self.explanation.decision

    @property
    def used(self) -> tuple[str, ...]:
        return self.decision.used

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.explanation.to_dict(),
            "now": asdict(self.now),
            "predicted": [asdict(one) for one in self.predicted],
        }

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("", "bytes", "seconds to build", "a query saves", "pays after")]
        for one in self.predicted:
            even = one.break_even
            after = "never" if even.queries is None else f"{even.queries:,.0f} queries"
            saves = f"{even.seconds_saved * _SECOND:,.0f} ms"
            rows.append((one.index, size_text(one.bytes), f"{one.build_seconds:,.1f}", saves, after))
        told = "\n".join(["Imagined", *(INDENT + line for line in in_columns(rows))])
        return f"{told}\n\n{self.explanation}"

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()


def predicted(
    imagined: Sequence[Imagined], decision: Decision, now: Estimate, prices: Prices, cores: int, pace: float = 1.0
) -> tuple[Predicted, ...]:
    """What is saved is saved by all that are used together; each is told its share by what it costs to build."""
    used = [one for one in imagined if one.kind.name in decision.used]
    whole = sum(one.build_seconds for one in used)
    saved = max(0.0, now.milliseconds - decision.after.milliseconds) * pace / _SECOND
    paid = prices.of(now.requests, now.bytes) - prices.of(decision.after.requests, decision.after.bytes)
    found = []
    for one in imagined:
        share = one.build_seconds / whole if one in used else 0.0
        even = break_even(one.build_seconds, saved * share, paid * share, prices, cores)
        found.append(Predicted(one.kind.name, one.spec.kind, one.bytes, one.build_seconds, even))
    return tuple(found)


def break_even(build: float, saved: float, requests_saved: float, prices: Prices, cores: int) -> BreakEven:
    """`build` and `saved` in seconds, `requests_saved` in dollars a query."""
    worked = prices.core_hour * cores / _HOUR
    return BreakEven(
        queries=build / saved if saved > 0 else None,
        seconds_saved=saved,
        money_saved=saved * worked + requests_saved,
        money_to_build=build * worked,
    )
