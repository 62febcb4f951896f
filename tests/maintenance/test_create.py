"""Creating indexes: all or nothing, in one commit, whatever happens meanwhile."""

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.config import Config
from grebe.errors import (
    Conflict,
    CorruptIndex,
    GrebeError,
    IndexExists,
    InvalidIndex,
    SourceChanged,
    StoreRefused,
    TableNotFound,
    UnreadableFile,
    Unsupported,
)
from grebe.indexes.covering.spec import Covering
from grebe.log.entry import IndexSpec, Verb
from grebe.log.operation import begin
from grebe.session.lake_table import LakeTable
from tests.indexes.covering_lake import index_of, log_of, write
from tests.maintenance.disturbed import Disturbed, content_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MAPS = pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64()))
ROWS = pa.table({"id": pa.array([3, 1, 2], pa.int64()), "v": ["c", "a", "b"], "m": MAPS})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path / "t", [ROWS, ROWS])
    return tmp_path


@pytest.fixture
def table(spark: "SparkSession", lake: Path) -> LakeTable:
    return LakeTable(spark, str(lake / "t"))


@pytest.mark.core
def test_several_indexes_are_made_in_one_commit_and_described(table: LakeTable, lake: Path) -> None:
    told: list[tuple[str, str | None]] = []
    table._told = lambda uri, location: told.append((uri, location))
    assert table.indexes() == []
    assert table.history() == []
    by_id, by_v = table.create(Covering("by_id", on="id", include="v"), Covering("by_v", on="v", where="id > 1"))
    assert (by_id.name, by_id.kind, by_id.columns, by_id.state) == ("by_id", "covering", ("id",), "ACTIVE")
    assert (by_id.rows, by_v.rows) == (6, 4)
    assert (by_id.files_covered, by_id.files_stale, by_id.operations) == (2, 0, ())
    assert by_id.bytes == sum(
        (lake / "_grebe" / "t" / path).stat().st_size for path in content_files(lake, "t") if "by_id" in path
    )
    assert table.indexes() == [by_id, by_v]
    assert table.index("by_v") == by_v
    actions = ["create table", "create begin", "register files", "create commit"]
    assert [entry.action for entry in table.history()] == actions
    assert [entry.action for entry in table.history(limit=1)] == actions[-1:]
    assert told == [(table.uri, None)]


def test_the_log_lists_every_object_that_lies_there(table: LakeTable, lake: Path) -> None:
    table.create(Covering("by_id", on="id"), Covering("by_v", on="v", buckets=0))
    listed = {file.path for index in log_of(table.uri).state.indexes.values() for file in index.content}
    assert content_files(lake, "t") == listed


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ([Covering("i", on="nope")], "INVALID_INDEX_UNKNOWN_COLUMN"),
        ([Covering("i", on="m")], "INVALID_INDEX_KEY_TYPE"),
        ([Covering("i", on="id"), Covering("j", on="id", include="m")], "INVALID_INDEX_COLUMN_TYPE"),
        ([Covering("i", on="id"), Covering("i", on="v")], "INVALID_INDEX_NAME"),
        ([Covering("i", on="id", where="rand() < id")], "INVALID_INDEX_WHERE_OPAQUE"),
        ([], "INVALID_INDEX_SPEC"),
        (["i"], "INVALID_INDEX_KIND"),
    ],
)
def test_what_makes_no_sense_leaves_no_trace(table: LakeTable, lake: Path, kinds: list[Any], code: str) -> None:
    with pytest.raises(InvalidIndex) as refused:
        table.create(*kinds)
    assert refused.value.code == code
    assert not (lake / "_grebe").exists()


@pytest.mark.parametrize("name", ["a/b", "..", " ", "-a", "a" * 200])
def test_a_name_that_cannot_be_a_folder_is_refused(table: LakeTable, name: str) -> None:
    with pytest.raises(InvalidIndex, match="name of an index"):
        table.create(Covering(name, on="id"))


def test_an_index_that_exists_is_only_replaced_if_asked_to(table: LakeTable, lake: Path) -> None:
    (first,) = table.create(Covering("i", on="id"))
    with pytest.raises(IndexExists, match="replace=True"):
        table.create(Covering("i", on="v"))
    with pytest.raises(InvalidIndex, match="in case only"):
        table.create(Covering("I", on="v"))
    (second,) = table.create(Covering("i", on="v"), replace=True)
    assert second.version > first.version
    assert table.index("i").columns == ("v",)
    log = log_of(table.uri)
    assert set(log.state.retired) == content_files(lake, "t") - {file.path for file in log.state.indexes["i"].content}
    (new,) = table.create(Covering("new", on="v"), replace=True)
    assert new.state == "ACTIVE", "there may be nothing to replace"


