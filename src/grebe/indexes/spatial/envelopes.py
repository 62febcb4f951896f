"""The envelopes of geometries in WKB, by shapely: whole columns at once, here and in Spark's workers."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from grebe.indexes.spatial.shape import ENVELOPE
from grebe.indexes.workers import map_in_arrow
from grebe.predicate.geometry import HOLDING, INSIDE, from_wkb, shapely
from grebe.predicate.tree import (
    TRUE,
    And,
    Column,
    Compare,
    Constant,
    Holds,
    Literal,
    Operator,
    Or,
    Path,
    Predicate,
    Related,
)
from grebe.predicate.types import DOUBLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_envelopes(frame: "DataFrame", geometry: str) -> "DataFrame":
    """The frame with the four corners in the place of its first column, the geometry."""
    from pyspark.sql.types import DoubleType, StructField, StructType

    rest = [field for field in frame.schema.fields if field.name != geometry]
    schema = StructType([*(StructField(name, DoubleType()) for name in ENVELOPE), *rest])
    from_wkb([])  # tells that shapely lacks before any task does
    return map_in_arrow(frame, _Envelopes(geometry), schema)


@dataclass(frozen=True)
class _Envelopes:
    """Sent to the workers."""

    geometry: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rest = [name for name in batch.schema.names if name != self.geometry]
            arrays = [*envelopes(batch.column(self.geometry)), *(batch.column(name) for name in rest)]
            yield pa.RecordBatch.from_arrays(arrays, [*ENVELOPE, *rest])


def envelopes(values: pa.Array) -> list[pa.Array]:
    """xmin, ymin, xmax, ymax. NULL for NULL, of which no question is true; NaN for an empty geometry, and for bytes that are none,
    so that whoever asks looks at them."""
    bounds = np.asarray(shapely().bounds(from_wkb(values.to_pylist())), np.float64).reshape(-1, 4)
    nothing = values.is_null().to_numpy(zero_copy_only=False)
    return [pa.array(np.ascontiguousarray(corner), pa.float64(), mask=nothing) for corner in bounds.T]


def of_envelopes(predicate: Predicate, geometry: Path) -> Predicate:
    """What a predicate says of the envelopes of this column: true of every row that makes the predicate true, and of those without
    an envelope."""
    match predicate:
        case And(below):
            kept = [part for one in below if (part := of_envelopes(one, geometry)) != TRUE]
            return kept[0] if len(kept) == 1 else And(tuple(kept)) if kept else TRUE
        case Or(below):
            parts = tuple(of_envelopes(one, geometry) for one in below)
            return TRUE if TRUE in parts else Or(parts)
        case Constant():
            return predicate
        case Holds(Related(relation=relation, terms=(Column(path),), box=box)) if path == geometry:
            return _meeting(box, relation)
    return TRUE


def _meeting(box: tuple[float, float, float, float], relation: str) -> Predicate:
    xmin, ymin, xmax, ymax = (Column((name,), DOUBLE) for name in ENVELOPE)
    least, most = [(xmin, box[0]), (ymin, box[1])], [(xmax, box[2]), (ymax, box[3])]
    if relation in HOLDING:
        inner, outer = least, most
    elif relation == INSIDE:
        return And((*_compared(">=", least), *_compared("<=", most)))
    else:
        inner, outer = [(xmin, box[2]), (ymin, box[3])], [(xmax, box[0]), (ymax, box[1])]
    # Only a NaN is greater than all numbers.
    nowhere = Compare(">", xmin, Literal(math.inf, DOUBLE))
    return Or((And((*_compared("<=", inner), *_compared(">=", outer))), nowhere))


def _compared(operator: Operator, ends: list[tuple[Column, float]]) -> list[Predicate]:
    return [Compare(operator, column, Literal(value, DOUBLE)) for column, value in ends]
