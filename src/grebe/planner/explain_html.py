"""An explanation as a notebook shows it: what is read of which index, what it saves, why not more, the plans side by side."""

from grebe.planner.decision import ByKeys, Choice, Decision, FromMetadata, Narrow
from grebe.planner.explain_text import Actual, choice_lines, estimate_rows
from grebe.planner.prices import Prices
from grebe.planner.reasons import Reason
from grebe.shown import html, picture
from grebe.shown.picture import DIRECT, READ, SPARED, Share


def to_html(decision: Decision, actual: Actual | None, prices: Prices, plans: tuple[str, str]) -> str:
    """`plans`: Spark's, without and with indexes."""
    used = "".join(_choice(choice) for choice in decision.choices)
    before, after = decision.before, decision.after
    head, *rows = estimate_rows(decision, actual, prices)
    columns = ["", *head[1:]]
    measures = html.table(columns, [dict(zip(columns, row, strict=True)) for row in rows])
    compared = [
        ("without indexes", before.milliseconds, f"about {before.milliseconds:,.0f} ms"),
        ("with indexes", after.milliseconds, f"about {after.milliseconds:,.0f} ms"),
    ]
    if actual is not None:
        compared.append(("as it ran", actual.milliseconds, f"{actual.milliseconds:,.0f} ms"))
    return html.block(
        html.title("Indexes used"),
        used or html.paragraph("none"),
        *(html.paragraph(line) for line in decision.as_of),
        html.title("Time, estimated" if actual is None else "Time, estimated and actual"),
        picture.amounts(compared, (SPARED, READ, DIRECT)),
        html.folded("Files, bytes, requests, shuffles", measures),
        _not_used(decision.reasons),
        _plans(decision.used, *plans),
    )


def _choice(choice: Choice) -> str:
    first, *more = choice_lines(choice)
    return html.paragraph(first) + _picture(choice) + "".join(html.paragraph(line.strip()) for line in more)


def _picture(choice: Choice) -> str:
    match choice:
        case FromMetadata() | ByKeys():
            return ""
        case Narrow(files=files, files_of=files_of, uncovered=uncovered):
            return picture.files(
                [
                    Share("read", files - uncovered, READ),
                    Share("read, not covered", uncovered, DIRECT),
                    Share("left out", files_of - files, SPARED),
                ]
            )
    read, of = len(choice.content), choice.copy.content.num_rows
    return picture.files([Share("index files read", read, READ), Share("left out", of - read, SPARED)]) + (
        picture.files(
            [
                Share("of the bytes by the index", 1 - choice.appended, READ),
                Share("directly", choice.appended, DIRECT),
            ]
        )
        if choice.direct
        else ""
    )


def _not_used(reasons: tuple[Reason, ...]) -> str:
    if not reasons:
        return ""
    rows = [{"index": one.index or one.relation, "code": str(one.code), "why": one.sentence} for one in reasons]
    return html.title("Indexes not used") + html.table(["index", "code", "why"], rows)


def _plans(used: tuple[str, ...], before: str, after: str) -> str:
    if not before:
        return ""
    names = ", ".join(used)
    with_them = (f"with {names}" if names else "with indexes", after.rstrip())
    return html.folded("Plans before and after", html.side_by_side(("without indexes", before.rstrip()), with_them))
