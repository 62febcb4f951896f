"""Geometries of rows and constant ones: the functions of Apache Sedona that Grebe knows, and their answers by shapely.

A constant geometry is a literal of WKB. What is asked of a row and a constant geometry becomes a `Related` term, with the box
outside of which it cannot be true: an index tells by that box, and shapely, an extra that only such questions need, decides on the
rest.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Column, Function, Literal, PointOf, Related, Term, columns_of, is_constant, type_of
from grebe.predicate.types import BINARY
from grebe.predicate.vector import Vector, filled, valid_rows

Box = tuple[float, float, float, float]
INSIDE = "inside"
"""Wholly in a box, its bounds included: asked by `Table.within`, and no function of SQL."""
_TURNED = {
    "intersects": "intersects",
    "contains": "within",
    "within": "contains",
    "covers": "coveredby",
    "coveredby": "covers",
    "dwithin": "dwithin",
}
"""Each relation, and what it is with its sides exchanged."""
_RELATIONS = {f"st_{name}": name for name in _TURNED}
HOLDING = ("contains", "covers")
"""Relations in which the row's geometry holds the constant one."""
ARGUMENTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_RELATIONS, (2,)),
    "st_dwithin": (3,),
    "st_point": (2,),
    "st_polygonfromenvelope": (4,),
    "st_geomfromtext": (1,),
    "st_geomfromwkt": (1,),
    "st_geomfromwkb": (1,),
}
"""By their names in SQL: how many arguments they take."""


def shapely() -> Any:
    """The package; raises `Unsupported` where it lacks."""
    try:
        import shapely  # type: ignore[import-untyped]  # it has no types
    except ImportError as lacking:
        raise Unsupported(
            "geometries need the package shapely; install it here and where Spark's workers run: pip install 'grebe[spatial]'",
            detail="NO_SHAPELY",
        ) from lacking
    return shapely


def from_wkb(values: Sequence[bytes | None]) -> Any:
    """An array of geometries; None for NULL, and for bytes that are none."""
    return shapely().from_wkb(np.array(values, dtype=object), on_invalid="ignore")


def call(name: str, arguments: Sequence[Term]) -> Term | None:
    """Of bound arguments; None where Grebe does not know what it means."""
    match name, list(arguments):
        case "st_point", [x, y]:
            return _point(x, y)
        case "st_polygonfromenvelope", corners if all(map(_is_number, corners)):
            return _constant(shapely().box(*map(_number, corners)))
        case (("st_geomfromtext" | "st_geomfromwkt"), [Literal(str() as text)]):
            return _constant(_parsed(shapely().from_wkt, text))
        case "st_geomfromwkb", [Literal(bytes() as data)]:
            return _constant(_parsed(shapely().from_wkb, data))
        case "st_geomfromwkb", [Column() as column]:
            return column
        case "st_dwithin", [one, other, distance] if _is_number(distance):
            return _related(_RELATIONS[name], one, other, _number(distance))
        case _, [one, other] if name in _RELATIONS:
            return _related(_RELATIONS[name], one, other, 0.0)
    return None


def in_box(name: str, sides: Sequence[Term | Box], distance: float) -> Related | None:
    """What is known of a question when of the constant geometry nothing is but its box: enough to rule out, not to answer."""
    relation = _RELATIONS.get(name.lower())
    match relation, sides:
        case str(), [(_, _, _, _) as box, Term() as term]:
            return in_box(f"st_{_TURNED[relation]}", (term, box), distance)
        case str(), [Term() as term, (_, _, _, _) as box]:
            terms = _terms(term)
            if terms is not None:
                columns = tuple(sorted(columns_of(term)))
                grown = _grown(box, distance)
                return Related(name, columns, relation=relation, terms=terms, shape=b"", box=grown, distance=distance)
    return None


def inside(geometry: Column, box: Box) -> Related:
    text = f"the envelope of {to_sql(geometry)} in {box}"
    return Related(text, (geometry.path,), relation=INSIDE, terms=(geometry,), shape=b"", box=box)


def near(geometry: Column, x: float, y: float, distance: float) -> Term | None:
    return _related("dwithin", geometry, Literal(shapely().to_wkb(shapely().Point(x, y)), BINARY), distance)


def _point(x: Term, y: Term) -> Term | None:
    if _is_number(x) and _is_number(y):
        return _constant(shapely().Point(_number(x), _number(y)))
    return point_of(x, y)


