"""A lookup told to people and to programs: which files and rows it would read, by which index, and why not by the others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from grebe.indexes.kind import Pruner
from grebe.indexes.reading import Reader
from grebe.lookup.answer import Answer, answer_picture
from grebe.lookup.finding import Finder, is_much
from grebe.planner.prices import Prices, money
from grebe.planner.reasons import Code, Reason
from grebe.predicate.tree import Predicate
from grebe.shown import html


@dataclass(frozen=True, slots=True)
class LookupExplanation:
    """`str()` for people, `to_dict()` for programs."""

    answer: Answer
    used: tuple[str, ...]
    reasons: tuple[Reason, ...]
    chosen: Mapping[str, str] = field(default_factory=dict)
    """What was chosen for indexes by itself, and why."""
    older: Mapping[str, int] = field(default_factory=dict)
    """Versions of indexes that are not the current ones."""
    pinned: int = 0
    """Files whose rows of the predicate are in memory, and are not read where the columns asked for are pinned too."""
    prices: Prices = field(default_factory=Prices)

    def to_dict(self) -> dict[str, Any]:
        answer = self.answer
        return {
            "used": list(self.used),
            "not_used": [reason.to_dict() for reason in self.reasons],
            "files": [
                {"path": file.path, "rows": None if file.rows is None else len(file.rows)} for file in answer.files
            ],
            "covered": answer.covered,
            "uncovered": answer.uncovered,
            "pruned": answer.pruned,
            "pruned_by": dict(answer.pruned_by),
            "chosen": dict(self.chosen),
            "older_versions": dict(self.older),
            "pinned": self.pinned,
            "requests": answer.requests,
            "bytes": answer.bytes,
            "money": self.prices.of(answer.requests, answer.bytes),
        }

    def _repr_html_(self) -> str:
        rows = [{"index": one.index, "code": str(one.code), "why": one.sentence} for one in self.reasons]
        not_used = html.title("Indexes not used") + html.table(["index", "code", "why"], rows) if rows else ""
        return html.block(
            html.title("Indexes used"),
            html.paragraph(", ".join(self.used) or "none: every file is read as a whole"),
            answer_picture(self.answer),
            html.paragraph(self._took()),
            not_used,
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        answer = self.answer
        yield "Indexes used"
        yield f"  {', '.join(self.used) or 'none: every file is read as a whole'}"
        for name, count in answer.pruned_by.items():
            yield f"    {name} rules out {count:,} files"
        for name, why in self.chosen.items():
            yield f"    {name}: {why}"
        for name, version in self.older.items():
            yield f"    {name}: its version {version}, which knows files that the current one does not"
        if self.reasons:
            yield "\nIndexes not used"
            for reason in self.reasons:
                yield f"  {reason.index} [{reason.code}]"
                yield f"    {reason.sentence}"
        single = [file for file in answer.files if file.rows is not None]
        yield "\nTo be read"
        yield f"  {len(answer.files):,} of {answer.covered + answer.uncovered:,} files; {answer.pruned:,} need not be opened"
        if single:
            yield f"  of {len(single):,} of them {sum(len(file.rows or ()) for file in single):,} rows"
        if answer.uncovered:
            yield f"  {answer.uncovered:,} files are covered by no index that helps, and are read as a whole"
        if self.pinned:
            yield f"  {self.pinned:,} files are pinned: their rows are taken from memory where all columns asked for are"
        yield f"  {self._took()}"

    def _took(self) -> str:
        paid = money(self.prices.of(self.answer.requests, self.answer.bytes))
        return f"finding this out took {self.answer.requests:,} requests, {self.answer.bytes:,} bytes of the index ({paid})"


def not_used(
    finder: Finder, all_of: Mapping[str, Pruner], used: tuple[str, ...], predicate: Predicate, reader: Reader
) -> Iterator[Reason]:
    """Why each of these indexes was not taken."""
    for name, pruner in all_of.items():
        if name in used:
            continue
        if name in finder.set_aside:
            yield Reason(Code.SET_ASIDE, name, {"why": finder.set_aside[name]})
        elif not finder.ask(pruner, lambda own: own.helps(predicate)):
            yield Reason(Code.NO_FIRST_INDEXED_COL_COND, name, {"column": ".".join(next(iter(pruner.columns)))})
        elif used:
            yield Reason(Code.ANOTHER_INDEX_APPLIED, name, {"applied": used[0]})
        else:
            hits = finder.ask(pruner, lambda own: own.hits(predicate, reader))
            if hits is None:
                yield Reason(Code.SET_ASIDE, name, {"why": finder.set_aside[name]})
            elif is_much(hits, pruner):
                yield Reason(Code.TOO_MANY_ROWS, name, {"rows": hits.likely})
            else:
                yield Reason(Code.NO_COMMON_FILES, name, {})
