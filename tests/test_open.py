"""Opening a table without Spark: its indexes and its history, wherever the log lies."""

import logging
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.files import FileIds, canonical_uri, path_given
from grebe.log import codec, names
from grebe.log.commit import Log
from grebe.log.entry import ContentFile, IndexCreated, IndexSpec, TableInfo, Verb
from grebe.log.location import below, beside
from grebe.log.operation import begin
from grebe.log.registration import Registry
from grebe.sources import open_source
from grebe.store.opening import open_store

SPEC = IndexSpec("lookup", ("id",), {"include": []})


def write(table: Path, *names: str) -> None:
    for name in names:
        place = table / name
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2, 3]}), place)


def index(table: Path, location: str, name: str = "by_id") -> Log:
    """A log at `location` with an index that covers all files of now."""
    source = open_source(str(table))
    log = Log(open_store(location)).create(TableInfo(source.uri, source.kind))
    ids = FileIds.of(Registry(log).register(source.files()).to_numpy())
    with begin(log, Verb.CREATE, [name], {name: SPEC}) as operation:
        content = (ContentFile(f"{operation.folder(name)}/part-0.gix", 7, rows=3),)
        operation.commit(lambda state: [IndexCreated(name, SPEC, operation.version, content, ids)])
    return log


@pytest.mark.parametrize("name", ["orders", "my orders", "100% #1", "größe", "a=b"])
def test_an_index_is_found_beside_its_table(tmp_path: Path, name: str) -> None:
    table = tmp_path / name
    write(table, "a.parquet", "b.parquet")
    assert grebe.open(str(table)).indexes() == []
    index(table, beside(canonical_uri(str(table))))
    (info,) = grebe.open(str(table)).indexes()
    assert (info.name, info.kind, info.state, info.files_covered, info.files_stale) == (
        "by_id",
        "lookup",
        "ACTIVE",
        2,
        0,
    )
    assert {p.name for p in tmp_path.iterdir()} == {name, "_grebe"}, "the table itself is left alone"


