"""What can be asked of a layout, and what is refused with a reason."""

from typing import Any

import pytest

import grebe
from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.formats.reading import Column
from grebe.indexes.layout.tree import tree_of
from grebe.indexes.registry import kind_of
from grebe.log.entry import IndexSpec

STRUCT = '{"type":"struct","fields":[{"name":"lon","type":"double","nullable":true,"metadata":{}}]}'
LIST = '{"type":"array","elementType":"string","containsNull":true}'
MAP = '{"type":"map","keyType":"string","valueType":"string","valueContainsNull":true}'
TYPES = {"x": "double", "y": "long", "day": "date", "at": "timestamp", "home": STRUCT, "tags": LIST, "facts": MAP}
READING = Reading.of("parquet", {}, [Column(name, kind) for name, kind in TYPES.items()], "UTC", local_times=False)


def spec_of(kind: grebe.Layout) -> IndexSpec:
    return kind.spec(READING, case_sensitive=False, time_zone="Europe/Berlin")


def test_an_index_is_made_again_from_what_the_log_says() -> None:
    queries: list[Any] = [
        ("X > 1 AND home.LON < 8", 2),
        grebe.col("day") == "2024-01-01",
        "x > 1 AND home.lon < 8",
        "at > '2024-06-01'",
    ]
    spec = spec_of(grebe.Layout("i", queries, include="tags", lineage=False, where="y > 5"))
    assert (spec.kind, spec.columns) == ("layout", ("home.lon", "`x`", "at", "day"))
    assert spec.properties["queries"] == [
        ["`x` > 1.0D AND home.lon < 8.0D", 3.0],
        ["day = DATE '2024-01-01'", 1.0],
        ["at > TIMESTAMP '2024-05-31 22:00:00Z'", 1.0],
    ]
    again = kind_of("i", spec)
    assert isinstance(again, grebe.Layout)
    assert again.spec(READING, case_sensitive=True) == spec
    assert again.reads(spec) == {"x", "home", "day", "at", "tags", "y"}


def test_all_columns_are_kept_that_can_be_unless_some_are_named() -> None:
    spec = spec_of(grebe.Layout("i", "y > 1"))
    assert spec.properties["include"] == ["`x`", "day", "at", "home", "tags"]
    assert spec_of(grebe.Layout("i", "y > 1", include=[])).properties["include"] == []


def test_only_what_is_said_of_the_columns_that_may_be_cut_is_remembered() -> None:
    spec = spec_of(grebe.Layout("i", ["y > 1 AND x > 5", "x < 3", "y < 3 OR x < 3", "rand() < y AND y = 7"], on="y"))
    assert spec.properties["queries"] == [["y > 1L", 1.0], ["y = 7L", 1.0]]


def test_text_may_hold_several_queries() -> None:
    kind = grebe.Layout("i", "home.lon > 1; day = DATE '2024-01-01';\n tags[0] = 'a;b' AND y = 3;")
    queries: Any = kind.queries
    assert [text for text, _ in queries] == [
        "home.lon > 1",
        "day = DATE '2024-01-01'",
        "tags[0] = 'a;b' AND y = 3",
    ]


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"queries": []}, "INVALID_INDEX_QUERIES", "queries names none"),
        ({"queries": " ; "}, "INVALID_INDEX_QUERIES", "queries names none"),
        ({"queries": 7}, "INVALID_INDEX_QUERIES", "not int"),
        ({"queries": ["x > 1", 7]}, "INVALID_INDEX_QUERIES", "not int"),
        ({"queries": [("x > 1", -1)]}, "INVALID_INDEX_QUERIES", "above 0"),
        ({"queries": ["x > 1"] * 5001}, "INVALID_INDEX_QUERIES", "5,001"),
        ({"queries": ["x > 1", "nothing > 2"]}, "INVALID_INDEX_QUERIES", "column nothing is not there"),
        ({"queries": ["x > "]}, "INVALID_INDEX_QUERIES", "query x > "),
        ({"queries": ["y = 'abc'"]}, "INVALID_INDEX_QUERIES", "'abc' is no bigint"),
        ({"queries": ["day > 7"]}, "INVALID_INDEX_QUERIES", "cannot compare date with int"),
        ({"queries": ["facts['a'] = 'b'", "tags[0] = 'c'"]}, "INVALID_INDEX_QUERIES", "nothing to lay rows out by"),
        ({"queries": "x > 1", "on": ["x", "tags"]}, "INVALID_INDEX_KEY_TYPE", "an array"),
        ({"queries": "x > 1", "on": ["facts"]}, "INVALID_INDEX_KEY_TYPE", "a map"),
        ({"queries": "x > 1", "on": ["nothing"]}, "INVALID_INDEX_UNKNOWN_COLUMN", "there are"),
        ({"queries": "x > 1", "on": ["x"] * 33}, "INVALID_INDEX_COLUMNS", "more than 32"),
        ({"queries": "x > 1", "include": ["facts"]}, "INVALID_INDEX_COLUMN_TYPE", "a map"),
        ({"queries": "x > 1", "include": "x"}, "INVALID_INDEX_DUPLICATE_COLUMN", "twice"),
        ({"queries": "x > 1", "lineage": 1}, "INVALID_INDEX_LINEAGE", "True or False"),
        ({"queries": "x > 1", "where": 7}, "INVALID_INDEX_WHERE", "SQL text"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], code: str, says: str) -> None:
    with pytest.raises(InvalidIndex, match=says) as refused:
        spec_of(grebe.Layout("i", **given))
    assert refused.value.code == code


def test_a_name_is_needed() -> None:
    with pytest.raises(InvalidIndex, match="Layout\\(name"):
        grebe.Layout("", "x > 1")


@pytest.mark.parametrize("text", ["", "zzz", "c%17@a&4TkA"])
def test_a_damaged_tree_is_told(text: str) -> None:
    with pytest.raises(CorruptIndex, match="index i") as told:
        tree_of(text, "i")
    assert told.value.code == "CORRUPT_INDEX_TREE"
