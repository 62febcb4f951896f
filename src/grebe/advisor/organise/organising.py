"""`t.organise(budget)`: a layout learned from the recorded queries, or, where there is one, the part of it laid out anew that helps
most for each row that is written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.advisor.budget import budget_bytes
from grebe.advisor.organise.drawing import drawn
from grebe.advisor.organise.fitting import Fitted, fitted
from grebe.advisor.organise.learned import Query, queries_on, require_some
from grebe.advisor.organise.regret import Regret, regret_of, shares_anew
from grebe.advisor.what_if.imagined import imagine, kept_of, seconds_to_read
from grebe.advisor.what_if.suppose import Ground
from grebe.advisor.workload.observed import Observed
from grebe.clock import SYSTEM
from grebe.errors import Conflict, InvalidIndex, WrongState
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import Kind
from grebe.indexes.layout.build import leaf_share
from grebe.indexes.layout.drift import Benefit, affordable, benefits, grafted
from grebe.indexes.layout.shares import expected_share
from grebe.indexes.layout.spec import Layout
from grebe.indexes.layout.tree import Tree, route, tree_of
from grebe.indexes.layout.workload import Query as Asked
from grebe.indexes.registry import kind_of
from grebe.indexes.supposed import Sample
from grebe.indexes.where import recalled
from grebe.log.budget import OVER_BUDGET
from grebe.log.entry import ContentFile, IndexSpec, Prediction, Purpose
from grebe.log.states import ACTIVE, IndexState
from grebe.maintenance.runs import runs_of
from grebe.planner.explain_text import size_text
from grebe.planner.implication import implies
from grebe.predicate.about import renamed
from grebe.predicate.text import to_sql
from grebe.predicate.tree import TRUE, columns_of
from grebe.shown import html

_WORTH = 0.1
"""Of what queries read now: a layout that saves less stays as it is."""
_MARGINS = (0.95, 0.75, 0.5)
"""Of the budget, what a prediction may take at the first try, and at the next ones."""
_ORGANISED = "organised_ms"
"""The property that says when rows were laid out anew."""
_SERVED, _OF_THE_BEST = 0.8, 0.9
"""Of the queries, by weight, and of those that another within the budget could answer: a layout for fewer is made anew."""


@dataclass(frozen=True, eq=False, slots=True)
class Drawing:
    """What pictures of a layout need."""

    sample: pa.Table
    queries: Sequence[Asked]
    before: Tree | None
    after: Tree

    def pictures(self, columns: tuple[str, str] | None) -> tuple[str, str]:
        before, after = (
            drawn(tree, self.sample, self.queries, columns, title)
            for tree, title in ((self.before, "before"), (self.after, "after"))
        )
        return before, after


@dataclass(frozen=True, slots=True)
class Organised:
    """What was done (`created`, `replaced`, `rewritten`, `nothing`, or `left` to somebody else), or would be. `read_before` and
    `read_after`: the share of the rows that the recorded queries read, by the sample; `rewritten`: the share of the rows that were
    written."""

    table: str
    index: str
    done: str
    bytes: int
    read_before: float
    read_after: float
    rewritten: float
    reason: str
    regret: Regret | None = None
    """What the queries since the last reorganisation have lost, of a layout that was there."""
    drawing: Drawing | None = None

    def to_dict(self) -> dict[str, Any]:
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("regret", "drawing")}
        lost = {} if self.regret is None else {"lost_seconds": self.regret.lost, "price_seconds": self.regret.price}
        return {**plain, **lost}

    def pictures(self, columns: tuple[str, str] | None = None) -> tuple[str, str]:
        """SVG of the layout before and after: its parts over two columns (those that queries constrain most, unless they are
        given), with what the queries ask for as boxes."""
        return ("", "") if self.drawing is None else self.drawing.pictures(columns)

    def _repr_html_(self) -> str:
        lost = "" if self.regret is None else self.regret.picture()
        return html.block(html.paragraph(str(self)), html.beside(*self.pictures()), lost)

    def __str__(self) -> str:
        read = f"queries read {self.read_after:.1%} of the rows in place of {self.read_before:.1%}"
        wrote = f"{self.rewritten:.0%} of the rows written" if self.rewritten else "nothing written"
        return (
            f"{self.index} on {self.table}: {self.done}; {read}, {wrote}, {size_text(self.bytes)} in all: {self.reason}"
        )


@dataclass(frozen=True)
class Organising:
    """What organising needs of a table."""

    ground: Ground
    index: IndexState | None
    """The index of that name as it is."""
    create: Callable[[Kind, Purpose], object]
    rewrite: Callable[[str, Callable[[IndexState], tuple[IndexSpec, Sequence[ContentFile]]], Purpose], bool]
    cores: int


def organise(
    table: Organising,
    observed: Sequence[Observed],
    name: str,
    budget: object,
    share: float,
    dry_run: bool,
    when_due: bool = False,
) -> Organised:
    """`share`: of the rows that are written at the most, where a layout is there already. `when_due`: that is left as it is until
    queries have lost as much by it as writing takes."""
    ground, index = table.ground, table.index
    queries = queries_on(observed, ground.uri, ground.source.reading)
    require_some(queries, ground.uri)
    if index is not None and index.spec.kind != Layout.kind:
        raise InvalidIndex(
            f"index {name} of {ground.uri} is of the kind {index.spec.kind}; give organise another name", detail="NAME"
        )
    most = budget_bytes(budget, ground.files.total_bytes)
    if index is not None and index.state == ACTIVE:
        there = _There(index, ground)
        served = there.served(queries)
        if served >= _SERVED or served >= _OF_THE_BEST * _best_served(table, queries, most, name):
            return there.reorganised(table, queries, observed, share, most, dry_run, when_due)
        if when_due:
            return there.left_alone(queries, "many queries read columns or rows that it does not keep")
    return _made(table, queries, name, most, dry_run)


def _best_served(table: Organising, queries: Sequence[Query], most: float, name: str) -> float:
    return fitted(table.ground, queries, most, name, table.cores, _MARGINS[0]).served


def _made(table: Organising, queries: Sequence[Query], name: str, most: float, dry_run: bool) -> Organised:
    """Of what turns out larger than was predicted, and than the budget, nothing is kept: something smaller is made."""
    for margin in _MARGINS:
        found = fitted(table.ground, queries, most, name, table.cores, margin)
        made = _told(table, queries, name, found)
        if dry_run:
            return made
        try:
            table.create(found.imagined.kind, _purpose(found.reason, most, name, found.imagined.prediction))
        except (Conflict, WrongState) as busy:
            over = busy.code == OVER_BUDGET
            if over and margin > _MARGINS[-1]:
                continue
            reason = f"{'it took more than was predicted' if over else 'somebody is at it'} ({busy.code})"
            return replace(made, done="left", read_after=made.read_before, rewritten=0.0, reason=reason, drawing=None)
        return made
    raise AssertionError("unreachable")


def _told(table: Organising, queries: Sequence[Query], name: str, found: Fitted) -> Organised:
    layout = _Imagined(found.imagined.spec, table.ground)
    done = "created" if table.index is None else "replaced"
    drawing = Drawing(layout.sample, layout.asked(queries), None, layout.tree)
    size, after = found.imagined.bytes, layout.read(queries)
    return Organised(table.ground.uri, name, done, size, 1.0, after, 1.0, found.reason, drawing=drawing)


def _purpose(why: str, most: float, name: str, predicted: Prediction | None = None) -> Purpose:
    return Purpose(
        f"organise: {why}",
        {} if predicted is None else {name: predicted},
        None if most == float("inf") else int(most),
        (name,),
    )


class _Imagined:
    """A layout and the sampled rows."""

    def __init__(self, spec: IndexSpec, ground: Ground) -> None:
        self.spec = spec
        self.shape: Shape = shape_of("", spec)
        self.sampled: Sample = kept_of(spec, ground.sample)
        self.sample = pa.table(
            [self.sampled.values(column) for column in self.shape.on], [column.content for column in self.shape.on]
        )
        self.tree: Tree = tree_of(spec.properties["tree"], "")
        self.leaf_rows = leaf_share(self.sampled.facts, self.sample.num_rows)
        where = self.shape.where
        self._region = TRUE if where is None else recalled(where, self.shape.reading)

    def holds(self, query: Query) -> bool:
        """Whether it has all rows that are asked for."""
        return implies(query.predicate, self._region)

    def answers(self, query: Query) -> bool:
        """By its rows and the columns that they lie by."""
        return columns_of(query.predicate) <= {column.path for column in self.shape.on} and self.holds(query)

    def asked(self, queries: Sequence[Query]) -> list[Asked]:
        """Of those that it can answer, what concerns its columns."""
        names = {column.path: column.content for column in self.shape.on}
        return [Asked(renamed(one.predicate, names), one.weight) for one in queries if self.answers(one)]

    def read(self, queries: Sequence[Query], tree: Tree | None = None) -> float:
        """The share of the rows that they read, on the average."""
        asked = self.asked(queries)
        if not asked:
            return 1.0
        weights = np.array([one.weight for one in asked])
        return float(weights @ expected_share(tree or self.tree, self.sample, asked) / weights.sum())


class _There(_Imagined):
    """A layout that exists."""

    def __init__(self, index: IndexState, ground: Ground) -> None:
        super().__init__(index.spec, ground)
        self.index = index
        self.uri = ground.uri
        self.kept = frozenset(column.path[0] for column in self.shape.columns)
        self.size = sum(file.size for file in index.content)

    def served(self, queries: Sequence[Query]) -> float:
        whole = sum(one.weight for one in queries)
        return sum(one.weight for one in queries if one.columns <= self.kept and self.holds(one)) / whole

    def reorganised(
        self,
        table: Organising,
        queries: Sequence[Query],
        observed: Sequence[Observed],
        share: float,
        most: float,
        dry_run: bool,
        when_due: bool,
    ) -> Organised:
        before = self.read(queries)
        asked = self.asked(queries)
        anew = shares_anew(self.sample, asked, self.leaf_rows)
        best = float(np.average(anew, weights=[one.weight for one in asked])) if asked else 1.0
        if before - best < _WORTH * before:
            return self.left_alone(queries, f"a layout made anew would read {best:.1%}")
        regret = self._regret(table, observed, share)
        if when_due and not regret.is_due:
            lost = f"queries have lost {regret.lost:,.1f} s by it since, writing takes {regret.price:,.1f} s"
            return replace(self.left_alone(queries, lost), regret=regret)
        chosen = affordable(benefits(self.tree, self.sample, asked, self.leaf_rows), share)
        tree = grafted(self.tree, chosen)
        after = self.read(queries, tree)
        files = self.files_of(self.index, chosen)
        rows = sum(file.rows for file in files) / max(1, sum(file.rows for file in self.index.content))
        reason = f"{len(chosen)} parts of the tree; all of it anew would read {best:.1%}"
        done = "rewritten" if files else "nothing"
        if files and not dry_run:
            try:
                table.rewrite(
                    self.index.name,
                    lambda index: (self._spec(index, tree, queries), self.files_of(index, chosen)),
                    _purpose(reason, most, self.index.name),
                )
            except (Conflict, WrongState) as busy:
                done, after, rows = "left", before, 0.0
                reason = f"somebody is at it ({busy.code})"
        drawing = Drawing(self.sample, asked, self.tree, tree)
        return Organised(self.uri, self.index.name, done, self.size, before, after, rows, reason, regret, drawing)

    def left_alone(self, queries: Sequence[Query], reason: str) -> Organised:
        before = self.read(queries)
        return Organised(self.uri, self.index.name, "nothing", self.size, before, before, 0.0, reason)

    def _regret(self, table: Organising, observed: Sequence[Observed], share: float) -> Regret:
        """By the queries since it was made or laid out anew."""
        since = int(self.spec.properties.get(_ORGANISED, self.index.created_ms))
        ground = table.ground
        younger = queries_on([one for one in observed if one.at_ms > since], self.uri, ground.source.reading)
        served = [one for one in younger if self.answers(one)]
        asked = self.asked(served)
        now = expected_share(self.tree, self.sample, asked)
        lost = now - shares_anew(self.sample, asked, self.leaf_rows)
        reading = seconds_to_read(self.sampled, self.kept) / max(1, table.cores)
        kind = kind_of(self.index.name, self.spec)
        whole = imagine(kind, self.spec, ground.sample, ground.covered, table.cores, ground.scales).build_seconds
        return regret_of([(one.at_ms, one.weight) for one in served], lost, reading, whole * share)

    def _spec(self, index: IndexState, tree: Tree, queries: Sequence[Query]) -> IndexSpec:
        asked = [[to_sql(one.predicate), one.weight] for one in queries if one.columns <= self.kept and self.holds(one)]
        changed = {"tree": tree.text(), "queries": asked, _ORGANISED: SYSTEM.now_ms()}
        return replace(index.spec, properties={**index.spec.properties, **changed})

    def files_of(self, index: IndexState, chosen: Sequence[Benefit]) -> list[ContentFile]:
        """Those whose rows are in these sub-trees, about: the files of a run follow the leaves."""
        counts = np.bincount(route(self.tree, self.sample), minlength=self.tree.leaves)
        before = np.concatenate([[0.0], np.cumsum(counts)]) / max(1, int(counts.sum()))
        wanted = [(before[one.leaves[0]], before[one.leaves[1]]) for one in chosen]
        found = []
        for run in runs_of(index):
            ends = np.cumsum([0, *(file.rows for file in run.files)]) / max(1, run.rows)
            found += [
                file
                for file, start, end in zip(run.files, ends[:-1], ends[1:], strict=True)
                if _meets(start, end, wanted)
            ]
        return [file for file in found if file.rows]


def _meets(start: float, end: float, wanted: Sequence[tuple[float, float]]) -> bool:
    """More than by the edge."""
    overlap = sum(max(0.0, min(end, high) - max(start, low)) for low, high in wanted)
    return overlap > 0.05 * max(1e-9, end - start)
