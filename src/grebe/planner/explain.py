"""A decision told to people and to programs: what is used, why the rest is not, and what that should change."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from grebe.planner.decision import ByKeys, Choice, Decision, Estimate, FromMetadata, Narrow, indexes_of
from grebe.planner.explain_html import to_html
from grebe.planner.explain_text import (
    INDENT,
    Actual,
    choice_lines,
    estimate_rows,
    in_columns,
    older_versions,
    reason_lines,
)
from grebe.planner.prices import Prices
from grebe.predicate.text import column_sql


@dataclass(frozen=True, slots=True)
class Explanation:
    """`str()` for people, `to_dict()` for programs."""

    decision: Decision
    plan_before: str = ""
    """Spark's plans as text."""
    plan_after: str = ""
    actual: Actual | None = None
    verbose: bool = True
    """Whether the text and the data show the plans; a notebook always does."""
    prices: Prices = field(default_factory=Prices)

    @property
    def used(self) -> tuple[str, ...]:
        return self.decision.used

    def to_dict(self) -> dict[str, Any]:
        decision = self.decision
        return {
            "used": list(decision.used),
            "not_used": [reason.to_dict() for reason in decision.reasons],
            "choices": [_choice_data(choice) for choice in decision.choices],
            "as_of": list(decision.as_of),
            "before": self._with_money(decision.before),
            "after": self._with_money(decision.after),
            "actual": None if self.actual is None else asdict(self.actual),
            "plan_before": self.plan_before if self.verbose else "",
            "plan_after": self.plan_after if self.verbose else "",
        }

    def _repr_html_(self) -> str:
        return to_html(self.decision, self.actual, self.prices, (self.plan_before, self.plan_after))

    def _with_money(self, estimate: Estimate) -> dict[str, Any]:
        return {**asdict(estimate), "money": self.prices.of(estimate.requests, estimate.bytes)}

    def __str__(self) -> str:
        decision = self.decision
        used = [line for choice in decision.choices for line in choice_lines(choice)]
        unused = [line for reason in decision.reasons for line in reason_lines(reason)]
        sections = [
            _section("Indexes used", used or ["none"]),
            _section("Indexes not used", unused) if unused else "",
            _section("Snapshot", decision.as_of) if decision.as_of else "",
            _section("Estimates", in_columns(estimate_rows(decision, self.actual, self.prices))),
            *(self._plans() if self.verbose else ()),
        ]
        return "\n\n".join(section for section in sections if section)

    def _plans(self) -> list[str]:
        plans = {"Plan without indexes": self.plan_before, "Plan with indexes": self.plan_after}
        return [_section(title, plan.rstrip().splitlines()) for title, plan in plans.items() if plan]


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([title, *(INDENT + line for line in lines)])


def _choice_data(choice: Choice) -> dict[str, Any]:
    data: dict[str, Any] = {"relation": choice.name, "table": choice.table, "index": choice.index}
    data["older_versions"] = older_versions(choice)
    if isinstance(choice, FromMetadata):
        return data | {"how": "metadata"}
    if isinstance(choice, ByKeys):
        return data | {"how": "keys", "column": column_sql(choice.path), "most_keys": choice.most}
    if isinstance(choice, Narrow):
        return data | {
            "how": "files",
            "indexes": list(indexes_of(choice)),
            "files": choice.files,
            "files_of": choice.files_of,
            "files_not_covered": choice.uncovered,
            "files_in_part": len(choice.parts),
            "left_out": dict(choice.left_out),
            "chosen": dict(choice.whys),
        }
    return data | {
        "how": "stand-in",
        "buckets": choice.buckets,
        "ordered": choice.ordered,
        "content_files": len(choice.content),
        "content_files_of": choice.copy.content.num_rows,
        "appended": choice.appended,
        "deleted": choice.deleted,
    }
