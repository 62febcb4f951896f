"""`open(path)` without Spark: the rows are those of a full scan, whatever is asked, and however stale the indexes are."""

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import Predicate
from grebe.session.lake_table import LakeTable
from grebe.session.table import Table
from tests.lookup.conftest import KEYS, KINDS, ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("lookup")]


@pytest.fixture(scope="module")
def opened(lake: Path) -> Table:
    return grebe.open(str(lake / "t"))


def expected(table: pa.Table, predicate: str | Predicate) -> list[int]:
    """The numbers of the rows, by a full scan in memory."""
    given = parse(predicate) if isinstance(predicate, str) else predicate
    found: list[int] = table.filter(matches(table, normalise(bind(given, table.schema))))["number"].to_pylist()
    return found


def numbers(rows: pa.Table) -> list[int]:
    return sorted(rows["number"].to_pylist())


def values_of(table: pa.Table, name: str, count: int) -> list[Any]:
    top, *below = name.split(".")
    column = table[top] if not below else pc.struct_field(table[top], below)
    rows = random.Random(name).sample(range(ROWS), count - 5)
    return [column[row].as_py() for row in [*rows, 1000, 1001, 1002, 1003, 1004]]


@pytest.mark.parametrize("name", KEYS)
def test_get_finds_every_row_of_a_key(opened: Table, table: pa.Table, name: str) -> None:
    for value in values_of(table, name, 12):
        if value is None:
            continue
        wanted = expected(table, grebe.col(name) == value)
        assert wanted
        assert numbers(opened.get(name, value)) == wanted


@pytest.mark.parametrize("name", KEYS)
def test_none_finds_the_rows_without_a_value(opened: Table, table: pa.Table, name: str) -> None:
    wanted = expected(table, grebe.col(name).is_null())
    assert len(wanted) > 300
    assert numbers(opened.get(name, None)) == wanted


@pytest.mark.parametrize("name", KEYS)
def test_many_keys_are_found_at_once(opened: Table, table: pa.Table, name: str) -> None:
    keys = values_of(table, name, 200)
    assert numbers(opened.get_many(name, keys)) == expected(table, grebe.col(name).isin(keys))


@pytest.mark.parametrize("name", KEYS)
def test_ranges_are_found(opened: Table, table: pa.Table, name: str) -> None:
    values = [value for value in values_of(table, name, 40) if value is not None and value == value]
    column = grebe.col(name)
    for low, high in [sorted(values[:2]), sorted(values[2:4])]:
        for predicate in (column >= low, column < low, column.between(low, high), (column > low) & (column <= high)):
            assert numbers(opened.scan(predicate)) == expected(table, predicate)


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("skewed", "flag")])
def test_a_key_that_is_there_is_found_by_its_index(opened: Table, table: pa.Table, name: str) -> None:
    value = table[name][11]
    answer = opened.files(grebe.col(name) == value)
    assert answer.index is not None
    assert (answer.covered, answer.uncovered) == (3, 0)
    rows = [row for file in answer.files for row in file.rows or ()]
    assert len(rows) == len(expected(table, grebe.col(name) == value))


PREDICATES = [
    "text LIKE 'key 1%'",
    "text = 'key 1 é' OR id = 12345",
    "id = 12345 OR number = 7",
    "id IN (1, 2, 3, NULL)",
    "id NOT IN (1, 2)",
    "skewed = 7 AND text = 'key 1ef é'",
    "skewed = 7 AND number < 50",
    "skewed <=> NULL AND id IS NULL",
    "day = DATE '1975-03-01' AND flag",
    "at >= TIMESTAMP '1970-01-01 05:00:00' AND at < TIMESTAMP '1970-01-01 05:10:00'",
    "ratio > 3.5E3 OR ratio = 'NaN'",
    "nested.word = 'key 10 é' AND nested.id > 0",
    "amount = 1.5 OR amount = CAST(2 AS DECIMAL(5, 1))",
    "false",
    "true AND id < 100",
    "small BETWEEN 5 AND 9 AND tiny = 3",
]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_rows_are_those_of_a_full_scan(opened: Table, table: pa.Table, predicate: str) -> None:
    assert numbers(opened.scan(predicate)) == expected(table, predicate)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_rows_says_where_they_lie(opened: Table, table: pa.Table, predicate: str) -> None:
    found = opened.rows(predicate)
    part = ROWS // 3
    places = [
        int(Path(file).stem) * part + row
        for file, row in zip(*(found[n].to_pylist() for n in ("file", "row")), strict=True)
    ]
    assert sorted(table["number"].take(pa.array(places, pa.int64())).to_pylist()) == expected(table, predicate)


