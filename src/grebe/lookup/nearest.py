"""What lies in a box, or nearest to a point, asked of an engine.

The nearest rows are found in two steps. An index says how far away the last of them is at most; then all rows in a box of that size
are scanned, also those of files that the index does not cover, and the nearest are kept. Without an index the first step reads the
coordinates of all rows.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import GrebeError, InvalidPredicate
from grebe.indexes.places import Axes, KnowsPlaces, Ring
from grebe.indexes.reading import Reader
from grebe.lookup import places
from grebe.lookup.engine import Engine
from grebe.predicate.builder import col
from grebe.predicate.tree import FALSE, Predicate, columns_of
from grebe.predicate.types import BINARY


def axes_of(engine: Engine, on: str | Sequence[str] | None) -> Axes:
    """The columns that places are in: those asked for, or those of the only index that knows, be it damaged."""
    if on is not None:
        return _named(engine, (on,) if isinstance(on, str) else tuple(on))
    known = dict.fromkeys(one.axes for one in engine.snapshot.indexes if isinstance(one, KnowsPlaces))
    if len(known) == 1:
        return next(iter(known))
    why = "no Spatial index says" if not known else "several Spatial indexes differ in"
    raise InvalidPredicate(
        f'{why} which columns of {engine.snapshot.source.uri} the places are in; name them: on=["lon", "lat"], '
        "four columns of boxes, or one of WKB",
        detail="NO_PLACES",
    )


def _named(engine: Engine, names: tuple[str, ...]) -> Axes:
    """Columns of places, as the table spells them."""
    if len(names) not in (1, 2, 4) or not all(isinstance(name, str) for name in names):
        raise InvalidPredicate("on= names two columns of points, four of boxes, or one of WKB", detail="NO_PLACES")
    kinds = [engine.type_of(name) for name in names]
    for name, kind in zip(names, kinds, strict=True):
        if kind is None or not (kind == BINARY if len(names) == 1 else kind.is_numeric):
            what = "is not there" if kind is None else f"is {kind}"
            raise InvalidPredicate(
                f"places are in two columns of numbers, four of boxes, or one of WKB (binary); {name} of "
                f"{engine.snapshot.source.uri} {what}",
                detail="NO_PLACES",
            )
    found = [columns_of(engine.bound(col(name).is_not_null())) for name in names]
    return Axes(tuple(path for (path,) in found))


def nearest(
    engine: Engine, axes: Axes, point: tuple[float, float], count: int, columns: Sequence[str] | None
) -> pa.Table:
    """So many rows, the nearest first."""
    if not count:
        return engine.scan(FALSE, columns)
    names = [column.name for column in engine.snapshot.reading.columns] if columns is None else list(columns)
    needed = list(dict.fromkeys([*names, *(path[0] for path in axes.columns)]))
    reach = _reach(engine, axes, point, count)
    found = engine.scan(engine.bound(places.near(axes, *point, reach)), needed)
    return found.take(places.smallest(places.distances(found, axes, *point), count)).select(names)


def within(engine: Engine, axes: Axes, box: places.Box) -> Predicate:
    return engine.bound(places.in_box(axes, box))


def _knowing(engine: Engine, axes: Axes) -> list[KnowsPlaces]:
    return [one for one in engine.pruners if isinstance(one, KnowsPlaces) and one.axes == axes]


def _reach(engine: Engine, axes: Axes, point: tuple[float, float], count: int) -> float:
    """So far away is the last of the nearest rows, or less."""
    for known in _knowing(engine, axes):
        try:
            return _reach_by(known, engine, point, count, engine.reader())
        except GrebeError as problem:
            engine.set_aside(known.name, problem)
    own = list(dict.fromkeys(path[0] for path in axes.columns))
    everything = engine.scan(engine.bound(places.near(axes, *point, np.inf)), own, heard=False)
    found = places.distances(everything, axes, *point)
    least = found[places.smallest(found, count)]
    return float(least[-1]) if len(least) == count else np.inf


def _reach_by(known: KnowsPlaces, engine: Engine, point: tuple[float, float], count: int, reader: Reader) -> float:
    least = np.empty(0, np.float64)
    for ring in known.around(*point, count, reader):
        least = np.sort(np.concatenate((least, ring.distances[_present(ring, engine)])))[:count]
        if len(least) == count and least[-1] <= ring.beyond:
            break
    return float(least[-1]) if len(least) == count else np.inf


def _present(ring: Ring, engine: Engine) -> npt.NDArray[np.bool_]:
    """Entries whose rows the table has, as far as can be told; of the others none."""
    ids = engine.snapshot.ids
    present = np.isin(ring.files, ids)
    for place, gone in engine.deleted.items():
        own = ring.files == ids[place]
        if not own.any():
            continue
        if ring.locators is None or "row" not in ring.locators.column_names:
            present &= ~own
        else:
            present &= ~(own & np.isin(ring.locators["row"].to_numpy(), gone))
    return present
