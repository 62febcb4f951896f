"""Where indexes may be put: never into the folder of a table, whoever's it is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grebe.errors import StoreRefused
from grebe.files import canonical_uri
from grebe.log.codec import encode_marker
from grebe.log.commit import Log
from grebe.log.entry import TableInfo
from grebe.log.location import beside
from grebe.maintenance.logs import Place
from grebe.store.local import LocalStore
from grebe.store.opening import open_store


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"rows")
    return path


def _other_indexes(other: Path) -> None:
    Log(LocalStore(other)).create(TableInfo("file:///elsewhere/t", "plain"))


def _other_with_indexes(other: Path) -> None:
    _file(other / "2024" / "part.parquet")
    Log(LocalStore(other.parent / "_grebe" / other.name)).create(TableInfo(other.as_uri(), "plain"))


OTHERS: dict[str, Callable[[Path], object]] = {
    "Delta Lake": lambda other: _file(other / "_delta_log" / f"{0:020d}.json"),
    "Hudi": lambda other: _file(other / ".hoodie" / "hoodie.properties"),
    "Iceberg": lambda other: _file(other / "metadata" / "v1.metadata.json"),
    "indexes": _other_indexes,
    "a table with indexes": _other_with_indexes,
    "files": lambda other: _file(other / "part-0.parquet"),
    "partitions": lambda other: _file(other / "day=1" / "part-0.parquet"),
}


def place(tmp_path: Path, location: Path) -> Place:
    return Place((tmp_path / "t").as_uri(), str(location), None, open_store)


@pytest.mark.parametrize("what", OTHERS)
def test_a_location_in_another_table_is_refused_and_nothing_is_written(tmp_path: Path, what: str) -> None:
    other = tmp_path / "other"
    OTHERS[what](other)
    wanted = place(tmp_path, other / "index")
    with pytest.raises(StoreRefused, match="location=") as refused:
        wanted.made(TableInfo(wanted.table, "plain"))
    assert refused.value.code == "STORE_REFUSED_LOCATION_IN_TABLE"
    assert not (other / "index").exists()


@pytest.mark.parametrize("what", ["Delta Lake", "Hudi", "Iceberg", "indexes", "a table with indexes"])
def test_a_location_deep_in_another_table_is_refused(tmp_path: Path, what: str) -> None:
    OTHERS[what](tmp_path / "other")
    wanted = place(tmp_path, tmp_path / "other" / "a" / "b")
    with pytest.raises(StoreRefused, match="LOCATION_IN_TABLE"):
        wanted.made(TableInfo(wanted.table, "plain"))


# What lies there, and the location.
IN_TABLES = {
    "a CSV table": (["other/a.csv", "other/b.csv"], "other/idx"),
    "a packed CSV table": (["other/a.csv.gz"], "other/idx"),
    "a JSON table": (["other/a.json"], "other/idx"),
    "a text table": (["other/a.txt"], "other/idx"),
    "a table of packed files": (["other/a.gz"], "other/idx"),
    "a CSV table with a note": (["other/a.csv", "other/b.csv", "other/README.md"], "other/idx"),
    "files of Hive": (["other/000000_0", "other/000001_0", "other/sub/notes.md"], "other/idx"),
    "files of Hadoop": (["other/part-00000", "other/sub/notes.md"], "other/idx"),
    "the output of a job": (["other/_SUCCESS"], "other/idx"),
    "the output of a stream": (["other/_spark_metadata/0", "other/x"], "other/deep/er/idx"),
    "CSV files of Spark, two levels up": (["other/part-00000-a.csv"], "other/deep/idx"),
    "CSV with a job's mark, three levels up": (["other/_SUCCESS", "other/a.csv"], "other/deep/er/idx"),
    "a Parquet table, two levels up": (["other/part-0.parquet", "other/sub/x"], "other/deep/idx"),
    "a Parquet table of other names, three levels up": (["other/a.parquet", "other/b.pq"], "other/deep/er/idx"),
    "an ORC table, two levels up": (["other/a.orc"], "other/deep/idx"),
    "a partition of a partition": (["other/a=1/b=1/a.csv"], "other/a=1/b=2/idx"),
    "a partition that is not there": (["other/a=1/a.parquet"], "other/a=2/idx"),
    "a folder beside partitions": (["other/a=1/a.bin"], "other/idx"),
    "a folder below one beside partitions": (["other/a=1/a.bin"], "other/deep/er/idx"),
    "a partition without anything beside it": ([], "other/a=1/deep/idx"),
    "a place named like a partition": ([], "other/a=1"),
    "a Parquet table named by Spark, beside a folder": (
        ["other/part-00000-1.c000.parquet", "other/sub/x"],
        "other/idx",
    ),
    "a Parquet table named by UUIDs, beside a folder": (
        ["other/3f2504e0-4f89-11d3-9a0c-0305e82c3301.parquet", "other/sub/x"],
        "other/idx",
    ),
    "a Parquet table of Dask, beside a folder": (["other/part.0.parquet", "other/sub/x"], "other/idx"),
    "a Parquet table of Snowflake, beside a folder": (["other/data_0_0_0.snappy.parquet", "other/sub/x"], "other/idx"),
    "a Parquet table that is numbered, beside a folder": (["other/000000000000.parquet", "other/sub/x"], "other/idx"),
    "a Parquet table of other names": (["other/a.parquet", "other/b.parquet"], "other/idx"),
    "a NULL partition": ([], "other/a=__HIVE_DEFAULT_PARTITION__/idx"),
}
NO_TABLES = {
    "a lake of several tables": (["lake/t/part-0.parquet", "lake/u/_delta_log/0.json", "lake/v/a=1/x.csv"], "lake/idx"),
    "a lake, further down": (["lake/t/part-0.parquet", "lake/u/_SUCCESS"], "lake/idx/deep"),
    "a stray CSV two levels up": (["home/stray.csv"], "home/lake/idx"),
    "a stray Parquet file two levels up": (["home/stray.parquet", "home/pictures/a.png"], "home/lake/idx"),
    "a stray Parquet file beside other folders": (
        ["home/stray.parquet", "home/documents/a", "home/pictures/b"],
        "home/idx",
    ),
    "tables of one file each beside other folders": (
        ["proj/orders.parquet", "proj/customers.parquet", "proj/t/x.parquet"],
        "proj/idx",
    ),
    "a Parquet file named by a year, two levels up": (["home/2024.parquet", "home/pictures/a.png"], "home/lake/idx"),
    "a project with texts": (["home/requirements.txt", "home/package.json", "home/src/a.py"], "home/idx"),
    "a lake with a stray CSV": (["lake/notes.csv", "lake/t/part-0.parquet"], "lake/idx"),
    "mostly other files": (["home/notes.txt", "home/a.png", "home/b.png"], "home/idx"),
    "hidden files": (["home/.profile.json", "home/_x.csv"], "home/idx"),
    "archives": (["home/a.tar.gz"], "home/idx"),
    "a root for all tables, one of them a partition": (
        ["all/day=1-0123456789abcdef/grebe.txt"],
        "all/t-0123456789abcdef",
    ),
}


@pytest.mark.parametrize("what", IN_TABLES)
def test_a_location_in_files_of_a_table_is_refused(tmp_path: Path, what: str) -> None:
    files, location = IN_TABLES[what]
    for file in files:
        _file(tmp_path / file)
    before = sorted(tmp_path.rglob("*"))
    wanted = place(tmp_path, tmp_path / location)
    with pytest.raises(StoreRefused, match="location=") as refused:
        wanted.made(TableInfo(wanted.table, "plain"))
    assert refused.value.code == "STORE_REFUSED_LOCATION_IN_TABLE"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("what", NO_TABLES)
def test_a_location_beside_tables_is_taken(tmp_path: Path, what: str) -> None:
    files, location = NO_TABLES[what]
    for file in files:
        _file(tmp_path / file)
    wanted = place(tmp_path, tmp_path / location)
    assert wanted.made(TableInfo(wanted.table, "plain")).state.table is not None


# What lies there, the table and the location; both are in the same folder.
OF_A_TENANT = ["b/tenant=a/orders/x.parquet", "b/tenant=a/customers/x.parquet", "b/tenant=b/orders/x.parquet"]
BESIDE_THE_TABLE = {
    "a folder of a tenant": (OF_A_TENANT, "b/tenant=a/orders", "b/tenant=a/indexes"),
    "a folder deep in that of a tenant": (OF_A_TENANT, "b/tenant=a/orders", "b/tenant=a/for/all/indexes"),
    "the folder of a job": (
        ["scratch/job=12/lake/orders/x.parquet"],
        "scratch/job=12/lake/orders",
        "scratch/job=12/idx",
    ),
    "the folder of a job with its output": (
        ["scratch/job=12/lake/orders/x.parquet", "scratch/job=12/log.txt", "scratch/job=13/log.txt"],
        "scratch/job=12/lake/orders",
        "scratch/job=12/idx",
    ),
    "the folder of a job beside one that is a Delta table": (
        ["b/job=1/orders/x.parquet", "b/job=2/_delta_log/0.json", "b/job=2/part-0.parquet"],
        "b/job=1/orders",
        "b/job=1/idx",
    ),
    "a partitioned table of a tenant": (["b/tenant=a/t/day=1/part-0.parquet"], "b/tenant=a/t", "b/tenant=a/idx"),
    "tenants in tenants": (["b/x=1/y=2/t/x.parquet", "b/x=1/y=3/t/x.parquet"], "b/x=1/y=2/t", "b/x=1/y=2/idx"),
    "a table of one file": (["proj/orders.parquet", "proj/customers.parquet"], "proj/orders.parquet", "proj/idx"),
    "a CSV table of one file": (["proj/a.csv", "proj/b.csv"], "proj/a.csv", "proj/idx"),
}
IN_THE_TABLE_AROUND = {
    "a log above": (
        ["b/_delta_log/0.json", "b/tenant=a/orders/x.parquet"],
        "b/tenant=a/orders",
        "b/tenant=a/idx",
    ),
    "the mark of a job above": (["b/_SUCCESS", "b/tenant=a/orders/x.parquet"], "b/tenant=a/orders", "b/tenant=a/idx"),
    "a data file in the partition": (
        ["b/tenant=a/x.parquet", "b/tenant=a/orders/x.parquet"],
        "b/tenant=a/orders",
        "b/tenant=a/idx",
    ),
    "a data file of a job in the partition, further up": (
        ["b/tenant=a/part-0.csv", "b/tenant=a/orders/x.csv"],
        "b/tenant=a/orders",
        "b/tenant=a/deep/idx",
    ),
    "a data file beside the partition": (
        ["b/x.parquet", "b/tenant=a/orders/x.parquet"],
        "b/tenant=a/orders",
        "b/tenant=a/idx",
    ),
    "a data file in another partition": (
        ["b/tenant=b/x.parquet", "b/tenant=a/orders/x.parquet"],
        "b/tenant=a/orders",
        "b/tenant=a/idx",
    ),
    "partitions in the partition": (
        ["b/tenant=a/day=1/x.parquet", "b/tenant=a/orders/x.parquet"],
        "b/tenant=a/orders",
        "b/tenant=a/idx",
    ),
    "a table that is a partition": (["b/tenant=a/day=1/x.parquet"], "b/tenant=a/day=1", "b/tenant=a/idx"),
    "the folder of another tenant": (OF_A_TENANT, "b/tenant=a/orders", "b/tenant=b/indexes"),
    "a file of the output of a job": (
        ["t/part-0.parquet", "t/part-1.parquet"],
        "t/part-0.parquet",
        "t/idx",
    ),
    "a table with indexes, of plain files": (["lake/a.parquet", "lake/b.parquet"], "lake/a.parquet", "lake/idx"),
}


@pytest.mark.parametrize("what", BESIDE_THE_TABLE)
def test_a_folder_that_the_whole_table_lies_in_may_hold_its_indexes(tmp_path: Path, what: str) -> None:
    files, table, location = BESIDE_THE_TABLE[what]
    for file in files:
        _file(tmp_path / file)
    wanted = Place(canonical_uri(str(tmp_path / table)), str(tmp_path / location), None, open_store)
    assert wanted.made(TableInfo(wanted.table, "plain")).state.table is not None
    for_all = Place(wanted.table, None, str(tmp_path / f"{location}-of-all"), open_store)
    assert for_all.made(TableInfo(for_all.table, "plain")).state.table is not None


@pytest.mark.parametrize("what", IN_THE_TABLE_AROUND)
def test_a_location_in_a_table_that_the_table_to_be_indexed_lies_in_is_refused(tmp_path: Path, what: str) -> None:
    files, table, location = IN_THE_TABLE_AROUND[what]
    for file in files:
        _file(tmp_path / file)
    if "with indexes" in what:
        lake = tmp_path / "lake"
        Log(LocalStore(tmp_path / "_grebe" / "lake")).create(TableInfo(lake.as_uri(), "plain"))
    before = sorted(tmp_path.rglob("*"))
    wanted = Place(canonical_uri(str(tmp_path / table)), str(tmp_path / location), None, open_store)
    with pytest.raises(StoreRefused, match="LOCATION_IN_TABLE"):
        wanted.made(TableInfo(wanted.table, "plain"))
    assert sorted(tmp_path.rglob("*")) == before


# What lies there, and the table, whose indexes would lie beside it.
PARTS_OF_TABLES = {
    "a partition": (["lake/p/day=1/x.parquet"], "lake/p/day=1"),
    "a file in a partition": (["lake/p/day=1/x.parquet"], "lake/p/day=1/x.parquet"),
    "a file of a job": (["lake/t/part-00000.parquet", "lake/t/part-00001.parquet"], "lake/t/part-00000.parquet"),
    "the only file of a job": (["lake/t/part-00000.csv"], "lake/t/part-00000.csv"),
    "a file of another name in the output of a job": (["lake/t/_SUCCESS", "lake/t/x.csv"], "lake/t/x.csv"),
    "a folder of a Delta table": (["lake/t/_delta_log/0.json", "lake/t/x/a.parquet"], "lake/t/x"),
    "a folder of an Iceberg table": (["lake/t/metadata/v1.metadata.json", "lake/t/data/a.parquet"], "lake/t/data"),
    "a folder deep in a Hudi table": (["lake/t/.hoodie/hoodie.properties", "lake/t/a/b/x.parquet"], "lake/t/a/b"),
    "a folder beside partitions": (["lake/t/day=1/x.parquet", "lake/t/other/x.parquet"], "lake/t/other"),
    "a folder beside the files of a job": (["lake/t/part-0.parquet", "lake/t/more/x.parquet"], "lake/t/more"),
    "a part of a table with indexes": (["lake/t/more/x.parquet", "lake/_grebe/t/grebe.json"], "lake/t/more"),
}
WHOLE_TABLES = {
    "one of several": (["lake/t/part-0.parquet", "lake/u/part-0.parquet", "lake/u/_SUCCESS"], "lake/t"),
    "a file beside others": (["lake/a.parquet", "lake/b.parquet"], "lake/a.parquet"),
    "the only file": (["lake/a.csv"], "lake/a.csv"),
    "a folder beside a file": (["lake/a.parquet", "lake/t/part-0.parquet"], "lake/t"),
    "a table beside others and a stray file of a job": (
        ["lake/part-0.parquet", "lake/t/x.csv", "lake/u/x.csv"],
        "lake/t",
    ),
    "a table of a tenant": (
        ["lake/tenant=a/orders/x.parquet", "lake/tenant=b/orders/x.parquet"],
        "lake/tenant=a/orders",
    ),
    "a table in a folder that a job has marked": (["lake/_SUCCESS", "lake/t/x.csv", "lake/u/x.csv"], "lake/t"),
    "a table of partitions": (["lake/t/day=1/x.parquet", "lake/_SUCCESS"], "lake/t"),
}


@pytest.mark.parametrize("what", PARTS_OF_TABLES)
def test_indexes_of_a_part_of_a_table_do_not_go_into_that_table(tmp_path: Path, what: str) -> None:
    files, table = PARTS_OF_TABLES[what]
    for file in files:
        _file(tmp_path / file)
    if what == "a part of a table with indexes":
        (tmp_path / files[1]).write_bytes(encode_marker((tmp_path / "lake" / "t").as_uri()))
    before = sorted(tmp_path.rglob("*"))
    wanted = Place(canonical_uri(str(tmp_path / table)), None, None, open_store)
    with pytest.raises(StoreRefused, match="location=") as refused:
        wanted.made(TableInfo(wanted.table, "plain"))
    assert refused.value.code == "STORE_REFUSED_LOCATION_IN_TABLE"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("what", WHOLE_TABLES)
def test_indexes_of_a_whole_table_lie_beside_it(tmp_path: Path, what: str) -> None:
    files, table = WHOLE_TABLES[what]
    for file in files:
        _file(tmp_path / file)
    wanted = Place(canonical_uri(str(tmp_path / table)), None, None, open_store)
    made = wanted.made(TableInfo(wanted.table, "plain"))
    assert made.store.uri == beside(wanted.table)


def test_a_table_that_is_called_like_a_partition_has_a_place_below_a_root(tmp_path: Path) -> None:
    for name in ("day=1", "day=2"):
        table = canonical_uri(str(tmp_path / name))
        made = Place(table, None, str(tmp_path / "all"), open_store).made(TableInfo(table, "plain"))
        assert made.store.uri.rpartition("/")[2].startswith(f"{name}-")


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("inside", ["", "empty", "empty/er"])
def test_a_link_that_leads_into_another_table_is_refused(tmp_path: Path, what: str, inside: str) -> None:
    other = tmp_path / "far" / "other"
    OTHERS[what](other)
    (other / "empty" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(other / inside)
    wanted = place(tmp_path, tmp_path / "link" / "idx")
    if inside and what in ("files", "partitions"):
        _file(other / "part-1.parquet")
    with pytest.raises(StoreRefused, match="location=") as refused:
        wanted.made(TableInfo(wanted.table, "plain"))
    assert refused.value.code == "STORE_REFUSED_LOCATION_IN_TABLE"
    assert not (other / inside / "idx").exists()


def test_a_link_to_an_empty_folder_in_another_table_is_refused(tmp_path: Path) -> None:
    OTHERS["Delta Lake"](tmp_path / "far" / "other")
    (tmp_path / "far" / "other" / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "other" / "empty")
    wanted = place(tmp_path, tmp_path / "link")
    with pytest.raises(StoreRefused, match="LOCATION_IN_TABLE"):
        wanted.made(TableInfo(wanted.table, "plain"))
    assert not any((tmp_path / "far" / "other" / "empty").iterdir())


def test_a_link_in_another_table_that_leads_out_of_it_is_refused(tmp_path: Path) -> None:
    """Engines follow it, and would take the indexes for data."""
    OTHERS["Delta Lake"](tmp_path / "other")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "other" / "link").symlink_to(tmp_path / "elsewhere")
    wanted = place(tmp_path, tmp_path / "other" / "link")
    with pytest.raises(StoreRefused, match="LOCATION_IN_TABLE"):
        wanted.made(TableInfo(wanted.table, "plain"))


def test_a_table_that_was_indexed_by_a_link_is_known_by_its_real_folder(tmp_path: Path) -> None:
    other = tmp_path / "real" / "other"
    _file(other / "2024" / "x.bin")
    (tmp_path / "lake").symlink_to(tmp_path / "real")
    Log(LocalStore(tmp_path / "lake" / "_grebe" / "other")).create(
        TableInfo((tmp_path / "lake" / "other").as_uri(), "plain")
    )
    wanted = place(tmp_path, other / "2024" / "idx")
    with pytest.raises(StoreRefused, match="is a table that has indexes"):
        wanted.made(TableInfo(wanted.table, "plain"))


def test_the_folder_of_another_table_is_refused(tmp_path: Path) -> None:
    _file(tmp_path / "other" / "part-0.parquet")
    wanted = place(tmp_path, tmp_path / "other")
    with pytest.raises(StoreRefused, match="LOCATION_NOT_EMPTY"):
        wanted.made(TableInfo(wanted.table, "plain"))
    assert [one.name for one in (tmp_path / "other").iterdir()] == ["part-0.parquet"]


def test_a_project_around_the_table_is_refused(tmp_path: Path) -> None:
    """Our folders there would have been called as the table is."""
    _file(tmp_path / "project" / "data" / "part-0.parquet")
    wanted = Place((tmp_path / "project" / "data").as_uri(), str(tmp_path / "project"), None, open_store)
    with pytest.raises(StoreRefused, match=r"LOCATION_OVERLAPS.*holds the table"):
        wanted.made(TableInfo(wanted.table, "plain"))


def test_an_empty_folder_and_one_that_is_not_there_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "new/er"):
        wanted = place(tmp_path, tmp_path / folder)
        made = wanted.made(TableInfo(wanted.table, "plain"))
        assert made.state.table is not None
        assert wanted.existing().state == made.state


@pytest.mark.parametrize("below", ["", "index"])
def test_a_location_that_is_a_link_to_nowhere_is_refused_as_one(tmp_path: Path, below: str) -> None:
    _file(tmp_path / "t" / "part-0.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    wanted = place(tmp_path, tmp_path / "link" / below)
    with pytest.raises(StoreRefused, match="is a link that leads nowhere"):
        wanted.made(TableInfo(wanted.table, "plain"))
