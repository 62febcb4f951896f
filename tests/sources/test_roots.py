"""Logs of lake formats that name files outside of their table: nothing there is read unless a setting allows it."""

import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import UnreadableFile, Unsupported
from grebe.sources import delta_places
from grebe.sources.lake import LakeFiles
from grebe.sources.roots import is_allowed
from tests.sources.elsewhere import ROWS, SECRET, make_pipe, opened_in


def test_what_is_opened_by_whomever_is_seen(hr: Path) -> None:
    with opened_in(hr.parent) as opened:
        pq.read_table(hr)
    assert hr.name in opened


def _delta(folder: Path) -> Path:
    from deltalake import write_deltalake

    write_deltalake(str(folder), ROWS)
    return folder


def _add(table: Path, path: str, size: int) -> None:
    """A commit of Delta's log that adds a file by any path."""
    action = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": action}) + "\n")


def test_a_delta_log_that_names_a_file_elsewhere_on_the_disk_is_refused(tmp_path: Path, hr: Path) -> None:
    table = _delta(tmp_path / "t")
    for path in (
        hr.as_uri(),
        str(hr),
        "../hr/salaries.parquet",
        "x/../../hr/salaries.parquet",
        "%2e%2e/hr/salaries.parquet",
    ):
        _add(table, path, hr.stat().st_size)
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\].*allowed_roots"):
            grebe.open(str(table), format="delta")


def test_a_delta_log_that_names_a_host_asks_nothing_of_it(tmp_path: Path, heard: tuple[str, list[str]]) -> None:
    url, asked = heard
    table = _delta(tmp_path / "t")
    _add(table, f"{url}/latest/meta-data/part.parquet", 1000)
    with pytest.raises(Unsupported, match="allowed_roots"):
        grebe.open(str(table), format="delta")
    assert not asked


def test_files_below_an_allowed_root_are_read(tmp_path: Path, hr: Path) -> None:
    table = _delta(tmp_path / "t")
    _add(table, hr.as_uri(), hr.stat().st_size)
    config = grebe.Config(allowed_roots=(str(hr.parent),))
    rows = grebe.open(str(table), format="delta", config=config).scan("id = 4711")
    assert rows.to_pylist() == SECRET.to_pylist()


@pytest.mark.parametrize(
    ("uri", "table", "roots", "allowed"),
    [
        ("s3://lake/t/x", "s3://lake/t", (), True),
        ("s3://lake/data/x", "s3://lake/t", (), True),
        ("s3://other/x", "s3://lake/t", (), False),
        ("s3://other/x", "s3://lake/t", ("s3://other",), True),
        ("s3://lakes/x", "s3://lake/t", (), False),
        ("hdfs://nn/data/x", "hdfs://nn/t", (), True),
        ("hdfs://other/data/x", "hdfs://nn/t", (), False),
        ("file:///data/x", "file:///t", (), False),
        ("file:///t2/x", "file:///t", (), False),
        ("file:///t/x", "file:///t", (), True),
        ("file:///etc/passwd", "s3://lake/t", (), False),
        ("file:///data/x", "s3://lake/t", ("file:///data",), True),
        ("http://host/x", "http://host/t", (), False),
        ("http://host/t/x", "http://host/t", (), True),
    ],
)
def test_a_table_owns_its_folder_and_its_bucket(uri: str, table: str, roots: tuple[str, ...], allowed: bool) -> None:
    assert is_allowed(uri, table, roots) is allowed


def test_a_table_that_is_opened_by_a_link_to_its_folder_is_itself(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_allowed(f"file://{tmp_path}/real/x", f"file://{tmp_path}/link")


def test_paths_that_lead_back_into_the_table_are_one_path() -> None:
    made = LakeFiles.build("s3://lake/t", ["s3://lake/t/a/../b/./x", "s3://lake/t/.hidden/y"], [1, 1], [0, 0])
    assert made.list.paths().to_pylist() == [".hidden/y", "b/x"]


FEATURES = ["deletionVectors", "v2Checkpoint"]


def _protocol() -> list[dict[str, Any]]:
    fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {"id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    return [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": FEATURES,
                "writerFeatures": FEATURES,
            }
        },
        {"metaData": {**metadata, "partitionColumns": [], "configuration": {}, "createdTime": 1}},
    ]