def test_a_deleted_index_must_be_restored_or_replaced(table: LakeTable) -> None:
    table.create(Covering("i", on="id"))
    table.delete("i")
    with pytest.raises(IndexExists, match="restore"):
        table.create(Covering("i", on="v"))
    table.create(Covering("i", on="v"), replace=True)
    assert table.index("i").state == "ACTIVE"


def test_what_is_no_single_table_of_files_is_refused(spark: "SparkSession", lake: Path) -> None:
    frame = spark.read.format("parquet").load(str(lake / "t"))
    frame.createOrReplaceTempView("a_view_of_it")
    for source in (frame.where("id > 1"), frame.union(frame), spark.range(3), "a_view_of_it"):
        with pytest.raises(GrebeError) as refused:
            LakeTable(spark, source).create(Covering("i", on="id"))
        assert isinstance(refused.value, InvalidIndex | Unsupported | TableNotFound), source
    with pytest.raises(
        InvalidIndex, match=r"the DataFrame does not read one table of files.*give the table itself"
    ) as refused:
        LakeTable(spark, frame.where("id > 1"))
    assert refused.value.code == "INVALID_INDEX_NOT_ONE_TABLE"
    with pytest.raises(TableNotFound):
        LakeTable(spark, str(lake / "nowhere"))
    file = next((lake / "t").glob("*.parquet"))
    alone = lake / "alone.parquet"
    alone.write_bytes(file.read_bytes())
    with pytest.raises(Unsupported, match="name its folder") as single:
        LakeTable(spark, str(alone)).create(Covering("i", on="id"))
    assert single.value.code == "UNSUPPORTED_SINGLE_FILE"
    (made,) = LakeTable(spark, frame).create(Covering("i", on="id"))
    assert made.rows == 6


def test_indexes_lie_where_they_are_told_to(spark: "SparkSession", lake: Path) -> None:
    source, elsewhere, shared = str(lake / "t"), str(lake / "elsewhere"), str(lake / "shared")
    LakeTable(spark, source, location=elsewhere).create(Covering("there", on="id"))
    LakeTable(spark, source, config=Config(location=shared)).create(Covering("shared", on="id"))
    assert not (lake / "_grebe").exists()
    assert [i.name for i in LakeTable(spark, source, location=elsewhere).indexes()] == ["there"]
    assert [i.name for i in LakeTable(spark, source, config=Config(location=shared)).indexes()] == ["shared"]
    assert LakeTable(spark, source).indexes() == []
    write(lake / "other", [ROWS])
    with pytest.raises(Conflict, match=r"\[CONFLICT_OTHER_TABLE\].*another table"):
        LakeTable(spark, str(lake / "other"), location=elsewhere).create(Covering("i", on="id"))


def test_a_place_that_cannot_be_written_is_refused_with_a_hint(spark: "SparkSession", lake: Path) -> None:
    (lake / "_grebe").write_text("a file where the folder should be")
    with pytest.raises(StoreRefused):
        LakeTable(spark, str(lake / "t")).create(Covering("i", on="id"))
    table = LakeTable(spark, str(lake / "t"), location=str(lake / "elsewhere"))
    assert table.create(Covering("i", on="id"))[0].rows == 6


@pytest.fixture
def forbidden(lake: Path) -> Iterator[Path]:
    lake.chmod(0o555)
    try:
        (lake / "probe").write_text("")
    except PermissionError:
        yield lake
    else:
        (lake / "probe").unlink()
        pytest.skip("this user may write everywhere")
    finally:
        lake.chmod(0o755)


def test_without_permission_the_way_out_is_named(spark: "SparkSession", forbidden: Path) -> None:
    with pytest.raises(StoreRefused, match="location="):
        LakeTable(spark, str(forbidden / "t")).create(Covering("i", on="id"))


def expect_nothing_changed(table: LakeTable, lake: Path) -> None:
    assert table.indexes() == []
    assert content_files(lake, "t") == set(), "what was written has been removed"
    assert not log_of(table.uri).state.operations


@pytest.mark.parametrize("change", ["rewritten", "gone"])
def test_files_that_change_while_they_are_read_are_not_indexed(table: LakeTable, lake: Path, change: str) -> None:
    victim = lake / "t" / "part-1.parquet"

    def rewrite() -> None:
        pq.write_table(ROWS.slice(1), victim)

    with pytest.raises(
        SourceChanged, match=r"1 of the 2 files .*part-1\.parquet; nothing was changed. Try again"
    ) as refused:
        table.create(Disturbed("i", on="id", written=rewrite if change == "rewritten" else victim.unlink))
    assert refused.value.code == "SOURCE_CHANGED_WHILE_BUILDING"
    expect_nothing_changed(table, lake)
    (made,) = table.create(Covering("i", on="id"))
    assert made.rows == (5 if change == "rewritten" else 3)


