"""Of files with rows of a query, only the row groups or the lines that hold them are read."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import grebe
from grebe.planner.decision import Narrow
from tests.spark.served import LENIENT, Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark parts")]

ROWS = 4_000


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, LENIENT) as made:
        yield made


def bytes_read(served: Served, query: Any, *used: str) -> tuple[int, int]:
    """What a query read of its table, and how many files only in part; the answer is that of Spark alone."""
    served.same(query, *used)
    partly = [len(choice.parts) for choice in served.decision.choices if isinstance(choice, Narrow)]
    return served.read()["bytes"], sum(partly)


@pytest.fixture(scope="module")
def grouped(served: Served, folder: Path) -> str:
    """Two files of 20 row groups; k lies anywhere, so that no bounds tell where."""
    random = np.random.default_rng(5)
    keys = random.permutation(2 * ROWS)
    parts = [
        pa.table({"k": part, "v": np.arange(ROWS), "s": [f"s{key}" for key in part]})
        for part in (keys[:ROWS], keys[ROWS:])
    ]
    place = write(folder / "grouped", *parts, row_group_size=ROWS // 20, write_page_index=True)
    served.lake.table(place).create(grebe.Lookup("by_k", on="k"))
    served.view("grouped", place)
    return place


@pytest.mark.parametrize("where", ["k = 77", "k IN (1, 5000, 7999)", "k BETWEEN 10 AND 13", "k = 77 OR k = 4001"])
def test_only_row_groups_with_rows_are_read(served: Served, grouped: str, where: str) -> None:
    whole = sum(file.stat().st_size for file in Path(grouped).glob("*.parquet"))
    read, partly = bytes_read(served, f"SELECT * FROM grouped WHERE {where}", "by_k")
    assert partly > 0
    assert read < whole / 3


def test_rows_of_a_part_know_their_numbers(served: Served, grouped: str) -> None:
    def query(session: "SparkSession") -> Any:
        frame = session.read.parquet(grouped).where("k IN (3, 4000, 7000)")
        return frame.select("k", "v", "_metadata.row_index", "_metadata.file_name")

    assert bytes_read(served, query, "by_k")[1] > 0


@pytest.mark.parametrize(
    "asked",
    [
        "input_file_block_start(), input_file_block_length()",
        "_metadata.file_block_start",
        "_metadata.file_block_length + 1",
        "_metadata",
    ],
)
def test_where_blocks_begin_is_said_as_without_indexes(served: Served, grouped: str, asked: str) -> None:
    """A part that an index chooses is no block of Spark's."""
    for key in (77, 4_001):
        seen = served.same_rows(f"SELECT k, v, {asked} FROM parquet.`{grouped}` WHERE k = {key}")
        assert sum(seen.rows.values()) == 1


def test_joins_read_row_groups_too(served: Served, grouped: str, folder: Path) -> None:
    served.view("few", write(folder / "few", {"k": [5, 17, 99_999]}))
    query = "SELECT grouped.v, few.k FROM grouped JOIN few ON grouped.k = few.k"
    served.same(query, "by_k")
    assert served.read()["bytes"] < sum(file.stat().st_size for file in Path(grouped).glob("*.parquet")) / 3


def text_of(number: int, end: str, header: str, mark: bytes = b"") -> bytes:
    """Lines of different lengths, some of them empty or long."""
    lines = [header] if header else []
    for row in range(ROWS):
        key = row * 3 + number
        lines.append(f"{key},{'x' * (row % 97)},v{key}")
        if row % 700 == 0:
            lines += ["", f"{key + 1_000_000},{'y' * 300_000},long"]
    return mark + end.join([*lines, ""]).encode()


CASES = {
    "plain": ("\n", "", b""),
    "header": ("\n", "k,a,b", b""),
    "returns": ("\r\n", "k,a,b", b""),
    "marked": ("\n", "", b"\xef\xbb\xbf"),
}


@pytest.mark.parametrize("case", CASES)
def test_only_lines_near_the_rows_are_read(served: Served, folder: Path, case: str) -> None:
    end, header, mark = CASES[case]
    place = folder / f"text_{case}"
    place.mkdir()
    for number in range(3):
        (place / f"{number}.csv").write_bytes(text_of(number, end, header, mark))
    (place / "packed.csv.gz").write_bytes(gzip.compress(text_of(100_000, end, header)))
    reader = served.spark.read.schema("k bigint, a string, b string").option("header", bool(header))
    served.lake.table(reader.csv(str(place))).create(grebe.Lookup("by_k", on="k"))
    reader.csv(str(place)).createOrReplaceTempView("lines")
    some = ", ".join(str(key) for key in (0, 1, 2, 3, 5_000, 5_003, 11_999, 1_000_000, 1_002_100, 100_003))
    for where in (f"k IN ({some})", "k = 0", "k = 1", "k IS NULL", "k BETWEEN 6000 AND 6010"):
        served.same(f"SELECT * FROM lines WHERE {where}", "by_k")
    whole = sum(file.stat().st_size for file in place.iterdir())
    read, partly = bytes_read(served, "SELECT * FROM lines WHERE k IN (5000, 1002101)", "by_k")
    assert partly == 2
    assert read < whole / 10


def test_records_over_several_lines_are_read_with_their_files(served: Served, folder: Path) -> None:
    place = folder / "several"
    place.mkdir()
    for number in range(3):
        rows = [f'{row * 3 + number},"a\nb{row}",x' for row in range(500)]
        (place / f"{number}.csv").write_text("\n".join(rows))
    reader = served.spark.read.schema("k bigint, a string, b string").option("multiLine", True)
    served.lake.table(reader.csv(str(place))).create(grebe.Lookup("by_k", on="k"))
    reader.csv(str(place)).createOrReplaceTempView("several")
    served.same("SELECT * FROM several WHERE k IN (7, 10, 400)", "by_k")


def test_lines_of_json(served: Served, folder: Path) -> None:
    place = folder / "json_lines"
    place.mkdir()
    for number in range(3):
        rows = [f'{{"k": {row * 3 + number}, "a": "{"z" * (row % 50)}"}}' for row in range(ROWS)]
        (place / f"{number}.json").write_text("\n".join(rows) + "\n")
    reader = served.spark.read.schema("k bigint, a string")
    served.lake.table(reader.json(str(place))).create(grebe.Lookup("by_k", on="k"))
    reader.json(str(place)).createOrReplaceTempView("json_lines")
    for where in ("k IN (0, 7, 11999)", "k BETWEEN 100 AND 103", "k = 11998"):
        served.same(f"SELECT * FROM json_lines WHERE {where}", "by_k")
