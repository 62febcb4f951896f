"""Places as predicates: what lies in a box, what may lie near a point, and how far away it is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import InvalidPredicate
from grebe.indexes.places import Axes
from grebe.indexes.spatial.distance import near_to
from grebe.predicate.builder import Col, col
from grebe.predicate.geometry import from_wkb, inside, shapely
from grebe.predicate.geometry import near as near_geometry
from grebe.predicate.text import column_sql
from grebe.predicate.tree import And, Column, Holds, IsNotNull, Or, Path, Predicate
from grebe.predicate.types import BINARY

Distances = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Box:
    """With its bounds. `least` x above the greatest: it crosses the antimeridian, where the greatest x is next to the least."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    @classmethod
    def of(cls, given: object) -> "Box":
        numbers = _numbers(given)
        if numbers is None or len(numbers) != 4:
            raise InvalidPredicate("a box is four numbers: within((xmin, ymin, xmax, ymax))", detail="BOX")
        box = cls(*numbers)
        if any(map(math.isnan, numbers)) or box.ymin > box.ymax:
            raise InvalidPredicate(
                f"no box: xmin, ymin, xmax, ymax = {', '.join(map(str, numbers))}; ymin is not above ymax, and none is NaN",
                detail="BOX",
            )
        return box


def point_of(x: object, y: object) -> tuple[float, float]:
    numbers = _numbers((x, y))
    if numbers is None or not all(map(math.isfinite, numbers)):
        raise InvalidPredicate("a point is two finite numbers: nearest(x, y, k)", detail="POINT")
    return numbers[0], numbers[1]


def _numbers(given: object) -> list[float] | None:
    try:
        return [float(one) for one in given]  # type: ignore[attr-defined]  # whatever is no such sequence raises
    except (TypeError, ValueError, OverflowError):
        return None


def in_box(axes: Axes, box: Box) -> Predicate:
    """True for points in the box, and for boxes and geometries that lie wholly in it."""
    if axes.is_geometry:
        crossing = ((box.xmin, math.inf), (-math.inf, box.xmax)) if box.xmin > box.xmax else ((box.xmin, box.xmax),)
        column = Column(axes.columns[0], BINARY)
        return Or(tuple(Holds(inside(column, (least, box.ymin, most, box.ymax))) for least, most in crossing))
    columns = [_column(path) for path in axes.columns]
    up = [part for one in columns[1::2] for part in (one >= box.ymin, one <= box.ymax)]
    across = columns[0::2]
    if box.xmin <= box.xmax:
        return And((*(part for one in across for part in (one >= box.xmin, one <= box.xmax)), *up))
    # A NaN is greater than all numbers, and lies nowhere.
    east = And(tuple(part for one in across for part in (one >= box.xmin, one <= math.inf)))
    west = And(tuple(one <= box.xmax for one in across))
    return And((Or((east, west)), *up))


def near(axes: Axes, x: float, y: float, distance: float) -> Predicate:
    """True for all rows that are no further away, and for some that are."""
    if axes.is_geometry:
        column = Column(axes.columns[0], BINARY)
        found = near_geometry(column, x, y, distance) if math.isfinite(distance) else None
        return IsNotNull(column) if found is None else Holds(found)
    columns = [_column(path) for path in axes.columns]
    parts = list(_finite(columns))
    if math.isfinite(distance):
        for least, most, centre in zip(columns[:2], columns[-2:], (x, y), strict=True):
            parts += [least <= _beyond(centre, distance), most >= -_beyond(-centre, distance)]
    return And(tuple(parts))


def _beyond(centre: float, distance: float) -> float:
    """A little more than both together, whatever is lost by rounding."""
    return math.nextafter(centre + math.nextafter(distance * (1 + 1e-12), math.inf), math.inf)


def _finite(columns: Sequence[Col]) -> Iterator[Predicate]:
    for one in columns:
        yield one < math.inf
        yield one > -math.inf


def _column(path: Path) -> Col:
    return col(column_sql(path))


def distances(table: pa.Table, axes: Axes, x: float, y: float) -> Distances:
    """From the point to each row: a point, a box or a geometry; NaN where this is empty, or none."""
    if axes.is_geometry:
        geometries = from_wkb(_field(table, axes.columns[0]).to_pylist())
        return np.asarray(shapely().distance(geometries, shapely().Point(x, y)), np.float64)
    numbers = [np.asarray(_field(table, path).cast(pa.float64(), safe=False).to_numpy()) for path in axes.columns]
    return near_to(np.stack([*numbers[:2], *numbers[-2:]], axis=1), x, y)


def _field(table: pa.Table, path: Path) -> Any:
    column = table[path[0]].combine_chunks()
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def smallest(found: Distances, count: int) -> npt.NDArray[np.int64]:
    """Places of the smallest numbers, in their order; NaN is none."""
    known = np.flatnonzero(~np.isnan(found))
    if len(known) < len(found):
        return np.asarray(known[smallest(found[known], count)])
    if len(found) > count:
        some = np.argpartition(found, count - 1)[:count]
        return np.asarray(some[np.argsort(found[some], kind="stable")], np.int64)
    return np.asarray(np.argsort(found, kind="stable"), np.int64)
