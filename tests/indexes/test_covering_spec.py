"""What may be asked of a covering index: everything else is refused with a sentence that says what to do."""

from typing import Any

import pytest

import grebe
from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Column, Reading
from grebe.indexes import registry
from grebe.indexes.columns import spark_schema
from grebe.indexes.content.shape import shape_of
from grebe.indexes.covering.spec import Covering
from grebe.log.entry import IndexSpec

STRUCT = (
    '{"type":"struct","fields":[{"name":"City","type":"string"},'
    '{"name":"geo","type":{"type":"struct","fields":[{"name":"x","type":"double"}]}}]}'
)
ARRAY = '{"type":"array","elementType":"string"}'
MAP = '{"type":"map","keyType":"string","valueType":"long"}'
COLUMNS = {
    "Id": "long",
    "name": "string",
    "price": "decimal(10,2)",
    "day": "date",
    "at": "timestamp",
    "flag": "boolean",
    "home": STRUCT,
    "tags": ARRAY,
    "notes": MAP,
    "v": "variant",
    "nothing": "void",
    "span": "interval day to second",
    "ci": "string collate UNICODE_CI",
    "a.b": "integer",
    "home.City": "integer",
    "deep": '{"type":"array","elementType":' + STRUCT + "}",
    "maps": '{"type":"array","elementType":' + MAP + "}",
}


def reading(columns: dict[str, str] | None = None, **changes: Any) -> Reading:
    own = [Column(name, kind) for name, kind in (columns or COLUMNS).items()]
    return Reading.of(
        "parquet", {}, [*own, Column("region", "string", partition=True)], "UTC", local_times=False, **changes
    )


def spec(case_sensitive: bool = False, of: Reading | None = None, **asked: Any) -> IndexSpec:
    return Covering("i", **asked).spec(of or reading(), case_sensitive)


def test_columns_are_remembered_as_the_table_spells_them() -> None:
    made = spec(on=["ID", "home.city"], include=["HOME.GEO", "`a.b`", "region", "tags"])
    assert made.columns == ("Id", "home.City")
    assert made.properties["include"] == ["home.geo", "`a.b`", "region", "tags"]
    assert [column.path for column in shape_of("i", made).columns] == [
        ("Id",),
        ("home", "City"),
        ("home", "geo"),
        ("a.b",),
        ("region",),
        ("tags",),
    ]


def test_one_name_may_be_given_as_text() -> None:
    assert Covering("i", on="Id", include="name") == Covering("i", on=["Id"], include=("name",))


def test_the_reading_is_remembered_for_the_columns_that_count() -> None:
    made = spec(on="Id", include="home.City", where="price > 1")
    assert [column.name for column in shape_of("i", made).reading.columns] == ["Id", "price", "home"]
    by_position = reading({"Id": "long", "name": "string"}, by_position=True)
    made = spec(on="Id", of=by_position)
    assert shape_of("i", made).reading == by_position, "another column before it would be another reading"


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ({"on": "zzz"}, "INVALID_INDEX_UNKNOWN_COLUMN", "there are: Id, name"),
        ({"on": "pryce"}, "INVALID_INDEX_UNKNOWN_COLUMN", "did you mean price"),
        ({"on": "home.town"}, "INVALID_INDEX_UNKNOWN_COLUMN", "home.City"),
        ({"on": "name.first"}, "INVALID_INDEX_UNKNOWN_COLUMN", "string, not a struct"),
        ({"on": "deep.City"}, "INVALID_INDEX_UNKNOWN_COLUMN", "an array, not a struct"),
        ({"on": "a.b"}, "INVALID_INDEX_UNKNOWN_COLUMN", "backticks: `a.b`"),
        ({"on": "Id", "include": "ID"}, "INVALID_INDEX_DUPLICATE_COLUMN", "twice"),
        ({"on": ["Id", "Id"]}, "INVALID_INDEX_DUPLICATE_COLUMN", "twice"),
        ({"on": "home.City", "include": "`home.city`"}, "INVALID_INDEX_DUPLICATE_COLUMN", "cannot tell"),
        ({"on": "notes"}, "INVALID_INDEX_KEY_TYPE", "a map"),
        ({"on": "home"}, "INVALID_INDEX_KEY_TYPE", "a struct"),
        ({"on": "tags"}, "INVALID_INDEX_KEY_TYPE", "an array"),
        ({"on": "v"}, "INVALID_INDEX_KEY_TYPE", "variant"),
        ({"on": "ci"}, "INVALID_INDEX_KEY_TYPE", "collat"),
        ({"on": "Id", "include": "notes"}, "INVALID_INDEX_COLUMN_TYPE", "a map"),
        ({"on": "Id", "include": "maps"}, "INVALID_INDEX_COLUMN_TYPE", "an array"),
        ({"on": "Id", "include": "v"}, "INVALID_INDEX_COLUMN_TYPE", "variant"),
        ({"on": "Id", "include": "nothing"}, "INVALID_INDEX_COLUMN_TYPE", "void"),
        ({"on": "Id", "include": "span"}, "INVALID_INDEX_COLUMN_TYPE", "interval"),
        ({"on": "Id", "where": "price >"}, "INVALID_INDEX_WHERE", "where"),
        ({"on": "Id", "where": "nope = 1"}, "INVALID_INDEX_WHERE", "nope"),
        ({"on": "Id", "where": "price"}, "INVALID_INDEX_WHERE", "boolean"),
        ({"on": "Id", "where": "price > rand()"}, "INVALID_INDEX_WHERE_OPAQUE", "rand()"),
        ({"on": "Id", "where": "abs(price) > 3"}, "INVALID_INDEX_WHERE_OPAQUE", "price"),
        ({"on": "Id", "where": "1 = 1"}, "INVALID_INDEX_WHERE", "TRUE"),
        ({"on": "Id", "where": "cast(name AS timestamp) > at"}, "INVALID_INDEX_WHERE_CAST", "own type"),
        ({"on": "Id", "where": "cast(at AS date) = day"}, "INVALID_INDEX_WHERE_CAST", "session"),
    ],
)
def test_what_the_table_cannot_give_is_refused(asked: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(InvalidIndex, match="index i: ") as refused:
        spec(**asked)
    assert refused.value.code == code
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"name": "", "on": "a"}, "INVALID_INDEX_NAME"),
        ({"name": None, "on": "a"}, "INVALID_INDEX_NAME"),
        ({"name": "i", "on": []}, "INVALID_INDEX_COLUMNS"),
        ({"name": "i", "on": 7}, "INVALID_INDEX_COLUMNS"),
        ({"name": "i", "on": ["a", None]}, "INVALID_INDEX_COLUMNS"),
        ({"name": "i", "on": " "}, "INVALID_INDEX_COLUMNS"),
        ({"name": "i", "on": "a..b"}, "INVALID_INDEX_COLUMN_NAME"),
        ({"name": "i", "on": "`a"}, "INVALID_INDEX_COLUMN_NAME"),
        ({"name": "i", "on": "a", "include": "b."}, "INVALID_INDEX_COLUMN_NAME"),
        ({"name": "i", "on": "a", "buckets": -1}, "INVALID_INDEX_BUCKETS"),
        ({"name": "i", "on": "a", "buckets": 2.5}, "INVALID_INDEX_BUCKETS"),
        ({"name": "i", "on": "a", "buckets": True}, "INVALID_INDEX_BUCKETS"),
        ({"name": "i", "on": "a", "buckets": 1_000_000}, "INVALID_INDEX_BUCKETS"),
        ({"name": "i", "on": "a", "lineage": "no"}, "INVALID_INDEX_LINEAGE"),
        ({"name": "i", "on": "a", "where": 7}, "INVALID_INDEX_WHERE"),
    ],
)
def test_what_makes_no_sense_for_any_table_is_refused_when_it_is_made(asked: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidIndex) as refused:
        Covering(**asked)
    assert refused.value.code == code


