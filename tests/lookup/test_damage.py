"""An index that is damaged or incomplete: the answer is right all the same, and one warning says so."""

import contextlib
import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import grebe
from grebe.session.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("lookup")]


def remove(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def scramble(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for place in range(0, len(data), 7):
        data[place] ^= 0x5A
    file.write_bytes(bytes(data))


def scramble_the_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for place in range(8, len(data) // 2, 3):
        data[place] ^= 0xFF
    file.write_bytes(bytes(data))


DAMAGES: list[Callable[[Path], None]] = [remove, cut, empty, scramble, scramble_the_middle]
PARTS = ["part-*.gix", "directory.gix", "pages.gix"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_answer_is_right_and_one_warning_says_so(
    lake: Path,
    table: pa.Table,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    part: str,
    damage: Callable[[Path], None],
) -> None:
    log = tmp_path / "log"
    shutil.copytree(lake / "_grebe" / "t", log)
    files = list((log / "data" / "by_id").glob(f"*/{part}"))
    assert files
    for file in files:
        damage(file)
    with caplog.at_level(logging.WARNING):
        opened = grebe.open(str(lake / "t"), location=str(log))
        for row in (3, 10_007, 29_999):
            value = table["id"][row].as_py()
            assert opened.get("id", value)["number"].to_pylist() == [row]
            assert opened.get_many("id", [value, -1])["number"].to_pylist() == [row]
    paths = {str(file.relative_to(log)) for file in files}
    for report in (opened.verify(), opened.verify(deep=True)):
        if damage is not scramble_the_middle or part != "part-*.gix":
            assert {fault.path for fault in report.findings} >= paths
            assert {fault.index for fault in report.findings} == {"by_id"}
    assert not opened.verify(deep=True).ok
    warned = [record.getMessage() for record in caplog.records if "by_id" in record.getMessage()]
    assert len(warned) == 1
    assert str(value) not in " ".join(warned)


@pytest.mark.parametrize("part", PARTS)
def test_no_flipped_bit_loses_a_row(lake: Path, table: pa.Table, tmp_path: Path, part: str) -> None:
    log = tmp_path / "log"
    shutil.copytree(lake / "_grebe" / "t", log)
    (file,) = (log / "data" / "by_text").glob(f"*/{part}")
    sound = file.read_bytes()
    chance = random.Random(part)
    rows = chance.sample([row for row in range(30_000) if table["text"][row].is_valid], 8)
    for _ in range(15):
        data = bytearray(sound)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(bytes(data))
        opened = grebe.open(str(lake / "t"), location=str(log), config=grebe.Config(cache_bytes=0))
        keys = [table["text"][row].as_py() for row in rows]
        assert sorted(opened.get_many("text", keys, columns=["number"])["number"].to_pylist()) == sorted(rows)


def test_sound_indexes_have_no_faults(lake: Path) -> None:
    opened = grebe.open(str(lake / "t"))
    assert opened.verify(deep=True).ok
    assert str(opened.verify()) == "no faults were found"


def test_other_indexes_go_on(lake: Path, table: pa.Table, tmp_path: Path) -> None:
    log = tmp_path / "log"
    shutil.copytree(lake / "_grebe" / "t", log)
    for file in (log / "data" / "by_id").glob("*/part-*.gix"):
        file.unlink()
    opened: Table = grebe.open(str(lake / "t"), location=str(log))
    assert opened.get("id", table["id"][3].as_py())["number"].to_pylist() == [3]
    assert opened.files(grebe.col("text") == table["text"][3].as_py()).index == "by_text"
    explained = opened.explain(grebe.col("id") == 5)
    assert ("by_id", "SET_ASIDE") in [(reason.index, reason.code) for reason in explained.reasons]


@pytest.mark.parametrize("predicate", ["name = 5", "CAST(number AS TINYINT) = 1", "id = 9999 / 0"])
def test_a_predicate_that_fails_damages_no_index(
    spark: "SparkSession", tmp_path: Path, caplog: pytest.LogCaptureFixture, predicate: str
) -> None:
    frame = spark.range(3_000).selectExpr("id", "id AS number", "concat('n', id) AS name")
    frame.coalesce(1).write.parquet(str(tmp_path / "t"))
    grebe.attach(spark).table(str(tmp_path / "t")).create(
        grebe.Lookup("by_name", on="name"),
        grebe.Lookup("by_number", on="number"),
        grebe.Skipping("kept", grebe.MinMax("name"), grebe.MinMax("number"), grebe.ValueList("name")),
    )
    opened = grebe.open(tmp_path / "t")
    for _ in range(2):
        with caplog.at_level(logging.WARNING), contextlib.suppress(grebe.InvalidPredicate, grebe.Unsupported):
            opened.scan(predicate)
        assert opened.get("name", "n7")["number"].to_pylist() == [7]
        assert opened.explain("name = 'n7'").to_dict()["used"][0] == "by_name"
        assert opened.explain("number = 7").to_dict()["used"][0] == "by_number"
    assert "index_set_aside" not in caplog.text
