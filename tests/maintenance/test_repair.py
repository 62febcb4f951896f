"""What `repair` mends: only what is broken is derived anew, in one commit, and afterwards `verify` finds nothing."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import grebe
from grebe.log.entry import Verb
from grebe.log.states import IndexState
from grebe.maintenance import repair as repairing
from grebe.maintenance.build import Files
from grebe.session.lake_table import LakeTable
from tests.maintenance.faulty_lake import AT_ONCE, NAMES, log_of, made, rewritten_unseen, runs_of

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
    """A copy, files with the times they have, so that it can be hurt."""
    shutil.copytree(sound.parent, tmp_path / "lake")
    return tmp_path / "lake" / "t"


@pytest.fixture
def table(spark: "SparkSession", sound: Path, folder: Path) -> LakeTable:
    """The sound files, with the copied indexes."""
    return LakeTable(spark, str(sound), location=str(folder.parent / "_grebe" / "t"), config=AT_ONCE)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The ids of the files that are read to build something, at each build."""
    seen: list[list[int]] = []
    build = repairing.build

    def noting(*arguments: object) -> object:
        files = arguments[-1]
        assert isinstance(files, Files)
        seen.append(sorted(files.ids.tolist()))
        return build(*arguments)  # type: ignore[arg-type]  # just those that were given

    monkeypatch.setattr(repairing, "build", noting)
    return seen


def state(folder: Path, name: str) -> IndexState:
    return log_of(folder).state.indexes[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("run", [0, 1])
def test_of_a_run_that_is_damaged_only_its_files_are_read_again(
    table: LakeTable, folder: Path, read: list[list[int]], name: str, run: int
) -> None:
    before = state(folder, name)
    stays = [file.name for file in runs_of(folder, name)[1 - run]]
    next(file for file in runs_of(folder, name)[run] if file.name.startswith("part-")).unlink()
    assert [info.name for info in table.repair(deep=False)] == [name]
    assert read == [list(range(8))] if run == 0 else read == [[8]]
    after = state(folder, name)
    assert set(stays) <= {file.path.rpartition("/")[2] for file in after.content}
    assert (after.covered, sum(file.rows for file in after.content)) == (
        before.covered,
        sum(f.rows for f in before.content),
    )
    assert table.verify(deep=True).findings == ()
    assert table.repair() == []
    assert table.vacuum().objects > 0
    assert table.verify(deep=True) == grebe.open(table.uri, location=str(folder.parent / "_grebe" / "t")).verify()


@pytest.mark.parametrize("damaged", ["directory.gix", "pages.gix"])
def test_what_lies_beside_the_rows_is_mended_too(table: LakeTable, folder: Path, damaged: str) -> None:
    beside = next(file for file in runs_of(folder, "look")[1] if file.name == damaged)
    beside.write_bytes(b"nothing")
    assert [info.name for info in table.repair(deep=False)] == ["look"]
    assert table.verify().ok


@pytest.mark.core
def test_rows_of_a_wrong_file_are_the_only_ones_that_are_read(
    spark: "SparkSession", tmp_path: Path, read: list[list[int]]
) -> None:
    table = made(spark, tmp_path / "t")
    rewritten_unseen(tmp_path / "t" / "5.parquet")
    wrong = {one.index: one.file for one in table.verify(deep=True).findings}
    assert set(wrong) == {"cover", "skip"}
    untouched = [run for name in ("look", "sift") for run in runs_of(tmp_path / "t", name)]
    assert {info.name for info in table.repair()} == {"cover", "skip"}
    assert read == [[wrong["cover"]], [wrong["skip"]]]
    assert table.verify(deep=True).findings == ()
    assert untouched == [run for name in ("look", "sift") for run in runs_of(tmp_path / "t", name)]
    entries = [entry.action for entry in table.history()]
    assert entries[-2:] == [f"{Verb.REPAIR} begin", f"{Verb.REPAIR} commit"]
    found = grebe.open(str(tmp_path / "t")).scan("n = 507")
    assert found.num_rows == pq.read_table(tmp_path / "t", filters=[("n", "=", 507)]).num_rows


def test_rows_of_files_that_are_gone_are_not_mourned(spark: "SparkSession", tmp_path: Path) -> None:
    table = made(spark, tmp_path / "t")
    (tmp_path / "t" / "3.parquet").unlink()
    (tmp_path / "t" / "4.parquet").unlink()
    table.refresh("cover", mode="quick")
    for name in ("cover", "skip"):
        for file in runs_of(tmp_path / "t", name)[0]:
            file.unlink()
    assert {info.name for info in table.repair()} == {"cover", "skip"}
    assert table.verify(deep=True).ok
    assert [(info.name, info.files_stale) for info in table.refresh()] == [(name, 0) for name in sorted(NAMES)]
    assert table.verify(deep=True).ok


def test_an_index_without_lineage_is_built_anew(spark: "SparkSession", tmp_path: Path) -> None:
    table = made(spark, tmp_path / "t")
    table.create(grebe.Covering("bare", on="n", lineage=False))
    rewritten_unseen(tmp_path / "t" / "5.parquet")
    (found,) = [one for one in table.verify(deep=True).findings if one.index == "bare"]
    assert (found.path, found.file) == ("", None)
    table.repair()
    assert table.verify(deep=True).ok


def test_a_deleted_index_is_left_alone(table: LakeTable, folder: Path) -> None:
    table.delete("cover")
    runs_of(folder, "cover")[0][0].unlink()
    assert not table.verify().ok
    assert table.repair(deep=False) == []
    table.restore("cover")
    assert [info.name for info in table.repair(deep=False)] == ["cover"]


def test_what_another_has_built_anew_meanwhile_is_left_to_the_next_time(
    table: LakeTable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs_of(folder, "cover")[1][0].unlink()
    found = repairing._faulty

    def first_looked_then_refreshed(*arguments: object) -> object:
        faults = found(*arguments)  # type: ignore[arg-type]  # just those that were given
        table.refresh("cover", mode="full")
        return faults

    monkeypatch.setattr(repairing, "_faulty", first_looked_then_refreshed)
    table.repair(deep=False)
    monkeypatch.undo()
    assert table.verify(deep=True).ok
