"""`t.organise(in_place=True)`: a table of Delta Lake or Iceberg itself, laid out by a tree learned from the recorded queries.

What queries read now is measured by what the format knows of its files, not remembered: called again, there is nothing to do.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.advisor.budget import budget_bytes
from grebe.advisor.organise.learned import Query, queries_on, require_some
from grebe.advisor.what_if.sampling import sample_of
from grebe.advisor.workload.observed import Observed
from grebe.errors import InvalidConfig, Unsupported
from grebe.files import FileList
from grebe.indexes.content.copied import OWN_NAMES
from grebe.indexes.content.parts import parts_for
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.layout.build import leaf_share
from grebe.indexes.layout.laid_out import laid_out
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.shares import shares_by_block
from grebe.indexes.layout.tree import Tree, route
from grebe.indexes.layout.workload import Query as Asked
from grebe.indexes.layout.workload import numbered
from grebe.indexes.supposed import Sample
from grebe.planner.explain_text import size_text
from grebe.predicate.about import about, renamed
from grebe.predicate.arrow_types import from_arrow
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Path
from grebe.sources.delta import DeltaSource
from grebe.sources.file_bounds import FileBounds, bounds_of
from grebe.sources.iceberg import IcebergSource
from grebe.spark.delta_rewrite import require_delta, rewrite_delta
from grebe.spark.iceberg_rewrite import require_iceberg, rewrite_iceberg
from grebe.spark.lake_source import LakeSource
from grebe.spark.source import SparkSource
from grebe.spark.table_rewrite import Arrange, Rewritten

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WORTH = 0.1
"""Of what queries read now: a table of which they would read as much as that stays as it is."""
_MOST_LEAVES = 1_024
"""Each is a few words of an expression of Spark's."""
_LEAST_FILE_BYTES = 16 * 1024 * 1024
"""A table has no more files afterwards than before, and its size asks for, unless they are larger than this."""
_SEED = 42
_CLEANED_BY = {"delta": "VACUUM", "iceberg": "expire_snapshots"}
Rewrite = Callable[[frozenset[str], Arrange], Rewritten]


@dataclass(frozen=True, slots=True)
class OrganisedInPlace:
    """What was done (`rewritten` or `nothing`), or, of a dry run, would be. `files` and `bytes` of the table are written anew,
    which is the share `rewritten` of its rows. `read_before`: the share of the rows that the recorded queries read, by what the
    table tells of its files; `read_after`: what others like them would, by a sample. `version`: of the table, that it made."""

    table: str
    done: str
    dry_run: bool
    files: int
    bytes: int
    read_before: float
    read_after: float
    rewritten: float
    version: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if self.done == "nothing":
            return (
                f"{self.table} in place: nothing to do; queries read {self.read_before:.1%} of the rows: {self.reason}"
            )
        said = "would be written anew (dry run)" if self.dry_run else f"written anew as version {self.version}"
        return (
            f"{self.table} in place: {self.files:,} files, {size_text(self.bytes)}, {self.rewritten:.0%} of the rows {said}; "
            f"queries read {self.read_after:.1%} of the rows in place of {self.read_before:.1%}: {self.reason}"
        )


def organise_in_place(
    source: SparkSource, observed: Sequence[Observed], budget: object, dry_run: bool
) -> OrganisedInPlace:
    """`budget`: bytes of the table that are written anew at the most."""
    rewrite = _rewriting(source)
    assert isinstance(source, LakeSource)
    queries = queries_on(observed, source.uri, source.reading)
    require_some(queries, source.uri)
    table = _Table(source, queries)
    told = partial(OrganisedInPlace, source.uri)
    if not table.cut:
        return told("nothing", dry_run, 0, 0, table.before, table.before, 0.0, "", table.untold or "it has no files")
    chosen = table.chosen(budget_bytes(budget, table.files.total_bytes))
    plan = _Plan(table, chosen)
    share = float(table.bounds.rows[chosen].sum() / max(1, table.bounds.rows.sum()))
    others = f"; {table.untold}" if table.untold else ""
    if table.before - plan.after < _WORTH * table.before:
        reason = f"laid out anew they would read {plan.after:.1%}{others}"
        return told("nothing", dry_run, 0, 0, table.before, table.before, 0.0, "", reason)
    wrote = table.files.take(chosen)
    made = None if dry_run else rewrite(frozenset(wrote.uris().to_pylist()), plan.arrange)
    files = plan.parts if made is None else made.files
    reason = (
        f"by a tree of {plan.tree.leaves} leaves over {', '.join(plan.tree.names)}, in {files} files{others}. The files of "
        f"before stay until {_CLEANED_BY[source.kind]} removes them; refresh the table's indexes afterwards"
    )
    version = "" if made is None else made.version
    return told("rewritten", dry_run, len(wrote), wrote.total_bytes, table.before, plan.after, share, version, reason)