@pytest.mark.parametrize("seed", range(6))
def test_generated_questions_have_the_answers_of_a_full_scan(opened: Table, table: pa.Table, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(12):
        predicate = generated(chance, table, 2)
        assert numbers(opened.scan(predicate)) == expected(table, predicate), predicate


def generated(chance: random.Random, table: pa.Table, depth: int) -> Predicate:
    if depth and chance.random() < 0.6:
        left, right = generated(chance, table, depth - 1), generated(chance, table, depth - 1)
        either: Predicate = chance.choice([left & right, left | right, ~left & right])
        return either
    name = chance.choice([*KINDS, "single"])
    column, values = grebe.col(name), [table[name][chance.randrange(ROWS)].as_py() for _ in range(3)]
    value = next((one for one in values if one is not None), None)
    if value is None:
        return column.is_null()
    simple: Predicate = chance.choice(
        [column == value, column == value, column.isin(values), column < value, column >= value, column.is_not_null()]
    )
    return simple


def test_chosen_columns_come_in_the_order_asked_for(opened: Table, table: pa.Table) -> None:
    found = opened.get("id", table["id"][11].as_py(), columns=["text", "NUMBER"])
    assert found.column_names == ["text", "number"]
    assert found.to_pylist() == [{"text": table["text"][11].as_py(), "number": 11}]


def test_an_unknown_column_is_an_error_that_names_those_there_are(opened: Table) -> None:
    with pytest.raises(InvalidPredicate, match="no column wrong; there are: id, small"):
        opened.get("id", 1, columns=["wrong"])
    with pytest.raises(InvalidPredicate, match="wrong"):
        opened.get("wrong", 1)


@pytest.mark.parametrize(
    ("name", "value"), [("id", "no number"), ("day", 7), ("flag", Decimal("1.5")), ("id", object())]
)
def test_a_key_of_the_wrong_type_is_an_error(opened: Table, name: str, value: object) -> None:
    with pytest.raises(InvalidPredicate):
        opened.get(name, value)


def test_a_column_without_index_is_scanned_honestly(opened: Table, table: pa.Table) -> None:
    answer = opened.files("number = 77")
    assert (answer.index, answer.covered, answer.uncovered, answer.pruned) == (None, 0, 3, 0)
    assert [file.rows for file in answer.files] == [None] * 3
    assert numbers(opened.get("number", 77)) == [77]


def test_a_column_that_the_index_includes_narrows_the_rows(opened: Table, table: pa.Table) -> None:
    answer = opened.files("skewed = 10 AND number = 10")
    assert sum(len(file.rows or ()) for file in answer.files) == 1
    assert answer.index == "by_pair"


@pytest.mark.parametrize("predicate", ["id > 5", "text > 'key 1'"])
def test_what_most_rows_answer_is_scanned_for(opened: Table, predicate: str) -> None:
    assert opened.files(predicate).index is None
    assert "TOO_MANY_ROWS" in [reason.code for reason in opened.explain(predicate).reasons]


def test_appended_removed_and_rewritten_files_change_the_answer_at_once(
    spark: "SparkSession", table: pa.Table, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for number in range(3):
        pq.write_table(table.slice(number * 10_000, 10_000), folder / f"{number}.parquet")
    LakeTable(spark, str(folder)).create(grebe.Lookup("by_id", on="id"))
    before = grebe.open(str(folder))
    pq.write_table(table.slice(20_000, 100), folder / "9.parquet")
    pq.write_table(table.slice(0, 5_000), folder / "0.parquet")
    (folder / "1.parquet").unlink()
    now = pa.concat_tables([table.slice(0, 5_000), table.slice(20_000, 10_000), table.slice(20_000, 100)])
    for opened in (grebe.open(str(folder)), before.reload()):
        for row in (11, 5_011, 10_011, 20_011, 25_011):
            predicate = grebe.col("id") == table["id"][row].as_py()
            assert numbers(opened.scan(predicate)) == sorted(expected(now, predicate))
            answer = opened.files(predicate)
            assert (answer.covered, answer.uncovered) == (1, 2)


def test_what_only_spark_can_evaluate_is_refused(opened: Table) -> None:
    with pytest.raises(Unsupported, match="id % 7 cannot be evaluated without Spark"):
        opened.scan("id % 7 = 5")


def test_partitions_leave_out_files_that_cannot_match(spark: "SparkSession", tmp_path: Path) -> None:
    spark.range(60).selectExpr("id", "id % 3 AS part").write.partitionBy("part").parquet(str(tmp_path / "t"))
    LakeTable(spark, str(tmp_path / "t")).create(grebe.Lookup("by_id", on="id"))
    opened = grebe.open(str(tmp_path / "t"))
    answer = opened.files("part = 1")
    assert answer.files
    assert all("part=1" in file.path for file in answer.files)
    assert sorted(opened.scan("part = 1 OR part IS NULL")["id"].to_pylist()) == list(range(1, 60, 3))
    assert opened.scan("id = 7 AND part = 2").num_rows == 0
    assert opened.files("id = 7 AND part = 2").files == ()
    assert opened.scan("id = 7 AND part = 1").to_pylist() == [{"id": 7, "part": 1}]
    assert opened.scan("id = 7 OR part = 2").num_rows == 21
    assert opened.scan("FALSE").num_rows == 0


def test_times_are_understood_in_the_zone_that_is_set(lake: Path, table: pa.Table) -> None:
    berlin = grebe.open(str(lake / "t"), config=grebe.Config(time_zone="Europe/Berlin"))
    at = datetime.datetime(1970, 1, 1, 1, 0, 11, 33, tzinfo=datetime.UTC) - datetime.timedelta(hours=1)
    wanted = expected(table, grebe.col("at") == at)
    assert wanted == [11]
    assert numbers(berlin.scan("at = TIMESTAMP '1970-01-01 01:00:11.000033'")) == wanted