def _written(place: Path, *actions: dict[str, Any]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _vector_file(place: Path, deleted: list[int]) -> int:
    """Write a deletion vector as Delta's format has it. Returns its length."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(deleted) - 1, 16) + struct.pack(f"<{len(deleted)}H", *deleted)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
    return len(data)


@pytest.fixture
def deleting(tmp_path: Path) -> Callable[[str, str], list[int]]:
    """A table of ten rows, and a vector of three of them in its folder and elsewhere: gives the rows with a vector of any place."""
    table = tmp_path / "t"
    table.mkdir()
    pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), table / "a.parquet")
    size = {_vector_file(folder / "dv.bin", [1, 2, 3]) for folder in (table, tmp_path / "hr")}.pop()

    def rows(kind: str, place: str) -> list[int]:
        vector = {"storageType": kind, "pathOrInlineDv": place, "offset": 1, "sizeInBytes": size, "cardinality": 3}
        add = {
            "path": "a.parquet",
            "partitionValues": {},
            "size": (table / "a.parquet").stat().st_size,
            "modificationTime": 1,
        }
        stats = json.dumps({"numRecords": 10, "tightBounds": False})
        _written(
            table / "_delta_log" / f"{0:020d}.json",
            *_protocol(),
            {"add": {**add, "dataChange": True, "stats": stats, "deletionVector": vector}},
        )
        found = grebe.open(str(table), format="delta").scan("id >= 0")["id"].to_pylist()
        return sorted(found)

    return rows


def test_a_deletion_vector_elsewhere_on_the_disk_is_not_read(
    tmp_path: Path, deleting: Callable[[str, str], list[int]]
) -> None:
    table = tmp_path / "t"
    assert deleting("p", (table / "dv.bin").as_uri()) == [0, *range(4, 10)]
    os.mkfifo(table / "pipe.bin")
    for kind, place in (
        ("p", (tmp_path / "hr" / "dv.bin").as_uri()),
        ("p", f"{table.as_uri()}/../hr/dv.bin"),
        ("p", f"{table.as_uri()}/%2e%2e/hr/dv.bin"),
        ("p", f"{table.as_uri()}/..\\hr\\dv.bin"),
        ("p", str(tmp_path / "hr" / "dv.bin")),
        ("p", "http://127.0.0.1:9/dv.bin"),
        ("p", (table / "pipe.bin").as_uri()),
        ("u", "../hr/vBn[lx{q8@P<9BNH/isA"),
        ("u", "short"),
        ("x", "dv.bin"),
    ):
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\]"):
            deleting(kind, place)


def test_vectors_that_delta_writes_itself_are_where_they_may_be(tmp_path: Path) -> None:
    """The example of Delta's specification: a folder and a file for `ab^-aqEH.-t@S}K{vb[*k^`."""
    uri = "file:///lake/t"
    unique = "d2c639aa-8816-431a-aaf6-d3fe2512ff61"
    assert delta_places._place(uri, "u", "ab^-aqEH.-t@S}K{vb[*k^") == f"{uri}/ab/deletion_vector_{unique}.bin"
    assert delta_places._place(uri, "u", "^-aqEH.-t@S}K{vb[*k^") == f"{uri}/deletion_vector_{unique}.bin"
    assert delta_places._place(uri, "i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L") is None


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_a_part_of_a_checkpoint_elsewhere_is_not_read(tmp_path: Path, format: str) -> None:
    from deltalake import DeltaTable, write_deltalake

    other = tmp_path / "other"
    write_deltalake(str(other), pa.table({"id": pa.array(range(3), pa.int64())}))
    DeltaTable(str(other)).create_checkpoint()
    adds = pq.read_table(next((other / "_delta_log").glob("*.checkpoint.parquet"))).select(["add"])
    table, (data,) = tmp_path / "t", other.glob("*.parquet")
    log, part = table / "_delta_log", "a0.parquet"
    for folder in (log / "_sidecars", tmp_path / "hr"):
        folder.mkdir(parents=True)
        pq.write_table(adds.filter(pc.is_valid(adds["add"])), folder / part)
    (table / data.name).write_bytes(data.read_bytes())
    _written(log / f"{0:020d}.json", *_protocol())
    _written(log / f"{1:020d}.json", {"commitInfo": {}})
    (log / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": 3}))
    size = (log / "_sidecars" / part).stat().st_size

    def rows(place: str) -> list[int]:
        sidecar = {"path": place, "sizeInBytes": size, "modificationTime": 1}
        checkpoint = log / f"{0:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{format}"
        actions = [*_protocol(), {"checkpointMetadata": {"version": 0}}, {"sidecar": sidecar}]
        if format == "json":
            _written(checkpoint, *actions)
        else:
            names = ("protocol", "metaData", "checkpointMetadata", "sidecar")
            columns = {name: [action.get(name) for action in actions] for name in names}
            for one in columns["metaData"]:
                if one is not None:
                    one.update(configuration=None, format={"provider": "parquet"})
            pq.write_table(pa.table(columns), checkpoint)
        return sorted(grebe.open(str(table), format="delta").scan("id >= 0")["id"].to_pylist())

    if format == "json":
        assert rows(part) == [0, 1, 2]
        assert rows((log / "_sidecars" / part).as_uri()) == [0, 1, 2]
    for place in (
        (tmp_path / "hr" / part).as_uri(),
        f"../../../hr/{part}",
        str(tmp_path / "hr" / part),
        f"%2e%2e/%2e%2e/%2e%2e/hr/{part}",
        f"..\\..\\hr\\{part}",
        f"http://127.0.0.1:9/{part}",
        "..",
        "",
    ):
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\]"):
            rows(place)


@pytest.mark.parametrize("linked", [False, True], ids=["pipe", "link to one"])
def test_a_pipe_among_the_files_of_a_delta_log_keeps_nobody_waiting(tmp_path: Path, linked: bool) -> None:
    table = _delta(tmp_path / "t")
    make_pipe(table / "_delta_log" / f"{1:020d}.json", linked)
    with pytest.raises(Unsupported, match="no regular file"):
        grebe.open(str(table), format="delta")


@pytest.mark.parametrize("line", ["{", '{"add": {}, "add": {}}', "[" * 100_000], ids=["cut", "twice", "deep"])
def test_a_checkpoint_that_is_no_json_is_unreadable(tmp_path: Path, line: str) -> None:
    table = _delta(tmp_path / "t")
    (table / "_delta_log" / f"{0:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json").write_text(line)
    with pytest.raises(UnreadableFile) as refused:
        grebe.open(str(table), format="delta")
    assert refused.value.code == "UNREADABLE_FILE_DELTA"
