"""What is recommended: a kind that can be passed to `create`, with what it should take and save, and why."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from grebe.advisor.what_if.answer import BreakEven
from grebe.indexes.kind import Kind
from grebe.log.entry import Prediction
from grebe.planner.explain_text import in_columns, size_text
from grebe.shown import html


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`predicted_gain`: the share of the workload's time that this one saves beside those ranked before it."""

    kind: Kind
    table: str
    predicted_bytes: int
    predicted_build_seconds: float
    predicted_gain: float
    break_even: BreakEven
    reasons: tuple[str, ...]
    prediction: Prediction | None = None
    """The same, for the log."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.kind.name,
            "kind": type(self.kind).__name__,
            "create": repr(self.kind),
            "table": self.table,
            "predicted_bytes": self.predicted_bytes,
            "predicted_build_seconds": self.predicted_build_seconds,
            "predicted_gain": self.predicted_gain,
            "break_even": asdict(self.break_even),
            "reasons": list(self.reasons),
        }


class Suggestions(tuple[Suggestion, ...]):
    """Best first. A tuple that people can read."""

    __slots__ = ()

    def __new__(cls, some: Iterable[Suggestion] = ()) -> "Suggestions":
        return super().__new__(cls, some)

    def __str__(self) -> str:
        if not self:
            return "Nothing that would save more than it costs."
        rows: list[tuple[str, ...]] = [("index", "gain", "bytes", "seconds to build", "pays after")]
        rows += [_row(one) for one in self]
        lines = in_columns(rows)
        told = [lines[0]]
        for line, one in zip(lines[1:], self, strict=True):
            told += [line, f"  {one.kind!r} on {one.table}", *(f"  {reason}" for reason in one.reasons)]
        return "\n".join(told)

    def _repr_html_(self) -> str:
        columns = ("index", "table", "gain", "bytes", "seconds", "reasons")
        return html.block(html.table(columns, [_cells(one) for one in self]))


def _row(one: Suggestion) -> tuple[str, ...]:
    even = one.break_even.queries
    return (
        one.kind.name,
        f"{one.predicted_gain:.0%}",
        size_text(one.predicted_bytes),
        f"{one.predicted_build_seconds:,.1f}",
        "never" if even is None else f"{even:,.0f} queries",
    )


def _cells(one: Suggestion) -> dict[str, object]:
    return {
        "index": one.kind.name,
        "table": one.table,
        "gain": f"{one.predicted_gain:.0%}",
        "bytes": one.predicted_bytes,
        "seconds": round(one.predicted_build_seconds, 1),
        "reasons": "; ".join(one.reasons),
    }
