"""Runs of every kind are merged, without looking at the table: the same answers by fewer files."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidConfig
from grebe.log.commit import Log
from grebe.maintenance.runs import runs_of
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("optimize")]
KINDS = (
    grebe.Lookup("by_k", on="k"),
    grebe.Covering("by_v", on="v", include=["k"]),
    grebe.Skipping("skip", grebe.MinMax("k"), grebe.Bloom("v")),
    grebe.Sieve("sieve", on="k"),
    grebe.Sieve("texts", on="s"),
)
NAMES = [kind.name for kind in KINDS]


def add(folder: Path, number: int, rows: int) -> None:
    k = list(range(number * 1000, number * 1000 + rows))
    content = {"k": k, "v": [n % 7 for n in k], "s": [f"s{n}" for n in k]}
    pq.write_table(pa.table(content), folder / f"{number}.parquet")


def runs(folder: Path) -> dict[str, int]:
    state = Log(LocalStore(folder.parent / "_grebe" / folder.name)).open().state
    return {name: len(runs_of(index)) for name, index in state.indexes.items()}


@pytest.fixture
def folder(spark: "SparkSession", tmp_path: Path) -> Path:
    """A large run and two small ones; of each index a file is gone."""
    made = tmp_path / "t"
    made.mkdir()
    add(made, 0, 900)
    add(made, 1, 900)
    table = grebe.attach(spark).table(str(made))
    table.create(*KINDS)
    for number, rows in ((2, 40), (3, 10)):
        add(made, number, rows)
        table.refresh()
    return made


def answers(folder: Path) -> list[object]:
    table = grebe.open(str(folder))
    return [
        sorted(table.scan(predicate)["k"].to_pylist())
        for predicate in (
            "k = 2003",
            "k BETWEEN 890 AND 1010",
            "v = 3 AND k > 2000",
            "s = 's1007'",
            "s >= 's30'",
            "k = 5",
        )
    ]


def test_runs_of_every_kind_become_one(spark: "SparkSession", folder: Path) -> None:
    before, expected = runs(folder), answers(folder)
    table = grebe.attach(spark).table(str(folder))
    fresh = {info.name: info.refreshed_at for info in table.indexes()}
    assert {info.name for info in table.optimize(mode="full")} == {name for name in NAMES if before[name] > 1}
    assert set(runs(folder).values()) == {1}
    assert answers(folder) == expected
    assert {info.name: info.refreshed_at for info in table.indexes()} == fresh, "it is not a refresh"
    assert table.optimize(mode="full") == []
    assert grebe.open(str(folder)).verify(deep=True).ok


def test_rows_of_files_that_are_gone_go_with_a_full_one(spark: "SparkSession", folder: Path) -> None:
    (folder / "1.parquet").unlink()
    table = grebe.attach(spark).table(str(folder))
    table.refresh(mode="quick")
    before, rows = answers(folder), table.index("by_k").rows
    table.optimize("by_k", "sieve", mode="full")
    assert table.index("by_k").rows == rows - 900
    assert answers(folder) == before


def test_queries_of_spark_stay_right(spark: "SparkSession", folder: Path) -> None:
    lake = grebe.attach(spark)
    lake.table(str(folder)).optimize(mode="full")
    frame = spark.read.parquet(str(folder))
    assert frame.where("k = 2003").count() == 1
    assert frame.where("v = 3").select("k").count() == len([n for n in frame.select("v").collect() if n[0] == 3])


def test_a_quick_one_leaves_the_large_run(spark: "SparkSession", folder: Path) -> None:
    table = grebe.attach(spark).table(str(folder))
    add(folder, 4, 3)
    table.refresh("by_k")
    large = max(run.rows for run in runs_of(_state(folder)))
    before = runs(folder)["by_k"]
    table.optimize("by_k")
    after = runs_of(_state(folder))
    assert len(after) <= max(before, 2)
    assert max(run.rows for run in after) in (large, sum(run.rows for run in after))


def _state(folder: Path):  # type: ignore[no-untyped-def]  # a shorthand
    return Log(LocalStore(folder.parent / "_grebe" / folder.name)).open().state.indexes["by_k"]


def test_an_unknown_mode_is_refused(spark: "SparkSession", folder: Path) -> None:
    with pytest.raises(InvalidConfig, match="quick, full"):
        grebe.attach(spark).table(str(folder)).optimize(mode="fast")