def test_other_engines_go_on_seeing_just_their_table(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    write(table, "day=1/a.parquet", "day=2/b.parquet")
    log = index(table, beside(canonical_uri(str(table))))
    log.store.put(log.state.indexes["by_id"].content[0].path, b"whatever an index holds")
    everything = f"SELECT count(*) FROM read_parquet('{tmp_path}/**/*.parquet')"
    assert duckdb.execute(everything).fetchall() == [(6,)]
    assert polars.scan_parquet(table).collect().height == 6
    assert ds.dataset(table, format="parquet", partitioning="hive").count_rows() == 6


def test_what_changes_makes_an_index_stale_after_a_reload(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    write(table, "a.parquet", "b.parquet")
    index(table, beside(canonical_uri(str(table))))
    opened = grebe.open(str(table))
    (table / "a.parquet").unlink()
    write(table, "c.parquet")
    assert opened.index("by_id").files_stale == 0
    stale = opened.reload().index("by_id")
    assert (stale.files_covered, stale.files_stale) == (1, 2)


def test_a_part_of_a_table_uses_the_log_of_the_whole(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    write(table, "day=1/a.parquet", "day=2/b.parquet")
    index(table, beside(canonical_uri(str(table))))
    info = grebe.open(str(table / "day=1")).index("by_id")
    assert info.files_covered == 1


def test_a_location_may_be_named_or_set_for_all_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "orders"
    write(table, "a.parquet")
    elsewhere, root = tmp_path / "elsewhere", canonical_uri(str(tmp_path / "indexes"))
    index(table, str(elsewhere), "named")
    index(table, below(root, canonical_uri(str(table))), "set")
    assert grebe.open(str(table)).indexes() == []
    assert [i.name for i in grebe.open(str(table), location=str(elsewhere)).indexes()] == ["named"]
    assert [i.name for i in grebe.open(str(table), config=grebe.Config(location=root)).indexes()] == ["set"]
    monkeypatch.setenv("GREBE_LOCATION", root)
    assert [i.name for i in grebe.open(str(table)).indexes()] == ["set"]


def test_the_history_is_told_from_the_first_entry_to_the_last(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    write(table, "a.parquet")
    assert grebe.open(str(table)).history() == []
    index(table, beside(canonical_uri(str(table))))
    told = grebe.open(str(table)).history()
    assert [e.action for e in told] == ["create table", "register files", "create begin", "create commit"]
    assert grebe.open(str(table)).history(limit=1) == told[-1:]


def test_a_folder_that_is_no_table_and_an_index_that_is_not_there_say_so(tmp_path: Path) -> None:
    with pytest.raises(grebe.TableNotFound, match="nowhere"):
        grebe.open(str(tmp_path / "nowhere"))
    write(tmp_path / "t", "a.parquet")
    with pytest.raises(grebe.IndexNotFound, match="none yet"):
        grebe.open(str(tmp_path / "t")).index("x")


def test_a_log_of_a_newer_format_means_no_index_and_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = tmp_path / "orders"
    write(table, "a.parquet")
    log = index(table, beside(canonical_uri(str(table))))
    log.store.put(names.entry_path(log.newest.number + 1), codec._seal({"grebe": 99})[0])
    with caplog.at_level(logging.WARNING, "grebe"):
        assert grebe.open(str(table)).indexes() == []
    assert "Upgrade Grebe" in caplog.text


def test_a_damaged_log_is_an_error(tmp_path: Path) -> None:
    table = tmp_path / "orders"
    write(table, "a.parquet")
    log = index(table, beside(canonical_uri(str(table))))
    log.store.put(names.entry_path(log.newest.number), b"{}")
    with pytest.raises(grebe.CorruptLog):
        grebe.open(str(table))


@pytest.mark.parametrize("asked", [{"version": 0}, {"version": "v"}, {"timestamp": "2024-05-01"}])
def test_plain_files_keep_no_versions(tmp_path: Path, asked: dict[str, Any]) -> None:
    write(tmp_path / "t", "a.parquet")
    with pytest.raises(grebe.Unsupported):
        grebe.open(str(tmp_path / "t"), **asked)


def test_columns_are_a_list(tmp_path: Path) -> None:
    write(tmp_path / "t", "a.parquet")
    with pytest.raises(
        grebe.InvalidPredicate, match=r"columns='id' is one text; give a list: columns=\['id'\]"
    ) as refused:
        grebe.open(str(tmp_path / "t")).get("id", 1, columns="id")
    assert refused.value.code == "INVALID_PREDICATE_COLUMNS"


def test_every_public_name_can_be_used() -> None:
    assert all(getattr(grebe, name) is not None for name in grebe.__all__)
    assert dir(grebe) == grebe.__all__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = grebe.nonsense


def test_a_path_may_be_one_of_pathlib_and_begin_with_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, elsewhere = tmp_path / "home" / "lake" / "orders", tmp_path / "home" / "indexes"
    write(table, "a.parquet")
    index(table, str(elsewhere))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home" / "lake")
    for path in (table, Path("orders"), Path("~/lake/orders"), "~/lake/orders"):
        for location in (elsewhere, "~/indexes", Path("~/indexes")):
            assert [info.name for info in grebe.open(path, location=location).indexes()] == ["by_id"]
        assert grebe.open(path, config=grebe.Config(location="~/other")).indexes() == []
        assert [found.row for found in grebe.find([2], tables=[path])] == [1]
    assert [found.row for found in grebe.find([2], tables=table)] == [1]


def test_a_uri_that_went_through_pathlib_names_the_same_place() -> None:
    uri = "s3://lake/orders"
    assert path_given(Path(uri)) == path_given(uri) == uri
    assert canonical_uri(path_given(Path("file:///lake/orders"))) == "file:///lake/orders"


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert grebe.__version__ == project["project"]["version"]
