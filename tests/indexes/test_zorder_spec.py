"""What can be asked of a curve, and what is refused with a reason."""

from typing import Any

import pytest

import grebe
from grebe.errors import InvalidIndex
from grebe.formats import Reading
from grebe.formats.reading import Column
from grebe.indexes.registry import kind_of
from grebe.log.entry import IndexSpec

STRUCT = '{"type":"struct","fields":[{"name":"lon","type":"double","nullable":true,"metadata":{}}]}'
LIST = '{"type":"array","elementType":"string","containsNull":true}'
MAP = '{"type":"map","keyType":"string","valueType":"string","valueContainsNull":true}'
TYPES = {"x": "double", "y": "long", "day": "date", "home": STRUCT, "tags": LIST, "facts": MAP}
READING = Reading.of("parquet", {}, [Column(name, kind) for name, kind in TYPES.items()], "UTC", local_times=False)


def spec_of(kind: grebe.ZOrder) -> IndexSpec:
    return kind.spec(READING, case_sensitive=False)


def test_an_index_is_made_again_from_what_the_log_says() -> None:
    kind = grebe.ZOrder("i", on=["X", "home.lon"], include="day", curve="z", lineage=False, where="y > 5")
    spec = spec_of(kind)
    assert (spec.kind, spec.columns, spec.properties["include"]) == ("zorder", ("`x`", "home.lon"), ["day"])
    again = kind_of("i", spec)
    assert isinstance(again, grebe.ZOrder)
    assert again.curve == "z"
    assert again.spec(READING, case_sensitive=True) == spec
    assert again.reads(spec) == {"x", "home", "day", "y"}


def test_hilberts_curve_is_the_one_unless_asked_otherwise() -> None:
    assert spec_of(grebe.ZOrder("i", on=["x", "y"])).properties["curve"] == "hilbert"


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"on": ["x", "y"], "curve": "peano"}, "INVALID_INDEX_CURVE", "hilbert, z"),
        ({"on": ["x", "y"], "curve": 7}, "INVALID_INDEX_CURVE", "hilbert, z"),
        ({"on": []}, "INVALID_INDEX_COLUMNS", "on names no column"),
        ({"on": [f"c{n}" for n in range(9)]}, "INVALID_INDEX_COLUMNS", "more than 8"),
        ({"on": ["x", "tags"]}, "INVALID_INDEX_KEY_TYPE", "an array"),
        ({"on": ["x", "facts"]}, "INVALID_INDEX_KEY_TYPE", "a map"),
        ({"on": ["x", "home"]}, "INVALID_INDEX_KEY_TYPE", "A field of a struct can be named"),
        ({"on": ["x", "nothing"]}, "INVALID_INDEX_UNKNOWN_COLUMN", "there are"),
        ({"on": ["x", "X"]}, "INVALID_INDEX_DUPLICATE_COLUMN", "twice"),
        ({"on": ["x", "y"], "include": "x"}, "INVALID_INDEX_DUPLICATE_COLUMN", "twice"),
        ({"on": ["x", "y"], "lineage": 1}, "INVALID_INDEX_LINEAGE", "True or False"),
        ({"on": ["x", "y"], "where": 7}, "INVALID_INDEX_WHERE", "SQL text"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], code: str, says: str) -> None:
    with pytest.raises(InvalidIndex, match=says) as refused:
        spec_of(grebe.ZOrder("i", **given))
    assert refused.value.code == code


def test_a_table_must_leave_grebes_names_alone() -> None:
    reading = Reading.of("parquet", {}, [Column("x", "long"), Column("_Grebe_curve", "long")], "UTC", local_times=False)
    with pytest.raises(InvalidIndex, match="_Grebe_curve") as refused:
        grebe.ZOrder("i", on="x").spec(reading, case_sensitive=False)
    assert refused.value.code == "INVALID_INDEX_RESERVED_NAME"


def test_a_name_is_needed() -> None:
    with pytest.raises(InvalidIndex, match="ZOrder\\(name"):
        grebe.ZOrder("", on=["x", "y"])