def _rewriting(source: SparkSource) -> Rewrite:
    """Raises `Unsupported` for what must not be, or cannot be, rewritten."""
    for column in source.reading.columns:
        if column.name.lower().startswith(OWN_NAMES):
            raise Unsupported(
                f"{source.uri} has a column {column.name}, a name that Grebe needs for itself while rows are arranged; rename it",
                detail="IN_PLACE",
            )
    match source:
        case LakeSource(lake=DeltaSource() as lake):
            require_delta(source.given, lake)
            return partial(rewrite_delta, source.given, lake)
        case LakeSource(lake=IcebergSource() as lake):
            require_iceberg(lake)
            return partial(rewrite_iceberg, source.given, lake, source._frame)
    what = "plain files, which have no commit that replaces some by others at once"
    named = what if source.kind == "plain" else f"a table of {source.kind}"
    raise Unsupported(
        f"{source.uri} is {named}; only tables of Delta Lake and Iceberg are "
        "rewritten in place. Let organise make an index beside it (without in_place)",
        detail="IN_PLACE_FORMAT",
    )


class _Table:
    """What is asked of a table, and what of it that reads now."""

    def __init__(self, source: LakeSource, queries: Sequence[Query]) -> None:
        self.source = source
        self.files: FileList = source.files()
        compared = {path for one in queries for path in one.compared}
        columns = [
            one
            for one in source.reading.columns
            if (one.name,) in compared
            and one.foreign is None
            and one.elsewhere is None
            and from_arrow(one.arrow.type).is_scalar
        ]
        self.bounds: FileBounds = bounds_of(source.lake, columns)
        known = [one for one in columns if self.bounds.tells(one.name)]
        self.names = [one.name for one in known]
        self.cut = [one.name for one in known if not one.partition]
        paths: dict[Path, str] = {(name,): name for name in self.names}
        hidden = ", ".join(sorted(column_sql(path) for path in compared - paths.keys()))
        self.untold = (
            f"of {hidden} the table keeps no bounds for its files, so that nothing is laid out by it" if hidden else ""
        )
        self.asked = [Asked(renamed(about(one.predicate, paths), paths), one.weight) for one in queries]
        self.weights = np.array([one.weight for one in self.asked])
        self.met = files_met(self.bounds, self.names, self.asked)
        self.before = self.share(self.met)

    def share(self, met: npt.NDArray[Any]) -> float:
        """Of all rows those that queries read on the average, which meet these files."""
        each = met @ self.bounds.rows / max(1, int(self.bounds.rows.sum()))
        return float(self.weights @ each / self.weights.sum())

    def chosen(self, most: float) -> npt.NDArray[np.int64]:
        """Places of the files that are written anew: all, or as many as fit, those first that queries read most."""
        sizes = self.files.table["size"].to_numpy()
        if sizes.sum() <= most:
            return np.arange(len(sizes))
        order = np.argsort(-(self.weights @ self.met), kind="stable")
        fits = np.cumsum(sizes[order]) <= most
        if not fits.any():
            raise InvalidConfig(
                f"a budget of {size_text(int(most))} is too small to rewrite any file of {self.source.uri}; give more",
                detail="BUDGET",
            )
        return np.sort(order[fits])


