"""What a spatial index can be made of, and what is refused with a word on what to do."""

from typing import Any

import pytest

from grebe.errors import InvalidIndex
from grebe.formats import Column, Reading
from grebe.indexes.registry import kind_named, kind_of
from grebe.indexes.spatial.spec import Spatial

TYPES = {
    "lon": "double",
    "lat": "float",
    "e": "decimal(9,6)",
    "n": "integer",
    "name": "string",
    "geom": "binary",
    "tags": '{"type":"array","elementType":"double","containsNull":true}',
    "facts": '{"type":"map","keyType":"string","valueType":"double","valueContainsNull":true}',
    "at": '{"type":"struct","fields":[{"name":"lon","type":"double","nullable":true,"metadata":{}},'
    '{"name":"lat","type":"double","nullable":true,"metadata":{}}]}',
    "when": "timestamp",
}
READING = Reading("parquet", (), tuple(Column(name, kind) for name, kind in TYPES.items()), None, False)


@pytest.mark.parametrize(
    ("fields", "form", "columns"),
    [
        ({"x": "lon", "y": "lat"}, "points", ("lon", "lat")),
        ({"x": "LON", "y": "e"}, "points", ("lon", "e")),
        ({"on": ["n", "e"]}, "points", ("n", "e")),
        ({"x": "at.lon", "y": "at.lat"}, "points", ("at.lon", "at.lat")),
        ({"x": "lon", "y": "lat", "x_max": "e", "y_max": "n"}, "boxes", ("lon", "lat", "e", "n")),
        ({"on": ["lon", "lat", "e", "n"]}, "boxes", ("lon", "lat", "e", "n")),
        ({"on": "geom"}, "wkb", ("geom",)),
    ],
)
def test_points_boxes_and_geometries(fields: dict[str, Any], form: str, columns: tuple[str, ...]) -> None:
    spec = Spatial("s", **fields).spec(READING, case_sensitive=False)
    assert (spec.kind, spec.columns, spec.properties["form"]) == ("spatial", columns, form)
    assert kind_of("s", spec).spec(READING, case_sensitive=True) == spec


def test_two_columns_given_as_on_are_x_and_y() -> None:
    assert Spatial("s", on=["a", "b"]) == Spatial("s", x="a", y="b")
    assert Spatial("s", on=["a", "b", "c", "d"]) == Spatial("s", x="a", y="b", x_max="c", y_max="d")
    assert kind_named("SPATIAL") is Spatial


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({}, "COLUMNS"),
        ({"x": "lon"}, "COLUMNS"),
        ({"x": "lon", "y": "lat", "x_max": "e"}, "COLUMNS"),
        ({"x": "lon", "y": "lat", "on": "geom"}, "COLUMNS"),
        ({"on": ["lon", "lat", "e"]}, "COLUMNS"),
        ({"on": "geom", "include": ["name"]}, "COLUMNS"),
        ({"x": 1, "y": "lat"}, "COLUMNS"),
        ({"x": "lon", "y": "lon"}, "DUPLICATE_COLUMN"),
        ({"x": "name", "y": "lat"}, "KEY_TYPE"),
        ({"x": "tags", "y": "lat"}, "KEY_TYPE"),
        ({"x": "facts", "y": "lat"}, "KEY_TYPE"),
        ({"x": "when", "y": "lat"}, "KEY_TYPE"),
        ({"x": "geom", "y": "lat"}, "KEY_TYPE"),
        ({"on": "name"}, "KEY_TYPE"),
        ({"on": "lon"}, "KEY_TYPE"),
        ({"x": "nothing", "y": "lat"}, "UNKNOWN_COLUMN"),
        ({"x": "lon", "y": "lat", "include": "facts"}, "COLUMN_TYPE"),
        ({"x": "lon", "y": "lat", "include": "lat"}, "DUPLICATE_COLUMN"),
    ],
)
def test_what_gives_no_places_is_refused(fields: dict[str, Any], detail: str) -> None:
    with pytest.raises(InvalidIndex) as refused:
        Spatial("s", **fields).spec(READING, case_sensitive=False)
    assert refused.value.code == f"INVALID_INDEX_{detail}"


def test_an_index_needs_a_name() -> None:
    with pytest.raises(InvalidIndex):
        Spatial("", x="a", y="b")
