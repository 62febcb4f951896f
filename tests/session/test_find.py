"""`grebe.find`: where in the lake a value occurs, by indexes where there are some and by one scan of the rest."""

import datetime
import logging
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidPredicate, TableNotFound
from grebe.formats.parquet import ParquetFormat
from grebe.indexes.lookup.spec import Lookup
from grebe.predicate.tree import Literal
from grebe.predicate.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, TIMESTAMP, Type, decimal
from grebe.session.find import Findings
from grebe.session.lake_table import LakeTable
from grebe.session.sought import held_by, literals
from tests.session.people_lake import FILES, indexed_people, people, write_people

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Place = tuple[str, str, int | None]


def places(found: Findings) -> set[Place]:
    return {(one.column, one.file.rpartition("/")[2], one.row) for one in found}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_people(tmp_path_factory.mktemp("plain") / "people")


@pytest.fixture(scope="module")
def indexed(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return indexed_people(spark, tmp_path_factory.mktemp("indexed") / "people")


def test_a_value_is_found_with_its_table_column_file_and_row(plain: str) -> None:
    (one,) = grebe.find({"p150@example.org"}, tables=[plain])
    assert (one.table, one.column, one.row, one.offset, one.length, one.indexed) == (
        plain,
        "email",
        50,
        None,
        None,
        False,
    )
    assert one.file.startswith("file://")
    assert one.file.endswith("/people/part-1.parquet")


def test_all_values_are_looked_for_in_every_column_that_can_hold_them(plain: str) -> None:
    found = grebe.find({"city 7", 249, Decimal("2.25"), datetime.date(1970, 1, 3)}, tables=[plain])
    assert Counter(one.column for one in found) == {
        "address.city": 6,
        "id": 1,
        "address.zip": 1,
        "amount": 1,
        "score": 1,
        "born": 1,
    }
    assert ("score", "part-0.parquet", 9) in places(found)


@pytest.mark.spark
def test_indexes_answer_and_the_rest_is_scanned_and_both_are_said(indexed: str, plain: str) -> None:
    sought = {"p5@example.org", 249}
    found = grebe.find(sought, tables=[indexed, plain])
    by_table = {table: places(Findings(_of(found, table), {}, {})) for table in (indexed, plain)}
    assert by_table[indexed] == by_table[plain]
    assert {(one.column, one.indexed) for one in found if one.table == indexed} == {
        ("email", True),
        ("id", True),
        ("address.zip", False),
    }
    assert found.scanned[indexed] == ("amount", "score", "address.zip")
    assert found.scanned[plain] == ("id", "email", "amount", "score", "address.city", "address.zip")
    assert found.skipped == {indexed: ("tags",), plain: ("tags",)}


def _of(found: Findings, table: str) -> pa.Table:
    whole = found.to_table()
    return whole.filter(pa.array([one == table for one in whole["table"].to_pylist()]))


@pytest.mark.spark
def test_with_an_index_on_every_column_asked_for_no_data_file_is_scanned(
    indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> Any:
        raise AssertionError("scanned")

    monkeypatch.setattr(ParquetFormat, "read", refuse)
    found = grebe.find({"p5@example.org"}, tables=[indexed], columns=["email"])
    assert places(found) == {("email", "part-0.parquet", 5)}
    assert found.scanned == {}


@pytest.mark.spark
def test_files_that_came_after_the_index_are_searched_too(spark: "SparkSession", tmp_path: Path) -> None:
    table = indexed_people(spark, tmp_path / "people")
    pq.write_table(people(1000, 10), Path(table) / "part-9.parquet")
    assert places(grebe.find({"p1004@example.org"}, tables=[table], columns=["email"])) == {
        ("email", "part-9.parquet", 4)
    }


def test_each_file_is_read_once_for_all_columns_and_values(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, tuple[str, ...]]] = []
    original = ParquetFormat.read

    def watched(self: ParquetFormat, file: Any, reading: Any, names: Any = None) -> Any:
        read.append((file.path, tuple(names)))
        return original(self, file, reading, names)

    monkeypatch.setattr(ParquetFormat, "read", watched)
    grebe.find({"p5@example.org", "city 3", 7}, tables=[plain])
    assert len(read) == FILES
    assert {names for _, names in read} == {("id", "email", "amount", "score", "address")}


def test_a_scan_is_logged_without_any_value(plain: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "grebe"):
        grebe.find({"p5@example.org"}, tables=[plain])
    assert f"event=find_scans table=file://{plain} columns=2 files={FILES}" in caplog.text
    assert "p5@example" not in caplog.text


def test_columns_limit_the_search_and_a_struct_stands_for_its_fields(plain: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    pq.write_table(pa.table({"City": ["city 3"]}), other / "a.parquet")
    found = grebe.find({"city 3", "p3@example.org"}, tables=[plain, str(other)], columns=["address", "city"])
    assert Counter((one.table, one.column) for one in found) == {(plain, "address.city"): 6, (str(other), "City"): 1}


def test_partition_values_and_text_files_are_searched(tmp_path: Path) -> None:
    for city in ("Oslo", "Riga"):
        folder = tmp_path / f"city={city}"
        folder.mkdir()
        (folder / "a.csv").write_text(f"ü,1\n{city},2\n", encoding="utf-8")
    found = grebe.find({"Oslo"}, tables=[str(tmp_path)])
    assert sorted((one.column, one.row, one.offset, one.length) for one in found) == [
        ("_c0", None, 5, 6),
        ("city", None, 0, 4),
        ("city", None, 5, 6),
    ]


@pytest.mark.spark
@pytest.mark.parametrize("kinds", [[], [Lookup("by_name", on="name")]], ids=["another index", "an index"])
def test_records_of_json_lines_are_found_by_their_bytes(
    spark: "SparkSession", tmp_path: Path, kinds: list[Lookup]
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.json").write_text('{"name": "ü", "id": 1}\n{"name": "Oslo", "id": 2}\n', encoding="utf-8")
    LakeTable(spark, str(tmp_path / "t"), "json").create(Lookup("by_id", on="id"), *kinds)
    (one,) = grebe.find({"Oslo"}, tables=[str(tmp_path / "t")])
    assert (one.column, one.row, one.offset, one.length, one.indexed) == ("name", None, 24, 25, bool(kinds))


def test_a_table_that_is_open_already_is_searched_as_it_was_opened(tmp_path: Path) -> None:
    table = write_people(tmp_path / "people")
    opened = grebe.open(table)
    pq.write_table(people(1000, 10), Path(table) / "part-9.parquet")
    assert len(grebe.find({"p1004@example.org"}, tables=[opened])) == 0
    assert [one.table for one in grebe.find("p4@example.org", tables=[opened])] == [opened.uri]


def test_findings_are_a_sequence_and_a_table(plain: str) -> None:
    found = grebe.find({"city 3"}, tables=[plain])
    assert len(found) == len(list(found)) == found.to_table().num_rows == 6
    assert found[0] == next(iter(found)) == found[-6]
    assert found[1:3] == list(found)[1:3]
    assert found.to_pylist()[0]["column"] == "address.city"
    with pytest.raises(IndexError):
        found[6]
    assert repr(found) == "Findings(6 in 1 tables)"
    assert list(grebe.find({"nobody"}, tables=[plain])) == []
    assert list(grebe.find({"nobody"}, tables=[])) == []


@pytest.mark.parametrize("values", [{None}, [[1]], [object()]])
def test_what_is_no_value_is_refused(plain: str, values: Any) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        grebe.find(values, tables=[plain])
    assert refused.value.code == "INVALID_PREDICATE_VALUE"


def test_a_missing_table_and_an_unknown_column_are_errors(plain: str, tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        grebe.find({"x"}, tables=[plain, str(tmp_path / "nowhere")])
    with pytest.raises(InvalidPredicate, match="did you mean email"):
        grebe.find({"x"}, tables=[plain], columns=["emial"])


@pytest.mark.parametrize(
    ("value", "kind", "held"),
    [
        (42, INT, [42]),
        (2**40, INT, []),
        (42.0, BIGINT, [42]),
        (Decimal("42.00"), BIGINT, [42]),
        (42.5, BIGINT, []),
        (float("nan"), BIGINT, []),
        (float("inf"), decimal(10, 2), []),
        (42, decimal(4, 2), [Decimal("42.00")]),
        (142, decimal(4, 2), []),
        (0.1, decimal(4, 2), [Decimal("0.10")]),
        (Decimal("0.125"), decimal(4, 2), []),
        (10**30, decimal(38, 0), [Decimal(10**30)]),
        (2**53 + 1, DOUBLE, []),
        (10**30 + 1, DOUBLE, [float(10**30)]),
        (0.1, FLOAT, []),
        (0.5, FLOAT, [0.5]),
        (1e300, FLOAT, []),
        (np.int64(42), DOUBLE, [42.0]),
        (True, INT, []),
        (True, BOOLEAN, [True]),
        (1, BOOLEAN, []),
        ("1", INT, []),
        (datetime.datetime(1970, 1, 1, 2), TIMESTAMP, [3_600_000_000]),
        (datetime.datetime(1970, 1, 1, 2, tzinfo=datetime.UTC), TIMESTAMP, [7_200_000_000]),
    ],
)
def test_a_column_holds_just_the_values_that_it_can_have(value: object, kind: Type, held: list[object]) -> None:
    found = held_by(kind, literals([value]), "+01:00")
    assert [one.value for one in found] == held
    assert all(isinstance(one, Literal) and one.type == kind for one in found)


def test_a_number_that_is_nan_is_found(plain: str) -> None:
    assert len(grebe.find([float("nan")], tables=[plain])) == 30
