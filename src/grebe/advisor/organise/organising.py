"""`t.organise(budget)`: a layout learned from the recorded queries, or, where there is one, the part of it laid out anew that helps
most for each row that is written."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.advisor.budget import budget_bytes
from grebe.advisor.organise.fitting import fitted
from grebe.advisor.organise.learned import Query, queries_on, require_some
from grebe.advisor.what_if.suppose import Ground
from grebe.advisor.workload.observed import Observed
from grebe.errors import Conflict, InvalidIndex, WrongState
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import Kind
from grebe.indexes.layout.build import leaf_share
from grebe.indexes.layout.drift import Benefit, affordable, benefits, grafted
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.shares import expected_share
from grebe.indexes.layout.spec import Layout
from grebe.indexes.layout.tree import Tree, route, tree_of
from grebe.indexes.layout.workload import Query as Asked
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import ACTIVE, IndexState
from grebe.maintenance.runs import runs_of
from grebe.planner.explain_text import size_text
from grebe.predicate.about import renamed
from grebe.predicate.text import to_sql
from grebe.predicate.tree import columns_of

_WORTH = 0.1
"""Of what queries read now: a layout that saves less stays as it is."""
_SERVED = 0.8
"""Of the queries, by weight: a layout that can answer fewer is made anew."""


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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

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
    create: Callable[[Kind], object]
    rewrite: Callable[[str, Callable[[IndexState], tuple[IndexSpec, Sequence[ContentFile]]]], bool]
    cores: int


def organise(
    table: Organising, observed: Sequence[Observed], name: str, budget: object, share: float, dry_run: bool
) -> Organised:
    """`share`: of the rows that are written at the most, where a layout is there already."""
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
        if there.served(queries) >= _SERVED:
            return there.reorganised(table, queries, share, dry_run)
    return _made(table, queries, name, most, dry_run)


def _made(table: Organising, queries: Sequence[Query], name: str, most: float, dry_run: bool) -> Organised:
    found = fitted(table.ground, queries, most, name, table.cores)
    kind = found.imagined.kind
    layout = _Imagined(found.imagined.spec, table.ground)
    before, after = 1.0, layout.read(queries)
    done = "created" if table.index is None else "replaced"
    if not dry_run:
        try:
            table.create(kind)
        except (Conflict, WrongState) as busy:
            return Organised(
                table.ground.uri,
                name,
                "left",
                found.imagined.bytes,
                before,
                before,
                0.0,
                f"somebody is at it ({busy.code})",
            )
    return Organised(table.ground.uri, name, done, found.imagined.bytes, before, after, 1.0, found.reason)


class _Imagined:
    """A layout and the sampled rows."""

    def __init__(self, spec: IndexSpec, ground: Ground) -> None:
        self.spec = spec
        self.shape: Shape = shape_of("", spec)
        self.sample = pa.table(
            [ground.sample.values(column) for column in self.shape.on], [column.content for column in self.shape.on]
        )
        self.tree: Tree = tree_of(spec.properties["tree"], "")
        self.leaf_rows = leaf_share(ground.sample.facts, self.sample.num_rows)

    def asked(self, queries: Sequence[Query]) -> list[Asked]:
        """Of those that it can answer, what concerns its columns."""
        names = {column.path: column.content for column in self.shape.on}
        return [
            Asked(renamed(one.predicate, names), one.weight)
            for one in queries
            if columns_of(one.predicate) <= names.keys()
        ]

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

    def served(self, queries: Sequence[Query]) -> float:
        whole = sum(one.weight for one in queries)
        return sum(one.weight for one in queries if one.columns <= self.kept) / whole

    def reorganised(self, table: Organising, queries: Sequence[Query], share: float, dry_run: bool) -> Organised:
        before = self.read(queries)
        asked = self.asked(queries)
        best = self._learned_anew(asked)
        size = sum(file.size for file in self.index.content)
        if before - best < _WORTH * before:
            reason = f"a layout made anew would read {best:.1%}"
            return Organised(self.uri, self.index.name, "nothing", size, before, before, 0.0, reason)
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
                    self.index.name, lambda index: (self._spec(index, tree, queries), self.files_of(index, chosen))
                )
            except (Conflict, WrongState) as busy:
                done, after, rows = "left", before, 0.0
                reason = f"somebody is at it ({busy.code})"
        return Organised(self.uri, self.index.name, done, size, before, after, rows, reason)

    def _learned_anew(self, asked: Sequence[Asked]) -> float:
        """What queries like these would read of a layout made anew: each half is told by a tree that is learned from the other, for
        every tree fits the very queries best that it was learned from."""
        halves = [asked[0::2], asked[1::2]]
        if not all(halves):
            return 1.0
        read = 0.0
        for own, other in (halves, halves[::-1]):
            tree = learn(self.sample, other, self.leaf_rows)
            read += float(np.array([one.weight for one in own]) @ expected_share(tree, self.sample, own))
        return read / sum(one.weight for one in asked)

    def _spec(self, index: IndexState, tree: Tree, queries: Sequence[Query]) -> IndexSpec:
        asked = [[to_sql(one.predicate), one.weight] for one in queries if one.columns <= self.kept]
        return replace(index.spec, properties={**index.spec.properties, "tree": tree.text(), "queries": asked})

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
