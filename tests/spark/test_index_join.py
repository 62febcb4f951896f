"""Joins with a small side: its keys are looked up while the query runs, and only files that hold some of them are read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from testbed.spark import configured
from tests.spark.served import LENIENT, NO_BROADCAST, NOT_ADAPTIVE, Served, serving, write
from tests.spark.test_pruning import FILES, part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark index join")]

BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "10m"}


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, LENIENT) as made, configured(spark, BROADCAST):
        yield made


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path) -> Served:
    write(folder / "big", *(part(number) for number in range(FILES)))
    table = served.lake.table(str(folder / "big"))
    table.create(grebe.Lookup("by_k", on="k"), grebe.Lookup("by_s", on=["s", "k"]))
    few = {
        "k": pa.array([130, 131, 400, None, 99_999], pa.int64()),
        "s": ["s02-5", "s02-6", None, "x", "y"],
        "n": range(5),
    }
    write(folder / "few", pa.table(few))
    write(folder / "none", pa.table({"k": pa.array([], pa.int64()), "n": pa.array([], pa.int64())}))
    for name in ("big", "few", "none"):
        served.view(name, folder / name)
    return served


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def files_of(lake: Served, query: Any, *used: str) -> int:
    """How many files of the big table were read; the answer is that of Spark alone."""
    seen = lake.same(query, *used)
    assert ("GrebeScan" in seen.text) == bool(used), seen.text
    return scanned(lake.plan())


def scanned(plan: Any) -> int:
    """Files that scans of ours have read."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return scanned(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return scanned(plan.plan())
    if kind == "NarrowedScan":
        return int(plan.children().apply(0).metrics().apply("numFiles").value())
    return sum(scanned(plan.children().apply(number)) for number in range(plan.children().size()))


QUERIES = {
    "SELECT big.v, few.n FROM big JOIN few ON big.k = few.k": 2,
    "SELECT big.* FROM few JOIN big ON big.k = few.k": 2,
    "SELECT v FROM big WHERE k IN (SELECT k FROM few)": 2,
    "SELECT v FROM big WHERE EXISTS (SELECT 1 FROM few WHERE few.k = big.k AND few.n < 2)": 1,
    "SELECT big.v, few.n FROM big RIGHT JOIN few ON big.k = few.k": 2,
    "SELECT big.v FROM big JOIN few ON big.k = few.k AND big.v > few.n WHERE big.w < 2": 2,
    "SELECT x.z, few.n FROM (SELECT k AS z, v + 1 AS u FROM big WHERE v > 0) x JOIN few ON x.z = few.k": 2,
    "SELECT few.n, sum(v) FROM big JOIN few ON big.k = few.k GROUP BY few.n": 2,
    "SELECT a.v FROM big a JOIN few ON a.k = few.k JOIN few f ON a.v > f.n": 2,
    "SELECT big.v FROM big JOIN few ON big.k = few.k WHERE big.k < 300": 1,
}


@pytest.mark.parametrize("query", QUERIES)
def test_only_files_with_keys_of_the_small_side_are_read(lake: Served, query: str) -> None:
    assert files_of(lake, query, "by_k") == QUERIES[query]


def test_composite_keys_are_looked_up_by_their_first_column(lake: Served) -> None:
    assert files_of(lake, "SELECT big.v FROM big JOIN few ON big.s = few.s", "by_s") == 1


@pytest.mark.parametrize("query", list(QUERIES)[:4])
def test_the_same_without_adaptive_execution(lake: Served, query: str) -> None:
    with configured(lake.spark, NOT_ADAPTIVE):
        assert files_of(lake, query, "by_k") == QUERIES[query]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT big.v, few.n FROM big JOIN few ON big.k = few.k",
        "SELECT big.v, few.n FROM few LEFT JOIN big ON big.k = few.k",
        "SELECT few.n FROM few LEFT ANTI JOIN big ON big.k = few.k AND big.v > few.n",
    ],
)
@pytest.mark.parametrize("settings", [{}, NOT_ADAPTIVE], ids=["adaptive", "not adaptive"])
def test_a_side_that_is_not_broadcast_is_run_for_its_keys(lake: Served, query: str, settings: dict[str, str]) -> None:
    with configured(lake.spark, {**NO_BROADCAST, **settings}):
        assert files_of(lake, query, "by_k") == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT big.v, few.n FROM big LEFT JOIN few ON big.k = few.k",
        "SELECT big.v, few.n FROM big FULL JOIN few ON big.k = few.k",
        "SELECT v FROM big WHERE k NOT IN (SELECT k FROM few WHERE k IS NOT NULL)",
        "SELECT big.v FROM big JOIN few ON big.k + 1 = few.k",
        "SELECT big.v FROM big JOIN few ON big.k > few.k",
    ],
)
def test_joins_that_need_every_row_of_the_big_side_read_all(lake: Served, query: str) -> None:
    assert files_of(lake, query) == 0