def point_of(x: Term, y: Term) -> PointOf | None:
    kinds = (type_of(x), type_of(y))
    if any(kind is None or not kind.is_numeric for kind in kinds) or is_constant(x) or is_constant(y):
        return None
    columns = tuple(sorted(columns_of(x) | columns_of(y)))
    return PointOf(f"ST_Point({to_sql(x)}, {to_sql(y)})", columns, x=x, y=y)


def _related(relation: str, one: Term, other: Term, distance: float) -> Term | None:
    if isinstance(one, Literal):
        return None if isinstance(other, Literal) else _related(_TURNED[relation], other, one, distance)
    if not isinstance(other, Literal) or not isinstance(other.value, bytes):
        return None
    terms = _terms(one)
    if terms is None:
        return None
    shape = _parsed(shapely().from_wkb, other.value)
    beyond = f", {distance!r}D" if relation == "dwithin" else ""
    text = f"ST_{relation}({to_sql(one)}, ST_GeomFromWKB({to_sql(other)}){beyond})"
    columns = tuple(sorted(columns_of(one)))
    box = _grown(tuple(map(float, shape.bounds)), distance)
    return Related(text, columns, relation=relation, terms=terms, shape=other.value, box=box, distance=distance)


def _terms(of_row: Term) -> tuple[Term, ...] | None:
    match of_row:
        case PointOf(x=x, y=y):
            return x, y
        case Column(_, kind) if kind == BINARY:
            return (of_row,)
    return None


def _grown(box: Any, distance: float) -> Box:
    """By a little more than the distance, whatever is lost by rounding; everything, where the geometry has no box."""
    if any(map(math.isnan, (*box, distance))) or distance < 0:
        return (-math.inf, -math.inf, math.inf, math.inf)
    if not distance:
        xmin, ymin, xmax, ymax = box
        return xmin, ymin, xmax, ymax
    by = distance * (1 + 1e-9)
    low, high = (
        [math.nextafter(one + way * by, way * math.inf) for one in ends] for ends, way in ((box[:2], -1), (box[2:], 1))
    )
    return low[0], low[1], high[0], high[1]


def _constant(geometry: Any) -> Literal:
    return Literal(shapely().to_wkb(geometry), BINARY)


def _parsed(read: Any, text: object) -> Any:
    try:
        return read(text)
    except shapely().errors.ShapelyError as problem:
        raise InvalidPredicate(f"no geometry: {problem}", detail="GEOMETRY") from problem


def _is_number(term: Term) -> bool:
    return isinstance(term, Literal) and term.type.is_numeric and term.value is not None


def _number(term: Term) -> float:
    assert isinstance(term, Literal)
    return float(term.value)  # type: ignore[arg-type]  # a number, by its type


def related(term: Related, values: Sequence[pa.Array]) -> Vector:
    """Of the values of its terms: WKB, or x and y as doubles."""
    known = np.logical_and.reduce([valid_rows(one) for one in values])
    failed = None
    if len(values) == 2:
        numbers = [np.asarray(filled(one), np.float64) for one in values]
        sound = known & np.isfinite(numbers[0]) & np.isfinite(numbers[1])
        geometries = np.full(len(known), None, dtype=object)
        geometries[sound] = shapely().points(numbers[0][sound], numbers[1][sound])
    else:
        geometries = from_wkb(values[0].to_pylist())
        unread = known & shapely().is_missing(geometries)
        failed = unread if unread.any() else None
        known = known & ~unread
    truth = np.zeros(len(known), np.bool_) if not len(known) else _answers(term, geometries)
    return Vector(pa.array(truth, pa.bool_(), mask=~known), failed)


def _answers(term: Related, geometries: Any) -> npt.NDArray[np.bool_]:
    if term.relation == INSIDE:
        bounds, (xmin, ymin, xmax, ymax) = shapely().bounds(geometries).reshape(-1, 4), term.box
        low = (bounds[:, 0] >= xmin) & (bounds[:, 1] >= ymin)
        return np.asarray(low & (bounds[:, 2] <= xmax) & (bounds[:, 3] <= ymax))
    shape = shapely().from_wkb(term.shape)
    shapely().prepare(shape)
    # The constant one is the first, since it is prepared.
    turned = {"coveredby": "covers", "covers": "covered_by", "within": "contains", "contains": "within"}
    if term.relation == "dwithin":
        return np.asarray(shapely().dwithin(shape, geometries, term.distance), np.bool_)
    return np.asarray(getattr(shapely(), turned.get(term.relation, term.relation))(shape, geometries), np.bool_)


def known_call(word: str, arguments: Sequence[Term]) -> Function | None:
    return Function(word, tuple(arguments)) if len(arguments) in ARGUMENTS.get(word, ()) else None
