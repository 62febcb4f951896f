"""A decision told to people and to programs: what is used, why the rest is not, and what that should change."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from grebe.planner.decision import ByKeys, Choice, Decision, Estimate, FromMetadata, Narrow, indexes_of
from grebe.planner.prices import Prices, money
from grebe.planner.reasons import Reason
from grebe.predicate.text import column_sql

_INDENT = "  "
_THOUSAND = 1000.0
_TENS = 100


@dataclass(frozen=True, slots=True)
class Actual:
    """What a run of the query really took."""

    files: int
    bytes: int
    milliseconds: float


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
        from grebe.planner.explain_html import to_html  # it knows this class

        return to_html(self)

    def _with_money(self, estimate: Estimate) -> dict[str, Any]:
        return {**asdict(estimate), "money": self.prices.of(estimate.requests, estimate.bytes)}

    def __str__(self) -> str:
        decision = self.decision
        used = [line for choice in decision.choices for line in choice_lines(choice)]
        unused = [line for reason in decision.reasons for line in _reason_lines(reason)]
        sections = [
            _section("Indexes used", used or ["none"]),
            _section("Indexes not used", unused) if unused else "",
            _section("Snapshot", decision.as_of) if decision.as_of else "",
            _section("Estimates", _in_columns(estimate_rows(self))),
            *(self._plans() if self.verbose else ()),
        ]
        return "\n\n".join(section for section in sections if section)

    def _plans(self) -> list[str]:
        plans = {"Plan without indexes": self.plan_before, "Plan with indexes": self.plan_after}
        return [_section(title, plan.rstrip().splitlines()) for title, plan in plans.items() if plan]


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([title, *(_INDENT + line for line in lines)])


def _choice_data(choice: Choice) -> dict[str, Any]:
    data: dict[str, Any] = {"relation": choice.name, "table": choice.table, "index": choice.index}
    data["older_versions"] = _older(choice)
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


def _older(choice: Choice) -> dict[str, int]:
    """Of the indexes used, those that are not read in their current version."""
    if isinstance(choice, Narrow):
        return dict(choice.versions)
    return {} if choice.version is None else {choice.index: choice.version}


def choice_lines(choice: Choice) -> list[str]:
    kept = [
        f"{_INDENT}of {index} the older version {version}, which knows files that the current one does not"
        for index, version in _older(choice).items()
    ]
    return [*_told(choice), *kept]


def _told(choice: Choice) -> list[str]:
    title = f"{choice.name or choice.table}: {choice.index}"
    if isinstance(choice, FromMetadata):
        return [f"{title}, answered from what is known of its files, without reading them"]
    if isinstance(choice, ByKeys):
        return [
            f"{title}, only the files where the join finds its keys of {column_sql(choice.path)}, up to {choice.most:,}"
        ]
    if isinstance(choice, Narrow):
        lines = [
            f"{choice.name or choice.table}: {' and '.join(indexes_of(choice))}, "
            f"{choice.files:,} of {choice.files_of:,} files of the table"
        ]
        lines += [f"{_INDENT}{index} rules out {count:,}" for index, count in choice.left_out.items()]
        lines += [f"{_INDENT}{index}: {why}" for index, why in choice.whys.items()]
        if choice.parts:
            lines.append(f"{_INDENT}{len(choice.parts):,} of them only in part, where the rows lie")
        return [*lines, f"{_INDENT}{choice.uncovered:,} of them are not covered"] if choice.uncovered else lines
    how = f"{choice.buckets} hash partitions" + (" in order" if choice.ordered else "")
    files = f"{len(choice.content)} of {choice.copy.content.num_rows} index files"
    lines = [f"{title}, {files}" + (f", as {how}" if choice.buckets else "")]
    if choice.direct:
        lines.append(f"{_INDENT}{choice.appended:.1%} of the table's bytes are not covered and read directly")
    if choice.drop:
        lines.append(
            f"{_INDENT}rows of {len(choice.drop):,} files that the query does not read are left out by lineage"
        )
    return lines


def _reason_lines(reason: Reason) -> list[str]:
    title = ": ".join(part for part in (reason.relation, reason.index) if part)
    return [f"{title} [{reason.code}]", _INDENT + reason.sentence]


def estimate_rows(explanation: Explanation) -> list[tuple[str, ...]]:
    """What the plan takes without and with indexes, and what it took if it ran, as text: a head and a row a measure."""
    before, after, actual = explanation.decision.before, explanation.decision.after, explanation.actual
    paid = [money(explanation.prices.of(one.requests, one.bytes)) for one in (before, after)]
    rows = [
        ("", "before", "after", "actual"),
        ("files", f"{before.files:,}", f"{after.files:,}", f"{actual.files:,}" if actual else ""),
        ("bytes read", _size(before.bytes), _size(after.bytes), _size(actual.bytes) if actual else ""),
        ("requests", f"{before.requests:,}", f"{after.requests:,}", ""),
        ("paid for them", *paid, ""),
        ("shuffles", str(before.shuffles), str(after.shuffles), ""),
        ("bytes shuffled", _size(before.shuffle_bytes), _size(after.shuffle_bytes), ""),
        ("sorts", str(before.sorts), str(after.sorts), ""),
        ("broadcasts", str(before.broadcasts), str(after.broadcasts), ""),
        (
            "milliseconds",
            f"{before.milliseconds:,.0f}",
            f"{after.milliseconds:,.0f}",
            f"{actual.milliseconds:,.0f}" if actual else "",
        ),
    ]
    return rows if actual is not None else [row[:-1] for row in rows]


def _in_columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(line[column]) for line in rows) for column in range(len(rows[0]))]
    return [_aligned(line, widths) for line in rows]


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    name, *numbers = cells
    right = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True))
    return "  ".join([name.ljust(widths[0]), *right]).rstrip()


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < _THOUSAND:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= _TENS else f"{amount:.1f} {unit}"
        amount /= _THOUSAND
    return f"{amount:,.1f} TB"