def test_names_that_differ_in_case_only_are_told_apart_or_refused() -> None:
    both = reading({"id": "long", "ID": "long", "x": "long"})
    with pytest.raises(InvalidIndex, match="caseSensitive") as refused:
        spec(of=both, on="id")
    assert refused.value.code == "INVALID_INDEX_AMBIGUOUS_COLUMN"
    assert spec(True, both, on="ID").columns == ("ID",)
    with pytest.raises(InvalidIndex, match="cannot tell"):
        spec(True, both, on="ID", include="id")
    with pytest.raises(InvalidIndex, match="did you mean Id"):
        spec(True, on="id")


def test_a_table_with_a_column_of_our_own_name_cannot_be_indexed() -> None:
    with pytest.raises(InvalidIndex, match="rename it") as refused:
        spec(of=reading({"a": "long", "_GREBE_FILE": "integer"}), on="a")
    assert refused.value.code == "INVALID_INDEX_RESERVED_NAME"


def test_a_condition_is_remembered_as_it_was_understood() -> None:
    made = Covering("i", on="Id", where="ID > 5 AND day >= '2024-01-01'").spec(reading(), False, "Europe/Berlin")
    assert made.properties["where"] == "Id > 5L AND day >= DATE '2024-01-01'"
    at = Covering("i", on="Id", where=grebe.col("at") >= "2024-01-01").spec(reading(), False, "Europe/Berlin")
    assert at.properties["where"] == "at >= TIMESTAMP '2023-12-31 23:00:00Z'"


def test_an_index_is_made_again_from_what_the_log_remembers() -> None:
    kind = Covering("i", on=["Id", "home.City"], include="`a.b`", buckets=4, lineage=False, where="price > 1")
    made = kind.spec(reading(), False)
    again = registry.kind_of("i", made)
    assert isinstance(again, Covering)
    assert again.spec(reading(), False) == made
    assert again.reads(made) == {"Id", "home", "a.b", "price"}


def test_a_log_that_does_not_say_enough_is_a_damaged_index() -> None:
    with pytest.raises(CorruptIndex, match=r"\[CORRUPT_INDEX_SPEC\] .*'include' of index i; create it anew"):
        registry.kind_of("i", IndexSpec("covering", ("Id",), {}))
    with pytest.raises(CorruptIndex, match=r"\[CORRUPT_INDEX_SPEC\] .* index i .*'reading'.*; create it anew"):
        shape_of("i", IndexSpec("covering", ("Id",), {"include": []}))


def test_kinds_are_found_by_name_in_any_case() -> None:
    assert registry.kind_named("COVERING") is Covering
    assert grebe.Covering is Covering
    with pytest.raises(InvalidIndex, match="covering"):
        registry.kind_named("nonsense")


def test_every_kind_of_ours_has_a_public_name() -> None:
    assert {kind.__name__ for kind in registry.OWN if isinstance(kind, type)} <= set(grebe.__all__)


def test_a_schema_in_sparks_json_says_what_may_be_null() -> None:
    (tags, notes) = spark_schema([("tags", ARRAY), ("notes", MAP)])["fields"]
    assert tags["type"] == {"type": "array", "elementType": "string", "containsNull": True}
    assert notes["type"]["valueContainsNull"] is True
