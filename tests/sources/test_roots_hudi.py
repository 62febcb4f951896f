"""Timelines and properties of Hudi that name places outside of their table: nothing there is opened, by the package hudi either."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import GrebeError, UnreadableFile, Unsupported
from grebe.sources import hudi, roots
from tests.sources.elsewhere import ROWS, make_pipe, opened_in

INSTANT = "20240101000000000"
BASE_FILE = f"a1b2c3-0_0-0-0_{INSTANT}.parquet"
HUDI_PROPERTIES = (
    "hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\nhoodie.timeline.layout.version=1\n"
)
META_FIELDS = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")


def _hudi(table: Path, *, properties: str = "", with_schema: bool = True, partition: str = "", **stat: str) -> Path:
    """A table of Hudi with one commit of one file of ten rows, whose metadata may say anything."""
    timeline = table / ".hoodie"
    timeline.mkdir(parents=True, exist_ok=True)
    (timeline / "hoodie.properties").write_text(HUDI_PROPERTIES + properties)
    pq.write_table(
        pa.table({**{f"_hoodie_{one}": ["x"] * 10 for one in META_FIELDS}, "id": ROWS["id"]}), table / BASE_FILE
    )
    written = {"fileId": "a1b2c3-0", "path": BASE_FILE, "prevCommit": "null", "partitionPath": partition, **stat}
    schema = {"type": "record", "name": "t", "fields": [{"name": "id", "type": ["null", "long"], "default": None}]}
    commit = {
        "partitionToWriteStats": {
            partition: [{**written, "numWrites": 10, "fileSizeInBytes": (table / BASE_FILE).stat().st_size}]
        },
        "compacted": False,
        "extraMetadata": {"schema": json.dumps(schema)} if with_schema else {},
        "operationType": "BULK_INSERT",
    }
    (timeline / f"{INSTANT}.commit").write_text(json.dumps(commit))
    return table


def _hudi_rows(table: Path) -> list[int]:
    found = grebe.open(str(table), format="hudi").scan("id >= 0")
    return sorted(found["id"].to_pylist())


def test_hudi_metadata_that_names_a_file_elsewhere_opens_nothing_there(
    tmp_path: Path, hr: Path, heard: tuple[str, list[str]]
) -> None:
    """The package takes each path for one below the table, whatever it looks like: what it then finds is the table's own."""
    url, asked = heard
    table = tmp_path / "t"
    assert _hudi_rows(_hudi(table)) == list(range(10))
    (hr.parent / BASE_FILE).write_bytes(hr.read_bytes())
    places = (
        f"../hr/{BASE_FILE}",
        f"x/../../hr/{BASE_FILE}",
        f"%2e%2e/hr/{BASE_FILE}",
        f"..\\hr\\{BASE_FILE}",
        str(hr.parent / BASE_FILE),
        (hr.parent / BASE_FILE).as_uri(),
        f"{url}/{BASE_FILE}",
        f"s3://another/{BASE_FILE}",
    )
    forgeries: list[dict[str, Any]] = []
    for place in places:
        folder = place.rpartition("/")[0] or place
        forgeries += [{"path": place}, {"path": place, "with_schema": False}, {"partition": folder}]
        forgeries += [{"baseFile": place}, {"fileId": place}, {"partition": folder, "path": place}]
        for name in ("timeline.path", "timeline.history.path", "archivelog.folder"):
            forgeries.append({"properties": f"hoodie.{name}={folder}\nhoodie.timeline.layout.version=2\n"})
    with opened_in(hr.parent) as opened:
        for forged in forgeries:
            try:
                rows = _hudi_rows(_hudi(table, **forged))
            except GrebeError:
                continue
            assert rows in (list(range(10)), []), forged
    assert not opened
    assert not asked


@pytest.mark.parametrize("of", ["the table", "its metadata"])
def test_a_hudi_table_that_says_it_lies_elsewhere_is_refused(
    tmp_path: Path, hr: Path, heard: tuple[str, list[str]], of: str
) -> None:
    url, asked = heard
    table = _hudi(tmp_path / "t")
    _hudi(hr.parent)
    for place in (
        hr.parent.as_uri(),
        str(hr.parent),
        f"{table.as_uri()}/../hr",
        f"{url}/t",
        "s3://another/t",
        "hr",
        "",
    ):
        for line in (
            f"hoodie.base.path={place}",
            f"\t hoodie.base.path \t=\v{place} ",
            f"a=b\nhoodie.base.path={place}",
        ):
            if of == "the table":
                _hudi(table, properties=f"hoodie.metadata.enable=true\n{line}\n")
            else:
                _hudi(table / ".hoodie" / "metadata", properties=f"{line}\n")
            with (
                opened_in(hr.parent) as opened,
                pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\].*nothing there was read"),
            ):
                _hudi_rows(table)
            assert not opened
    assert not asked


def test_a_hudi_table_may_say_where_it_lies(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for place in (table.as_uri(), str(table), f"{table.as_uri()}/"):
        assert _hudi_rows(_hudi(table, properties=f"hoodie.base.path={place}\n")) == list(range(10))


@pytest.mark.parametrize(
    "place",
    ["../hr/a.parquet", "x/../../hr/a.parquet", "/hr/a.parquet", "file:///hr/a.parquet", "http://host/a.parquet"],
)
def test_slices_of_hudi_that_lie_elsewhere_are_refused(place: str) -> None:
    """Whatever the package makes of a table of metadata."""
    one: Any = SimpleNamespace(base_file_size=1, base_file_relative_path=lambda: place)
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\].*allowed_roots"):
        hudi._listed("file:///lake/t", [one], ())
    elsewhere = hudi._listed("file:///lake/t", [one], ("file:///hr", "file:///lake", "http://host"))
    assert len(elsewhere.list.paths()) == 1


@pytest.mark.parametrize("linked", [False, True], ids=["pipe", "link to one"])
@pytest.mark.parametrize(
    "place",
    [".hoodie/hoodie.properties", f".hoodie/{INSTANT}.commit", ".hoodie/metadata/.hoodie/hoodie.properties", BASE_FILE],
)
def test_a_pipe_in_a_hudi_table_keeps_nobody_waiting(tmp_path: Path, place: str, linked: bool) -> None:
    table = _hudi(tmp_path / "t")
    (table / place).parent.mkdir(parents=True, exist_ok=True)
    (table / place).unlink(missing_ok=True)
    make_pipe(table / place, linked)
    with pytest.raises(Unsupported, match="no regular file"):
        grebe.open(str(table), format="hudi")


def test_links_that_lead_back_into_a_hudi_table_are_no_endless_way(tmp_path: Path) -> None:
    table = _hudi(tmp_path / "t")
    (table / ".hoodie" / "up").symlink_to(table)
    (table / ".hoodie" / "itself").symlink_to(table / ".hoodie" / "itself")
    roots.require_regular_files(table.as_uri(), deep=True)
    os.mkfifo(tmp_path / "pipe")
    (table / ".hoodie" / "out").symlink_to(tmp_path)
    with pytest.raises(Unsupported, match="no regular file"):
        roots.require_regular_files(table.as_uri(), deep=True)


def test_properties_of_hudi_that_are_too_long_are_not_read(tmp_path: Path) -> None:
    table = _hudi(tmp_path / "t", properties="#" * (1024 * 1024))
    with pytest.raises(UnreadableFile, match="no properties of Hudi") as raised:
        grebe.open(str(table), format="hudi")
    assert raised.value.code == "UNREADABLE_FILE_HUDI"