def test_keys_are_looked_up_in_the_log_that_the_plan_was_made_with(served: Served, tmp_path: Path) -> None:
    """A table may have several logs, and each counts its files by itself."""
    place, elsewhere = str(tmp_path / "t"), str(tmp_path / "elsewhere")
    for name, first in (("b", 100), ("a", 0)):
        pq.write_table(
            pa.table({"k": range(first, first + 100), "v": range(100)}), _made(tmp_path / "t") / f"{name}.parquet"
        )
        if name == "b":
            served.lake.table(place).create(grebe.Lookup("by_k", on="k"))
        else:
            served.lake.table(place).refresh()
    write(tmp_path / "few", {"k": [107, 150]})
    served.view("few_of_two_logs", tmp_path / "few")
    served.same_rows(f"SELECT v FROM parquet.`{place}` WHERE k = 1")
    served.lake.table(place, location=elsewhere).create(grebe.Lookup("by_k", on="k"))
    query = f"SELECT /*+ BROADCAST(few) */ v FROM parquet.`{place}` t JOIN few_of_two_logs few ON t.k = few.k"
    seen = served.same(query, "by_k")
    assert sum(seen.rows.values()) == 2


def test_without_any_keys_nothing_is_read(lake: Served) -> None:
    query = "SELECT big.v FROM big JOIN none ON big.k = none.k"
    lake.same(query, "by_k")
    with configured(lake.spark, NOT_ADAPTIVE):
        assert files_of(lake, query, "by_k") == 0


def test_a_file_that_was_replaced_with_the_same_size_and_time_is_read(served: Served, folder: Path) -> None:
    """The index knows its old rows only, and Spark lists it as it was."""

    def rows(start: int) -> pa.Table:
        return pa.table({"k": pa.array(range(start, start + 60), pa.int64()), "v": pa.array(range(60), pa.int64())})

    written = {"use_dictionary": False, "compression": "none"}
    write(folder / "replaced", *(rows(60 * number) for number in range(FILES)), **written)
    served.lake.table(str(folder / "replaced")).create(grebe.Lookup("by_k", on="k"))
    path = sorted((folder / "replaced").glob("*.parquet"))[3]
    before = path.stat()
    pq.write_table(rows(5_000), path, **written)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    write(folder / "found", pa.table({"k": pa.array([130, 190, 5_001], pa.int64())}))
    for name in ("replaced", "found"):
        served.view(name, folder / name)
    assert files_of(served, "SELECT replaced.v FROM replaced JOIN found ON replaced.k = found.k", "by_k") == 2
    rows_found = served.spark.sql("SELECT r.v FROM replaced r JOIN found f ON r.k = f.k").collect()
    assert sorted(row.v for row in rows_found) == [1, 10]


def test_with_too_many_keys_everything_is_read(lake: Served) -> None:
    query = "SELECT big.v, few.n FROM big JOIN few ON big.k = few.k"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("grebe.planner.by_keys.MOST_FOUND", 2)
        assert files_of(lake, query, "by_k") == FILES


def test_files_that_came_later_are_read_too(served: Served, folder: Path, lake: Served) -> None:
    write(folder / "growing", *(part(number) for number in range(4)))
    served.lake.table(str(folder / "growing")).create(grebe.Lookup("by_k", on="k"))
    write(folder / "growing", part(30), part(6))
    served.view("growing", folder / "growing")
    assert files_of(lake, "SELECT growing.v FROM growing JOIN few ON growing.k = few.k", "by_k") == 3


def test_partitions_and_files_are_left_out_together(served: Served, folder: Path, lake: Served) -> None:
    for number in range(6):
        write(folder / "parted" / f"p={number % 3}", part(number))
    served.lake.table(str(folder / "parted")).create(grebe.Lookup("by_k", on="k"), grebe.Lookup("by_p", on=["p", "k"]))
    served.view("parted", folder / "parted")
    query = "SELECT parted.v FROM parted JOIN few ON parted.k = few.k AND parted.p = few.n + 1 WHERE few.n < 3"
    # Two of the partitions are those of the small side's rows, and of their files one has a key.
    assert files_of(lake, query, "by_k") == 1


def test_switched_off_with_sparks_own_pruning(lake: Served) -> None:
    with configured(lake.spark, {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"}):
        lake.same("SELECT big.v, few.n FROM big JOIN few ON big.k = few.k", "by_k")


def test_an_index_that_is_damaged_while_a_query_waits_for_keys_reads_everything(
    served: Served, folder: Path, lake: Served
) -> None:
    write(folder / "broken", *(part(number) for number in range(4)))
    served.lake.table(str(folder / "broken")).create(grebe.Lookup("by_k", on="k"))
    served.view("broken", folder / "broken")
    for file in (folder / "_grebe" / "broken" / "data").rglob("*.gix"):
        file.write_bytes(bytes(file.stat().st_size))
    query = "SELECT broken.v, few.n FROM broken JOIN few ON broken.k = few.k"
    assert lake.run(query).rows == lake.plain(query).rows
    assert lake.reasons(query)["by_k"] == "SET_ASIDE"


def test_an_explanation_says_how_the_join_is_done(lake: Served) -> None:
    explanation = lake.lake.explain("SELECT big.v, few.n FROM big JOIN few ON big.k = few.k")
    assert "by_k, only the files where the join finds its keys of k" in str(explanation)
    [choice] = explanation.to_dict()["choices"]
    assert choice["how"] == "keys"
