"""What `verify` finds: damaged files, rows that are not those of the table, and faults of the log; and what it does not mind."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.log.entry import Verb
from grebe.log.operation import begin
from grebe.maintenance.verify import verify
from grebe.session.lake_table import LakeTable
from tests.maintenance.faulty_lake import NAMES, log_of, made, rewritten_unseen, runs_of, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def sound(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "t"
    made(spark, folder)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy whose log lies elsewhere, so that it can be hurt."""
    shutil.copytree(sound.parent / "_grebe", tmp_path / "_grebe")
    return tmp_path / "t"


def opened(spark: "SparkSession", sound: Path, folder: Path) -> LakeTable:
    return LakeTable(spark, str(sound), location=str(folder.parent / "_grebe" / "t"))


@pytest.mark.core
def test_sound_indexes_of_every_kind_are_derived_anew_and_found_alike(spark: "SparkSession", sound: Path) -> None:
    assert all(len(runs_of(sound, name)) == 2 for name in NAMES)
    report = LakeTable(spark, str(sound)).verify(deep=True)
    assert (report.findings, report.leftovers, report.unchecked) == ((), (), ())
    assert str(report) == "no faults were found"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_missing_or_damaged_is_named(
    spark: "SparkSession", sound: Path, folder: Path, name: str
) -> None:
    first, second = (next(file for file in run if file.name.startswith("part-")) for run in runs_of(folder, name))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    report = opened(spark, sound, folder).verify()
    found = {(one.index, one.path.rpartition("/")[2], one.code) for one in report.findings}
    expected = {(first, "CORRUPT_INDEX_MISSING"), (second, "CORRUPT_INDEX_SIZE")}
    assert found >= {(name, file.name, code) for file, code in expected}
    assert {one.index for one in report.findings} == {name}


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


def test_rows_that_are_not_those_of_the_table_are_found_by_file(spark: "SparkSession", tmp_path: Path) -> None:
    """The bytes of a data file change without its size and time: nothing that looks at bytes can tell."""
    table = made(spark, tmp_path / "t")
    hurt = tmp_path / "t" / "5.parquet"
    rewritten_unseen(hurt)
    report = table.verify(deep=True)
    assert {(one.index, one.path, one.code) for one in report.findings} == {
        (name, f"file://{hurt}", "CORRUPT_INDEX_DIFFERS") for name in ("cover", "skip")
    }
    assert not table.verify().findings


def test_leftovers_are_listed_and_are_no_findings(spark: "SparkSession", sound: Path, folder: Path) -> None:
    left = folder.parent / "_grebe" / "t" / "data" / "cover" / "77-deadbeef" / "half.gix"
    left.parent.mkdir()
    left.write_bytes(b"1")
    log = log_of(folder)
    with begin(log, Verb.REFRESH, ["cover"]) as living:
        log.store.put(f"{living.folder('cover')}/half.gix", b"1")
        report = opened(spark, sound, folder).verify()
        assert report.ok
        assert report.leftovers == ("data/cover/77-deadbeef/half.gix",)
    assert "1 objects" in str(report)


def test_a_damaged_list_of_files_is_a_finding_of_the_log(sound: Path, folder: Path) -> None:
    log = log_of(folder)
    segment = log.state.segments[0].path
    path = folder.parent / "_grebe" / "t" / segment
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
    assert LakeTable(spark, str(tmp_path / "t")).verify(deep=True) == grebe.open(str(tmp_path / "t"), "csv").verify()


@pytest.mark.parametrize("format", ["csv", "json", "orc"])
def test_indexes_of_other_formats_are_derived_anew(spark: "SparkSession", tmp_path: Path, format: str) -> None:
    frame = spark.range(0, 3_000, 1, 3).selectExpr("id", "cast(id % 7 as string) s", "id / 3 x")
    frame.write.format(format).save(str(tmp_path / "t"))
    read = spark.read.schema(frame.schema).format(format).load(str(tmp_path / "t"))
    table = LakeTable(spark, read)
    sketches = [grebe.MinMax("id"), grebe.Intervals("id"), grebe.ValueList("s"), grebe.Bloom("x")]
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
