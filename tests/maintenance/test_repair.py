"""What `repair` mends: only what is broken is derived anew, in one commit, and afterwards `verify` finds nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import grebe
from grebe.indexes.faults import Report
from grebe.log.entry import Verb
from grebe.maintenance import build as building
from grebe.maintenance import repair as repairing
from grebe.maintenance.build import Files
from tests.maintenance.faulty_lake import NAMES, Hurt, made, rewritten_unseen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("faulty")]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The ids of the files that are read to build something, at each build."""
    seen: list[list[int]] = []
    build = building.build

    def noting(*arguments: object) -> object:
        files = arguments[-1]
        assert isinstance(files, Files)
        seen.append(sorted(files.ids.tolist()))
        return build(*arguments)  # type: ignore[arg-type]  # just those that were given

    monkeypatch.setattr(repairing, "build", noting)
    return seen


@pytest.mark.parametrize("run", [0, 1])
def test_of_a_run_that_is_damaged_only_its_files_are_read_again(hurt: Hurt, read: list[list[int]], run: int) -> None:
    before = {name: hurt.state(name) for name in NAMES}
    stays = {file for name in NAMES for file in hurt.runs(name)[1 - run]}
    for name in NAMES:
        hurt.part(name, run).unlink()
    assert [info.name for info in hurt.table.repair(deep=False)] == sorted(NAMES)
    assert read == 4 * [list(range(8)) if run == 0 else [8]]
    for name in NAMES:
        after = hurt.state(name)
        assert after.covered == before[name].covered
        assert sum(file.rows for file in after.content) == sum(file.rows for file in before[name].content)
    assert stays < {file for name in NAMES for files in hurt.runs(name) for file in files}
    assert hurt.table.verify(deep=True).findings == ()
    assert hurt.table.repair(deep=False) == []
    assert hurt.table.vacuum().objects > 0
    assert hurt.table.verify() == Report()


@pytest.mark.parametrize("damaged", ["directory.gix", pytest.param("pages.gix", marks=pytest.mark.soak)])
def test_what_lies_beside_the_rows_is_mended_too(hurt: Hurt, damaged: str) -> None:
    next(file for file in hurt.runs("look")[1] if file.name == damaged).write_bytes(b"nothing")
    assert [info.name for info in hurt.table.repair(deep=False)] == ["look"]
    assert hurt.table.verify().ok


@pytest.mark.core
def test_rows_of_a_wrong_file_are_the_only_ones_that_are_read(hurt: Hurt, read: list[list[int]]) -> None:
    untouched = {name: hurt.runs(name) for name in ("look", "sift")}
    with rewritten_unseen(hurt.folder / "5.parquet"):
        assert {info.name for info in hurt.table.repair()} == {"cover", "skip"}
        (wrong,) = {one for files in read for one in files}
        assert read == [[wrong], [wrong]]
        assert hurt.table.verify(deep=True).findings == ()
        found = grebe.open(hurt.table.uri, location=str(hurt.log)).scan("n = 507")
        assert found.num_rows == pq.read_table(hurt.folder, filters=[("n", "=", 507)]).num_rows
    assert untouched == {name: hurt.runs(name) for name in ("look", "sift")}
    entries = [entry.action for entry in hurt.table.history()]
    assert entries[-2:] == [f"{Verb.REPAIR} begin", f"{Verb.REPAIR} commit"]


@pytest.mark.soak
def test_rows_of_files_that_are_gone_are_not_mourned(spark: "SparkSession", tmp_path: Path) -> None:
    table = made(spark, tmp_path / "t")
    here = Hurt(table, tmp_path / "t", tmp_path / "_grebe" / "t")
    (tmp_path / "t" / "3.parquet").unlink()
    (tmp_path / "t" / "4.parquet").unlink()
    table.refresh("cover", mode="quick")
    for name in ("cover", "skip"):
        for file in here.runs(name)[0]:
            file.unlink()
    assert {info.name for info in table.repair()} == {"cover", "skip"}
    assert table.verify(deep=True).ok
    assert [(info.name, info.files_stale) for info in table.refresh()] == [(name, 0) for name in sorted(NAMES)]
    assert table.verify(deep=True).ok


@pytest.mark.soak
def test_an_index_without_lineage_is_built_anew(hurt: Hurt) -> None:
    hurt.table.create(grebe.Covering("bare", on="n", lineage=False))
    with rewritten_unseen(hurt.folder / "5.parquet"):
        (found,) = [one for one in hurt.table.verify(deep=True).findings if one.index == "bare"]
        assert (found.path, found.file) == ("", None)
        hurt.table.repair()
        assert hurt.table.verify(deep=True).ok


def test_a_deleted_index_is_left_alone(hurt: Hurt) -> None:
    hurt.table.delete("cover")
    hurt.part("cover", 0).unlink()
    assert not hurt.table.verify().ok
    assert hurt.table.repair(deep=False) == []


def test_what_another_has_built_anew_meanwhile_is_left_alone(hurt: Hurt, monkeypatch: pytest.MonkeyPatch) -> None:
    hurt.part("cover", 1).unlink()
    found = repairing._faulty

    def first_looked_then_refreshed(*arguments: object) -> object:
        faults = found(*arguments)  # type: ignore[arg-type]  # just those that were given
        hurt.table.refresh("cover", mode="full")
        return faults

    monkeypatch.setattr(repairing, "_faulty", first_looked_then_refreshed)
    hurt.table.repair(deep=False)
    assert hurt.table.verify() == Report()
    assert len(hurt.runs("cover")) == 1
