"""A decision in lines of text: choices, reasons, and what the plan takes without and with indexes."""

from dataclasses import dataclass

from grebe.planner.decision import ByKeys, Choice, Decision, FromMetadata, Narrow, indexes_of
from grebe.planner.prices import Prices, money
from grebe.planner.reasons import Reason
from grebe.predicate.text import column_sql

INDENT = "  "
_THOUSAND = 1000.0
_TENS = 100


@dataclass(frozen=True, slots=True)
class Actual:
    """What a run of the query really took."""

    files: int
    bytes: int
    milliseconds: float


def older_versions(choice: Choice) -> dict[str, int]:
    """Of the indexes used, those that are not read in their current version."""
    if isinstance(choice, Narrow):
        return dict(choice.versions)
    return {} if choice.version is None else {choice.index: choice.version}


def choice_lines(choice: Choice) -> list[str]:
    kept = [
        f"{INDENT}of {index} the older version {version}, which knows files that the current one does not"
        for index, version in older_versions(choice).items()
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
        lines += [f"{INDENT}{index} rules out {count:,}" for index, count in choice.left_out.items()]
        lines += [f"{INDENT}{index}: {why}" for index, why in choice.whys.items()]
        if choice.parts:
            lines.append(f"{INDENT}{len(choice.parts):,} of them only in part, where the rows lie")
        return [*lines, f"{INDENT}{choice.uncovered:,} of them are not covered"] if choice.uncovered else lines
    how = f"{choice.buckets} hash partitions" + (" in order" if choice.ordered else "")
    files = f"{len(choice.content)} of {choice.copy.content.num_rows} index files"
    lines = [f"{title}, {files}" + (f", as {how}" if choice.buckets else "")]
    if choice.direct:
        lines.append(f"{INDENT}{choice.appended:.1%} of the table's bytes are not covered and read directly")
    if choice.drop:
        lines.append(f"{INDENT}rows of {len(choice.drop):,} files that the query does not read are left out by lineage")
    return lines


def reason_lines(reason: Reason) -> list[str]:
    title = ": ".join(part for part in (reason.relation, reason.index) if part)
    return [f"{title} [{reason.code}]", INDENT + reason.sentence]


def estimate_rows(decision: Decision, actual: Actual | None, prices: Prices) -> list[tuple[str, ...]]:
    """What the plan takes without and with indexes, and what it took if it ran, as text: a head and a row a measure."""
    before, after = decision.before, decision.after
    paid = [money(prices.of(one.requests, one.bytes)) for one in (before, after)]
    rows = [
        ("", "before", "after", "actual"),
        ("files", f"{before.files:,}", f"{after.files:,}", f"{actual.files:,}" if actual else ""),
        ("bytes read", size_text(before.bytes), size_text(after.bytes), size_text(actual.bytes) if actual else ""),
        ("requests", f"{before.requests:,}", f"{after.requests:,}", ""),
        ("paid for them", *paid, ""),
        ("shuffles", str(before.shuffles), str(after.shuffles), ""),
        ("bytes shuffled", size_text(before.shuffle_bytes), size_text(after.shuffle_bytes), ""),
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


def in_columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(line[column]) for line in rows) for column in range(len(rows[0]))]
    return [_aligned(line, widths) for line in rows]


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    name, *numbers = cells
    right = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True))
    return "  ".join([name.ljust(widths[0]), *right]).rstrip()


def size_text(count: int) -> str:
    """Bytes, for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < _THOUSAND:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= _TENS else f"{amount:.1f} {unit}"
        amount /= _THOUSAND
    return f"{amount:,.1f} TB"
