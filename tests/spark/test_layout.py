"""Queries like those that a layout was learned from are answered from it: the rows that they are without it, from fewer files."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import grebe
from grebe.indexes.content import parts
from grebe.indexes.layout import build
from grebe.log.states import IndexState
from grebe.planner.decision import StandIn
from tests.indexes.covering_lake import log_of
from tests.spark.boxes import PLAIN, boxes, rows
from tests.spark.served import Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark layout")]


def asked(seed: int, count: int) -> Iterator[str]:
    return (" AND ".join(conditions) for conditions in boxes(seed, count))


def learned(name: str = "learned") -> grebe.Layout:
    return grebe.Layout(name, queries=[*asked(1, 60), ("h.lon BETWEEN 7 AND 7.5", 3)])


PLACES = ["h.lon BETWEEN 7 AND 7.5", "at < TIMESTAMP '1975-01-01'", "d >= DATE '2021-11-15'"]


@pytest.fixture(scope="module")
def many_files() -> Iterator[None]:
    """Also of a small table, with leaves to match, so that some are left out."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parts, "_SMALL", ())
        patched.setattr(build, "_LEAF_ROWS", 20)
        yield


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path, many_files: None) -> Served:
    write(folder / "t", *(rows(700, seed) for seed in range(1, 5)), **PLAIN)
    places = grebe.Layout("places", queries=PLACES, include="n")
    served.lake.table(str(folder / "t")).create(learned(), places)
    served.view("t", folder / "t")
    return served


def left_out(lake: Served) -> bool:
    """Whether some files of the index were not read by the last query."""
    return any(isinstance(one, StandIn) and len(one.content) < len(one.copy.content) for one in lake.decision.choices)


def query(condition: str) -> str:
    return f"SELECT * FROM t WHERE {condition}"


@pytest.mark.parametrize("seed", [1, 2], ids=["logged", "others"])
def test_queries_have_the_rows_that_they_have_without_the_index(lake: Served, seed: int) -> None:
    pruned, conditions = 0, list(asked(seed, 12))
    for condition in conditions:
        seen = lake.same_rows(query(condition))
        assert seen.used == ["learned"], (condition, lake.reasons(query(condition)))
        pruned += left_out(lake)
    assert pruned > len(conditions) // 2


def test_fields_and_times_that_were_asked_for_leave_files_out(lake: Served) -> None:
    with lake.lake.only("places"):
        for condition in PLACES:
            lake.same(f"SELECT n FROM t WHERE {condition}", "places")
            assert left_out(lake), condition


def test_less_is_read_than_of_a_copy_that_was_not_laid_out(lake: Served, folder: Path) -> None:
    """The same rows and columns in the same number of files."""
    table = lake.lake.table(str(folder / "t"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "_LEAF_ROWS", 10**9)
        table.create(learned("flat"))
    read = {"learned": 0, "flat": 0}
    conditions = list(asked(1, 6))
    for name in read:
        with lake.lake.only(name):
            for condition in conditions:
                lake.same(query(condition), name)
                (choice,) = (one for one in lake.decision.choices if isinstance(one, StandIn))
                read[name] += int(np.take(choice.copy.content["rows"].to_numpy(), choice.content).sum())
    assert read["learned"] < 0.8 * read["flat"]
    table.delete("flat")


def test_what_is_used_is_explained_and_what_is_not_has_a_reason(lake: Served) -> None:
    asked_for = lake.frame(query("h.lon > 9 AND x < 1"))
    assert lake.lake.explain(asked_for).to_dict()["used"] == ["learned"]
    (reason,) = lake.lake.why_not(asked_for, "places")
    assert reason.code == "MISSING_REQUIRED_COL"


def index_of(table: "grebe.LakeTable", name: str = "learned") -> IndexState:
    return log_of(table.uri).state.indexes[name]


def files_of(table: "grebe.LakeTable") -> dict[str, int]:
    return {file.path: file.rows for file in index_of(table).content}


def test_new_files_are_laid_out_by_the_tree_that_is_there(served: Served, folder: Path, many_files: None) -> None:
    place = folder / "grown"
    write(place, *(rows(600, seed) for seed in range(1, 5)), **PLAIN)
    table = served.lake.table(str(place))
    table.create(learned())
    before, tree = files_of(table), index_of(table).spec.properties["tree"]
    write(place, rows(40, 8), **PLAIN)
    (place / "part-001.parquet").unlink()
    served.view("t", place)
    try:
        for condition in asked(3, 3):
            assert served.same_rows(query(condition)).used, "what is stale serves what it covers"
        table.refresh()
        after = files_of(table)
        assert before.items() <= after.items()
        assert sum(after.values()) - sum(before.values()) == 40
        table.optimize(mode="full")
        assert index_of(table).spec.properties["tree"] == tree
        assert sum(files_of(table).values()) == 1840
        assert table.verify(deep=True).ok
        for condition in asked(3, 3):
            assert served.same_rows(query(condition)).used == ["learned"]
        table.refresh(mode="full")
        assert index_of(table).spec.properties["tree"] != tree, "learned anew, as the rows are others"
    finally:
        served.view("t", folder / "t")


def test_tables_without_rows_and_partial_indexes(served: Served, folder: Path, many_files: None) -> None:
    write(folder / "empty", rows(0, 1), **PLAIN)
    write(folder / "part", rows(500, 1), **PLAIN)
    served.lake.table(str(folder / "empty")).create(learned())
    served.lake.table(str(folder / "part")).create(
        grebe.Layout(
            "some", queries="y BETWEEN 1 AND 5; y > 40", on=["y", "x"], include="n", where="y > 0", lineage=False
        )
    )
    for name in ("empty", "part"):
        served.view(name, folder / name)
    served.same_rows("SELECT x FROM empty WHERE y > 1")
    served.same("SELECT n FROM part WHERE y BETWEEN 2 AND 3", "some")