def test_files_that_come_while_others_are_read_are_left_for_later(table: LakeTable, lake: Path) -> None:
    (made,) = table.create(Disturbed("i", on="id", written=lambda: pq.write_table(ROWS, lake / "t" / "new.parquet")))
    assert (made.rows, made.files_covered, made.files_stale) == (6, 2, 1)


def test_a_fault_in_the_middle_leaves_nothing_behind(table: LakeTable, lake: Path) -> None:
    def fail() -> None:
        assert content_files(lake, "t")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.create(Covering("whole", on="v"), Disturbed("i", on="id", written=fail))
    expect_nothing_changed(table, lake)
    assert table.history()[-1].changes == ("rolled back: cancelled by the user",)


@pytest.mark.parametrize("where", [None, "id >= 0"])
def test_rows_that_are_lost_on_the_way_are_noticed(table: LakeTable, lake: Path, where: str | None) -> None:
    with pytest.raises(CorruptIndex, match="1 rows were written of 6") as noticed:
        table.create(Disturbed("i", on="id", where=where, lose=True))
    assert noticed.value.code == "CORRUPT_INDEX_ROWS"
    expect_nothing_changed(table, lake)


def test_a_file_that_is_no_parquet_is_an_error_of_ours(spark: "SparkSession", lake: Path) -> None:
    frame = spark.read.schema("id BIGINT, v STRING").format("parquet").load(str(lake / "t"))
    (lake / "t" / "broken.parquet").write_bytes(b"this is no Parquet file, but says so")
    with pytest.raises(GrebeError) as refused:
        LakeTable(spark, frame).create(Covering("i", on="id", buckets=1))
    assert isinstance(refused.value, UnreadableFile)
    expect_nothing_changed(LakeTable(spark, frame), lake)


def test_racing_creates_of_different_names_both_succeed(spark: "SparkSession", lake: Path) -> None:
    together = threading.Barrier(2, timeout=60)
    tables = [LakeTable(spark, str(lake / "t")) for _ in range(2)]
    kinds = [Disturbed(name, on=on, written=together.wait) for name, on in (("by_id", "id"), ("by_v", "v"))]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda table, kind: table.create(kind), tables, kinds))
    assert [info.name for infos in made for info in infos] == ["by_id", "by_v"]
    assert [info.rows for info in tables[0].indexes()] == [6, 6]


def test_of_racing_creates_of_one_name_one_wins_and_the_other_leaves_nothing(spark: "SparkSession", lake: Path) -> None:
    together = threading.Barrier(2, timeout=60)

    def create(on: str) -> object:
        try:
            return LakeTable(spark, str(lake / "t")).create(Disturbed("i", on=on, written=together.wait))
        except Conflict as lost:
            return lost

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(create, ["id", "v"]))
    assert sum(isinstance(result, Conflict) for result in results) == 1
    state = log_of(str(lake / "t")).state
    assert content_files(lake, "t") == {file.path for file in state.indexes["i"].content}


def _begin_and_die(table: str) -> None:
    begin(log_of(table), Verb.CREATE, ["i"], {"i": IndexSpec("covering", ("id",))})


def test_an_operation_whose_process_died_is_in_nobodys_way(table: LakeTable) -> None:
    table.create(Covering("other", on="id"))
    process = multiprocessing.get_context("spawn").Process(target=_begin_and_die, args=(table.uri,))
    process.start()
    process.join()
    assert table.index("i").state == "CREATING"
    (made,) = table.create(Covering("i", on="id"))
    assert made.state == "ACTIVE"


@pytest.mark.core
def test_a_path_alone_is_read_as_when_the_first_index_was_made(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("id;at;f\n1;2024-01-01 00:00:00;-\n2;-;1.5\n", encoding="utf-8")
    options = {"header": "true", "sep": ";", "nullValue": "-"}
    schema = "id BIGINT, at TIMESTAMP, f DOUBLE"
    frame = spark.read.schema(schema).options(**options).format("csv").load(str(tmp_path / "t"))
    LakeTable(spark, frame).create(Covering("i", on="id", include=["at", "f"]))
    (tmp_path / "t" / "b.csv").write_text("id;at;f\n3;2024-05-01 00:00:00;2\n", encoding="utf-8")
    again = LakeTable(spark, str(tmp_path / "t"))
    assert again._source.reading == LakeTable(spark, frame)._source.reading
    (info,) = again.refresh()
    assert (info.rows, info.files_stale) == (3, 0)
    assert index_of(again.uri, "i").rows("id", "f") == {("1", "None"): 1, ("2", "1.5"): 1, ("3", "2.0"): 1}
