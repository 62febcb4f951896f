"""Hyperspace's names: on or off, which table a name means, and what the rows of `indexes` and `index` say."""

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.compat.hyperspace import CoveringIndexConfig, Hyperspace, IndexConfig, ZOrderCoveringIndexConfig
from grebe.compat.hyperspace.settings import PREFIX
from tests.spark.served import executed, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
FILE = {"id": list(range(100)), "town": ["Ulm", "Bonn"] * 50, "price": [float(n) for n in range(100)]}


@pytest.fixture
def goods(tmp_path: Path) -> str:
    return write(tmp_path / "goods", FILE, FILE)


def row(hyperspace: Hyperspace, name: str) -> Any:
    (found,) = hyperspace.index(name).collect()
    return found


def test_the_star_brings_the_names_that_it_brings_in_hyperspace() -> None:
    names = {"CoveringIndexConfig", "Hyperspace", "IndexConfig", "ZOrderCoveringIndexConfig"}
    assert set(importlib.import_module("grebe.compat.hyperspace").__all__) == names
    assert IndexConfig is CoveringIndexConfig


def test_queries_are_left_alone_until_it_is_enabled_and_once_it_is_disabled(
    session: "SparkSession", hyperspace: Hyperspace, goods: str
) -> None:
    hyperspace.createIndex(session.read.parquet(goods), IndexConfig("by_id", ["id"], ["town"]))

    def uses_the_index() -> bool:
        query = session.read.parquet(goods).filter("id = 7").select("town")
        assert [found.town for found in query.collect()] == ["Bonn", "Bonn"]
        return "by_id" in "\n".join(executed(query))

    told: list[str] = []
    hyperspace.explain(session.read.parquet(goods).filter("id = 7").select("town"), redirectFunc=told.append)
    assert "by_id, 1 of" in told[0], "what it would do is told in any case"
    assert not Hyperspace.isEnabled(session)
    assert not uses_the_index()
    assert Hyperspace.enable(session) is session
    assert Hyperspace.isEnabled(session)
    assert uses_the_index()
    assert Hyperspace.disable(session) is session
    assert not Hyperspace.isEnabled(session)
    assert not uses_the_index()


def test_what_the_rows_of_indexes_say(
    session: "SparkSession", hyperspace: Hyperspace, goods: str, tmp_path: Path
) -> None:
    assert hyperspace.indexes().collect() == []
    session.conf.set(PREFIX + "index.numBuckets", 3)
    hyperspace.createIndex(session.read.parquet(goods), IndexConfig(" by  id ", ["id"], ["town"]))
    (listed,) = hyperspace.indexes().collect()
    assert (listed.name, listed.state, listed.numBuckets) == ("by_id", "ACTIVE", 3)
    assert (listed.indexedColumns, listed.includedColumns) == (["id"], ["town"])
    assert [column["name"] for column in json.loads(listed.schema)["fields"]] == ["id", "town"]
    assert listed.indexLocation.startswith((tmp_path / "indexes").as_uri())
    assert listed.additionalStats["numBuckets"] == "3"

    write(tmp_path / "goods", FILE)
    (tmp_path / "goods" / "part-000.parquet").unlink()
    one = row(hyperspace, "by_id")
    assert (one.kind, one.numSourceFiles, one.numAppendedFiles, one.numDeletedFiles) == ("CoveringIndex", 2, 1, 1)
    assert one.numIndexFiles >= 1
    assert one.sizeIndexFiles == sum(
        file.stat().st_size
        for folder in one.indexContentPaths
        for file in Path(folder.removeprefix("file://")).iterdir()
    )


def test_a_z_order_index_lies_along_a_z_curve(session: "SparkSession", hyperspace: Hyperspace, goods: str) -> None:
    frame = session.read.parquet(goods)
    hyperspace.createIndex(frame, ZOrderCoveringIndexConfig("by both", ["price", "id"], ["town"]))
    made = row(hyperspace, "by_both")
    assert (made.kind, made.numBuckets, made.includedColumns) == ("ZOrderCoveringIndex", None, ["town"])
    Hyperspace.enable(session)
    query = session.read.parquet(goods).filter("price < 7 AND id > 3").select("town")
    assert [found.town for found in query.collect()].count("Ulm") == 4
    assert "by_both" in "\n".join(executed(query))


