"""What `verify` finds: damaged files, rows that are not those of the table, and faults of the log; and what it does not mind."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.indexes.sketches.protocol import Sketch
from grebe.log.entry import Verb
from grebe.log.operation import begin
from grebe.maintenance.verify import verify
from grebe.session.lake_table import LakeTable
from tests.maintenance.faulty_lake import NAMES, Hurt, made, rewritten_unseen, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("faulty")]


@pytest.mark.core
def test_sound_indexes_of_every_kind_are_derived_anew_and_found_alike(hurt: Hurt) -> None:
    assert all(len(hurt.runs(name)) == 2 for name in NAMES)
    report = hurt.table.verify(deep=True)
    assert (report.findings, report.leftovers, report.unchecked) == ((), (), ())
    assert str(report) == "no faults were found"


def test_a_file_that_is_missing_or_damaged_is_named(hurt: Hurt) -> None:
    expected = set()
    for name in NAMES:
        first, second = hurt.part(name, 0), hurt.part(name, 1)
        first.unlink()
        second.write_bytes(second.read_bytes()[:-1])
        expected |= {(name, first, "CORRUPT_INDEX_MISSING"), (name, second, "CORRUPT_INDEX_SIZE")}
    found = {(one.index, hurt.log / one.path, one.code) for one in hurt.table.verify().findings}
    assert found == expected


@pytest.mark.soak
def test_files_that_are_gone_or_changed_are_no_fault(spark: "SparkSession", tmp_path: Path) -> None:
    table = made(spark, tmp_path / "t")
    (tmp_path / "t" / "3.parquet").unlink()
    write(tmp_path / "t", [4], 7)
    assert table.verify(deep=True).findings == ()
    table.refresh(mode="quick")
    assert table.verify(deep=True).findings == ()
    table.refresh()
    assert table.verify(deep=True).findings == ()
    table.optimize(mode="full")
    assert table.verify(deep=True).findings == ()


def test_rows_that_are_not_those_of_the_table_are_found_by_file(hurt: Hurt) -> None:
    """The bytes of a data file change without its size and time: nothing that looks at bytes can tell."""
    wrong = hurt.folder / "5.parquet"
    with rewritten_unseen(wrong):
        report = hurt.table.verify(deep=True)
        assert hurt.table.verify().ok
    assert {(one.index, one.path, one.code) for one in report.findings} == {
        (name, f"file://{wrong}", "CORRUPT_INDEX_DIFFERS") for name in ("cover", "skip")
    }


def test_values_that_a_sieve_does_not_lead_to_their_file_are_found(hurt: Hurt) -> None:
    """Of another table with the same files, but other texts in one of them."""
    wrong = hurt.folder / "6.parquet"
    with rewritten_unseen(wrong, "s", lambda text: text and text.upper()):
        found = {(one.index, one.path) for one in hurt.table.verify(deep=True).findings}
    assert found == {(name, f"file://{wrong}") for name in NAMES}


def test_leftovers_are_listed_and_are_no_findings(hurt: Hurt) -> None:
    left = hurt.log / "data" / "cover" / "77-deadbeef" / "half.gix"
    left.parent.mkdir()
    left.write_bytes(b"1")
    log = hurt.opened()
    with begin(log, Verb.REFRESH, ["cover"]) as living:
        log.store.put(f"{living.folder('cover')}/half.gix", b"1")
        report = hurt.table.verify()
        assert report.ok
        assert report.leftovers == ("data/cover/77-deadbeef/half.gix",)
    assert "1 objects" in str(report)


def test_a_damaged_list_of_files_is_a_finding_of_the_log(hurt: Hurt) -> None:
    log = hurt.opened()
    segment = log.state.segments[0].path
    path = hurt.log / segment
    path.write_bytes(path.read_bytes()[:-1])
    (found,) = verify(log).findings
    assert (found.index, found.path, found.code) == ("", segment, "CORRUPT_LOG_FILE_LIST")


def test_a_session_that_reads_otherwise_is_told_so(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("1;2\n3;4\n", encoding="utf-8")
    reader = spark.read.schema("a int, b int").format("csv")
    LakeTable(spark, reader.option("sep", ";").load(str(tmp_path / "t"))).create(grebe.Lookup("look", on="a"))
    report = LakeTable(spark, reader.option("sep", ",").load(str(tmp_path / "t"))).verify(deep=True)
    assert report.ok
    assert "reads the table otherwise" in report.unchecked[0]
    again = LakeTable(spark, str(tmp_path / "t")).verify(deep=True)
    assert (again.findings, again.unchecked) == ((), ())


@pytest.mark.parametrize("format", ["csv", *(pytest.param(one, marks=pytest.mark.soak) for one in ("json", "orc"))])
def test_indexes_of_other_formats_are_derived_anew(spark: "SparkSession", tmp_path: Path, format: str) -> None:
    frame = spark.range(0, 3_000, 1, 3).selectExpr("id", "cast(id % 7 as string) s", "id / 3 x")
    frame.write.format(format).save(str(tmp_path / "t"))
    read = spark.read.schema(frame.schema).format(format).load(str(tmp_path / "t"))
    table = LakeTable(spark, read)
    sketches: list[Sketch] = [grebe.MinMax("id"), grebe.Intervals("id"), grebe.ValueList("s"), grebe.Bloom("x")]
    table.create(
        grebe.Covering("cover", on="s", include=["x"], where="id > 5"),
        grebe.Covering("bare", on="s", lineage=False),
        grebe.Lookup("look", on="id"),
        grebe.Skipping("skip", *sketches),
        grebe.Sieve("sift", on="s"),
    )
    report = table.verify(deep=True)
    assert report.findings == ()
    assert bool(report.unchecked) == (format != "orc")
