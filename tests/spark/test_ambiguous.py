"""Files whose values depend on the columns that a query asks for are covered by no index."""

import csv
import io
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

import grebe
from grebe.formats.registry import format_named
from grebe.spark.ambiguous import csv_pattern
from tests.spark.served import Served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark ambiguous")]

SCHEMA = "a string, b string, c string"
COLUMNS = ("a", "b", "c")
SUBSETS = (("a",), ("b",), ("c",), ("a", "c"), ("b", "c"))
QUOTINGS: "tuple[Literal[0, 1], ...]" = (csv.QUOTE_ALL, csv.QUOTE_MINIMAL)
TRIMMED = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
DIALECTS: list[dict[str, str]] = [
    {},
    TRIMMED,
    {"escape": '"'},
    {"escape": '"', **TRIMMED},
    {"sep": "||"},
    {"sep": "||", **TRIMMED},
    {"quote": ""},
    {"quote": "'"},
    {"comment": "#"},
    {"emptyValue": "x", **TRIMMED},
    {"charToEscapeQuoteEscaping": "1"},
    {"unescapedQuoteHandling": "BACK_TO_DELIMITER"},
    {"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"},
]


def random_line(chance: random.Random, separator: str, quote: str) -> str:
    def field() -> str:
        text = "".join(chance.choice(f"x1 \\{quote}") for _ in range(chance.choice((0, 1, 2, 3, 5))))
        return f"{quote}{text}{chance.choice(('', separator))}{quote}" if chance.random() < 0.3 else text

    return separator.join(field() for _ in range(chance.choice((2, 3, 3, 3, 4))))


def ordinary_line(chance: random.Random, quoting: "Literal[0, 1]") -> str:
    """As the module csv of Python writes them, with anything in a field."""
    line = io.StringIO()
    csv.writer(line, quoting=quoting, lineterminator="").writerow(
        "".join(chance.choice('x1 ,"') for _ in range(chance.choice((0, 1, 2, 3, 4)))) for _ in COLUMNS
    )
    return line.getvalue()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: ",".join(f"{k}={v}" for k, v in dialect.items()))
def test_lines_of_csv_that_are_taken_for_safe_parse_alike_under_every_choice_of_columns(
    spark: "SparkSession", tmp_path: Path, dialect: dict[str, str]
) -> None:
    chance = random.Random(repr(dialect))
    options = format_named("csv").options.complete(dialect)
    pattern = csv_pattern(options)
    lines = [random_line(chance, options["sep"], options["quote"] or '"') for _ in range(4_000)]
    lines += [ordinary_line(chance, quoting) for quoting in QUOTINGS for _ in range(1_000)]
    safe = [line for line in lines if line.strip() and (pattern is None or not re.search(pattern, line))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([*safe, "end"]) + "\n")
    table = spark.read.schema(SCHEMA).options(**dialect).csv(str(path))
    full = [tuple(row) for row in table.collect()]
    for subset in SUBSETS:
        pruned = [tuple(row) for row in table.select(*subset).collect()]
        assert pruned == [tuple(row[COLUMNS.index(name)] for name in subset) for row in full], subset


@pytest.mark.parametrize("escape", ["\\", '"'])
def test_records_of_several_lines_parse_alike_under_every_choice_of_columns(
    spark: "SparkSession", tmp_path: Path, escape: str
) -> None:
    chance = random.Random(f"several lines {escape}")
    dialect = {"escape": escape, "multiLine": "true"}
    assert csv_pattern(format_named("csv").options.complete(dialect)) is None
    for number in range(300):
        lines = [random_line(chance, ",", '"') for _ in range(chance.choice((1, 2, 4)))]
        lines += [ordinary_line(chance, csv.QUOTE_ALL) for _ in range(chance.choice((0, 2)))]
        (tmp_path / f"{number}.csv").write_text("\n".join(lines))
    table = spark.read.schema(SCHEMA).options(**dialect).csv(str(tmp_path))
    full = [tuple(row) for row in table.collect()]
    for subset in SUBSETS:
        pruned = [tuple(row) for row in table.select(*subset).collect()]
        assert pruned == [tuple(row[COLUMNS.index(name)] for name in subset) for row in full], subset


