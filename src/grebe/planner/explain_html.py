"""An explanation as a notebook shows it: what is read of which index, what it saves, why not more, the plans side by side."""

from grebe.planner.decision import ByKeys, Choice, FromMetadata, Narrow, indexes_of
from grebe.planner.explain import Explanation, choice_lines, estimate_rows
from grebe.shown import html, picture
from grebe.shown.picture import DIRECT, READ, SPARED, Share


def to_html(explanation: Explanation) -> str:
    decision = explanation.decision
    used = "".join(_choice(choice) for choice in decision.choices)
    before, after = decision.before, decision.after
    head, *rows = estimate_rows(explanation)
    columns = ["", *head[1:]]
    measures = html.table(columns, [dict(zip(columns, row, strict=True)) for row in rows])
    compared = [
        ("without indexes", before.milliseconds, f"about {before.milliseconds:,.0f} ms"),
        ("with indexes", after.milliseconds, f"about {after.milliseconds:,.0f} ms"),
    ]
    if explanation.actual is not None:
        real = explanation.actual.milliseconds
        compared.append(("as it ran", real, f"{real:,.0f} ms"))
    return html.block(
        html.title("Indexes used"),
        used or html.paragraph("none"),
        *(html.paragraph(line) for line in decision.as_of),
        html.title("Time, estimated" if explanation.actual is None else "Time, estimated and actual"),
        picture.amounts(compared, (SPARED, READ, DIRECT)),
        html.folded("Files, bytes, requests, shuffles", measures),
        _not_used(explanation),
        _plans(explanation),
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


def _not_used(explanation: Explanation) -> str:
    reasons = explanation.decision.reasons
    if not reasons:
        return ""
    rows = [{"index": one.index or one.relation, "code": str(one.code), "why": one.sentence} for one in reasons]
    return html.title("Indexes not used") + html.table(["index", "code", "why"], rows)


def _plans(explanation: Explanation) -> str:
    if not explanation.plan_before:
        return ""
    names = ", ".join(dict.fromkeys(name for choice in explanation.decision.choices for name in indexes_of(choice)))
    plans = html.side_by_side(
        ("without indexes", explanation.plan_before.rstrip()),
        (f"with {names}" if names else "with indexes", explanation.plan_after.rstrip()),
    )
    return html.folded("Plans before and after", plans)
