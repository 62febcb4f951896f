"""Where indexes may be put: never into the folder of a table, whoever's it is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grebe.errors import StoreRefused
from grebe.log.commit import Log
from grebe.log.entry import TableInfo
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
