"""A kind and a sample of rows made into what the planner takes for an index: its copy with the sizes and bounds that it would have,
its pruner with guesses in place of answers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.advisor.measured.scales import NEUTRAL, Scales
from grebe.advisor.what_if.guessing import Guessing
from grebe.clock import SYSTEM
from grebe.errors import Unsupported
from grebe.files import FileIds
from grebe.formats import Reading
from grebe.indexes.columns import Chosen, recorded
from grebe.indexes.kind import Copy, Kind, Pruner, Run, bound_names
from grebe.indexes.registry import kind_named
from grebe.indexes.supposed import CanBeSupposed, Sample, Supposed
from grebe.indexes.where import recalled
from grebe.log.entry import IndexSpec, Prediction
from grebe.log.states import ACTIVE, IndexState
from grebe.planner.tables import KnownIndex
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import Path
from grebe.store.memory import MemoryStore

_MB = 1e6
# What building takes: seconds of one core, measured with PySpark 4.1 on tables of 60 thousand to 6 million rows of TPC-H.
_BEGIN_SECONDS = 0.5
"""Elapsed, of every build: listing, two commits, the content's own files looked at."""
_JOBS = 1.0
"""Of jobs that send rows around, however few these are."""
_READ_MB, _WRITE_MB = 180.0, 80.0
"""A second."""
_OF_A_VALUE, _OF_A_ROW = 0.2e-6, 0.0
_OF_KIND = {"view": (0.35e-6, 0.0), "lookup": (0.2e-6, 0.4e-6), "zorder": (0.2e-6, 5e-6), "layout": (0.2e-6, 5e-6)}
"""Sent around, sorted and written: of a value and of a row. A place on a curve or in a tree is reckoned for each row."""
# These tell between which values those of a file lie, and nothing of single ones.
_RANGES_ONLY = ("min_max", "null_count", "intervals")


@dataclass(frozen=True, slots=True)
class Imagined:
    """An index that is not there. `bytes` and `build_seconds` are guesses, to be shown."""

    kind: Kind
    spec: IndexSpec
    index: KnownIndex
    prediction: Prediction

    @property
    def bytes(self) -> int:
        return self.prediction.bytes

    @property
    def build_seconds(self) -> float:
        return self.prediction.seconds


def imagine(
    kind: Kind, spec: IndexSpec, sample: Sample, covered: FileIds, cores: int, scales: Scales = NEUTRAL
) -> Imagined:
    """`scales`: what measured builds have taught."""
    if not isinstance(kind, CanBeSupposed):
        raise Unsupported(
            f"index {kind.name}: kind {spec.kind} does not say what it would be like; create it, and look at explain",
            detail="SUPPOSED",
        )
    kept = kept_of(spec, sample)
    supposed = kind.supposed(spec, kept)
    whole = IndexSpec(spec.kind, spec.columns, {**spec.properties, **supposed.properties})
    state = IndexState(kind.name, whole, ACTIVE, 0, (), covered, "", 0, 0)
    of_kind, store = kind_named(spec.kind), MemoryStore()
    copy, real = of_kind.copy_of(state, store), of_kind.pruner_of(state, store)
    pruner = None if real is None else _guessing(real, whole, kept, supposed)
    known = KnownIndex(
        kind.name, spec.kind, ACTIVE, None if copy is None else _filled(copy, whole, kept, supposed), pruner=pruner
    )
    seconds = _seconds(kind, spec, sample, kept.facts.rows, supposed, cores)
    return Imagined(kind, whole, known, scales.predicted(spec.kind, supposed.bytes, seconds))


def kept_of(spec: IndexSpec, sample: Sample) -> Sample:
    """Of the rows those that an index with a condition keeps."""
    condition = spec.properties.get("where")
    if condition is None:
        return sample
    return sample.within(matches(sample.rows, recalled(condition, Reading.from_dict(spec.properties["reading"]))))


def _guessing(real: Pruner, spec: IndexSpec, sample: Sample, supposed: Supposed) -> Guessing:
    sketches = [one["sketch"] if isinstance(one, dict) else "" for one in spec.properties.get("sketches", ())]
    ranges = bool(sketches) and all(one in _RANGES_ONLY for one in sketches) and not spec.properties.get("sieves")
    distinct: dict[Path, float] = {}
    for path in real.columns:
        if path[0] in sample.rows.column_names:
            distinct[path] = max(1.0, sample.distinct([Chosen(path, "")]))
    return Guessing(real, sample, supposed.bytes, not ranges, distinct)


def _filled(copy: Copy, spec: IndexSpec, sample: Sample, supposed: Supposed) -> Copy:
    """With the content that it would have."""
    count = max(1, supposed.files)
    buckets = np.arange(count, dtype=np.int32) if copy.layout.buckets else np.full(count, -1, np.int32)
    columns: dict[str, pa.Array] = {
        "path": pa.array([f"supposed/part_{number:05d}.gix" for number in range(count)]),
        "size": pa.array(np.full(count, supposed.bytes // count, np.int64)),
        "rows": pa.array(np.full(count, supposed.rows // count, np.int64)),
        "bucket": pa.array(buckets),
    }
    if copy.definition is None:
        on = {one.content: one for one in recorded(spec.columns, copy.reading, copy.name)}
        for place, name in enumerate(copy.bounded):
            if name in on and on[name].path[0] in sample.rows.column_names:
                columns |= _bounds(place, sample, on[name], supposed, count)
    content = pa.table(
        {field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in copy.content.schema}
    )
    return replace(
        copy,
        content=content.cast(copy.content.schema),
        runs=(Run(tuple(range(count))),),
        key=f"supposed-{SYSTEM.new_id()}",
    )


def _bounds(place: int, sample: Sample, column: Chosen, supposed: Supposed, files: int) -> dict[str, pa.Array]:
    values = sample.values(column)
    if supposed.order is not None:
        values = values.take(pa.array(supposed.order))
    least, greatest, nulls = bound_names(place)
    if supposed.order is None:
        pairs = [(0, len(values))] * files
    else:
        pairs = list(pairwise(np.linspace(0, len(values), files + 1).astype(np.int64).tolist()))
    found = [pc.min_max(values[start:stop]) for start, stop in pairs]
    share = supposed.rows / max(1, len(values))
    return {
        least: pa.array([one["min"].as_py() for one in found], values.type),
        greatest: pa.array([one["max"].as_py() for one in found], values.type),
        nulls: pa.array([round(values[start:stop].null_count * share) for start, stop in pairs], pa.int64()),
    }


def seconds_to_read(sample: Sample, columns: Iterable[str]) -> float:
    """All rows of the table, with these columns, by one core."""
    return sample.facts.bytes_of([(name,) for name in columns]) / _MB / _READ_MB


def _seconds(kind: Kind, spec: IndexSpec, sample: Sample, kept: int, supposed: Supposed, cores: int) -> float:
    """To build it: reading the columns, sending the rows around that it keeps, writing."""
    columns = kind.reads(spec)
    work = seconds_to_read(sample, columns) + supposed.bytes / _MB / _WRITE_MB
    if supposed.shuffled:
        of_a_value, of_a_row = _OF_KIND.get(spec.kind, (_OF_A_VALUE, _OF_A_ROW))
        work += _JOBS + kept * ((len(columns) + 1) * of_a_value + of_a_row)
    return _BEGIN_SECONDS + work / max(1, cores)