def test_a_session_that_has_met_no_table_finds_those_below_the_system_path(
    session: "SparkSession", hyperspace: Hyperspace, goods: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hyperspace.createIndex(session.read.parquet(goods), IndexConfig("by_id", ["id"], ["town"]))
    write(tmp_path / "indexes" / "old" / "v__=0", FILE)  # as Hyperspace itself may have left it
    monkeypatch.setattr(grebe.Lake, "tables", lambda lake: [])
    assert [found.name for found in Hyperspace(session).indexes().collect()] == ["by_id"]
    hyperspace.deleteIndex("by_id")
    assert row(hyperspace, "by_id").state == "DELETED"
    session.conf.set(PREFIX + "system.path", str(tmp_path / "elsewhere"))
    assert hyperspace.indexes().collect() == []


def test_without_a_system_path_indexes_lie_beside_their_table(
    session: "SparkSession", goods: str, tmp_path: Path
) -> None:
    hyperspace = Hyperspace(session)
    hyperspace.createIndex(session.read.parquet(goods), IndexConfig("beside_goods", ["id"], ["town"]))
    assert row(hyperspace, "beside_goods").indexLocation.startswith((tmp_path / "_grebe" / "goods").as_uri())
    hyperspace.refreshIndex("beside_goods", "quick")
    hyperspace.cancel("beside_goods")
    assert row(hyperspace, "beside_goods").state == "ACTIVE"


def test_a_name_means_one_table(session: "SparkSession", hyperspace: Hyperspace, goods: str, tmp_path: Path) -> None:
    more = write(tmp_path / "more", FILE)
    hyperspace.createIndex(session.read.parquet(goods), IndexConfig("by_id", ["id"], ["town"]))
    with pytest.raises(grebe.IndexExists) as taken:
        hyperspace.createIndex(session.read.parquet(more), IndexConfig("by_id", ["id"], ["town"]))
    assert taken.value.code == "INDEX_EXISTS_OTHER_TABLE"
    with pytest.raises(grebe.IndexExists):
        hyperspace.createIndex(session.read.parquet(goods), IndexConfig("by_id", ["id"], ["town"]))

    in_system_path = grebe.attach(session, grebe.Config(location=str(tmp_path / "indexes")))
    in_system_path.table(more).create(grebe.Covering("by_id", on="id"))
    with pytest.raises(grebe.Conflict, match=r"goods, .*more; say which one is meant .*table") as unclear:
        hyperspace.deleteIndex("by_id")
    assert unclear.value.code == "CONFLICT_SEVERAL_TABLES"
    with pytest.raises(grebe.IndexNotFound, match="there are: by_id"):
        hyperspace.deleteIndex("by_price")


def test_a_name_means_the_index_in_the_system_path_first(
    session: "SparkSession", hyperspace: Hyperspace, goods: str, tmp_path: Path
) -> None:
    beside = grebe.attach(session).table(write(tmp_path / "more", FILE))
    beside.create(grebe.Covering("by_id", on="id"))
    assert row(hyperspace, "by_id").indexLocation.startswith((tmp_path / "_grebe" / "more").as_uri())
    hyperspace.createIndex(session.read.parquet(goods), IndexConfig("by_id", ["id"], ["town"]))
    assert [found.name for found in hyperspace.indexes().collect()] == ["by_id"]
    hyperspace.deleteIndex("by_id")
    assert row(hyperspace, "by_id").indexLocation.startswith((tmp_path / "indexes").as_uri())
    assert [index.state for index in beside.indexes()] == ["ACTIVE"]


def test_what_is_no_config_is_refused(session: "SparkSession", hyperspace: Hyperspace, goods: str) -> None:
    with pytest.raises(grebe.InvalidIndex, match="give an IndexConfig"):
        hyperspace.createIndex(session.read.parquet(goods), "id")  # type: ignore[arg-type]  # that is the point


def test_why_not_tells_the_reason_of_each_index_or_of_one(
    session: "SparkSession", hyperspace: Hyperspace, goods: str
) -> None:
    frame = session.read.parquet(goods)
    hyperspace.createIndex(frame, IndexConfig("by_id", ["id"], []))
    hyperspace.createIndex(frame, IndexConfig("by_town", ["town"], []))
    query, told = frame.filter("id = 7").select("town"), list[str]()
    hyperspace.whyNot(query, redirectFunc=told.append)
    hyperspace.whyNot(query, "by_id", extended=True, redirectFunc=told.append)
    hyperspace.whyNot(frame.filter("id = 7").select("id"), "by_id", redirectFunc=told.append)
    every, one, none = told
    assert "by_id [MISSING_REQUIRED_COL]" in every
    assert "by_town [" in every
    assert "by_id [MISSING_REQUIRED_COL]" in one
    assert "columns = " in one
    assert "by_town" not in one
    assert none == "No index was left out."


def test_settings_that_grebe_has_too_are_honoured(session: "SparkSession", hyperspace: Hyperspace, goods: str) -> None:
    session.conf.set(PREFIX + "index.lineage.enabled", "false")
    session.conf.set(PREFIX + "explain.displayMode", "html")
    frame = session.read.parquet(goods)
    hyperspace.createIndex(frame, IndexConfig("by_id", ["id"], ["town"]))
    assert row(hyperspace, "by_id").additionalStats["hasLineage"] == "false"
    told: list[str] = []
    hyperspace.explain(frame.filter("id = 7").select("town"), redirectFunc=told.append)
    assert told[0].startswith("<")


def test_other_settings_of_hyperspace_are_ignored_with_one_warning(
    session: "SparkSession", hyperspace: Hyperspace, caplog: pytest.LogCaptureFixture
) -> None:
    session.conf.set(PREFIX + "index.optimize.fileSizeThreshold", "1000")
    hyperspace.indexes()
    hyperspace.indexes()
    warned = [record.getMessage() for record in caplog.records if record.name == "grebe.compat"]
    assert warned == ["event=hyperspace_setting_ignored name=spark.hyperspace.index.optimize.fileSizeThreshold"]


@pytest.mark.parametrize("name", ["index.numBuckets", "index.lineage.enabled", "explain.displayMode"])
def test_a_setting_that_makes_no_sense_is_named(session: "SparkSession", hyperspace: Hyperspace, name: str) -> None:
    session.conf.set(PREFIX + name, "perhaps")
    with pytest.raises(grebe.GrebeError, match=f"{name}.*'perhaps'") as refused:
        hyperspace.indexes()
    assert refused.value.code == "INVALID_CONFIG_VALUE"
