"""Tables of benchmarks that change: the files of each state, and indexes that begin anew each time."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from bench._ageing import AgeingTable
from bench._races import OURS, RIVAL, race_of_views
from bench.files import PARTS
from bench.hybrid.states import INDEXED, State, states

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def written(folder: Path, count: int) -> list[Path]:
    folder.mkdir()
    files = [folder / f"{number}.parquet" for number in range(count)]
    for number, file in enumerate(files):
        pq.write_table(pa.table({"id": range(number * 10, number * 10 + 10)}), file)
    return files


@pytest.mark.parametrize("state", list(states()), ids=str)
def test_a_state_holds_its_percentages_of_what_was_indexed(state: State) -> None:
    numbers = [int(path.name) for path in state.files([Path(str(number)) for number in range(INDEXED + 30)])]
    assert sum(number >= INDEXED for number in numbers) == state.appended
    assert INDEXED - sum(number < INDEXED for number in numbers) == state.deleted


def test_the_number_of_indexed_files_only_grows_from_part_to_part() -> None:
    indexed = [case.indexed for case in PARTS.values()]
    assert indexed == sorted(indexed)


def test_a_small_case_keeps_its_proportions() -> None:
    for case in PARTS.values():
        small = case.part_of(50)
        assert (small.indexed * 50, small.appended * 50, small.deleted * 50) == (
            case.indexed,
            case.appended,
            case.deleted,
        )


@pytest.mark.spark
def test_indexes_of_a_changing_table_begin_anew_and_answers_are_compared(spark: "SparkSession", tmp_path: Path) -> None:
    files = written(tmp_path / "data", 4)
    lake = grebe.attach(spark)
    table = AgeingTable(lake, tmp_path / "t", tmp_path / "indexes")
    table.hold(files[:3])
    table.create(grebe.Skipping("bounds", grebe.MinMax("id")))
    table.hold(files[1:])
    for _ in range(2):
        young = table.young()
        assert young.index("bounds").files_stale == 2
        assert [info.files_stale for info in young.refresh()] == [0]
    spark.read.parquet(str(table.folder)).createOrReplaceTempView("ageing")
    sql = "SELECT count(*) FROM ageing WHERE id >= 15"
    assert set(race_of_views(spark, lake, {OURS: sql, RIVAL: sql}, runs=2).costs) == {OURS, RIVAL}
    with pytest.raises(AssertionError, match="differ"):
        race_of_views(spark, lake, {OURS: sql, RIVAL: sql.replace("15", "16")}, runs=1)
