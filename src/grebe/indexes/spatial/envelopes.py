"""The envelopes of geometries in WKB, by shapely: whole columns at once, here and in Spark's workers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from grebe.indexes.spatial.shape import ENVELOPE
from grebe.indexes.workers import map_in_arrow
from grebe.predicate.geometry import from_wkb, shapely

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
    """xmin, ymin, xmax, ymax. NULL where no question is true of a geometry: it is NULL, or empty. NaN where the bytes are none, so
    that whoever reads them is to find that out."""
    geometries = from_wkb(values.to_pylist())
    nothing = values.is_null().to_numpy(zero_copy_only=False) | shapely().is_empty(geometries)
    bounds = np.asarray(shapely().bounds(geometries), np.float64).reshape(-1, 4)
    return [pa.array(np.ascontiguousarray(corner), pa.float64(), mask=nothing) for corner in bounds.T]
