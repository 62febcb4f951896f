"""What `auto` did, or would do, step by step."""

from dataclasses import asdict, dataclass
from typing import Any

from grebe.planner.explain_text import INDENT, in_columns, size_text
from grebe.shown import html

_COLUMNS = ("verb", "index", "done", "reason")


@dataclass(frozen=True, slots=True)
class Step:
    """`done`: `would` (a dry run), `done`, or `left` to somebody else or to another time, as `reason` says."""

    verb: str
    index: str
    done: str
    reason: str


@dataclass(frozen=True, slots=True)
class AutoReport:
    """`bytes` are those of all indexes of the table, never above `budget_bytes`."""

    table: str
    dry_run: bool
    budget_bytes: int | None
    bytes_before: int
    bytes_after: int
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        allowed = "without a budget" if self.budget_bytes is None else f"of {size_text(self.budget_bytes)}"
        head = f"{self.table}: {size_text(self.bytes_after)} {allowed} in indexes"
        if not self.steps:
            return f"{head}; nothing to do"
        rows: list[tuple[str, ...]] = [_COLUMNS, *((one.verb, one.index, one.done, one.reason) for one in self.steps)]
        return "\n".join([head, *(INDENT + line for line in in_columns(rows))])

    def _repr_html_(self) -> str:
        return html.block(html.paragraph(str(self).partition("\n")[0]), html.table(_COLUMNS, map(asdict, self.steps)))