@pytest.mark.parametrize("several_lines", ["false", "true"])
def test_a_file_of_csv_as_others_write_it_is_covered(served: Served, tmp_path: Path, several_lines: str) -> None:
    (tmp_path / "t").mkdir()
    for number, quoting in enumerate(QUOTINGS):
        with (tmp_path / "t" / f"{number}.csv").open("w", newline="") as file:
            rows = [(one, "" if one % 3 else 'He said "x", or', '"quoted" start') for one in range(50)]
            csv.writer(file, quoting=quoting, lineterminator="\n").writerows([COLUMNS, *rows])
    options = {"escape": '"', "header": "true", "multiLine": several_lines}
    table = served.spark.read.schema(SCHEMA).options(**options).csv(str(tmp_path / "t"))
    indexed = served.lake.table(table)
    indexed.create(grebe.Lookup("look", on="a"), grebe.Covering("cov", on="a", include=["b", "c"], buckets=2))
    assert {one.name: one.files_covered for one in indexed.indexes()} == {"look": 2, "cov": 2}
    for subset in (COLUMNS, *SUBSETS):
        assert same_with_and_without(served.lake, table.where("a = '7'").select(*subset))


def same_with_and_without(lake: "grebe.Lake", frame: "DataFrame") -> list[tuple[object, ...]]:
    used = sorted(map(tuple, frame.collect()), key=repr)
    lake.enabled = False
    try:
        plain = sorted(map(tuple, frame.select("*").collect()), key=repr)
    finally:
        lake.enabled = True
    assert used == plain
    return used


CSV = {
    "clean": "1||x||y\n2||z||w\n",
    "stray": '1||"x||y\n2||z"||w\n3||"p||q"||r\n',
}


def test_a_file_of_csv_that_parses_differently_with_fewer_columns_is_read_directly(
    served: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for name, text in CSV.items():
        (folder / f"{name}.csv").write_text(text)
    spark, lake = served.spark, served.lake
    table = spark.read.schema(SCHEMA).option("sep", "||").csv(str(folder))
    indexed = lake.table(table)
    indexed.create(
        grebe.Covering("cov", on="b", include=["a", "c"], buckets=2),
        grebe.Skipping("skip", grebe.MinMax("b"), grebe.ValueList("c")),
        grebe.Lookup("look", on="c"),
    )
    assert {one.name: one.files_covered for one in indexed.indexes()} == {"cov": 1, "skip": 1, "look": 1}
    for query in ("b = 'x'", "b = 'z'", "c = 'r'", "b IS NULL", "c = 'y'", "b >= ''"):
        for subset in ((), *SUBSETS):
            same_with_and_without(lake, table.where(query).select(*(subset or COLUMNS)))
    same_with_and_without(lake, table.selectExpr("min(b)", "max(c)", "count(b)"))
    indexed.refresh()
    assert {one.files_covered for one in indexed.indexes()} == {1}


JSON = {
    "clean": '{"a": "1", "b": 1, "c": "x"}\n{"a": "2", "b": 2}\n\n[{"a": "3"}, {"a": "4", "b": 4}]\n',
    "twice": '{"a": "1", "b": 1, "a": "2"}\n',
    "broken": '{"a": "1", "b": "no number"}\n',
    "cut": '{"a": "1", "b": 1\n',
    "array": '[{"a": "1", "b": 1, "b": 2}]\n',
    "scalar": "5\n",
}


def test_a_file_of_json_with_malformed_records_or_repeated_keys_is_read_directly(
    served: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for name, text in JSON.items():
        (folder / f"{name}.json").write_text(text)
    spark, lake = served.spark, served.lake
    table = spark.read.schema("a string, b int, c string").json(str(folder))
    indexed = lake.table(table)
    indexed.create(
        grebe.Covering("cov", on="a", include=["b", "c"], buckets=2), grebe.Skipping("skip", grebe.MinMax("b"))
    )
    assert {one.name: one.files_covered for one in indexed.indexes()} == {"cov": 1, "skip": 1}
    for query in ("a = '1'", "a = '2'", "b = 1", "b = 2", "b IS NULL", "a IS NULL AND b = 1"):
        for subset in (("a",), ("b",), ("a", "b", "c")):
            same_with_and_without(lake, table.where(query).select(*subset))


def test_a_record_of_json_over_several_lines_is_checked_as_a_whole(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "clean.json").write_text('[{"a": "1",\n "b": 1},\n {"a": "2"}]')
    (folder / "twice.json").write_text('[{"a": "1",\n "a": "2"}]')
    spark, lake = served.spark, served.lake
    table = spark.read.schema("a string, b int").option("multiLine", "true").json(str(folder))
    indexed = lake.table(table)
    indexed.create(grebe.Covering("cov", on="a", include=["b"], buckets=2))
    assert indexed.index("cov").files_covered == 1
    for query in ("a = '1'", "a = '2'", "b = 1"):
        same_with_and_without(lake, table.where(query))
