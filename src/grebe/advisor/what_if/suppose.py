"""A query put before the planner as if certain indexes existed.

Each kind is imagined on every table of the query that it fits. The planner then decides as it always does, with what is there and
with what is not; only the plan stays as it is.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.advisor.measured.scales import NEUTRAL, Scales, scales_of
from grebe.advisor.what_if.imagined import Imagined, imagine
from grebe.advisor.what_if.sampling import sample_of
from grebe.errors import InvalidIndex
from grebe.files import FileIds, FileList
from grebe.indexes.columns import Chosen
from grebe.indexes.kind import FILE_COLUMN, Kind
from grebe.indexes.supposed import Sample
from grebe.log.registration import Registry
from grebe.maintenance.build import Planned
from grebe.maintenance.create import planned_for
from grebe.maintenance.logs import Place
from grebe.planner.selectivity import Statistics
from grebe.planner.tables import KnownIndex
from grebe.predicate.arrow_types import from_arrow, to_physical
from grebe.spark.attaching import Attached
from grebe.spark.source import SparkSource
from grebe.spark.tables import Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_NUMBERS = ("string", "binary", "boolean", "void")


@dataclass(frozen=True)
class Ground:
    """A table as it is now: its files with their ids, and the indexes that it has."""

    source: SparkSource
    files: FileList
    ids: npt.NDArray[np.uint32]
    indexes: tuple[KnownIndex, ...]
    sample: Sample
    scales: Scales = NEUTRAL
    """What builds of its indexes have taught of predictions."""

    @property
    def uri(self) -> str:
        return self.source.uri

    @property
    def covered(self) -> FileIds:
        return FileIds.of(self.ids)

    @cached_property
    def believed(self) -> Statistics:
        """What the sample says of all rows."""
        columns = [Chosen((name,), "") for name in self.sample.rows.column_names if name != FILE_COLUMN]
        scalar = [one for one in columns if from_arrow(self.sample.values(one).type).is_scalar]
        found = {one.path: extreme for one in scalar if (extreme := _extreme(self.sample.values(one))) is not None}
        return Statistics(found, {one.path: max(1.0, self.sample.distinct([one])) for one in scalar})


def _extreme(values: pa.Array) -> tuple[Any, Any] | None:
    """Least and greatest value, as numbers."""
    kind = from_arrow(values.type)
    if kind.name in _NO_NUMBERS:
        return None
    found = pc.min_max(to_physical(values, kind)).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def ground_of(
    source: SparkSource,
    place: Place,
    existing: Callable[[Sequence[str]], tuple[KnownIndex, ...]],
    columns: Collection[str],
) -> Ground:
    """With a sample of these columns. Files that no index knows yet get ids that nobody else is told."""
    files = source.files()
    log = place.find()
    ids = np.arange(len(files), dtype=np.uint32)
    if log is not None:
        registered = Registry(log).files(log.state)
        known = registered.ids_of(files)
        new = np.asarray(known.is_null().to_numpy(zero_copy_only=False), np.bool_)
        ids = known.fill_null(0).to_numpy().astype(np.uint32)
        ids[new] = registered.next_id + np.arange(int(new.sum()), dtype=np.uint32)
    sample = sample_of(source, files, ids, columns)
    scales = NEUTRAL if log is None else scales_of(log.state)
    return Ground(source, files, ids, existing([source.uri]) if log is not None else (), sample, scales)


def imagined_on(ground: Ground, kinds: Sequence[Kind], cores: int) -> list[Imagined]:
    """As many of the kinds as fit this table."""
    fitting = [one for kind in kinds if (one := _fits(ground.source, kind)) is not None]
    return [imagine(one.kind, one.spec, ground.sample, ground.covered, cores, ground.scales) for one in fitting]


def columns_read(source: SparkSource, kinds: Sequence[Kind]) -> set[str]:
    """By those that fit this table."""
    fitting = [one for kind in kinds if (one := _fits(source, kind)) is not None]
    return {name for one in fitting for name in one.kind.reads(one.spec)}


def _fits(source: SparkSource, kind: Kind) -> Planned | None:
    try:
        return planned_for(source, kind)
    except InvalidIndex:
        return None


def require_all_used(kinds: Sequence[Kind], imagined: Collection[str], grounds: Sequence[Ground]) -> None:
    """That each kind fits some table. Raises what the first table says to one that does not."""
    for kind in kinds:
        if kind.name not in imagined:
            if not grounds:
                raise InvalidIndex("the query reads no table that an index could be created on", detail="NOT_ONE_TABLE")
            planned_for(grounds[0].source, kind)


@contextmanager
def supposing(spark: Attached, grounds: Sequence[tuple[Ground, Sequence[Imagined]]]) -> Iterator[dict[str, Found]]:
    """The tables as if they had these indexes too; those of the same name are taken for these."""
    with ExitStack() as stack:
        found = {}
        for ground, imagined in grounds:
            names = {one.kind.name for one in imagined}
            kept = [index for index in ground.indexes if index.name not in names]
            indexes = [*kept, *(one.index for one in imagined)]
            rows = float(ground.sample.facts.rows)
            table = spark.as_if(ground.uri, ground.files, ground.ids, indexes, ground.believed, rows)
            found[ground.uri] = stack.enter_context(table)
        yield found


def cores_of(session: "SparkSession") -> int:
    return int(session.sparkContext.defaultParallelism)
