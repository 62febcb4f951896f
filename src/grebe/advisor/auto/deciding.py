"""`t.auto(budget)`: drop what does not pay, refresh, lay out anew what cost enough, build what would have paid for itself by now.

It keeps nothing of its own: all that it decides by is in the log and in the recorded queries. So it may run from anywhere, at any
time, any number of times at once; what somebody else is at it leaves. It drops only what it made, which its names show.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grebe.advisor.auto.paying import paid_by
from grebe.advisor.auto.report import AutoReport, Step
from grebe.advisor.budget import budget_bytes
from grebe.advisor.organise.organising import Organised
from grebe.advisor.recommend.suggestion import Suggestion
from grebe.advisor.workload.observed import Observed
from grebe.errors import Conflict, IndexExists, IndexNotFound, InvalidIndex, InvalidStatement, WrongState
from grebe.indexes.kind import Kind
from grebe.indexes.layout.spec import Layout
from grebe.log.budget import bytes_of
from grebe.log.describe import IndexInfo
from grebe.log.entry import Purpose
from grebe.log.states import ACTIVE, DELETED, TableState

OWN = "auto_"
"""So the names of indexes begin that were made by themselves, and that may go by themselves."""
_MARGIN = 1.25
"""Predictions may be off by this much."""
_BUSY = (Conflict, WrongState, IndexExists, IndexNotFound)


@dataclass(frozen=True)
class Tended:
    """What a table offers: what it is, and what can be done with it."""

    uri: str
    bytes: int
    """Of the table itself."""
    state: Callable[[], TableState]
    """Of its log, as it is now."""
    described: Callable[[], Sequence[IndexInfo]]
    observed: Sequence[Observed]
    """The recorded queries, oldest first."""
    suggested: Callable[[float], Sequence[Suggestion]]
    """Within so many bytes."""
    created: Callable[[Kind, Purpose], object]
    refreshed: Callable[[Sequence[str], Purpose], Sequence[IndexInfo]]
    organised: Callable[[str, Purpose], Organised]
    """Where that is due."""
    dropped: Callable[[str, Purpose], object]


@dataclass
class _Work:
    table: Tended
    dry_run: bool
    most: float
    steps: list[Step]

    def purpose(self, why: str, **more: Any) -> Purpose:
        most = None if self.most == float("inf") else int(self.most)
        return Purpose(f"auto: {why}", most_bytes=most, **more)

    def step(self, verb: str, index: str, why: str, act: Callable[[], object]) -> bool:
        """Whether it was done, or would be."""
        if self.dry_run:
            self.steps.append(Step(verb, index, "would", why))
            return True
        try:
            act()
        except _BUSY as busy:
            self.steps.append(Step(verb, index, "left", f"{why}; left for now ({busy.code})"))
            return False
        self.steps.append(Step(verb, index, "done", why))
        return True


def auto(table: Tended, budget: object, dry_run: bool) -> AutoReport:
    most = budget_bytes(budget, table.bytes)
    work = _Work(table, dry_run, most, [])
    before = bytes_of(table.state())
    gone = _drop(work)
    _refresh(work, gone)
    _organise(work, gone)
    coming = _build(work, gone)
    after = before - gone_bytes(table.state(), gone) + coming if dry_run else bytes_of(table.state())
    return AutoReport(table.uri, dry_run, None if most == float("inf") else int(most), before, after, tuple(work.steps))


def gone_bytes(state: TableState, gone: Sequence[str]) -> int:
    return bytes_of(state, (), gone) if gone else 0


def _drop(work: _Work) -> list[str]:
    """Of its own indexes those that do not pay, and what was left of ones that it had begun to drop."""
    gone = []
    for name, index in sorted(work.table.state().indexes.items()):
        if not name.startswith(OWN):
            continue
        why = "it was deleted" if index.state == DELETED else paid_by(index, work.table.observed).complaint
        why = why or (f"it can no longer be refreshed ({index.problem})" if index.problem else None)
        if why is None:
            continue

        def drop(name: str = name, why: str = why) -> None:
            work.table.dropped(name, work.purpose(why))

        if work.step("drop", name, why, drop):
            gone.append(name)
    return gone


def _refresh(work: _Work, gone: Sequence[str]) -> None:
    stale = [one for one in work.table.described() if one.state == ACTIVE and one.files_stale and one.name not in gone]
    if stale:
        why = f"up to {max(one.files_stale for one in stale):,} files of the table have changed"
        names = [one.name for one in stale]
        done: list[IndexInfo] = []
        work.step("refresh", ", ".join(names), why, lambda: done.extend(work.table.refreshed(names, work.purpose(why))))
        work.steps += [Step("refresh", one.name, "left", one.problem) for one in done if one.problem]


def _organise(work: _Work, gone: Sequence[str]) -> None:
    """Layouts, once queries have lost as much by them as writing takes."""
    for name, index in sorted(work.table.state().indexes.items()):
        if index.state != ACTIVE or index.spec.kind != Layout.kind or name in gone:
            continue
        try:
            found = work.table.organised(name, work.purpose("queries lose by the layout"))
        except InvalidStatement:
            continue  # no query with a condition on it has been recorded
        except InvalidIndex as dead:
            work.steps.append(Step("organise", name, "left", str(dead)))
            continue
        if found.done != "nothing":
            done = "would" if work.dry_run and found.done != "left" else found.done
            done = "done" if done in ("rewritten", "replaced", "created") else done
            work.steps.append(Step("organise", name, done, found.reason))


def _build(work: _Work, gone: Sequence[str]) -> int:
    """What would have paid for itself by the queries that were recorded (ski rental). Gives the bytes that it predicts."""
    state = work.table.state()
    room = work.most - bytes_of(state) + gone_bytes(state, gone if work.dry_run else ())
    if room <= 0:
        return 0
    try:
        suggested = work.table.suggested(room / _MARGIN)
    except InvalidStatement:
        return 0  # nothing was recorded, or nothing that can still be planned
    coming, count = 0, len(work.table.observed)
    for one in suggested:
        even = one.break_even.queries
        if even is None or even > count:
            continue
        kind = _named(one.kind, {*state.indexes, *(step.index for step in work.steps)})
        told = f"saves {one.predicted_gain:.0%} of what {count:,} queries take, which pays after {even:,.0f}"
        why = "; ".join((told, *one.reasons))
        predicted = {} if one.prediction is None else {kind.name: one.prediction}
        purpose = work.purpose(why, predicted=predicted)

        def create(kind: Kind = kind, purpose: Purpose = purpose) -> None:
            work.table.created(kind, purpose)

        if work.step("create", kind.name, why, create):
            coming += one.predicted_bytes
    return coming


def _named(kind: Kind, taken: set[str]) -> Kind:
    plain = kind.name if kind.name.startswith(OWN) else f"{OWN}{kind.name}"
    name = next(one for one in (plain, *(f"{plain}_{number}" for number in range(2, 1000))) if one not in taken)
    return replace(kind, name=name)  # type: ignore[type-var]  # a dataclass
