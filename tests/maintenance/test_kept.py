"""Versions of a table that is rewritten again and again: whichever is asked for, the answer is right, and an index of it serves."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.files import FileIds
from grebe.formats.byte_cache import ByteCache
from grebe.indexes.reading import Reader
from grebe.log.entry import Keep
from grebe.lookup.finding import Finder
from grebe.lookup.indexes import usable
from grebe.maintenance.delete import delete
from grebe.maintenance.garbage import Limits
from grebe.maintenance.vacuum import vacuum
from grebe.planner.decision import FromMetadata, StandIn, indexes_of
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from tests.maintenance.versioned_lake import ROWS, VersionedLake
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("kept")]
KINDS = (
    grebe.Covering("cover", on="k", include=["v"], buckets=2),
    grebe.Lookup("look", on="k"),
    grebe.Skipping("skip", grebe.MinMax("k")),
)


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as made:
        yield made


@pytest.fixture
def lake(served: Served, tmp_path: Path) -> VersionedLake:
    return VersionedLake(served.spark, tmp_path / "t")


def held(lake: VersionedLake, name: str = "look") -> list[set[int]]:
    """The files (by the order in which they were written) of each kept version, the newest first."""
    return [set(version.held) for version in lake.log.state.indexes[name].kept]


def looked_at(served: Served) -> None:
    """The session has not made these changes, so it is told of them."""
    served.lake._spark.changed("")


def rewrite(lake: VersionedLake, versions: int, keep: Keep) -> None:
    """Each version has two files of its own."""
    lake.write(0, 1)
    lake.create(*KINDS)
    for version in range(1, versions):
        lake.write(2 * version, 2 * version + 1)
        lake.refresh("full", keep)


def check(served: Served, lake: VersionedLake, version: int) -> None:
    """Rows by the current or the older versions of all kinds are those of a plain scan, and an index serves."""
    low = lake.keys(version)[ROWS - 3]
    for query in (
        lambda spark: lake.frame(version).where(f"k BETWEEN {low} AND {low + 5}").select("k", "v"),
        lambda spark: lake.frame(version).where(f"k = {low}").select("n"),
        lambda spark: lake.frame(version).where("v = 'v3'").select("k"),
        lambda spark: lake.frame(version).groupBy().count(),
    ):
        seen, expected = served.run(query), served.plain(query)
        assert seen.rows == expected.rows
        assert seen.used
    for choice in served.decision.choices:
        assert isinstance(choice, FromMetadata)


def test_every_version_of_a_rewritten_table_is_served(served: Served, lake: VersionedLake) -> None:
    rewrite(lake, 4, Keep(3))
    assert held(lake) == [{4, 5}, {2, 3}, {0, 1}]
    looked_at(served)
    for version in range(4):
        check(served, lake, version)
        frame = lake.frame(version).where(f"k = {lake.keys(version)[0]}").select("k", "v")
        told = served.lake.explain(frame)
        older = {name: number for one in told.to_dict()["choices"] for name, number in one["older_versions"].items()}
        assert set(older) == (set() if version == 3 else set(told.used))
        assert ("the older version" in str(told)) == (version < 3)


def test_lookups_ask_the_version_that_knows_most(lake: VersionedLake) -> None:
    rewrite(lake, 3, Keep(2))
    log = lake.log
    for version in range(3):
        listed = lake.listed(version)
        made = usable(log.state, log.store, listed)
        assert {pruner.name for pruner in made.pruners} == {"look", "skip"}
        assert set(made.older) == (set() if version == 2 else {"look", "skip"})
        key = lake.keys(version)[ROWS + 7]
        asked = normalise(bind(parse(f"k = {key}"), listed.reading.schema))
        found = Finder(made.pruners, listed.ids).find(asked, Reader(ByteCache(1 << 20)))
        assert (list(found.records), list(found.whole), found.used) == ([1], [], ("look",))
        assert found.known.all()
    assert usable(log.state, log.store).older == {}


def test_rows_of_files_that_the_newest_version_has_no_more_serve_those_before(
    served: Served, lake: VersionedLake
) -> None:
    lake.write(0, 1, 2)
    lake.create(*KINDS)
    lake.write(1, 2, 3)
    lake.refresh("quick")
    lake.refresh("incremental")
    index = lake.log.state.indexes["cover"]
    assert (index.covered, index.dormant, index.kept) == (FileIds.of([1, 2, 3]), FileIds.of([0]), ())
    looked_at(served)
    query = lambda spark: lake.frame(0).where("v = 'v3'").select("k")  # noqa: E731 - as `Served` takes it
    served.same(query, "cover")
    [choice] = served.decision.choices
    assert isinstance(choice, StandIn)
    assert (choice.direct, choice.drop, choice.version) == (False, FileIds.of([3]), None)
    check(served, lake, 0)
    check(served, lake, 1)
    assert lake.log.state.indexes["cover"].held == FileIds.of(range(4))


def test_what_a_merge_leaves_out_is_kept(served: Served, lake: VersionedLake) -> None:
    lake.write(0, 1, 2)
    lake.create(*KINDS)
    lake.write(1, 2)
    lake.refresh("quick")
    lake.optimize(Keep(1))
    assert held(lake) == [{0, 1, 2}]
    looked_at(served)
    check(served, lake, 0)
    lake.write(2, 3, 4, 5, 6, 7, 8)
    lake.refresh("incremental", Keep(1, 1 << 30))
    assert lake.log.state.indexes["look"].held == FileIds.of(range(2, 9)), "all runs were merged"
    assert held(lake) == [{1, 2}]
    looked_at(served)
    check(served, lake, 1)
    check(served, lake, 2)


def test_bytes_of_kept_versions_stay_until_they_fall_out_of_the_limits(lake: VersionedLake) -> None:
    rewrite(lake, 3, Keep(1))
    log = lake.log
    assert held(lake) == [{2, 3}]
    assert vacuum(log, limits=Limits(0)).objects > 0
    there = {one.path for one in log.store.list("data")}
    assert there == log.reload().state.content_paths
    assert all(index.kept for index in log.state.indexes.values())
    lake.write(6, 7)
    lake.refresh("full", Keep(0))
    assert vacuum(log, limits=Limits(0)).objects > 0
    assert not any(index.kept for index in log.reload().state.indexes.values())
    delete(log, "look")
    vacuum(log, limits=Limits(0))
    assert not any("/look/" in one.path for one in log.store.list("data"))


def test_of_a_deleted_index_the_older_versions_go_too(lake: VersionedLake) -> None:
    rewrite(lake, 2, Keep(1))
    log = lake.log
    delete(log, "cover")
    vacuum(log, limits=Limits(0))
    assert {one.path.split("/")[1] for one in log.store.list("data")} == {"look", "skip"}


def test_of_plain_files_nothing_is_kept(served: Served, tmp_path: Path) -> None:
    lake = VersionedLake(served.spark, tmp_path / "t", kind="plain")
    rewrite(lake, 2, Keep(5))
    assert held(lake) == []


def test_a_damaged_older_version_does_not_spoil_the_answer_or_the_current_one(
    served: Served, lake: VersionedLake
) -> None:
    rewrite(lake, 2, Keep(1))
    for version in (kept for index in lake.log.state.indexes.values() for kept in index.kept):
        for file in version.content:
            (lake.folder.parent / "_grebe" / "t" / file.path).unlink()
    looked_at(served)
    query = lambda spark: lake.frame(0).where("k = 3").select("k", "v")  # noqa: E731 - as `Served` takes it
    assert served.run(query).rows == served.plain(query).rows
    assert not [one for choice in served.decision.choices for one in indexes_of(choice)]
    current = lambda spark: lake.frame(1).where("v = 'v3'").select("k")  # noqa: E731 - as `Served` takes it
    served.same(current, "cover")


@pytest.mark.soak
def test_fifty_versions(served: Served, lake: VersionedLake) -> None:
    rewrite(lake, 50, Keep(49))
    looked_at(served)
    for version in range(50):
        check(served, lake, version)