def files_met(bounds: FileBounds, names: Sequence[str], asked: Sequence[Asked]) -> npt.NDArray[np.bool_]:
    """A line for each query over these columns, a place for each file: whether the format's own skipping has it read."""
    count = len(bounds.rows)
    if not names:
        return np.ones((len(asked), count), np.bool_)
    low, high = (one.select(list(names)) for one in (bounds.low, bounds.high))
    known = numbered(pa.concat_tables([low, high]).combine_chunks(), asked)
    least, greatest = known.codes[:, :count].copy(), known.codes[:, count:].copy()
    for place, name in enumerate(names):
        nulls = bounds.nulls.column(name).to_numpy(zero_copy_only=False)
        untold = low.column(name).is_null().to_numpy(zero_copy_only=False)
        empty = untold & (nulls == bounds.rows)
        least[place, ~(nulls == 0)] = 0
        greatest[place, untold] = known.axes[place].last
        greatest[place, empty] = 0
    return known.asked.meets(least, greatest)


class _Plan:
    """How the rows of some files would lie."""

    def __init__(self, table: _Table, chosen: npt.NDArray[np.int64]) -> None:
        self._table, self._chosen = table, chosen
        files = table.files.take(chosen)
        self.sample: Sample = sample_of(table.source, files, chosen.astype(np.uint32), table.names)
        self.rows = self.sample.rows.select(table.names)
        wanted = parts_for(files.total_bytes)
        self.parts = max(wanted, min(len(files), files.total_bytes // _LEAST_FILE_BYTES))
        self.tree = self._learned(table.asked)
        self.after = self._expected()

    def _learned(self, asked: Sequence[Asked]) -> Tree:
        rows = self.rows.select(self._table.cut)
        least = max(leaf_share(self.sample.facts, rows.num_rows), rows.num_rows / _MOST_LEAVES)
        return learn(rows, asked, least)

    def _expected(self) -> float:
        """What queries like those would read: each half is told by a tree that is learned from the other."""
        asked = self._table.asked
        # By chance: a dashboard asks one thing after the other, so that every second query may be of another kind.
        order = np.random.default_rng(_SEED).permutation(len(asked))
        halves = [order[0::2], order[1::2]]
        met = self._table.met.astype(np.float64)
        if not len(halves[1]):
            return 1.0
        for own, other in (halves, halves[::-1]):
            tree = self._learned([asked[number] for number in other])
            met[np.ix_(own, self._chosen)] = self._shares(tree, [asked[number] for number in own], own)
        return self._table.share(met)

    def _shares(self, tree: Tree, asked: Sequence[Asked], numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """A line for each query, a place for each of the files: the share of the rows of its partition that the query reads. A
        partition of which the sample has no rows is taken to be like the others that the query meets."""
        bounds, leaf = self._table.bounds, route(tree, self.rows)
        partitions, group = np.unique(bounds.group[self._chosen], return_inverse=True)
        rows = np.bincount(group, bounds.rows[self._chosen])
        ends = np.cumsum(rows) * self.parts / max(1.0, rows.sum())
        begins = np.concatenate([[0.0], ends[:-1]])
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        met = np.logical_or.reduceat(self._table.met[np.ix_(numbers, self._chosen[order])], starts, axis=1)
        share = met.astype(np.float64)
        sampled = np.searchsorted(partitions, bounds.group[self.sample.rows.column(FILE_COLUMN).to_numpy()])
        known = np.unique(sampled)
        for one in known:
            own = np.flatnonzero(sampled == one)
            # Files are cut where partitions are and, by the order of partitions and leaves, after equally many rows.
            cuts = np.linspace(begins[one], ends[one], len(own), endpoint=False).astype(np.int64)
            place = np.empty(len(own), np.int64)
            place[np.argsort(leaf[own], kind="stable")] = cuts - cuts[0]
            found = shares_by_block(numbered(self.rows.take(own), asked), place, int(place.max()) + 1)
            share[:, one] = found.sum(axis=1)
        count = met[:, known].sum(axis=1)
        usual = np.where(count > 0, share[:, known].sum(axis=1) / np.maximum(1, count), 1.0)
        share[:, np.setdiff1d(np.arange(len(partitions)), known)] *= usual[:, None]
        return np.asarray(share[:, group])

    def arrange(self, frame: "DataFrame", partition: Sequence[str]) -> "DataFrame":
        return laid_out(frame, self.tree, route(self.tree, self.rows).tolist(), self.parts, partition)
